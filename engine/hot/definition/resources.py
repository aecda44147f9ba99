"""Builds the definitions of a stack's resources; stack.py calls it."""

import json
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from hashlib import sha256

import orjson

from engine.errors import MAX_WARNINGS, Findings
from engine.hot.definition.assertions import read_resource_assertions
from engine.hot.definition.condition_filter import SWITCHED_OFF, EnabledResource
from engine.hot.definition.implicit_dependencies import TooManyDependencies, add_implicit
from engine.hot.definition.lifecycle import Lifecycle, read_lifecycle
from engine.hot.definition.model import ResourceDefinition
from engine.hot.definition.resource_keys import (
    find_required,
    read_deletion_policy,
    read_depends_on,
    read_external_id,
    read_update_policy,
    refuse_rules,
)
from engine.hot.definition.resource_properties import (
    PropertyChecker,
    evaluate_map,
    masked_properties,
)
from engine.hot.definition.reuse import (
    NONE_REUSABLE,
    ReusableResource,
    ReusableResources,
    body_digest,
    is_independent,
)
from engine.hot.definition.selected_resources import SelectedResources
from engine.hot.evaluation.evaluator import EvaluationScope, Evaluator
from engine.hot.evaluation.extended_evaluator import make_evaluator
from engine.hot.expressions.expression import Expression, encode
from engine.hot.language.dialect import Dialect
from engine.hot.nested.nested_templates import MAX_BYTES, NestedTemplates
from engine.hot.nested.template_type import TemplateType
from engine.hot.schema.properties import PUBLIC_SECRET, public_secrets
from engine.hot.schema.type_schema import TypeSchema
from engine.hot.template.template import ResourceBody, Template
from engine.topological_order import find_cycle
from engine.words import Json


@dataclass(frozen=True, slots=True)
class ResourceBuilder:
    """Builds the definitions of the resources of one stack. Faults are added to the findings of the
    scope.

    previous: of an earlier definition. collects: fill `reusable`, for a later definition.
    nested_types: those without findings whose type is a template. groups: those without findings
    whose type has members.
    """

    template: Template
    selected: SelectedResources
    scope: EvaluationScope
    checker: PropertyChecker
    nesting: NestedTemplates
    previous: ReusableResources = NONE_REUSABLE
    collects: bool = False
    reusable: dict[str, ReusableResource] = field(default_factory=dict)
    nested_types: dict[str, TemplateType] = field(default_factory=dict)
    groups: dict[str, TypeSchema] = field(default_factory=dict)

    @property
    def _dialect(self) -> Dialect:
        return self.scope.version.dialect

    @property
    def _findings(self) -> Findings:
        return self.scope.findings

    def define_resources(self) -> dict[str, ResourceDefinition]:
        """Return the definitions by name."""
        evaluator = make_evaluator(self.scope)
        defined = {
            name: self._reuse(one) or self._define_new(one, evaluator)
            for name, one in self.selected.enabled.items()
            if one.decided
        }
        self._add_implicit(defined)
        self._check_cycles(defined)
        return defined

    def read_undecided_groups(self) -> dict[str, Expression]:
        """Return the properties of the groups whose condition reads an unknown value, by name.
        Those with errors are left out: errors count only if the condition holds."""
        found: dict[str, Expression] = {}
        for name, one in self.selected.enabled.items():
            is_group = one.schema is not None and one.schema.grouping is not None
            if one.decided or not is_group or one.body.external_id is not None:
                continue
            scope = replace(self.scope, findings=Findings())
            evaluator = make_evaluator(scope)
            evaluator.owner, evaluator.each = name, one.body.each
            place = one.body.place_in(self._dialect.resources)
            properties, _ = self._read_properties(one.body, one.schema, place, evaluator)
            if not scope.findings.all:
                found[name] = properties
        return found

    def _add_implicit(self, defined: dict[str, ResourceDefinition]) -> None:
        schemas = {name: one.schema for name, one in self.selected.enabled.items()}
        left = self.nesting.implicit_left
        try:
            self.nesting.count_implicit(add_implicit(defined, schemas, left))
        except TooManyDependencies as error:
            remedy = (
                "Divide these resources among nested stacks; order the nested stacks with"
                f" {self._dialect.depends_on} where necessary."
            )
            self._findings.add(error.place, str(error), remedy, "RequestLimitExceeded")

    def _check_cycles(self, defined: Mapping[str, ResourceDefinition]) -> None:
        # Resources with undecided conditions or unreadable bodies may be required; their own
        # requirements are unknown.
        others = self.selected.unreadable.union(self.selected.enabled.keys() - defined.keys())
        undecided = dict.fromkeys(others, frozenset[str]())
        # A resource that requires nothing is on no cycle.
        requiring = {name: one.requires for name, one in defined.items() if one.requires}
        cycle = find_cycle(requiring | undecided) if requiring else []
        if cycle:
            shown = " -> ".join(cycle)
            reason = f"Circular Dependency Found: {shown}"
            remedy = "Remove one of these references: depends_on, get_resource or get_attr."
            at = f"{self._dialect.resources}.{cycle[0]}"
            self._findings.add("", reason, remedy, "CircularDependencyException", at=at)

    def _reuse(self, enabled: EnabledResource) -> ResourceDefinition | None:
        """Return the previous definition of a resource if it would be the same now."""
        body = enabled.body
        known = self.previous.resources.get(body.name)
        if (
            known is None
            or self.previous.version != self.template.version
            or known.schema is not enabled.schema
            or known.definition.type != enabled.type
            or enabled.findings.all
            or enabled.findings.warned
            or known.body != body_digest(body)
            or self.nesting.bytes + known.size > MAX_BYTES
        ):
            return None
        self.nesting.add_bytes(known.size)
        if body.depends_on:
            place = f"{body.place_in(self._dialect.resources)}.{self._dialect.depends_on}"
            declared = self.template.resources
            requires = find_required(body, place, self.selected, declared, self._findings)
            if requires != known.definition.requires:
                known = replace(known, definition=replace(known.definition, requires=requires))
        self.reusable[body.name] = known
        return known.definition

    def _define_new(self, enabled: EnabledResource, evaluator: Evaluator) -> ResourceDefinition:
        before = self._counts(evaluator)
        size = self.nesting.bytes
        defined = self._define_resource(enabled, evaluator)
        body, schema = enabled.body, enabled.schema
        if (
            self.collects
            and self._counts(evaluator) == before
            and len(self._findings.warned) < MAX_WARNINGS
            and schema is not None
            and enabled.template is None
            and is_independent(body, schema, defined)
        ):
            self.reusable[body.name] = ReusableResource(
                body_digest(body), schema, defined, self.nesting.bytes - size
            )
        return defined

    def _counts(self, evaluator: Evaluator) -> tuple[int, int, int]:
        """Errors, warnings and calls so far."""
        return len(self._findings.all), len(self._findings.warned), evaluator.calls

    def _define_resource(
        self, enabled: EnabledResource, evaluator: Evaluator
    ) -> ResourceDefinition:
        body, schema, dialect = enabled.body, enabled.schema, self._dialect
        place = body.place_in(dialect.resources)
        self._findings.extend(enabled.findings)
        before = len(self._findings.all)
        evaluator.owner, evaluator.reads, evaluator.secret = body.name, set(), False
        evaluator.each = body.each
        properties, external = self._read_properties(body, schema, place, evaluator)
        secret, evaluator.secret = evaluator.secret, False  # metadata is shown as it is
        metadata = evaluate_map(body.metadata, dialect.metadata, place, evaluator)
        secret_metadata = evaluator.secret
        lifecycle = self._read_lifecycle(body, schema, place, evaluator)
        assertions = read_resource_assertions(body, place, evaluator)
        reads = frozenset(evaluator.reads)
        masked = None
        if len(self._findings.all) == before and schema is not None:
            masked = self._mask(body, schema, properties, place, secret=secret)
            if enabled.template is not None:
                self.nested_types[body.name] = enabled.template
            elif schema.grouping is not None:
                self.groups[body.name] = schema
        secrets = [] if masked is None and not secret_metadata else [[masked, secret_metadata]]
        found = ResourceDefinition(
            body.name, enabled.type, properties, masked, metadata, reads, reads, "Retain",
            body.description, "", place, external, secret_metadata=secret_metadata,
        )  # fmt: skip
        if external is not None:
            # As in Heat: an external resource has no dependencies and is never deleted.
            refuse_rules(body, place, self._findings)
            found.is_data = found.reads_data = body.is_data
            digested = [encode([properties, metadata]), external, *encode(secrets)]
        else:
            policy = read_deletion_policy(body, schema, place, evaluator)
            found.deletion_policy = policy
            found.update_policy = read_update_policy(body, schema, place, evaluator)
            found.secret_policy = evaluator.secret
            found.requires = frozenset(evaluator.reads) | read_depends_on(
                body, place, evaluator, self.selected, self.template.resources
            )
            found.lifecycle, found.assertions = lifecycle, assertions
            policies = [] if policy == "Delete" else [policy]
            digested = encode([properties, metadata, *policies, *secrets])
            digested += _lifecycle_parts(lifecycle)
        found.digest = self._digest(enabled.type, digested)
        return found

    def _read_properties(
        self, body: ResourceBody, schema: TypeSchema | None, place: str, evaluator: Evaluator
    ) -> tuple[Expression, str | None]:
        """Return the properties, and the physical ID of a resource with `external_id`."""
        key, deferred = self._dialect.properties, evaluator.deferred
        names = () if schema is None else schema.properties
        evaluator.unused = schema is not None and schema.name == SWITCHED_OFF
        tolerated = evaluator.tolerated
        properties = evaluate_map(body.properties, key, place, evaluator, names)
        if evaluator.tolerated > tolerated:
            properties = {}  # some of them have no value, and nothing reads them
        evaluator.unused = False
        external = read_external_id(body, place, evaluator)
        if schema is not None and type(properties) is dict:
            properties = self.checker.check(
                schema,
                body,
                properties,
                f"{place}.{key}",
                evaluator,
                dynamic=evaluator.deferred != deferred,
                external=external is not None,
            )
        return properties, external

    def _mask(
        self,
        body: ResourceBody,
        schema: TypeSchema,
        properties: Expression,
        place: str,
        *,
        secret: bool,
    ) -> Expression | None:
        """Return the properties with secrets masked; None if nothing is secret. Report secrets that
        the type would show."""
        here = f"{place}.{self._dialect.properties}"
        masked = masked_properties(schema, body, properties, self.scope, here, secret=secret)
        if isinstance(properties, Mapping):
            for one in public_secrets(schema, properties, masked):
                self._findings.add(f"{here}.{one}", *PUBLIC_SECRET)
        return masked

    def _read_lifecycle(
        self, body: ResourceBody, schema: TypeSchema | None, place: str, evaluator: Evaluator
    ) -> Lifecycle | None:
        if body.lifecycle is None:
            return None
        evaluator.secret = False
        at = f"{place}.lifecycle"
        return read_lifecycle(body.lifecycle, schema, at, evaluator, self.selected.disabled)

    def _digest(self, kind: str, encoded: Json) -> str:
        try:
            raw = orjson.dumps([kind, encoded], option=orjson.OPT_SORT_KEYS)
        except (TypeError, ValueError):  # a function produced an integer beyond 64 bits
            raw = json.dumps([kind, encoded], sort_keys=True).encode("utf-8", "surrogatepass")
        if not self.nesting.add_bytes(len(raw)):
            reason = f"The stack's properties are larger than {MAX_BYTES} bytes."
            self._findings.add("", reason, "", "RequestLimitExceeded")
            self._findings.raise_if_any()
        return sha256(raw).hexdigest()


def _lifecycle_parts(lifecycle: Lifecycle | None) -> list[Json]:
    """Return the parts of a digest for a lifecycle."""
    return [] if lifecycle is None else [lifecycle.encode(), lifecycle.encode_triggers()]
