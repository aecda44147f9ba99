"""Plans by the real engine.plan.passes, with small numbers as IDs."""

from collections.abc import Sequence
from functools import cache
from itertools import count
from typing import NamedTuple
from uuid import UUID

from engine.hooks.rule import Rule
from engine.hot.definition.stack import ResourceDefinition
from engine.plan.draft import ExistingResource, Plan, PlannedNode, Replacement
from engine.plan.gates import add_gates
from engine.plan.passes import plan, plan_in_place
from engine.words import (
    IN_PLACE_OPERATIONS,
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
from tests.model.system_state import Graph, Node, NodePlan, ResourceSpec, Row

#: The number of IDs of one plan.
IDS_OF_ONE_PLAN = 100


class RunningOperation(NamedTuple):
    """The operation that runs on a row: its node, and the row that may replace the row."""

    node: tuple[int, int]
    operation: Operation
    replacement: int | None
    requires: tuple[str, ...]
    rules: tuple[Rule, ...]


CurrentRows = tuple[tuple[Row, RunningOperation | None], ...]


class Planned(NamedTuple):
    """successors: (traversal, node) of older operations and the new node that waits for each."""

    graph: Graph
    nodes: tuple[Node | None, ...]
    active_nodes: int
    rows: tuple[Row, ...]
    out_of_date: frozenset[int]
    successors: tuple[tuple[tuple[int, int], int], ...]


@cache
def plan_change(
    template: tuple[ResourceSpec, ...],
    rows: CurrentRows,
    number: int,
    before: tuple[ResourceSpec, ...],
    action: Action,
    stack: tuple[Rule, ...],
) -> Planned:
    """The traversal `number` toward `template`. rows: each with the operation that runs on it.
    stack: the rules of the whole stack."""
    return _numbered(_with_gates(_plan(template, rows, number), action, stack), template, before)


@cache
def plan_in_place_action(
    operation: Operation,
    template: tuple[ResourceSpec, ...],
    rows: CurrentRows,
    before: tuple[ResourceSpec, ...],
    action: Action,
    stack: tuple[Rule, ...],
) -> Planned:
    """The traversal of an in-place action."""
    existing = [_existing(row, running) for row, running in rows]
    draft = plan_in_place(operation, existing, lambda name, stored: tuple(stored))
    return _numbered(_with_gates(draft, action, stack), template, before)


def _with_gates(draft: Plan, action: Action, stack: tuple[Rule, ...]) -> Plan:
    return add_gates(draft, StackId(UUID(int=0)), action, stack, lifecycle_plugins=False)


def _numbered(
    draft: Plan, template: tuple[ResourceSpec, ...], before: tuple[ResourceSpec, ...]
) -> Planned:
    specs = {spec.name: spec for spec in template}
    new_rows = {row.id for row in draft.rows}
    possibly_replaced = {node.name for node in draft.nodes if node.replacement_id is not None}
    node_plan = [
        _node_plan(
            draft,
            index,
            specs.get(node.name),
            possibly_replaced if node.resource_id in new_rows else None,
        )
        for index, node in enumerate(draft.nodes)
    ]
    return Planned(
        graph=graph_of(tuple(node_plan), template, before),
        nodes=tuple(_start(draft, node) for node in draft.nodes),
        active_nodes=sum(1 for node in draft.nodes if not node.after or node.waits_for_running),
        rows=tuple(
            Row(
                row.id.int, row.name, "INIT", "COMPLETE", "",
                requires=tuple(sorted(one.int for one in row.requires)), rules=row.rules,
                has_physical_id=row.adopted is not None,
            )
            for row in draft.rows
        ),
        out_of_date=frozenset(
            node.resource_id.int
            for node in draft.nodes
            if node.direction is Direction.FORWARD and node.operation not in IN_PLACE_OPERATIONS
        ),
        successors=tuple(
            (node.waits_for_running, index)
            for index, node in enumerate(draft.nodes)
            if node.waits_for_running
        ),
    )  # fmt: skip


@cache
def graph_of(
    node_plan: tuple[NodePlan, ...],
    template: tuple[ResourceSpec, ...],
    before: tuple[ResourceSpec, ...],
) -> Graph:
    return Graph(node_plan, template, before)


def _plan(template: tuple[ResourceSpec, ...], rows: CurrentRows, number: int) -> Plan:
    rules = {spec.name: spec.rules for spec in template}
    ids = count(number * IDS_OF_ONE_PLAN)

    def rules_of(name: str, stored: Sequence[Rule]) -> tuple[Rule, ...]:
        return rules[name] if name in rules else tuple(stored)

    return plan(
        {spec.name: _definition(spec) for spec in template},
        [_existing(row, running) for row, running in rows],
        rules_of,
        lambda: ResourceId(UUID(int=next(ids))),
    )


def _definition(spec: ResourceSpec) -> ResourceDefinition:
    return ResourceDefinition(
        name=spec.name,
        type="T",
        properties={},
        masked_properties=None,
        metadata={},
        requires=frozenset(spec.requires),
        reads=frozenset(),
        deletion_policy=spec.policy,
        description="",
        digest=spec.value,
        place=f"resources.{spec.name}",
        external_id="there" if spec.data else None,
        is_data=spec.data,
        reads_data=spec.data,
    )


def _existing(row: Row, running: RunningOperation | None) -> ExistingResource:
    """As engine/store/resources/current_resources.py reads it."""
    return ExistingResource(
        id=_uuid(row.id),
        name=row.name,
        type="T",
        action=ResourceAction(row.action),
        status=Status(row.status),
        digest=row.digest,
        requires=tuple(_uuid(one) for one in row.requires),
        rules=row.rules,
        replaced_by=None if row.replaced_by is None else _uuid(row.replaced_by),
        running=None if running is None else running.node,
        using=frozenset() if running is None else frozenset(running.requires),
        replacement=None if running is None else _replacement(running),
        physical_id="there" if row.has_physical_id else None,
        deletion_policy=DeletionPolicy(row.policy),
        suspending=running is not None and running.operation is Operation.SUSPEND,
    )


def _replacement(running: RunningOperation) -> Replacement | None:
    replaces = running.operation in (Operation.UPDATE, Operation.REPLACE)
    if not replaces or running.replacement is None:
        return None
    return Replacement(_uuid(running.replacement), "T", frozenset(running.requires))


def _uuid(number: int) -> ResourceId:
    return ResourceId(UUID(int=number))


def _node_plan(
    draft: Plan, index: int, spec: ResourceSpec | None, possibly_replaced: set[str] | None
) -> NodePlan:
    """moving: of a new row, names of what may be replaced before it is its turn."""
    node = draft.nodes[index]
    forward = node.direction is Direction.FORWARD and spec is not None
    forward = forward and node.operation not in IN_PLACE_OPERATIONS
    moves = possibly_replaced is None or (
        spec is not None and any(one in possibly_replaced for one in spec.requires)
    )
    return NodePlan(
        name=node.name,
        resource=node.resource_id.int,
        replacement=None if node.replacement_id is None else node.replacement_id.int,
        direction=node.direction,
        only_if_replaced=node.only_if_replaced,
        rules=node.rules,
        after=frozenset(node.after),
        dependents=tuple(at for at, other in enumerate(draft.nodes) if index in other.after),
        requires=spec.requires if spec and forward and moves else None,
        uses=spec.requires if spec and forward else (),
        value=spec.value if spec and forward else "",
        restricted=spec.restricted if spec and forward else (),
        policy=spec.policy if spec and forward else "Delete",
        confirms=spec.confirms if spec and forward else (),
        computes=bool(spec and forward and spec.computes),
        nests=bool(spec and forward and spec.nested),
        added_by=node.added_by,
    )


def _start(draft: Plan, node: PlannedNode) -> Node | None:
    """As `_node_records` of engine/store/traversals/start.py writes it. None: it is added later."""
    if node.added_by is not None:
        return None
    before = [one for one in node.after if draft.nodes[one].added_by is None]
    pending_dependencies = len(before) + (node.waits_for_running is not None)
    return Node(
        state=State.WAITING if pending_dependencies else State.READY,
        phase=node.phase,
        operation=node.operation,
        breakpoints_hit=(),
        pending_dependencies=pending_dependencies,
        claim=0,
        wake=not pending_dependencies,
        resource=node.resource_id.int,
    )
