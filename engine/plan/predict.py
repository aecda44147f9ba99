"""What a plan will do, as far as that can be known before it is carried out.

A value that an operation will only give is unknown, and called so: what reads it may change, or be
replaced, and nobody can say before.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Final

from engine.hooks.rule import Rule
from engine.hot.expression import Expression, calls
from engine.hot.partial import REFUSED
from engine.hot.resolve import resolve
from engine.hot.schema import TypeSchema
from engine.node.points import POINTS
from engine.plan.change import Actual, Change, forward_change, nest_change
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
        whole = _foreseen(properties, view)
        return {"": UNKNOWN} if whole is UNKNOWN else dict(whole or {})
    return {name: _foreseen(expression, view) for name, expression in properties.items()}


def _foreseen(expression: Expression, view: Foresight) -> Json:
    if any(call.name == REFUSED for call in calls(expression)):
        return UNKNOWN  # a parameter that has its value when the stack inside is made
    try:
        return resolve(expression, view)
    except NotYet:
        return UNKNOWN


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
    nests: bool = False,
    mends: bool = False,
) -> Predicted:
    """What will be done to a resource, from the foreseen properties. nests: it holds a stack.
    mends: see `forward_change`."""
    unknown = tuple(sorted(name for name, value in properties.items() if value is UNKNOWN))

    def change_to(wanted: Mapping[str, Json]) -> Change:
        if nests:
            return nest_change(actual, type_name, schema, wanted)
        return forward_change(
            actual,
            type_name,
            schema,
            wanted,
            replaces_broken=replaces_broken,
            restores=restores,
            mends=mends,
        )

    change = change_to(properties)
    if not unknown or actual is None:
        return Predicted(change, True, unknown)
    previous = actual.properties or {}
    without = change_to({**properties, **{name: previous.get(name) for name in unknown}})
    certain = without.operation is Operation.REPLACE or (
        nests and without.operation is change.operation
    )
    return Predicted(change, certain, unknown)


def known_after(before: Known, operation: Operation | None) -> Known:
    """What is known of a resource's values once this was done to it."""
    if operation is None:
        return before
    keeps_itself = operation in (Operation.UPDATE, Operation.ADOPT, Operation.RESUME)
    return replace(before, attributes=None) if keeps_itself else Known()


@dataclass(frozen=True, slots=True)
class Stop:
    """A hook that the change will wait or end at. name: of the resource. path: from the stack that
    is changed to the resource."""

    name: str
    path: str
    rule: Rule
    operation: Operation
    certain: bool


def stops(
    planned: Plan,
    operations: Mapping[int, tuple[Operation | None, bool]],
    inside: Mapping[str, Sequence[Stop]],
) -> list[Stop]:
    """The hooks in the order in which they come, what is independent in the plan's order.

    operations: by index of node, what will be done there, and whether that is certain. inside: by
    name of the resource, those in the stack inside of it.
    """
    order = ordered({index: node.after for index, node in enumerate(planned.nodes)})
    left, found = dict(inside), list[Stop]()
    for index in order:
        node, (operation, certain) = planned.nodes[index], operations[index]
        found += _stops_of(node, operation, certain, Phase.PRE)
        if operation is not None:
            found += [
                replace(one, path="/".join(filter(None, (node.name, one.path))))
                for one in left.pop(node.name, ())
            ]
            found += _stops_of(node, operation, certain, Phase.POST)
    return found


def _stops_of(
    node: PlannedNode, operation: Operation | None, certain: bool, phase: Phase
) -> list[Stop]:
    by_point = {rule.point: rule for rule in node.rules if rule.holds}
    if operation is None:
        asked = [rule for rule in by_point.values() if rule.short and _before_update(rule)]
        return [Stop(node.name, node.name, rule, Operation.UPDATE, certain) for rule in asked]
    return [
        Stop(node.name, node.name, by_point[point], operation, certain)
        for point in POINTS[operation, phase]
        if point in by_point
    ]


def _before_update(rule: Rule) -> bool:
    return rule.point in POINTS[Operation.UPDATE, Phase.PRE]
