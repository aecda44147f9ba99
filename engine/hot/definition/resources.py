"""Builds resource and output definitions from their template bodies; stack.py calls it."""

import json
from collections.abc import Callable, Collection, Iterable, Mapping
from dataclasses import dataclass, field, replace
from hashlib import sha256

import orjson

from engine.errors import MAX_WARNINGS, Finding, Findings, Quoting, one_of
from engine.hot.definition.assertions import AssertionReader
from engine.hot.definition.condition_filter import ConditionFilter, EnabledResource
from engine.hot.definition.expansion import Expansion, OpenNames, expand
from engine.hot.definition.implicit_dependencies import TooManyDependencies, add_implicit
from engine.hot.definition.lifecycle import Lifecycle, read_lifecycle
from engine.hot.definition.model import (
    OutputDefinition,
    ResourceAssertions,
    ResourceDefinition,
)
from engine.hot.definition.reuse import (
    NONE_REUSABLE,
    ReusableResource,
    ReusableResources,
    body_digest,
    is_independent,
)
from engine.hot.environment.environment import Environment
from engine.hot.environment.registry import CircularAlias, is_template_file
from engine.hot.evaluation.assertions import add_assertions
from engine.hot.evaluation.conditions import Conditions
from engine.hot.evaluation.evaluator import EvaluationScope, Evaluator
from engine.hot.evaluation.extended_evaluator import make_evaluator
from engine.hot.expressions.expression import (
    REFUSED,
    Expression,
    encode,
    is_static,
    iterate_calls,
)
from engine.hot.expressions.masking import contains_mask
from engine.hot.language.dialect import Dialect
from engine.hot.language.misspelling import UNKNOWN_FUNCTION
from engine.hot.nested.nested_templates import MAX_BYTES, NestedTemplates
from engine.hot.nested.template_type import TemplateType
from engine.hot.schema.properties import (
    PUBLIC_SECRET,
    check_update_policy,
    mask_as_map,
    mask_hidden,
    public_secrets,
    use_current_names,
)
from engine.hot.schema.properties import check_properties as check_known
from engine.hot.schema.type_schema import TypeSchema, without_required
from engine.hot.syntax.keyed_names import base_name
from engine.hot.template.template import ResourceBody, Template, wrong_kind
from engine.topological_order import find_cycle
from engine.words import Json

MUST_BE_KNOWN = "This must be known when the stack is defined, but it reads a resource."
#: Calls for which a finding exists already, or whose value cannot be checked yet.
REPORTED_CALLS = frozenset({REFUSED, "resource_facade"})

CheckProperties = Callable[[str, Mapping[str, Json], str, Findings], None]


@dataclass(slots=True)
class DefinitionBuilder:
    """Builds one definition.

    previous: of an earlier definition. collects: fill `reusable`, for a later definition. enabled:
    the enabled resources. nested_types: those without findings whose type is a template. groups:
    those without findings whose type has members.
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
    previous: ReusableResources = NONE_REUSABLE
    collects: bool = False
    reusable: dict[str, ReusableResource] = field(default_factory=dict)
    nested_types: dict[str, TemplateType] = field(default_factory=dict)
    groups: dict[str, TypeSchema] = field(default_factory=dict)
    expansion: Expansion = field(default_factory=lambda: Expansion({}))

    @property
    def dialect(self) -> Dialect:
        return self.conditions.version.dialect

    @property
    def _unreadable(self) -> frozenset[str]:
        return self.template.unreadable.resources | self.expansion.unknown

    def select(self, scope: EvaluationScope) -> None:
        """Expand `for_each`, select the enabled resources and resolve their types. Raises
        LimitReached. scope: without types and locals.
        """
        self.expansion = expand(self.template, scope, self.nesting)
        choosing = ConditionFilter(
            self.environment, self.types, self.conditions, self.nesting, self.findings
        )
        for name, body in self.expansion.bodies.items():
            if (enabled := choosing.select(body)) is not None:
                self.enabled[name] = enabled
        self.disabled = frozenset(self.expansion.bodies.keys() - self.enabled.keys())
        for name, made in [*self.expansion.names.items()]:
            if made and self.disabled.issuperset(made.values()):
                self.disabled |= {name}
                del self.expansion.names[name]

    def schemas(self) -> dict[str, TypeSchema | None]:
        """Return the schemas of the enabled resources; None for those that could not be read."""
        schemas = {name: one.schema for name, one in self.enabled.items()}
        schemas |= dict.fromkeys(self._unreadable)
        return OpenNames(schemas) if self.expansion.unknown else schemas

    def define_resources(self, scope: EvaluationScope) -> dict[str, ResourceDefinition]:
        evaluator = make_evaluator(scope)
        defined = {
            name: self._reuse(one) or self._define_new(one, evaluator)
            for name, one in self.enabled.items()
            if one.decided
        }
        self._add_implicit(defined)
        # Resources with undecided conditions or unreadable bodies may be required; their own
        # requirements are unknown.
        others = self._unreadable.union(self.enabled.keys() - defined.keys())
        undecided = dict.fromkeys(others, frozenset[str]())
        # A resource that requires nothing is on no cycle.
        requiring = {name: one.requires for name, one in defined.items() if one.requires}
        cycle = find_cycle(requiring | undecided) if requiring else []
        if cycle:
            shown = " -> ".join(cycle)
            reason = f"Circular Dependency Found: {shown}"
            remedy = "Remove one of these references: depends_on, get_resource or get_attr."
            at = f"{self.dialect.resources}.{cycle[0]}"
            self.findings.add("", reason, remedy, "CircularDependencyException", at=at)
        return defined

    def _add_implicit(self, defined: dict[str, ResourceDefinition]) -> None:
        schemas = {name: one.schema for name, one in self.enabled.items()}
        left = self.nesting.implicit_left
        try:
            self.nesting.count_implicit(add_implicit(defined, schemas, left))
        except TooManyDependencies as error:
            remedy = (
                "Divide these resources among nested stacks; order the nested stacks with"
                f" {self.dialect.depends_on} where necessary."
            )
            self.findings.add(error.place, str(error), remedy, "RequestLimitExceeded")

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
            requires = self._depends_on(body, body.place_in(self.dialect.resources))
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
            and len(self.findings.warned) < MAX_WARNINGS
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
        return len(self.findings.all), len(self.findings.warned), evaluator.calls

    def _define_resource(
        self, enabled: EnabledResource, evaluator: Evaluator
    ) -> ResourceDefinition:
        body, kind, schema = enabled.body, enabled.type, enabled.schema
        name, dialect = body.name, self.dialect
        place = body.place_in(dialect.resources)
        self.findings.extend(enabled.findings)
        before = len(self.findings.all)
        evaluator.owner, evaluator.reads, evaluator.secret = name, set(), False
        evaluator.each = body.each
        deferred = evaluator.deferred
        names = () if schema is None else schema.properties
        properties = self._evaluate_map(
            body.properties, dialect.properties, place, evaluator, names
        )
        secret = evaluator.secret
        external = (
            self._read_external_id(body, place, evaluator) if body.external_id is not None else None
        )
        evaluator.secret = secret
        if schema is not None and type(properties) is dict:
            properties = self._check_properties(
                schema, body, properties, place, evaluator, deferred, external=external is not None
            )
        secret, evaluator.secret = evaluator.secret, False  # metadata is shown as it is
        metadata = self._evaluate_map(body.metadata, dialect.metadata, place, evaluator)
        secret_metadata = evaluator.secret
        lifecycle = self._read_lifecycle(body, schema, place, evaluator)
        assertions = self._read_assertions(body, place, evaluator)
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
        secrets = [] if masked is None and not secret_metadata else [[masked, secret_metadata]]
        if external is not None:
            self._refuse_rules(body, place)
            # As in Heat: an external resource has no dependencies and is never deleted.
            return ResourceDefinition(
                name, kind, properties, masked, metadata, reads, reads, "Retain",
                body.description,
                self._digest(kind, [encode([properties, metadata]), external, *encode(secrets)]),
                place, external, secret_metadata=secret_metadata, is_data=body.is_data,
                reads_data=body.is_data,
            )  # fmt: skip
        policy = "Delete"
        if body.deletion_policy:
            policy = self._read_deletion_policy(body, schema, place, evaluator)
        update_policy, evaluator.secret = {}, False
        if body.update_policy is not None:
            update_policy = self._update_policy(body, schema, place, evaluator)
        requires = frozenset(evaluator.reads) | self._find_required(body, place, evaluator)
        return ResourceDefinition(
            name,
            kind,
            properties,
            masked,
            metadata,
            requires,
            reads,
            policy,
            body.description,
            self._digest(
                kind,
                encode([properties, metadata, *([] if policy == "Delete" else [policy]), *secrets])
                + _lifecycle_parts(lifecycle),
            ),
            place,
            secret_metadata=secret_metadata,
            update_policy=update_policy,
            secret_policy=evaluator.secret,
            lifecycle=lifecycle,
            assertions=assertions,
        )

    def _read_lifecycle(
        self, body: ResourceBody, schema: TypeSchema | None, place: str, evaluator: Evaluator
    ) -> Lifecycle | None:
        if body.lifecycle is None:
            return None
        evaluator.secret = False
        at = f"{place}.lifecycle"
        return read_lifecycle(body.lifecycle, schema, at, evaluator, self.disabled)

    def _read_assertions(
        self, body: ResourceBody, place: str, evaluator: Evaluator
    ) -> ResourceAssertions | None:
        if body.preconditions is None and body.postconditions is None:
            return None
        masked = make_evaluator(evaluator.scope, masked=True)
        masked.owner, masked.each = body.name, evaluator.each
        before = AssertionReader(evaluator, masked, "precondition")
        after = AssertionReader(evaluator, masked, "postcondition", owner=body.name)
        found = ResourceAssertions(
            before.read(body.preconditions, f"{place}.preconditions"),
            after.read(body.postconditions, f"{place}.postconditions"),
            before.secret or after.secret,
        )
        return found if found.preconditions or found.postconditions else None

    def _update_policy(
        self, body: ResourceBody, schema: TypeSchema | None, place: str, evaluator: Evaluator
    ) -> Expression:
        key = self.dialect.update_policy
        value = self._evaluate_map(body.update_policy, key, place, evaluator)
        if schema is None or not schema.update_policy or type(value) is not dict:
            return value
        budget = evaluator.scope.budget
        found = Findings()
        checked = check_update_policy(schema, value, f"{place}.{key}", found, budget)
        if evaluator.secret:
            found.all = [one.without_values() for one in found.all]
        self.findings.extend(found)
        return checked

    def _evaluate_map(
        self,
        snippet: Json,
        key: str,
        place: str,
        evaluator: Evaluator,
        names: Collection[str] = (),
    ) -> Expression:
        """Return the value of a map. names: of properties, if it has the properties of a type."""
        if snippet is None:
            return {}
        here = f"{place}.{key}"
        if type(snippet) is not dict:
            reason = wrong_kind(evaluator.owner, key, "object")
            self.findings.add(here, reason, "Write a map.")
            return {}
        found = evaluator.evaluate_properties(snippet, here, names)
        if type(found) is list or isinstance(found, str | int | float):
            self.findings.add(
                here,
                f'"{key}" must be a map, not the result of this function.',
                "Write a map, and use the function for its values.",
            )
        return {} if found is None else found

    def _with_meant_function(self, one: Finding) -> Finding:
        """Return a finding about a map that was probably meant as a call, with that as remedy."""
        remedies = (
            warning.remedy
            for warning in self.findings.warnings
            if warning.code == UNKNOWN_FUNCTION and warning.place.rpartition(".")[0] == one.place
        )
        return replace(one, remedy=next(remedies, one.remedy))

    def _check_properties(
        self,
        schema: TypeSchema,
        body: ResourceBody,
        properties: dict[str, Expression],
        place: str,
        evaluator: Evaluator,
        deferred: int,
        *,
        external: bool,
    ) -> dict[str, Expression]:
        """Check properties. deferred: number of deferred calls before they were evaluated.
        external: the stack does not make the resource, so it may lack required properties.
        """
        here = f"{place}.{self.dialect.properties}"
        budget, dynamic = evaluator.scope.budget, evaluator.deferred != deferred
        own, by_type = Findings(), Findings()
        wanted = schema
        if (
            external
            or body.is_data
            or (self.nesting.values_later and is_template_file(schema.name))
        ):
            wanted = without_required(schema)
        checked = check_known(wanted, properties, here, own, budget)
        if own.all and isinstance(body.properties, dict):
            own.all = [_at_written_property(one, body.properties, here) for one in own.all]
        known = _known_properties(checked) if dynamic else checked
        if not own.all and schema.name in self.types and (body.is_data or not external):
            self.check_type(schema.name, known, here, by_type)
        for name in schema.names_resources:
            self._check_named(checked.get(name), f"{here}.{name}", own)
        if own.all and self.findings.warned:
            own.all = [*map(self._with_meant_function, own.all)]
        if evaluator.secret and (own.all or by_type.all):
            visible = self._visible_names(schema, body, properties, evaluator.scope, here)
            places = [here, *(f"{here}.{name}" for name in visible or ())]
            own.all = [
                one if visible is not None and _is_at(one, places) else one.without_values()
                for one in own.all
            ]
            # A check of the type may compare several properties: only what it also reports without
            # the secret ones is shown.
            again = Findings()
            shown = {name: value for name, value in known.items() if name in (visible or ())}
            if by_type.all:
                self.check_type(schema.name, shown, here, again)
            by_type.all = [one if one in again.all else one.without_values() for one in by_type.all]
        self.findings.extend(own)
        self.findings.extend(by_type)
        return checked

    def _visible_names(
        self,
        schema: TypeSchema,
        body: ResourceBody,
        properties: Mapping[str, Expression],
        scope: EvaluationScope,
        place: str,
    ) -> frozenset[str] | None:
        """Return the names of the properties without a secret; None if names may be secret, too."""
        masked = _mask_properties(body, schema, scope, place)
        if not isinstance(masked, dict) or any(map(contains_mask, masked)):
            return None
        current = use_current_names(schema, masked)
        return frozenset(
            name
            for each in (masked, current)
            for name, value in each.items()
            if not contains_mask(value)
        )

    def _check_named(self, value: Expression, place: str, findings: Findings) -> None:
        """Check that the named resources exist; unknown names are skipped."""
        for one in value if type(value) is list else ():
            if type(one) is str and one not in self.enabled and one not in self._unreadable:
                known = list(self.enabled)
                reason = Quoting(
                    f'there is no resource "{one}" in this template',
                    "there is no resource of this name in this template",
                )
                remedy = Quoting(one_of(one, known, "Resources"), one_of("", known, "Resources"))
                findings.add(place, reason, remedy)

    def _mask_properties(
        self,
        schema: TypeSchema,
        body: ResourceBody,
        properties: Expression,
        secret: bool,
        scope: EvaluationScope,
        place: str,
    ) -> Expression | None:
        if not secret and not schema.hides:
            return None
        masked = properties
        if secret:
            here = f"{place}.{self.dialect.properties}"
            masked = _mask_properties(body, schema, scope, here) or {}
            masked = use_current_names(schema, mask_as_map(masked, properties))
        if schema.hides:
            masked = mask_hidden(schema, masked)
        return masked if masked != properties else None

    def _refuse_rules(self, body: ResourceBody, place: str) -> None:
        """Report rules of an external resource: the stack does not operate on it."""
        for key in ("lifecycle", "preconditions", "postconditions"):
            if getattr(body, key) is not None:
                reason = f"A resource with external_id has no {key}: the stack does not change it."
                self.findings.add(f"{place}.{key}", reason, "Remove one of both.")

    def _find_required(
        self, body: ResourceBody, place: str, evaluator: Evaluator
    ) -> frozenset[str]:
        """Return the resources of `depends_on` that are enabled."""
        if body.computed_depends_on is not None:
            outer, evaluator.secret = evaluator.secret, False
            body = self._with_names(body, place, evaluator)
            evaluator.secret = outer
        return self._depends_on(body, place) if body.depends_on else frozenset()

    def _with_names(self, body: ResourceBody, place: str, evaluator: Evaluator) -> ResourceBody:
        """Return the body with the names that the functions of its `depends_on` give."""
        at = f"{place}.{self.dialect.depends_on}"
        found = evaluator.evaluate(body.computed_depends_on, at)
        items = found if isinstance(found, list) else [found]
        names = [
            name
            for item in items
            if item is not None
            for name in (item if isinstance(item, list) else [item])
        ]
        if not all(isinstance(name, str) for name in names):
            if not _is_reported(names):
                reason = "The functions must give names that are known when the stack is defined."
                self.findings.add(at, reason, "Use functions of parameters only.")
            names = []
        elif evaluator.secret:
            reason = "must not come from a hidden parameter: readers can see dependencies"
            self.findings.add(at, reason, "Use a parameter that is not hidden.")
            names = []
        return replace(body, depends_on=tuple(names), computed_depends_on=None)

    def _depends_on(self, body: ResourceBody, place: str) -> frozenset[str]:
        """Return the required resources that are enabled; references to disabled ones are
        ignored.
        """
        known: Mapping[str, ResourceBody] = self.template.resources
        if self.expansion.names:
            known = {**known, **self.expansion.bodies}
        for name in body.depends_on:
            if name not in known and not self._unreadable & {name, base_name(name)}:
                self.findings.add(
                    f"{place}.{self.dialect.depends_on}",
                    f'The specified reference "{name}" (in {body.name}) is incorrect.',
                    one_of(name, [*known], "Resources"),
                    "InvalidTemplateReference",
                )
        keyed = self.expansion.names
        names = (one for name in body.depends_on for one in keyed.get(name, {name: name}).values())
        return frozenset(name for name in names if name in self.enabled)

    def _read_external_id(self, body: ResourceBody, place: str, evaluator: Evaluator) -> str | None:
        evaluator.secret = False
        at = f"{place}.{'id' if body.is_data else 'external_id'}"
        remedy = "Write the physical ID of the resource."
        given = evaluator.evaluate(body.external_id, at)
        if evaluator.secret:
            reason = "must not come from a hidden parameter: readers can see physical IDs"
            self.findings.add(at, reason, remedy)
            return None
        if isinstance(given, str) and given:
            return given
        if given not in (None, "") and not _is_reported(given):
            key = "id" if body.is_data else "external_id"
            kind = wrong_kind(body.name, key, "string")
            self.findings.add(at, kind if is_static(given) else MUST_BE_KNOWN, remedy)
        elif body.is_data and given in (None, ""):
            self.findings.add(at, "must not be empty", remedy)
        return None

    def _read_deletion_policy(
        self, body: ResourceBody, schema: TypeSchema | None, place: str, evaluator: Evaluator
    ) -> str:
        here = f"{place}.{self.dialect.deletion_policy}"
        evaluator.secret = False
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
        known = ["Delete", "Retain", "Snapshot"]
        if evaluator.secret:
            self.findings.add(here, "Invalid deletion policy", one_of("", known, "Policies"))
        elif isinstance(body.deletion_policy, list):
            reason = wrong_kind(body.name, self.dialect.deletion_policy, "string")
            self.findings.add(here, reason, one_of("", known, "Policies"))
        else:
            near = one_of(str(policy), known, "Policies")
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
                shown = "" if group.masked_properties is not None else f" ({name})"
                self.findings.add(
                    f"{group.place}.{self.dialect.properties}.{place}",
                    f"The Resource Type{shown} of its members could not be found.",
                    "Map it to another type or a template in the environment's resource_registry.",
                )

    def define_imports(self, scope: EvaluationScope) -> dict[str, str]:
        """Return the physical IDs to adopt by the names of enabled resources."""
        evaluator = make_evaluator(scope)
        found: dict[str, str] = {}
        for one in self.template.imported:
            enabled, place = self.enabled.get(one.name), f"{one.place}.id"
            if enabled is None or enabled.body.external_id is not None:
                if enabled is not None:
                    reason = f'"{one.name}" has external_id, so the stack cannot import it.'
                    self.findings.add(f"{one.place}.resource", reason, "Remove one of both.")
                continue
            evaluator.owner, evaluator.secret = one.name, False
            value = evaluator.evaluate(one.id, place)
            remedy = "Write the physical ID, or take it from a parameter."
            if evaluator.secret:
                reason = "must not come from a hidden parameter: readers can see physical IDs"
                self.findings.add(place, reason, remedy)
            elif isinstance(value, str) and value:
                found[one.name] = value
            elif not _is_reported(value):
                reason = "must be text" if is_static(value) else MUST_BE_KNOWN
                self.findings.add(place, reason, remedy)
        return found

    def define_outputs(self, scope: EvaluationScope) -> dict[str, OutputDefinition]:
        evaluator, dialect = make_evaluator(scope, of_output=True), self.dialect
        outputs: dict[str, OutputDefinition] = {}
        for name, body in self.template.outputs.items():
            place = f"{dialect.outputs}.{name}"
            evaluator.owner, evaluator.secret = name, False
            on: bool | None = True
            if body.condition is not None:
                on = self.conditions.holds(body.condition, f"{place}.{dialect.condition}")
            value = evaluator.evaluate(body.value, f"{place}.{dialect.value}") if on else None
            secret = evaluator.secret
            if on and (body.preconditions is not None or body.postconditions is not None):
                masked = make_evaluator(scope, masked=True)
                before = AssertionReader(evaluator, masked, "precondition")
                after = AssertionReader(evaluator, masked, "postcondition")
                value = add_assertions(
                    before.read(body.preconditions, f"{place}.preconditions"),
                    after.read(body.postconditions, f"{place}.postconditions"),
                    value,
                    scope.version.date,
                )
            outputs[name] = OutputDefinition(value, body.description, secret)
        return outputs


def _lifecycle_parts(lifecycle: Lifecycle | None) -> list[Json]:
    """Return the parts of a digest for a lifecycle."""
    return [] if lifecycle is None else [lifecycle.encode(), lifecycle.encode_triggers()]


def _mask_properties(
    body: ResourceBody, schema: TypeSchema, scope: EvaluationScope, place: str
) -> Expression:
    """Return the properties with secrets masked."""
    evaluator = make_evaluator(scope, masked=True)
    evaluator.each = body.each
    return evaluator.evaluate_properties(body.properties, place, schema.properties)


def _is_reported(value: Expression) -> bool:
    """Return whether a finding exists for the value already, or it cannot be checked yet."""
    return any(call.name in REPORTED_CALLS for call in iterate_calls(value))


def _at_written_property(one: Finding, written: Mapping[str, Json], place: str) -> Finding:
    """Return a finding about a missing property with the place of the property, if it is written:
    an `if` without else has omitted it, or it is null. place: of the properties.
    """
    name = one.reason.removeprefix("Property ").removesuffix(" not assigned")
    missing = one.place == place and one.reason == f"Property {name} not assigned"
    return replace(one, place=f"{place}.{name}") if missing and name in written else one


def _is_at(finding: Finding, places: list[str]) -> bool:
    """Return whether a finding is about a place, or inside one other than the first."""
    inside = tuple(f"{each}{end}" for each in places[1:] for end in ".[")
    return finding.place in places or finding.place.startswith(inside)


def _known_properties(properties: Mapping[str, Expression]) -> dict[str, Json]:
    """Return the properties whose whole value is known."""
    return {name: value for name, value in properties.items() if is_static(value)}
