"""Evaluates, checks and masks the properties of a resource."""

from collections.abc import Callable, Collection, Mapping
from dataclasses import dataclass, replace

from engine.errors import Finding, Findings, Quoting, one_of
from engine.hot.definition.selected_resources import SelectedResources
from engine.hot.environment.registry import is_template_file
from engine.hot.evaluation.evaluator import EvaluationScope, Evaluator
from engine.hot.evaluation.extended_evaluator import make_evaluator
from engine.hot.expressions.expression import Expression, is_static
from engine.hot.expressions.masking import contains_mask
from engine.hot.language.misspelling import is_about_map
from engine.hot.schema.properties import check_properties as check_known
from engine.hot.schema.properties import mask_as_map, mask_hidden, use_current_names
from engine.hot.schema.type_schema import TypeSchema, without_required
from engine.hot.template.template import ResourceBody, wrong_kind
from engine.words import Json

CheckProperties = Callable[[str, Mapping[str, Json], str, Findings], None]


def evaluate_map(
    snippet: Json, key: str, place: str, evaluator: Evaluator, names: Collection[str] = ()
) -> Expression:
    """Return the value of a key that must be a map. Faults are added to the findings.

    place: of the resource. names: of properties, if the map has the properties of a type.
    """
    if snippet is None:
        return {}
    here, findings = f"{place}.{key}", evaluator.scope.findings
    if type(snippet) is not dict:
        reason = wrong_kind(evaluator.owner, key, "object")
        remedy = "Write a map."
        if evaluator.scope.version.extended and isinstance(snippet, str) and "${" in snippet:
            remedy = "Write a map, or a function such as {get_param: NAME} or {get_local: NAME}."
        findings.add(here, reason, remedy)
        return {}
    found = evaluator.evaluate_properties(snippet, here, names)
    if type(found) is list or isinstance(found, str | int | float):
        findings.add(
            here,
            f'"{key}" must be a map, not the result of this function.',
            "Write a map, and use the function for its values.",
        )
    return {} if found is None else found


@dataclass(frozen=True, slots=True)
class PropertyChecker:
    """Checks the properties of the resources of one stack.

    types: the installed types, which check_type(type, known properties, place, findings) checks.
    values_later: parameters get their values later, so properties of nested stacks may be missing.
    """

    types: Mapping[str, TypeSchema]
    check_type: CheckProperties
    selected: SelectedResources
    values_later: bool

    def check(
        self,
        schema: TypeSchema,
        body: ResourceBody,
        properties: dict[str, Expression],
        place: str,
        evaluator: Evaluator,
        *,
        dynamic: bool,
        external: bool,
    ) -> dict[str, Expression]:
        """Return the properties by their current names. Faults are added to the findings, without
        secret values if `evaluator.secret`.

        place: of the properties. dynamic: values of some of them read resources. external: the
        stack does not make the resource, so it may lack required properties.
        """
        findings, own, by_type = evaluator.scope.findings, Findings(), Findings()
        wanted = schema
        if external or body.is_data or (self.values_later and is_template_file(schema.name)):
            wanted = without_required(schema)
        checked = check_known(wanted, properties, place, own, evaluator.scope.budget)
        if own.all and isinstance(body.properties, dict):
            own.all = [_at_written_property(one, body.properties, place) for one in own.all]
        known = _known_properties(checked) if dynamic else checked
        if not own.all and schema.name in self.types and (body.is_data or not external):
            self.check_type(schema.name, known, place, by_type)
        for name in schema.names_resources:
            self._check_named(checked.get(name), f"{place}.{name}", own)
        if own.all and findings.warned:
            own.all = [_with_meant_function(one, findings) for one in own.all]
        if evaluator.secret and (own.all or by_type.all):
            visible = _visible_names(schema, body, evaluator.scope, place)
            shown_at = [f"{place}.{name}" for name in visible or ()]
            names = {*checked, *(body.properties if isinstance(body.properties, dict) else ())}
            hidden_at = [f"{place}.{name}" for name in names.difference(visible or ())]
            own.all = [
                one
                if visible is not None
                and (one.place == place or _is_at(one, shown_at))
                and not _is_at(one, hidden_at)
                else one.without_values()
                for one in own.all
            ]
            # A check of the type may compare several properties: only what it also reports without
            # the secret ones is shown.
            again = Findings()
            shown = {name: value for name, value in known.items() if name in (visible or ())}
            if by_type.all:
                self.check_type(schema.name, shown, place, again)
            by_type.all = [one if one in again.all else one.without_values() for one in by_type.all]
        findings.extend(own)
        findings.extend(by_type)
        return checked

    def _check_named(self, value: Expression, place: str, findings: Findings) -> None:
        """Check that the named resources exist; unknown names are skipped."""
        enabled, unreadable = self.selected.enabled, self.selected.unreadable
        for one in value if type(value) is list else ():
            if type(one) is str and one not in enabled and one not in unreadable:
                known = self.selected.names()
                reason = Quoting(
                    f'there is no resource "{one}" in this template',
                    "there is no resource of this name in this template",
                )
                remedy = Quoting(one_of(one, known, "Resources"), one_of("", known, "Resources"))
                findings.add(place, reason, remedy)


def masked_properties(
    schema: TypeSchema,
    body: ResourceBody,
    properties: Expression,
    scope: EvaluationScope,
    place: str,
    *,
    secret: bool,
) -> Expression | None:
    """Return the properties with secrets masked; None if nothing is secret. place: of the
    properties. secret: one of them reads a secret."""
    if not secret and not schema.hides:
        return None
    masked = properties
    if secret:
        masked = _evaluate_masked(body, schema, scope, place) or {}
        masked = use_current_names(schema, mask_as_map(masked, properties))
    if schema.hides:
        masked = mask_hidden(schema, masked)
    return masked if masked != properties else None


def _visible_names(
    schema: TypeSchema, body: ResourceBody, scope: EvaluationScope, place: str
) -> frozenset[str] | None:
    """Return the names of the properties without a secret; None if names may be secret, too."""
    masked = _evaluate_masked(body, schema, scope, place)
    if not isinstance(masked, dict) or any(map(contains_mask, masked)):
        return None
    current = use_current_names(schema, masked)
    return frozenset(
        name
        for each in (masked, current)
        for name, value in each.items()
        if not contains_mask(value)
    )


def _evaluate_masked(
    body: ResourceBody, schema: TypeSchema, scope: EvaluationScope, place: str
) -> Expression:
    """Return the properties with secrets masked."""
    evaluator = make_evaluator(scope, masked=True)
    evaluator.each = body.each
    return evaluator.evaluate_properties(body.properties, place, schema.properties)


def _with_meant_function(one: Finding, findings: Findings) -> Finding:
    """Return a finding about a map that was probably meant as a call, with that as remedy."""
    remedies = (each.remedy for each in findings.warnings if is_about_map(each, one.place))
    return replace(one, remedy=next(remedies, one.remedy))


def _at_written_property(one: Finding, written: Mapping[str, Json], place: str) -> Finding:
    """Return a finding about a missing property with the place of the property, if it is written:
    an `if` without else has omitted it, or it is null. place: of the properties.
    """
    name = one.reason.removeprefix("Property ").removesuffix(" not assigned")
    missing = one.place == place and one.reason == f"Property {name} not assigned"
    return replace(one, place=f"{place}.{name}") if missing and name in written else one


def _is_at(finding: Finding, places: list[str]) -> bool:
    """Return whether a finding is about a place, or inside one. A place is ambiguous, because
    names may have dots."""
    inside = tuple(f"{each}{end}" for each in places for end in ".[")
    return finding.place in places or finding.place.startswith(inside)


def _known_properties(properties: Mapping[str, Expression]) -> dict[str, Json]:
    """Return the properties whose whole value is known."""
    return {name: value for name, value in properties.items() if is_static(value)}
