"""Selects the enabled resources of a template and resolves their types."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Final

from engine.errors import Findings
from engine.hot.definition.template_stacks import TemplateAddresses
from engine.hot.environment.environment import Environment
from engine.hot.environment.registry import (
    CIRCLE_REMEDY,
    CircularAlias,
    ResolvedType,
    is_template_file,
)
from engine.hot.evaluation.conditions import Conditions
from engine.hot.nested.group_members import with_member_attributes
from engine.hot.nested.nested_templates import NestedTemplates, TypeUse
from engine.hot.nested.template_stack import (
    TEMPLATE_STACK,
    TEMPLATE_URL,
    TIMEOUT,
    template_stack_schema,
)
from engine.hot.nested.template_type import TemplateType
from engine.hot.schema.type_schema import TypeSchema, unknown_type_remedy
from engine.hot.template.template import ResourceBody

#: The type to which environments map the types that they switch off.
SWITCHED_OFF: Final = "OS::Heat::None"
MAP_TYPE = "Use an installed type, or map this name to one in the environment's resource_registry."


@dataclass(slots=True)
class EnabledResource:
    """A resource whose condition is not false. Do not change it (not frozen: thousands are created
    per request).

    type: after aliases. schema: None if the type does not exist; `findings` has the reason.
    template: set if the type is a template. decided: False while the condition reads an unknown
    value.
    """

    body: ResourceBody
    type: str
    schema: TypeSchema | None
    template: TemplateType | None = None
    findings: Findings = field(default_factory=Findings)
    decided: bool = True


@dataclass(slots=True)
class ConditionFilter:
    """addresses: of templates at URLs. resolved_types: resolved types that are the same for every
    resource."""

    environment: Environment
    types: Mapping[str, TypeSchema]
    conditions: Conditions
    nesting: NestedTemplates
    findings: Findings
    addresses: TemplateAddresses
    resolved_types: dict[str, ResolvedType] = field(default_factory=dict)

    def select(self, body: ResourceBody) -> EnabledResource | None:
        """Return the enabled resource; None if its condition is false. Raises LimitReached."""
        is_on: bool | None = True
        if body.condition is not None:
            dialect = self.conditions.version.dialect
            place = body.place_in(dialect.resources)
            is_on = self.conditions.holds(body.condition, f"{place}.{dialect.condition}")
        if is_on is False:
            return None
        enabled = self._resolve_type(body)
        if is_on is None:
            enabled.decided, enabled.findings = False, Findings()
        return enabled

    def _resolve_type(self, body: ResourceBody) -> EnabledResource:
        wrong = Findings()
        try:
            found = self._find(body)
        except CircularAlias as circle:
            wrong.add(self._use_of(body).of_type, f"Circular aliases: {circle}", CIRCLE_REMEDY)
            return EnabledResource(body, body.type, None, findings=wrong)
        if found is None:
            self._report_unknown(self._use_of(body), wrong)
            return EnabledResource(body, body.type, None, findings=wrong)
        if found.type == TEMPLATE_STACK:
            return self._open_address(body, wrong)
        if not is_template_file(found.type):
            registry = self.environment.registry
            schema = with_member_attributes(self.types[found.type], body, registry, self.types)
            if found.type == SWITCHED_OFF and body.properties:
                self._warn_of_properties(body, self._use_of(body), wrong)
            return EnabledResource(body, found.type, schema, findings=wrong)
        use = self._use_of(body)
        kind = self.nesting.open_template(found, use, self.environment, self.types, wrong)
        if kind is not None:
            self.nesting.check_facade(kind, found, use, self.environment, self.types, wrong)
        return EnabledResource(body, found.type, kind.schema if kind else None, kind, wrong)

    def _open_address(self, body: ResourceBody, wrong: Findings) -> EnabledResource:
        """Return a resource whose template is at a URL."""
        dialect, schema = self.conditions.version.dialect, self.types[TEMPLATE_STACK]
        place = body.place_in(dialect.resources)
        properties = f"{place}.{dialect.properties}"
        if isinstance(body.properties, dict) and body.properties.get(TIMEOUT) is not None:
            reason = f"{TIMEOUT} has no effect: the time limit of the stack applies."
            wrong.warn(f"{properties}.{TIMEOUT}", reason, "Remove it.", "NoEffect")
        at = f"{properties}.{TEMPLATE_URL}"
        url = self.addresses.read(body, at, wrong)
        if url is None:
            return EnabledResource(body, TEMPLATE_STACK, schema, findings=wrong)
        use = TypeUse(body.name, body.type, place, at)
        found = ResolvedType(url)
        kind = self.nesting.open_template(found, use, self.environment, self.types, wrong)
        if kind is None:
            return EnabledResource(body, TEMPLATE_STACK, None, findings=wrong)
        schema = template_stack_schema(kind.schema, values_later=self.nesting.values_later)
        return EnabledResource(body, TEMPLATE_STACK, schema, kind, wrong)

    def _use_of(self, body: ResourceBody) -> TypeUse:
        dialect = self.conditions.version.dialect
        place = body.place_in(dialect.resources)
        return TypeUse(body.name, body.type, place, f"{place}.{dialect.type}")

    def _warn_of_properties(self, body: ResourceBody, use: TypeUse, wrong: Findings) -> None:
        """Warn of properties of a resource that the environment or the template switches off."""
        properties = self.conditions.version.dialect.properties
        reason = f"The environment maps {body.type} to {SWITCHED_OFF}: properties have no effect."
        remedy = "To have the resource, remove the type's entry in resource_registry."
        if body.type == SWITCHED_OFF:
            reason = f"{SWITCHED_OFF} creates nothing: properties have no effect."
            remedy = "Remove them, or write the type of a resource."
        wrong.warn(f"{use.place}.{properties}", reason, remedy, "NoEffect")

    def _find(self, body: ResourceBody) -> ResolvedType | None:
        registry = self.environment.registry
        own = registry.own_name(body.name)
        if own is None and (known := self.resolved_types.get(body.type)) is not None:
            return known
        found = registry.find(body.type, own or body.name, self.types)
        if found is not None and own is None:
            self.resolved_types[body.type] = found
        return found

    def _report_unknown(self, use: TypeUse, wrong: Findings) -> None:
        if self.environment.findings:
            return  # the unreadable environment may map it
        mapped = self.environment.registry.mapped.get(use.type)
        mapping = (
            f'It is mapped to "{mapped.target}", which is not a resource type. ' if mapped else ""
        )
        wrong.add(
            use.of_type,
            f"The Resource Type ({use.type}) could not be found.",
            mapping
            + (unknown_type_remedy(mapped.target if mapped else use.type, self.types) or MAP_TYPE),
        )
