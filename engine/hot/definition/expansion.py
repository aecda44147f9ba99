"""Expansion of `for_each`: one resource for each item of a list, or entry of a map, that is known
when the stack is defined.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field, replace

from engine.errors import Findings, Invalid
from engine.hot.evaluation.evaluator import EvaluationScope, ForEachItem
from engine.hot.evaluation.extended_evaluator import ExtendedEvaluator, evaluate_locals
from engine.hot.expressions.expression import REFUSED, is_static, iterate_calls
from engine.hot.functions.cost_budget import BudgetExceeded, size_of
from engine.hot.functions.function import quote_value
from engine.hot.nested.nested_templates import NestedTemplates
from engine.hot.schema.type_schema import TypeSchema
from engine.hot.syntax.keyed_names import KEY, base_name, keyed_name, plain_name
from engine.hot.template.template import ResourceBody, Template
from engine.words import Json

KEYS_REMEDY = (
    "Use letters, digits and _ . @ + - as keys, at most 100 of them;"
    " for other values, write a map with such keys."
)


@dataclass(frozen=True, slots=True)
class Expansion:
    """bodies: all resources, expanded. names: of the resources of each `for_each`, by its name and
    key. unknown: names of resources whose keys are not known, or wrong.
    """

    bodies: Mapping[str, ResourceBody]
    names: dict[str, dict[str, str]] = field(default_factory=dict)
    unknown: frozenset[str] = frozenset()


class OpenNames(dict[str, TypeSchema | None]):
    """Schemas by name; the resources without a schema may have any key."""

    def __contains__(self, name: object) -> bool:
        if super().__contains__(name):
            return True
        base = base_name(str(name))
        return super().__contains__(base) and super().get(str(base)) is None

    def __missing__(self, name: str) -> None:
        return None


def expand(template: Template, scope: EvaluationScope, nesting: NestedTemplates) -> Expansion:
    """Return the resources of a template. Faults are added to the findings. Raises LimitReached
    before more resources are made than the stack may have.

    scope: without types and locals.
    """
    if not any(body.for_each is not None for body in template.resources.values()):
        return Expansion(template.resources)
    known = replace(
        scope,
        types=OpenNames.fromkeys([*template.resources, *template.unreadable.resources]),
        findings=Findings(),
        locals={},
    )
    evaluate_locals(template.locals, known)  # reports nothing: locals are evaluated again
    evaluator = ExtendedEvaluator(replace(known, findings=scope.findings))
    bodies: dict[str, ResourceBody] = {}
    names: dict[str, dict[str, str]] = {}
    unknown: set[str] = set()
    for name, body in template.resources.items():
        if body.for_each is None:
            bodies[name] = body
            continue
        items = _read_items(body, evaluator)
        if items is None:
            unknown.add(name)
            continue
        nesting.count_resources(len(items) - 1)
        _spend(body, len(items), evaluator)
        names[name] = {key: keyed_name(name, key) for key in items}
        for key, value in items.items():
            bodies[names[name][key]] = replace(
                body,
                name=names[name][key],
                each=ForEachItem(name, key, value, _snippet(body.for_each, key, value)),
                depends_on=tuple(one.replace("${each.key}", key) for one in body.depends_on),
            )
    _check_collisions(names, template, scope.findings)
    return Expansion(bodies, names, frozenset(unknown))


def _spend(body: ResourceBody, count: int, evaluator: ExtendedEvaluator) -> None:
    """Spend the size of a body for each of its resources, because it is evaluated for each of them.
    Raises Invalid."""
    budget = evaluator.scope.budget
    written: Json = [
        body.properties, body.metadata, [*body.depends_on], body.computed_depends_on,
        body.deletion_policy, body.update_policy, body.condition, body.external_id, body.lifecycle,
        body.preconditions, body.postconditions,
    ]  # fmt: skip
    size = size_of(written, budget.size_left // max(count, 1))
    try:
        budget.spend_size(size * count)
    except BudgetExceeded as much:
        findings = evaluator.scope.findings
        findings.add(f"resources.{body.name}.for_each", much.reason, much.remedy, much.code)
        raise Invalid(findings.all, findings.warnings) from None


def _snippet(for_each: Json, key: str, value: Json) -> Json:
    """Return the snippet of a value that reads resources; None for other values."""
    return None if is_static(value) else for_each[key]


def _read_items(body: ResourceBody, evaluator: ExtendedEvaluator) -> dict[str, Json] | None:
    """Return the values by key; None with a finding, or if they are known later."""
    findings, place = evaluator.scope.findings, f"{body.place_in('resources')}.for_each"
    evaluator.owner, evaluator.secret = body.name, False
    before = len(findings.all)
    value = evaluator.evaluate(body.for_each, place)
    if any(call.name == REFUSED for call in iterate_calls(value)) or len(findings.all) > before:
        return None
    is_map = isinstance(value, dict) and isinstance(body.for_each, dict)
    literal = is_map and value.keys() <= body.for_each.keys()
    if not (literal or is_static(value)):
        reason = '"for_each" must be known when the stack is defined, but it reads a resource.'
        remedy = "Take it from a parameter, or write a map here: its values may read resources."
        findings.add(place, reason, remedy)
        return None
    if evaluator.secret:
        reason = (
            '"for_each" must not come from a hidden parameter or a secret output:'
            " readers see the keys."
        )
        findings.add(place, reason, "Take the keys from another parameter.")
        return None
    if not isinstance(value, list | dict):
        reason = f'"for_each" must be a list of strings or a map, not {quote_value(value)[:80]}.'
        findings.add(place, reason, "Write for example [a, b], or {a: {size: 1}, b: {size: 2}}.")
        return None
    return _check_items(value, place, findings)


def _check_items(
    value: list[Json] | dict[str, Json], place: str, findings: Findings
) -> dict[str, Json] | None:
    before = len(findings.all)
    items: dict[str, Json] = {}
    for index, key in enumerate(value):
        here = f"{place}[{index}]" if isinstance(value, list) else place
        if not isinstance(key, str) or not KEY.fullmatch(key):
            number = isinstance(key, int) and not isinstance(key, bool)
            remedy = "Write it in quotes." if number else KEYS_REMEDY
            findings.add(here, f"{quote_value(key)[:80]} cannot be a key.", remedy)
        elif key in items:
            reason = f'The key "{key}" is given twice.'
            findings.add(here, reason, 'Use "distinct", or a map with a key for each resource.')
        else:
            items[key] = value[key] if isinstance(value, dict) else key
    return items if len(findings.all) == before else None


def _check_collisions(
    names: Mapping[str, Mapping[str, str]], template: Template, findings: Findings
) -> None:
    """Add findings for two resources with one name, also one plain name: Heat's clients and clouds
    see that."""
    written = [name for name, body in template.resources.items() if body.for_each is None]
    taken = {plain_name(name): name for name in written}
    for name, made in names.items():
        place = f"{template.resources[name].place_in('resources')}.for_each"
        for one in made.values():
            other = taken.setdefault(plain_name(one), one)
            if other == one and one in template.resources:
                reason = f"The resource {one} is also written in the template."
                findings.add(place, reason, "Rename one of the two.")
            elif other != one:
                reason = f"{one} and {other} would both be {plain_name(one)} for Heat's clients."
                findings.add(place, reason, "Rename one of the two, or use another key.")
