"""What a plan will do, as far as that can be known before it is carried out.

A value that an operation will only give is unknown, and called so: what reads it may change, or be
replaced, and nobody can say before.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Final

from engine.hooks.rule import Rule
from engine.hot.expression import Expression
from engine.hot.resolve import resolve
from engine.hot.schema import TypeSchema
from engine.node.points import POINTS
from engine.plan.change import Actual, Change, forward_change
from engine.plan.draft import Plan, PlannedNode
from engine.plan.graph import ordered
from engine.words import Json, Operation, Phase


class Unknown:
    """A value nobody knows yet. Equal to nothing, so that what holds it counts as changed."""

    def __repr__(self) -> str:
        return "(unknown)"


UNKNOWN: Final = Unknown()


class NotYet(Exception):
    """An expression reads what is not known yet."""


@dataclass(frozen=True, slots=True)
class Known:
    """What is known of a resource's values. None: nothing is; reference only: it stays itself."""

    reference: str | None = None
    attributes: Mapping[str, Json] | None = None


class Foresight:
    """What expressions may read before the plan is carried out (engine.hot.resolve.View)."""

    def __init__(self, known: Mapping[str, Known]) -> None:
        self._known = known

    def reference(self, resource: str) -> str:
        found = self._known.get(resource, Known()).reference
        if found is None:
            raise NotYet(resource)
        return found

    def attribute(self, resource: str, attribute: str) -> Json:
        return self.attributes(resource).get(attribute)

    def attributes(self, resource: str) -> Mapping[str, Json]:
        found = self._known.get(resource, Known()).attributes
        if found is None:
            raise NotYet(resource)
        return found


def foreseen(properties: Expression, view: Foresight) -> dict[str, Json]:
    """Properties with their values, UNKNOWN where they cannot be told. Raises Wrong."""
    if not isinstance(properties, Mapping):
        try:
            return dict(resolve(properties, view) or {})
        except NotYet:
            return {"": UNKNOWN}
    found: dict[str, Json] = {}
    for name, expression in properties.items():
        try:
            found[name] = resolve(expression, view)
        except NotYet:
            found[name] = UNKNOWN
    return found


@dataclass(frozen=True, slots=True)
class Predicted:
    """A resource's change. certain: nothing unknown had a part in saying so."""

    change: Change
    certain: bool
    unknown: tuple[str, ...] = ()


def predicted(
    actual: Actual | None,
    type_name: str,
    schema: TypeSchema,
    properties: Mapping[str, Json],
    *,
    replaces_broken: bool,
    restores: bool,
) -> Predicted:
    """What will be done to a resource, from the foreseen properties."""
    unknown = tuple(sorted(name for name, value in properties.items() if value is UNKNOWN))
    change = forward_change(
        actual, type_name, schema, properties, replaces_broken=replaces_broken, restores=restores
    )
    if not unknown or actual is None:
        return Predicted(change, True, unknown)
    previous = actual.properties or {}
    as_it_was = {**properties, **{name: previous.get(name) for name in unknown}}
    without = forward_change(
        actual, type_name, schema, as_it_was, replaces_broken=replaces_broken, restores=restores
    )
    if without.operation is Operation.REPLACE:
        return Predicted(change, True, unknown)
    return Predicted(change, False, unknown)


def known_after(before: Known, operation: Operation | None) -> Known:
    """What is known of a resource's values once this was done to it."""
    if operation is None:
        return before
    keeps_itself = operation in (Operation.UPDATE, Operation.ADOPT, Operation.RESUME)
    return replace(before, attributes=None) if keeps_itself else Known()


@dataclass(frozen=True, slots=True)
class Stop:
    """A hook that the traversal will wait or end at."""

    name: str
    rule: Rule
    operation: Operation
    certain: bool


def stops(planned: Plan, operations: Mapping[int, tuple[Operation | None, bool]]) -> list[Stop]:
    """The hooks in the order in which they come, what is independent in the plan's order.

    operations: by index of node, what will be done there, and whether that is certain.
    """
    order = ordered({index: node.after for index, node in enumerate(planned.nodes)})
    return [stop for index in order for stop in _stops_of(planned.nodes[index], *operations[index])]


def _stops_of(node: PlannedNode, operation: Operation | None, certain: bool) -> Sequence[Stop]:
    by_point = {rule.point: rule for rule in node.rules if rule.holds}
    if operation is None:
        asked = [rule for rule in by_point.values() if rule.short and _before_update(rule)]
        return [Stop(node.name, rule, Operation.UPDATE, certain) for rule in asked]
    points = (*POINTS[operation, Phase.PRE], *POINTS[operation, Phase.POST])
    return [
        Stop(node.name, by_point[point], operation, certain)
        for point in points
        if point in by_point
    ]


def _before_update(rule: Rule) -> bool:
    return rule.point in POINTS[Operation.UPDATE, Phase.PRE]
