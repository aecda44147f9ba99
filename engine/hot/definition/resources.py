"""Builds resource and output definitions from their template bodies; stack.py calls it."""

import json
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field
from hashlib import sha256

import orjson

from engine.errors import Findings, one_of
from engine.hot.definition.condition_filter import ConditionFilter, EnabledResource
from engine.hot.definition.dependency_cycle import find_cycle
from engine.hot.definition.model import OutputDefinition, ResourceDefinition
from engine.hot.environment.environment import Environment
from engine.hot.environment.registry import CircularAlias
from engine.hot.evaluation.conditions import Conditions
from engine.hot.evaluation.evaluator import REFUSED, Evaluator, Scope
from engine.hot.expressions.expression import Expression, encode, is_static, iterate_calls
from engine.hot.language.dialect import Dialect
from engine.hot.nested.nested_templates import MAX_BYTES, NestedTemplates
from engine.hot.nested.template_type import TemplateType
from engine.hot.schema.properties import (
    PUBLIC_SECRET,
    check_update_policy,
    has_hidden,
    mask_as_map,
    mask_hidden,
    public_secrets,
    use_current_names,
)
from engine.hot.schema.properties import check_properties as check_known
from engine.hot.schema.type_schema import TypeSchema
from engine.hot.template.template import ResourceBody, Template
from engine.words import Json

MUST_BE_KNOWN = "This must be known when the stack is defined, but it reads a resource."
#: Calls for which a finding exists already, or whose value cannot be checked yet.
REPORTED_CALLS = frozenset({REFUSED, "resource_facade"})

CheckProperties = Callable[[str, Mapping[str, Json], str, Findings], None]


@dataclass(slots=True)
class DefinitionBuilder:
    """Builds one definition.

    enabled: the enabled resources. nested_types: those without findings whose type is a template.
    groups: those without findings whose type has members.
    """

    template: Template
    environment: Environment
    types: Mapping[str, TypeSchema]
    check_type: CheckProperties
    findings: Findings
    conditions: Conditions
    nesting: NestedTemplates
    enabled: dict[str, EnabledResource] = field(default_factory=dict)
    disabled: frozenset[str] = frozenset()
    types_with_hidden: dict[str, bool] = field(default_factory=dict)
    nested_types: dict[str, TemplateType] = field(default_factory=dict)
    groups: dict[str, TypeSchema] = field(default_factory=dict)

    @property
    def dialect(self) -> Dialect:
        return self.conditions.version.dialect

    @property
    def _unreadable(self) -> frozenset[str]:
        return self.template.unreadable.resources

    def select(self) -> None:
        """Select the enabled resources and resolve their types. Raises LimitReached."""
        choosing = ConditionFilter(
            self.environment, self.types, self.conditions, self.nesting, self.findings
        )
        for name, body in self.template.resources.items():
            if (enabled := choosing.select(body)) is not None:
                self.enabled[name] = enabled
        self.disabled = frozenset(self.template.resources.keys() - self.enabled.keys())

    def schemas(self) -> dict[str, TypeSchema | None]:
        return {name: one.schema for name, one in self.enabled.items()}

    def define_resources(self, scope: Scope) -> dict[str, ResourceDefinition]:
        evaluator = Evaluator(scope)
        defined = {
            name: self._define_resource(one, evaluator)
            for name, one in self.enabled.items()
            if one.decided
        }
        # Resources with undecided conditions or unreadable bodies may be required; their own
        # requirements are unknown.
        others = self._unreadable.union(self.enabled.keys() - defined.keys())
        undecided = dict.fromkeys(others, frozenset[str]())
        cycle = find_cycle({name: one.requires for name, one in defined.items()} | undecided)
        if cycle:
            shown = " -> ".join(cycle)
            reason = f"Circular Dependency Found: {shown}"
            self.findings.add("", reason, "", "CircularDependencyException")
        return defined

    def _define_resource(
        self, enabled: EnabledResource, evaluator: Evaluator
    ) -> ResourceDefinition:
        body, kind, schema = enabled.body, enabled.type, enabled.schema
        name, dialect = body.name, self.dialect
        place = f"{dialect.resources}.{name}"
        self.findings.extend(enabled.findings)
        before = len(self.findings.all)
        evaluator.owner, evaluator.reads, evaluator.secret = name, set(), False
        deferred = evaluator.deferred
        properties = self._evaluate_map(body.properties, dialect.properties, place, evaluator)
        if schema is not None and type(properties) is dict:
            properties = self._check_properties(schema, properties, place, evaluator, deferred)
        secret, evaluator.secret = evaluator.secret, False  # metadata is shown as it is
        metadata = self._evaluate_map(body.metadata, dialect.metadata, place, evaluator)
        secret_metadata = evaluator.secret
        reads = frozenset(evaluator.reads)
        masked = None
        if len(self.findings.all) == before and schema is not None:
            masked = self._mask_properties(schema, body, properties, secret, evaluator.scope, place)
            if isinstance(properties, Mapping):
                for one in public_secrets(schema, properties, masked):
                    self.findings.add(f"{place}.{dialect.properties}.{one}", *PUBLIC_SECRET)
            if enabled.template is not None:
                self.nested_types[name] = enabled.template
            elif schema.grouping is not None:
                self.groups[name] = schema
        external = (
            self._read_external_id(body, place, evaluator) if body.external_id is not None else None
        )
        secrets = [] if masked is None and not secret_metadata else [[masked, secret_metadata]]
        if external is not None:
            # As in Heat: an external resource has no dependencies and is never deleted.
            return ResourceDefinition(
                name, kind, properties, masked, metadata, reads, reads, "Retain",
                body.description,
                self._digest(kind, [encode([properties, metadata]), external, *encode(secrets)]),
                place, external, secret_metadata=secret_metadata,
            )  # fmt: skip
        policy = "Delete"
        if body.deletion_policy:
            policy = self._read_deletion_policy(body, schema, place, evaluator)
        update_policy, evaluator.secret = {}, False
        if body.update_policy is not None:
            update_policy = self._update_policy(body, schema, place, evaluator)
        requires = frozenset(evaluator.reads)
        return ResourceDefinition(
            name,
            kind,
            properties,
            masked,
            metadata,
            requires | self._depends_on(body, place) if body.depends_on else requires,
            reads,
            policy,
            body.description,
            self._digest(
                kind,
                encode([properties, metadata, *([] if policy == "Delete" else [policy]), *secrets]),
            ),
            place,
            secret_metadata=secret_metadata,
            update_policy=update_policy,
            secret_policy=evaluator.secret,
        )

    def _update_policy(
        self, body: ResourceBody, schema: TypeSchema | None, place: str, evaluator: Evaluator
    ) -> Expression:
        key = self.dialect.update_policy
        value = self._evaluate_map(body.update_policy, key, place, evaluator)
        if schema is None or not schema.update_policy or type(value) is not dict:
            return value
        budget = evaluator.scope.budget
        return check_update_policy(schema, value, f"{place}.{key}", self.findings, budget)

    def _evaluate_map(
        self, snippet: Json, key: str, place: str, evaluator: Evaluator
    ) -> Expression:
        if snippet is None:
            return {}
        here = f"{place}.{key}"
        if type(snippet) is not dict:
            self.findings.add(here, f'"{key}" must be a map.')
            return {}
        found = evaluator.evaluate(snippet, here)
        if type(found) is list or isinstance(found, str | int | float):
            self.findings.add(here, f'"{key}" must be a map, not the result of this function.')
        return {} if found is None else found

    def _check_properties(
        self,
        schema: TypeSchema,
        properties: dict[str, Expression],
        place: str,
        evaluator: Evaluator,
        deferred: int,
    ) -> dict[str, Expression]:
        """Check properties. deferred: number of deferred calls before they were evaluated."""
        here = f"{place}.{self.dialect.properties}"
        before = len(self.findings.all)
        budget, dynamic = evaluator.scope.budget, evaluator.deferred != deferred
        checked = check_known(schema, properties, here, self.findings, budget)
        if len(self.findings.all) == before and schema.name in self.types:
            self.check_type(
                schema.name, _known_properties(checked) if dynamic else checked, here, self.findings
            )
        for name in schema.names_resources:
            self._check_named(checked.get(name), f"{here}.{name}")
        return checked

    def _check_named(self, value: Expression, place: str) -> None:
        """Check that the named resources exist; unknown names are skipped."""
        for one in value if type(value) is list else ():
            if type(one) is str and one not in self.enabled and one not in self._unreadable:
                reason = f'there is no resource "{one}" in this template'
                self.findings.add(place, reason, one_of(one, list(self.enabled), "Resources"))

    def _mask_properties(
        self,
        schema: TypeSchema,
        body: ResourceBody,
        properties: Expression,
        secret: bool,
        scope: Scope,
        place: str,
    ) -> Expression | None:
        types_with_hidden = self.types_with_hidden.get(schema.name)
        if types_with_hidden is None:
            types_with_hidden = self.types_with_hidden[schema.name] = has_hidden(schema.properties)
        if not secret and not types_with_hidden:
            return None
        masked = properties
        if secret:
            here = f"{place}.{self.dialect.properties}"
            masked = Evaluator(scope, masked=True).evaluate(body.properties, here) or {}
            masked = use_current_names(schema, mask_as_map(masked, properties))
        if types_with_hidden:
            masked = mask_hidden(schema, masked)
        return masked if masked != properties else None

    def _depends_on(self, body: ResourceBody, place: str) -> frozenset[str]:
        """Return the required resources that are enabled; references to disabled ones are
        ignored.
        """
        for name in body.depends_on:
            if name not in self.template.resources and name not in self._unreadable:
                self.findings.add(
                    f"{place}.{self.dialect.depends_on}",
                    f'The specified reference "{name}" (in {body.name}) is incorrect.',
                    one_of(name, list(self.template.resources), "Resources"),
                    "InvalidTemplateReference",
                )
        return frozenset(name for name in body.depends_on if name in self.enabled)

    def _read_external_id(self, body: ResourceBody, place: str, evaluator: Evaluator) -> str | None:
        evaluator.secret = False
        given = evaluator.evaluate(body.external_id, f"{place}.external_id")
        if evaluator.secret:
            reason = "must not come from a hidden parameter: readers can see physical IDs"
            self.findings.add(
                f"{place}.external_id", reason, "Write the physical ID of the resource."
            )
            return None
        if isinstance(given, str) and given:
            return given
        if given is not None and not _is_reported(given):
            reason = "must be a string" if is_static(given) else MUST_BE_KNOWN
            self.findings.add(
                f"{place}.external_id", reason, "Write the physical ID of the resource."
            )
        return None

    def _read_deletion_policy(
        self, body: ResourceBody, schema: TypeSchema | None, place: str, evaluator: Evaluator
    ) -> str:
        here = f"{place}.{self.dialect.deletion_policy}"
        policy = evaluator.evaluate(body.deletion_policy, here)
        lower = evaluator.scope.version.lower_case_policies
        if policy == "Delete" or (policy == "delete" and lower):
            return "Delete"
        allowed = {"Retain", "Snapshot"} | ({"retain", "snapshot"} if lower else set())
        if isinstance(policy, str) and policy in allowed:
            if policy.lower() == "snapshot" and schema is not None and not schema.snapshots:
                reason = '"Snapshot" deletion policy not supported'
                self.findings.add(
                    here, reason, f"{schema.name} does not support snapshots; use Retain."
                )
            return policy.capitalize()
        if _is_reported(policy):
            return "Delete"
        if not is_static(policy):
            self.findings.add(here, MUST_BE_KNOWN, "Write the policy, or take it from a parameter.")
            return "Delete"
        near = one_of(str(policy), ["Delete", "Retain", "Snapshot"], "Policies")
        self.findings.add(here, f'Invalid deletion policy "{policy}"', near)
        return "Delete"

    def _digest(self, kind: str, encoded: Json) -> str:
        try:
            raw = orjson.dumps([kind, encoded], option=orjson.OPT_SORT_KEYS)
        except (TypeError, ValueError):  # a function produced an integer beyond 64 bits
            raw = json.dumps([kind, encoded], sort_keys=True).encode("utf-8", "surrogatepass")
        if not self.nesting.add_bytes(len(raw)):
            reason = f"The stack's properties are larger than {MAX_BYTES} bytes."
            self.findings.add("", reason, "", "RequestLimitExceeded")
            self.findings.raise_if_any()
        return sha256(raw).hexdigest()

    def find_types(
        self, group: ResourceDefinition, members: Iterable[Mapping[str, Json]], place: str
    ) -> None:
        """Report members whose types do not exist."""
        for name in dict.fromkeys(str(member["type"]) for member in members):
            try:
                found = self.environment.registry.find(name, group.name, self.types)
            except CircularAlias:
                found = None
            if found is None:
                self.findings.add(
                    f"{group.place}.{self.dialect.properties}.{place}",
                    f"The Resource Type ({name}) of its members could not be found.",
                    "Map it to another type or a template in the environment's resource_registry.",
                )

    def define_outputs(self, scope: Scope) -> dict[str, OutputDefinition]:
        evaluator, dialect = Evaluator(scope), self.dialect
        outputs: dict[str, OutputDefinition] = {}
        for name, body in self.template.outputs.items():
            place = f"{dialect.outputs}.{name}"
            evaluator.owner, evaluator.secret = name, False
            on: bool | None = True
            if body.condition is not None:
                on = self.conditions.holds(body.condition, f"{place}.{dialect.condition}")
            value = evaluator.evaluate(body.value, f"{place}.{dialect.value}") if on else None
            outputs[name] = OutputDefinition(value, body.description, evaluator.secret)
        return outputs


def _is_reported(value: Expression) -> bool:
    """Return whether a finding exists for the value already, or it cannot be checked yet."""
    return any(call.name in REPORTED_CALLS for call in iterate_calls(value))


def _known_properties(properties: Mapping[str, Expression]) -> dict[str, Json]:
    """Return the properties whose whole value is known."""
    return {name: value for name, value in properties.items() if is_static(value)}
