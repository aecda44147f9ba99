"""Plans of the model: those of the real engine.plan.passes, with small numbers for ids."""

from collections.abc import Sequence
from functools import cache
from itertools import count
from typing import NamedTuple
from uuid import UUID

from engine.hooks.rule import Rule
from engine.hot.definition.stack import ResourceDefinition
from engine.plan.draft import Existing, Plan, PlannedNode, Replacement
from engine.plan.gates import gated
from engine.plan.passes import plan
from engine.plan.visits import plan_visits
from engine.words import (
    VISITS,
    Action,
    DeletionPolicy,
    Direction,
    Operation,
    ResourceAction,
    ResourceId,
    StackId,
    State,
    Status,
)
from tests.model.world import Fixed, Graph, Node, Row, Want

#: Ids of one traversal's plan lie apart from those of the next.
IDS_OF_ONE_PLAN = 100


class Busy(NamedTuple):
    """What is under way on a row: which node, and what it may put in the row's place."""

    node: tuple[int, int]
    operation: Operation
    replacement: int | None
    requires: tuple[str, ...]
    rules: tuple[Rule, ...]


Known = tuple[tuple[Row, Busy | None], ...]


class Planned(NamedTuple):
    """successors: (traversal, node) of older operations and the new node that waits for each."""

    graph: Graph
    nodes: tuple[Node, ...]
    active: int
    rows: tuple[Row, ...]
    stale: frozenset[int]
    successors: tuple[tuple[tuple[int, int], int], ...]


@cache
def planned(
    template: tuple[Want, ...],
    rows: Known,
    number: int,
    before: tuple[Want, ...],
    action: Action,
    stack: tuple[Rule, ...],
) -> Planned:
    """The traversal `number` toward `template`. rows: each with what still acts on it. stack: the
    rules of the whole stack."""
    return _planned(_gated(_plan(template, rows, number), action, stack), template, before)


@cache
def planned_visits(
    operation: Operation,
    template: tuple[Want, ...],
    rows: Known,
    before: tuple[Want, ...],
    action: Action,
    stack: tuple[Rule, ...],
) -> Planned:
    """A traversal that acts in place on each resource, and leaves its definition alone."""
    existing = [_existing(row, busy) for row, busy in rows]
    made = plan_visits(operation, existing, lambda name, stored: tuple(stored))
    return _planned(_gated(made, action, stack), template, before)


def _gated(made: Plan, action: Action, stack: tuple[Rule, ...]) -> Plan:
    return gated(made, StackId(UUID(int=0)), action, stack, watched=False)


def _planned(made: Plan, template: tuple[Want, ...], before: tuple[Want, ...]) -> Planned:
    wants = {want.name: want for want in template}
    fresh = {row.id for row in made.rows}
    moving = {node.name for node in made.nodes if node.replacement_id is not None}
    fixed = [
        _fixed(made, index, wants.get(node.name), moving if node.resource_id in fresh else None)
        for index, node in enumerate(made.nodes)
    ]
    return Planned(
        graph=_graph(tuple(fixed), template, before),
        nodes=tuple(_start(node) for node in made.nodes),
        active=sum(1 for node in made.nodes if not node.after or node.waits_for_running),
        rows=tuple(
            Row(
                row.id.int, row.name, "INIT", "COMPLETE", "",
                requires=tuple(sorted(one.int for one in row.requires)), rules=row.rules,
            )
            for row in made.rows
        ),
        stale=frozenset(
            node.resource_id.int
            for node in made.nodes
            if node.direction is Direction.FORWARD and node.operation not in VISITS
        ),
        successors=tuple(
            (node.waits_for_running, index)
            for index, node in enumerate(made.nodes)
            if node.waits_for_running
        ),
    )  # fmt: skip


@cache
def _graph(fixed: tuple[Fixed, ...], template: tuple[Want, ...], before: tuple[Want, ...]) -> Graph:
    return Graph(fixed, template, before)


def _plan(template: tuple[Want, ...], rows: Known, number: int) -> Plan:
    rules = {want.name: want.rules for want in template}
    ids = count(number * IDS_OF_ONE_PLAN)

    def rules_of(name: str, stored: Sequence[Rule]) -> tuple[Rule, ...]:
        return rules[name] if name in rules else tuple(stored)

    return plan(
        {want.name: _defined(want) for want in template},
        [_existing(row, busy) for row, busy in rows],
        rules_of,
        lambda: ResourceId(UUID(int=next(ids))),
    )


def _defined(want: Want) -> ResourceDefinition:
    return ResourceDefinition(
        name=want.name,
        type="T",
        properties={},
        masked_properties=None,
        metadata={},
        requires=frozenset(want.requires),
        reads=frozenset(),
        deletion_policy=want.policy,
        description="",
        digest=want.value,
        place=f"resources.{want.name}",
    )


def _existing(row: Row, busy: Busy | None) -> Existing:
    """As engine/store/current_resources.py reads it."""
    return Existing(
        id=_uuid(row.id),
        name=row.name,
        type="T",
        action=ResourceAction(row.action),
        status=Status(row.status),
        digest=row.digest,
        requires=tuple(_uuid(one) for one in row.requires),
        rules=row.rules,
        replaced_by=None if row.replaced_by is None else _uuid(row.replaced_by),
        running=None if busy is None else busy.node,
        using=frozenset() if busy is None else frozenset(busy.requires),
        replacement=None if busy is None else _replacement(busy),
        physical_id="there" if row.made else None,
        deletion_policy=DeletionPolicy(row.policy),
        suspending=busy is not None and busy.operation is Operation.SUSPEND,
    )


def _replacement(busy: Busy) -> Replacement | None:
    replaces = busy.operation in (Operation.UPDATE, Operation.REPLACE)
    if not replaces or busy.replacement is None:
        return None
    return Replacement(_uuid(busy.replacement), "T", frozenset(busy.requires))


def _uuid(number: int) -> ResourceId:
    return ResourceId(UUID(int=number))


def _fixed(made: Plan, index: int, want: Want | None, moving: set[str] | None) -> Fixed:
    """moving: of a new row, names of what may be replaced before it is its turn."""
    node = made.nodes[index]
    forward = node.direction is Direction.FORWARD and want is not None
    forward = forward and node.operation not in VISITS
    moves = moving is None or (want is not None and any(one in moving for one in want.requires))
    return Fixed(
        name=node.name,
        resource=node.resource_id.int,
        replacement=None if node.replacement_id is None else node.replacement_id.int,
        direction=node.direction,
        only_if_replaced=node.only_if_replaced,
        rules=node.rules,
        after=frozenset(node.after),
        requirers=tuple(at for at, other in enumerate(made.nodes) if index in other.after),
        requires=want.requires if want and forward and moves else None,
        uses=want.requires if want and forward else (),
        value=want.value if want and forward else "",
        restricted=want.restricted if want and forward else (),
        policy=want.policy if want and forward else "Delete",
    )


def _start(node: PlannedNode) -> Node:
    """As `_node_records` of engine/store/traversal_start.py writes it."""
    waits = len(node.after) + (node.waits_for_running is not None)
    return Node(
        state=State.WAITING if waits else State.READY,
        phase=node.phase,
        operation=node.operation,
        passed=(),
        waits=waits,
        claim=0,
        wake=not waits,
        resource=node.resource_id.int,
    )
