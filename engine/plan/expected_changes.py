"""The changes and hooks of a plan, as far as they are known before execution.

Values that an operation produces are unknown; resources that read them may change or be replaced.
"""

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial
from typing import Final

from engine.hooks.rule import Rule
from engine.hot.definition.lifecycle import Lifecycle
from engine.hot.evaluation.resolver import resolve
from engine.hot.expressions.expression import REFUSED, Expression, iterate_calls
from engine.hot.expressions.masking import MASK
from engine.hot.expressions.member_attributes import REFERENCE, mask_attributes
from engine.hot.schema.type_schema import TypeSchema
from engine.node.pending_breakpoints import POINTS, rules_at
from engine.plan.draft import Plan, PlannedNode
from engine.plan.lifecycle import Triggers, with_replacement
from engine.plan.resource_change import ResourceChange, ResourceState, forward_change
from engine.topological_order import sort_topologically
from engine.words import Direction, Json, Operation, Phase


class Unknown:
    """A value that is not known yet. Equal to no other value, so that properties with it count as
    changed.
    """

    def __repr__(self) -> str:
        return "(unknown)"


UNKNOWN: Final = Unknown()


class UnknownValue(Exception):
    """An expression reads an unknown value."""


@dataclass(frozen=True, slots=True)
class KnownValues:
    """The known values of a resource. All None: nothing is known; only `reference`: it keeps its
    identity. secret: its secret names (engine/hot/expressions/member_attributes.py).
    """

    reference: str | None = None
    attributes: Mapping[str, Json] | None = None
    secret: Collection[str] = ()

    def mask(self) -> "KnownValues":
        reference = MASK if self.reference and REFERENCE in self.secret else self.reference
        if self.attributes is None:
            return KnownValues(reference)
        return KnownValues(reference, mask_attributes(self.attributes, self.secret))


class NamesView:
    """A `StackView` in which the reference of each resource is its name, and nothing else is
    known."""

    def reference(self, resource: str) -> str:
        return resource

    def attribute(self, resource: str, attribute: str) -> Json:
        raise UnknownValue(resource)

    def attributes(self, resource: str) -> Mapping[str, Json]:
        raise UnknownValue(resource)


class KnownView:
    """A `StackView` (engine/hot/evaluation/resolver.py) of the values known before execution."""

    def __init__(self, known: Mapping[str, KnownValues]) -> None:
        self._known = known

    def reference(self, resource: str) -> str:
        found = self._known.get(resource, KnownValues()).reference
        if found is None:
            raise UnknownValue(resource)
        return found

    def attribute(self, resource: str, attribute: str) -> Json:
        return self.attributes(resource).get(attribute)

    def attributes(self, resource: str) -> Mapping[str, Json]:
        found = self._known.get(resource, KnownValues()).attributes
        if found is None:
            raise UnknownValue(resource)
        return found


def known_properties(
    properties: Expression, view: KnownView | NamesView, *, masked: bool = False
) -> dict[str, Json]:
    """Return the properties, with UNKNOWN for values that are not known. masked: for display, with
    secrets masked. Raises FunctionError.
    """
    if not isinstance(properties, Mapping):
        whole = _known_value(properties, view, masked)
        if whole is UNKNOWN or isinstance(whole, str):
            return {"": whole}
        return dict(whole or {})
    return {name: _known_value(expression, view, masked) for name, expression in properties.items()}


def known_parts(properties: Expression, view: KnownView) -> dict[str, Json]:
    """As `known_properties`, but with UNKNOWN in place of single unknown parts of maps and lists.
    Raises FunctionError.
    """
    if not isinstance(properties, Mapping):
        return known_properties(properties, view)
    return {name: _known_part(expression, view) for name, expression in properties.items()}


def _known_part(expression: Expression, view: KnownView) -> Json:
    if isinstance(expression, dict):
        return {key: _known_part(item, view) for key, item in expression.items()}
    if isinstance(expression, list):
        return [_known_part(item, view) for item in expression]
    return _known_value(expression, view, False)


def contains_unknown(value: Json) -> bool:
    """Return whether a value is or contains UNKNOWN."""
    if isinstance(value, Mapping):
        return any(contains_unknown(item) for item in value.values())
    if isinstance(value, list):
        return any(contains_unknown(item) for item in value)
    return value is UNKNOWN


def known_or_before(value: Json, before: Json) -> Json:
    """Return a value with those of `before` in place of unknown parts."""
    if isinstance(value, Mapping):
        known = before if isinstance(before, Mapping) else {}
        return {key: known_or_before(item, known.get(key)) for key, item in value.items()}
    if isinstance(value, list):
        items = before if isinstance(before, list) else []
        return [
            known_or_before(item, items[index] if index < len(items) else None)
            for index, item in enumerate(value)
        ]
    return before if value is UNKNOWN else value


def _known_value(expression: Expression, view: KnownView | NamesView, masked: bool) -> Json:
    if any(call.name == REFUSED for call in iterate_calls(expression)):
        return UNKNOWN  # a parameter that gets its value when the nested stack is created
    try:
        return resolve(expression, view, masked=masked)
    except UnknownValue:
        return UNKNOWN


@dataclass(frozen=True, slots=True)
class ExpectedChange:
    """A resource's change. certain: it does not depend on unknown values. may_replace: these can
    turn it into a replacement."""

    change: ResourceChange
    certain: bool
    unknown: tuple[str, ...] = ()
    may_replace: bool = False


def expected_change(
    actual: ResourceState | None,
    type_name: str,
    schema: TypeSchema,
    properties: Mapping[str, Json],
    *,
    replaces_tainted: bool,
    nests: bool = False,
    repairs: bool = False,
) -> ExpectedChange:
    """Return the expected change of a resource. properties: as `known_properties` returns
    them. nests: it is a nested stack. repairs: see `forward_change`.
    """
    unknown = tuple(sorted(name for name, value in properties.items() if value is UNKNOWN))
    change_to = partial(
        forward_change,
        actual,
        type_name,
        schema,
        replaces_tainted=replaces_tainted,
        repairs=repairs,
        nests=nests,
    )
    change = change_to(properties)
    if not unknown or actual is None:
        return ExpectedChange(change, True, unknown)
    previous = actual.properties or {}
    without = change_to({**properties, **{name: previous.get(name) for name in unknown}})
    certain = without.operation is Operation.REPLACE or (
        nests and without.operation is change.operation
    )
    return ExpectedChange(change, certain, unknown)


def expected_replacement(
    lifecycle: Lifecycle, triggers: Triggers, expected: ExpectedChange
) -> ExpectedChange:
    """Return the change as a replacement if `replace_when` demands that; uncertain, if that depends
    on unknown values.
    """
    change = with_replacement(lifecycle, triggers, expected.change)
    known = replace(expected.change, changed=expected.change.changed.difference(expected.unknown))
    if with_replacement(lifecycle, triggers, known).cause:
        return replace(expected, change=change, certain=True)
    certain = expected.certain and triggers.is_known() and not change.cause
    may_replace = expected.may_replace or not triggers.is_known()
    return replace(expected, change=change, certain=certain, may_replace=may_replace)


def known_after(before: KnownValues, operation: Operation | None) -> KnownValues:
    """Return the known values of a resource after the operation."""
    if operation is None:
        return before
    keeps_itself = operation in (Operation.UPDATE, Operation.ADOPT, Operation.RESUME)
    return replace(before, attributes=None) if keeps_itself else KnownValues()


@dataclass(frozen=True, slots=True)
class ExpectedHook:
    """A hook that the change will open or stop at. name: of the resource. path: from the changed
    stack to the resource.
    """

    name: str
    path: str
    rule: Rule
    operation: Operation
    certain: bool


NO_HOOKS: Mapping[str, Sequence[ExpectedHook]] = {}


def expected_hooks(
    planned: Plan,
    operations: Mapping[int, tuple[Operation | None, bool]],
    inside: Mapping[str, Sequence[ExpectedHook]],
    possible: Sequence[PlannedNode] = (),
    inside_possible: Mapping[str, Sequence[ExpectedHook]] = NO_HOOKS,
) -> list[ExpectedHook]:
    """Return the hooks in order; independent ones in the plan's order.

    operations: (operation, whether it is certain) by index of node. inside: hooks in nested stacks,
    by resource name. possible: nodes of resources whose condition is not known yet; their hooks are
    uncertain, and come before deletes and the end of the stack's change. inside_possible: uncertain
    hooks in their nested stacks.
    """
    uncertain = list[ExpectedHook]()
    for node in possible:
        uncertain += _hooks_of_node(node, node.operation, False, Phase.PRE)
        uncertain += _inside(node, inside_possible.get(node.name, ()))
        uncertain += _hooks_of_node(node, node.operation, False, Phase.POST)
    order = sort_topologically({index: node.after for index, node in enumerate(planned.nodes)})
    left, found = dict(inside), list[ExpectedHook]()
    for index in order:
        node, (operation, certain) = planned.nodes[index], operations[index]
        if node.direction is Direction.CLEANUP or node.operation is Operation.FINISH:
            found += uncertain
            uncertain = []
        found += _hooks_of_node(node, operation, certain, Phase.PRE)
        if operation is not None:
            found += _inside(node, left.pop(node.name, ()))
            found += _hooks_of_node(node, operation, certain, Phase.POST)
    return found + uncertain


def _inside(node: PlannedNode, hooks: Sequence[ExpectedHook]) -> list[ExpectedHook]:
    """Return the hooks of the nested stack of a node, with their paths from the node's stack."""
    return [replace(one, path="/".join(filter(None, (node.name, one.path)))) for one in hooks]


def _hooks_of_node(
    node: PlannedNode, operation: Operation | None, certain: bool, phase: Phase
) -> list[ExpectedHook]:
    blocking = {rule.point: rule for rule in node.rules if rule.blocks}.values()
    if operation is None:
        short_rules = [rule for rule in blocking if rule.short and _before_update(rule)]
        return [
            ExpectedHook(node.name, node.name, rule, Operation.UPDATE, certain)
            for rule in short_rules
        ]
    found = rules_at(blocking, operation, phase)
    return [ExpectedHook(node.name, node.name, rule, operation, certain) for rule in found]


def _before_update(rule: Rule) -> bool:
    return rule.point in POINTS[Operation.UPDATE, Phase.PRE]
