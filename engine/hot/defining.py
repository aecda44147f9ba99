"""The way from resources and outputs as written to defined ones; engine/hot/definition.py leads."""

import json
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field
from hashlib import sha256

import orjson

from engine.errors import Findings, one_of
from engine.hot.choosing import Choosing, Chosen
from engine.hot.conditions import Conditions
from engine.hot.defined import DefinedOutput, DefinedResource
from engine.hot.environment import Environment
from engine.hot.expression import Expression, calls, encode, is_static
from engine.hot.graph import find_circle
from engine.hot.nesting import MOST_BYTES, Nesting
from engine.hot.partial import REFUSED, Evaluator, Scope
from engine.hot.properties import check_policy, has_hidden, mask_hidden, present_names
from engine.hot.properties import check_properties as check_known
from engine.hot.registry import CircularAlias
from engine.hot.schema import TypeSchema
from engine.hot.spelling import Spelling
from engine.hot.template import ResourceBody, Template
from engine.hot.template_types import TemplateType
from engine.words import Json

LATE = "This must be known when the stack is accepted, and reads a resource."
#: Calls of which a finding tells already, or nothing can be told yet.
ANSWERED = frozenset({REFUSED, "resource_facade"})

CheckProperties = Callable[[str, Mapping[str, Json], str, Findings], None]


@dataclass(slots=True)
class Defining:
    """One definition on its way. chosen: resources that are on. sound: those of them whose type is
    a template, and nothing is wrong with what they give to it; groups: whose type holds members."""

    template: Template
    environment: Environment
    types: Mapping[str, TypeSchema]
    check: CheckProperties
    findings: Findings
    conditions: Conditions
    nesting: Nesting
    chosen: dict[str, Chosen] = field(default_factory=dict)
    disabled: frozenset[str] = frozenset()
    hiding: dict[str, bool] = field(default_factory=dict)
    sound: dict[str, TemplateType] = field(default_factory=dict)
    groups: dict[str, TypeSchema] = field(default_factory=dict)

    @property
    def words(self) -> Spelling:
        return self.conditions.version.spelling

    @property
    def _unsound(self) -> frozenset[str]:
        return self.template.unsound.resources

    def choose(self) -> None:
        """Decide which resources are on, and find their types. Raises LimitReached."""
        choosing = Choosing(
            self.environment, self.types, self.conditions, self.nesting, self.findings
        )
        for name, body in self.template.resources.items():
            if (chosen := choosing.choose(body)) is not None:
                self.chosen[name] = chosen
        self.disabled = frozenset(self.template.resources.keys() - self.chosen.keys())

    def schemas(self) -> dict[str, TypeSchema | None]:
        return {name: one.schema for name, one in self.chosen.items()}

    def define_resources(self, scope: Scope) -> dict[str, DefinedResource]:
        evaluator = Evaluator(scope)
        defined = {
            name: self._resource(one, evaluator) for name, one in self.chosen.items() if one.decided
        }
        # One whose condition is not decided yet may be required, and requires nothing so far.
        # So may one that could not be read.
        others = self._unsound.union(self.chosen.keys() - defined.keys())
        undecided = dict.fromkeys(others, frozenset[str]())
        circle = find_circle({name: one.requires for name, one in defined.items()} | undecided)
        if circle:
            shown = " -> ".join(circle)
            reason = f"Circular Dependency Found: {shown}"
            self.findings.add("", reason, "", "CircularDependencyException")
        return defined

    def _resource(self, chosen: Chosen, evaluator: Evaluator) -> DefinedResource:
        body, kind, schema = chosen.body, chosen.type, chosen.schema
        name, words = body.name, self.words
        place = f"{words.resources}.{name}"
        self.findings.extend(chosen.wrong)
        before = len(self.findings.all)
        evaluator.owner, evaluator.reads, evaluator.secret = name, set(), False
        kept = evaluator.kept
        properties = self._part(body.properties, words.properties, place, evaluator)
        if schema is not None and type(properties) is dict:
            properties = self._checked(schema, properties, place, evaluator, kept)
        secret, evaluator.secret = evaluator.secret, False  # metadata is shown as it is
        metadata = self._part(body.metadata, words.metadata, place, evaluator)
        secret_metadata = evaluator.secret
        reads = frozenset(evaluator.reads)
        masked = None
        if len(self.findings.all) == before and schema is not None:
            masked = self._masked(schema, body, properties, secret, evaluator.scope, place)
            if chosen.template is not None:
                self.sound[name] = chosen.template
            elif schema.grouping is not None:
                self.groups[name] = schema
        external = self._external(body, place, evaluator) if body.external_id is not None else None
        if external is not None:
            # As Heat: what is there already waits for nothing, and stays.
            return DefinedResource(
                name, kind, properties, masked, metadata, reads, reads, "Retain",
                body.description, self._digest(kind, [encode([properties, metadata]), external]),
                place, external, secret_metadata=secret_metadata,
            )  # fmt: skip
        policy = "Delete"
        if body.deletion_policy:
            policy = self._policy(body, schema, place, evaluator)
        updating = {}
        if body.update_policy is not None:
            updating = self._update_policy(body, schema, place, evaluator)
        requires = frozenset(evaluator.reads)
        return DefinedResource(
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
                kind, encode([properties, metadata, *([] if policy == "Delete" else [policy])])
            ),
            place,
            secret_metadata=secret_metadata,
            update_policy=updating,
        )

    def _update_policy(
        self, body: ResourceBody, schema: TypeSchema | None, place: str, evaluator: Evaluator
    ) -> Expression:
        key = self.words.update_policy
        said = self._part(body.update_policy, key, place, evaluator)
        if schema is None or not schema.update_policy or type(said) is not dict:
            return said
        effort = evaluator.scope.effort
        return check_policy(schema, said, f"{place}.{key}", self.findings, effort)

    def _part(self, snippet: Json, key: str, place: str, evaluator: Evaluator) -> Expression:
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

    def _checked(
        self,
        schema: TypeSchema,
        properties: dict[str, Expression],
        place: str,
        evaluator: Evaluator,
        kept: int,
    ) -> dict[str, Expression]:
        """kept: calls that were left standing before these properties."""
        here = f"{place}.{self.words.properties}"
        before = len(self.findings.all)
        effort, dynamic = evaluator.scope.effort, evaluator.kept != kept
        checked = check_known(schema, properties, here, self.findings, effort)
        if len(self.findings.all) == before and schema.name in self.types:
            self.check(schema.name, _known(checked) if dynamic else checked, here, self.findings)
        for name in schema.names_resources:
            self._check_named(checked.get(name), f"{here}.{name}")
        return checked

    def _check_named(self, said: Expression, place: str) -> None:
        """Whether the resources that are named are there; what is not known yet may be."""
        for one in said if type(said) is list else ():
            if type(one) is str and one not in self.chosen and one not in self._unsound:
                reason = f'there is no resource "{one}" in this template'
                self.findings.add(place, reason, one_of(one, list(self.chosen), "Resources"))

    def _masked(
        self,
        schema: TypeSchema,
        body: ResourceBody,
        properties: Expression,
        secret: bool,
        scope: Scope,
        place: str,
    ) -> Expression | None:
        hiding = self.hiding.get(schema.name)
        if hiding is None:
            hiding = self.hiding[schema.name] = has_hidden(schema.properties)
        if not secret and not hiding:
            return None
        masked = properties
        if secret:
            here = f"{place}.{self.words.properties}"
            masked = Evaluator(scope, masked=True).evaluate(body.properties, here) or {}
            masked = present_names(schema, masked)
        if hiding:
            masked = mask_hidden(schema, masked)
        return masked if masked != properties else None

    def _depends_on(self, body: ResourceBody, place: str) -> frozenset[str]:
        """What is required and on; requiring what is switched off means nothing."""
        for name in body.depends_on:
            if name not in self.template.resources and name not in self._unsound:
                self.findings.add(
                    f"{place}.{self.words.depends_on}",
                    f'The specified reference "{name}" (in {body.name}) is incorrect.',
                    one_of(name, list(self.template.resources), "Resources"),
                    "InvalidTemplateReference",
                )
        return frozenset(name for name in body.depends_on if name in self.chosen)

    def _external(self, body: ResourceBody, place: str, evaluator: Evaluator) -> str | None:
        given = evaluator.evaluate(body.external_id, f"{place}.external_id")
        if isinstance(given, str) and given:
            return given
        if given is not None and not _is_open(given):
            reason = "must be a text" if is_static(given) else LATE
            self.findings.add(f"{place}.external_id", reason, "Write the real thing's id.")
        return None

    def _policy(
        self, body: ResourceBody, schema: TypeSchema | None, place: str, evaluator: Evaluator
    ) -> str:
        here = f"{place}.{self.words.deletion_policy}"
        policy = evaluator.evaluate(body.deletion_policy, here)
        lower = evaluator.scope.version.lower_case_policies
        if policy == "Delete" or (policy == "delete" and lower):
            return "Delete"
        allowed = {"Retain", "Snapshot"} | ({"retain", "snapshot"} if lower else set())
        if isinstance(policy, str) and policy in allowed:
            if policy.lower() == "snapshot" and schema is not None and not schema.snapshots:
                reason = '"Snapshot" deletion policy not supported'
                self.findings.add(here, reason, f"{schema.name} keeps no snapshots; use Retain.")
            return policy.capitalize()
        if _is_open(policy):
            return "Delete"
        if not is_static(policy):
            self.findings.add(here, LATE, "Write the policy, or take it from a parameter.")
            return "Delete"
        near = one_of(str(policy), ["Delete", "Retain", "Snapshot"], "Policies")
        self.findings.add(here, f'Invalid deletion policy "{policy}"', near)
        return "Delete"

    def _digest(self, kind: str, encoded: Json) -> str:
        try:
            raw = orjson.dumps([kind, encoded], option=orjson.OPT_SORT_KEYS)
        except (TypeError, ValueError):  # a number too large for orjson, made by a function
            raw = json.dumps([kind, encoded], sort_keys=True).encode("utf-8", "surrogatepass")
        if not self.nesting.fits(len(raw)):
            reason = f"The stack's properties are larger than {MOST_BYTES} bytes."
            self.findings.add("", reason, "", "RequestLimitExceeded")
            self.findings.raise_if_any()
        return sha256(raw).hexdigest()

    def find_types(
        self, group: DefinedResource, members: Iterable[Mapping[str, Json]], place: str
    ) -> None:
        """Tell of members whose types there are not."""
        for name in dict.fromkeys(str(member["type"]) for member in members):
            try:
                found = self.environment.registry.find(name, group.name, self.types)
            except CircularAlias:
                found = None
            if found is None:
                self.findings.add(
                    f"{group.place}.{self.words.properties}.{place}",
                    f"The Resource Type ({name}) of its members could not be found.",
                    "Map it to another type or a template in the environment's resource_registry.",
                )

    def define_outputs(self, scope: Scope) -> dict[str, DefinedOutput]:
        evaluator, words = Evaluator(scope), self.words
        outputs: dict[str, DefinedOutput] = {}
        for name, body in self.template.outputs.items():
            place = f"{words.outputs}.{name}"
            evaluator.owner = name
            on: bool | None = True
            if body.condition is not None:
                on = self.conditions.holds(body.condition, f"{place}.{words.condition}")
            value = evaluator.evaluate(body.value, f"{place}.{words.value}") if on else None
            outputs[name] = DefinedOutput(value, body.description)
        return outputs


def _is_open(value: Expression) -> bool:
    """Whether a finding tells of it already, or nothing can be told yet."""
    return any(call.name in ANSWERED for call in calls(value))


def _known(properties: Mapping[str, Expression]) -> dict[str, Json]:
    """The properties whose whole value is known now."""
    return {name: value for name, value in properties.items() if is_static(value)}
