"""Stores the plan of a new traversal: its nodes, new resource rows, and breakpoint rules."""

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Literal, NamedTuple
from uuid import UUID

from engine.hooks.rule import Rule, decode_rules, encode_rules
from engine.node.machine import stepping_moves
from engine.plan.draft import NewRow, Plan, PlannedNode
from engine.principal import Principal
from engine.store.connection import Connection, size_of
from engine.store.encryption.secret_values import Scope, Secret
from engine.store.stacks.stack_rows import NewStack
from engine.store.traversals.added_nodes import IF_REPLACED, encode_added_nodes
from engine.words import (
    GATES,
    IN_PLACE_OPERATIONS,
    Action,
    Direction,
    Json,
    Phase,
    State,
)

#: Labels that resources without a node in the plan have from now on.
STORE_LABELS = """
update resource r set label = n.label
  from jsonb_to_recordset($2) as n (name text, label text)
 where r.stack_id = $1 and r.name = n.name and r.replaced_by is null
   and r.label is distinct from n.label
"""
ACCEPT = """
select p_outcome, p_outbox, p_wake_at, p_stepped
  from accept_change($1, $2, $3, $4, $5, $6, $7, $8, $9, $10)
"""
STACK_RULES = "select rules from stack where id = $1"
STORE_STACK_RULES = """
update stack set rules = $2 where id = $1 and rules is distinct from $2
"""
STORE_RULES = """
update resource r set rules = n.rules
  from jsonb_to_recordset($2) as n (name text, rules jsonb)
 where r.stack_id = $1 and r.name = n.name and r.replaced_by is null
   and r.rules is distinct from n.rules
"""
SET_SUCCESSORS = """
update node n set successor = s.successor
  from unnest($2::integer[], $3::integer[], $4::integer[]) s (traversal, id, successor)
 where n.stack_id = $1 and n.traversal = s.traversal and n.id = s.id
"""

#: Maximum number of nodes that are stored by `accept_change`. COPY takes two round trips for each
#: table, but less time for each row.
STORED_AT_ONCE = 10

#: Operations before which stepping stops. Their nodes start in phase pre then.
STEPPED = frozenset(operation for operation, _, _ in stepping_moves())

NODE_COLUMNS = (
    "stack_id", "traversal", "id", "resource_id", "replacement_id", "name", "type", "operation",
    "direction", "state", "phase", "pending_dependencies", "dependents", "requires", "reads",
    "definition", "rules", "breakpoints_hit", "claim", "wake_at", "bytes",
)  # fmt: skip
ROW_COLUMNS = (
    "stack_id", "id", "name", "type", "action", "status", "reason", "physical_id", "attributes",
    "data", "metadata", "digest", "requires", "rules",
)  # fmt: skip
#: Column of both, in traversals with labels.
LABEL = "label"


class ParentStep(NamedTuple):
    """The step of the parent's operation that starts a nested traversal."""

    traversal: int | None
    node: int | None
    key: UUID | None
    step: str | None


NO_PARENT = ParentStep(None, None, None, None)


class NestedContext(NamedTuple):
    """parent: the step that starts the traversal; None: of a root stack. nested_breakpoints: for
    nested stacks, the strongest last ({pattern, rule, requested: by the request}).
    cleared_breakpoints: patterns of breakpoints that the request removes there. excluded: as in
    `Rule`."""

    parent: ParentStep | None = None
    nested_breakpoints: Sequence[Json] = ()
    cleared_breakpoints: Sequence[str] = ()
    excluded: Sequence[str] = ()


@dataclass(frozen=True, slots=True)
class NodeInputs:
    """Inputs of the nodes of one resource; see `node.definition` in the schema."""

    definition: Json
    reads: list[str]
    requires: list[str]


class StackEvent(NamedTuple):
    """The event of the start of a traversal."""

    type: str
    action: str
    status: str
    reason: str
    data: Mapping[str, Json]


@dataclass(frozen=True, slots=True)
class PreparedTraversal:
    """A new traversal, ready to store. traversal: columns of its row. traceparent: None: that of
    the stack stays. view: stored with the stack's own gates."""

    project: str
    stack_id: UUID
    number: int
    traversal: Json
    event: StackEvent
    traceparent: str | None
    plan: Plan
    inputs: Mapping[str, NodeInputs]
    view: Mapping[str, Json] | None
    labelled: bool

    @property
    def node_columns(self) -> Sequence[str]:
        return (*NODE_COLUMNS, LABEL) if self.labelled else NODE_COLUMNS

    @property
    def row_columns(self) -> Sequence[str]:
        return (*ROW_COLUMNS, LABEL) if self.labelled else ROW_COLUMNS

    def row_records(self) -> list[tuple[object, ...]]:
        count = len(self.row_columns)
        return [_row_record(self.project, self.stack_id, row)[:count] for row in self.plan.rows]


def is_one_statement(plan: Plan) -> bool:
    """Whether one statement stores the nodes and rows of a new traversal, and nothing else is to be
    stored with it."""
    return _is_small(plan) and not (_successors(plan) or _changing(plan) or plan.out_of_date)


def _is_small(plan: Plan) -> bool:
    """Whether one statement stores the nodes and rows."""
    return max(len(plan.rows), len(plan.nodes)) <= STORED_AT_ONCE


def _successors(plan: Plan) -> list[tuple[int, int, int]]:
    """(traversal, node, new node) of earlier nodes that new ones wait for."""
    return [
        (*node.waits_for_running, index)
        for index, node in enumerate(plan.nodes)
        if node.waits_for_running is not None
    ]


def _changing(plan: Plan) -> list[UUID]:
    """Existing resources that nodes change: without a digest, the next update includes those whose
    node has not run."""
    fresh = {row.id for row in plan.rows}
    return [
        node.resource_id for node in plan.nodes if _changes(node) and node.resource_id not in fresh
    ]


def prepare_traversal(
    *,
    project: str,
    stack_id: UUID,
    number: int,
    action: Action,
    version: int,
    plan: Plan,
    inputs: Mapping[str, NodeInputs],
    requested_by: Principal,
    event: StackEvent,
    traceparent: str | None = None,
    view: Mapping[str, Json] | None = None,
    lifecycle_plugins: bool = False,
    nested: NestedContext,
) -> PreparedTraversal:
    """lifecycle_plugins: they are notified of the end. The others: see `PreparedTraversal`."""
    active = sum(1 for node in plan.nodes if not node.after or node.waits_for_running)
    parent = nested.parent or NO_PARENT
    labels = sorted({node.label for node in plan.nodes if node.label})
    traversal: Json = {
        "stack_id": stack_id,
        "number": number,
        "action": action.value,
        "version": version,
        "state": "running" if active else "ending",
        "reason": f"Stack {action} started",
        "digest": plan.digest,
        "active_nodes": active,
        "out_of_date": list(plan.out_of_date),
        "requested_by": requested_by.name,
        "requested_by_id": requested_by.id,
        "lifecycle_view": view if lifecycle_plugins else None,
        "nested_breakpoints": list(nested.nested_breakpoints),
        "cleared_breakpoints": list(nested.cleared_breakpoints),
        "excluded": list(nested.excluded),
        "parent_traversal": parent.traversal,
        "parent_node": parent.node,
        "parent_operation_key": parent.key,
        "parent_step": parent.step,
        "labelled": bool(labels),
        "labels": labels,
    }
    return PreparedTraversal(
        project, stack_id, number, traversal, event, traceparent, plan, inputs, view, bool(labels)
    )


class OutboxRange(NamedTuple):
    """The last ID of the outbox must be between these; otherwise, a new stack is not stored."""

    first: int
    last: int


ANY_OUTBOX = OutboxRange(0, 2**63 - 1)


@dataclass(frozen=True, slots=True)
class AcceptedChange:
    """outcome: accepted; name_taken, if the project has a stack of that name; moved, if the project
    has left this cell; or uncounted, if the outbox is not in the `OutboxRange`. Only the first one
    stores anything. outbox: for a new stack,
    the last ID of the outbox before."""

    outcome: Literal["accepted", "name_taken", "moved", "uncounted"]
    outbox: int | None


async def accept_change(
    conn: Connection,
    prepared: PreparedTraversal,
    *,
    version: Json = None,
    new_stack: NewStack | None = None,
    outbox: OutboxRange | None = None,
) -> AcceptedChange:
    """Store a traversal with its graph, and wake the workers.

    version: the new version of the template (`version_document`); None: it is stored already.
    new_stack: of which this is the first traversal. outbox: see `OutboxRange`; None: any.
    """
    rows = prepared.row_records()
    number, view, plan = prepared.number, prepared.view, prepared.plan
    columns, stack_id, inputs = prepared.node_columns, prepared.stack_id, prepared.inputs
    is_small = _is_small(plan)
    first, last = outbox or (None, None)
    (stored,) = await conn.fetch(
        ACCEPT,
        new_stack.document(stack_id) if new_stack else None,
        first,
        last,
        version,
        prepared.traversal,
        prepared.event._asdict(),
        prepared.traceparent,
        [dict(zip(prepared.row_columns, row, strict=True)) for row in rows]
        if is_small and rows
        else None,
        _node_documents(columns, stack_id, number, plan, inputs, view)
        if is_small and plan.nodes
        else None,
        _changing(plan),
    )
    accepted = AcceptedChange(stored["p_outcome"], stored["p_outbox"])
    if accepted.outcome != "accepted":
        return accepted
    if not is_small:
        if rows:
            await conn.copy_records_to_table("resource", columns=prepared.row_columns, records=rows)
        await conn.copy_records_to_table(
            "node",
            columns=columns,
            records=_node_records(
                columns, stack_id, number, plan, inputs, stored["p_wake_at"], view,
                stepped=stored["p_stepped"],
            ),
        )  # fmt: skip
        await correct_estimates(conn, len(plan.nodes))
    if successors := _successors(plan):
        await conn.execute(SET_SUCCESSORS, stack_id, *zip(*successors, strict=True))
    return accepted


def _changes(node: PlannedNode) -> bool:
    return node.direction is Direction.FORWARD and node.operation not in IN_PLACE_OPERATIONS | GATES


def has_gate(plan: Plan) -> bool:
    return any(node.is_gate for node in plan.nodes)


async def store_labels(conn: Connection, stack_id: UUID, labels: Mapping[str, str | None]) -> None:
    """Store labels, by name, with resources whose operation does not: they have no node."""
    if labels:
        rows = [{"name": name, "label": label} for name, label in labels.items()]
        await conn.execute(STORE_LABELS, stack_id, rows)


async def stack_rules(conn: Connection, stack_id: UUID) -> tuple[Rule, ...]:
    """The hook rules that stay with the whole stack."""
    return decode_rules(await conn.fetchval(STACK_RULES, stack_id))


async def store_rules(
    conn: Connection, stack_id: UUID, rules: Mapping[str, Json], of_stack: Json
) -> None:
    """Store hook rules with their resources, also with those without a node."""
    await conn.execute(STORE_STACK_RULES, stack_id, of_stack)
    if rules:
        rows = [{"name": name, "rules": encoded} for name, encoded in rules.items()]
        await conn.execute(STORE_RULES, stack_id, rows)


def _row_record(project: str, stack_id: UUID, row: NewRow) -> tuple[object, ...]:
    adopted = row.adopted

    def secret(column: str, value: Mapping[str, Json]) -> Secret:
        return Secret(dict(value), Scope(project, stack_id, f"resource.{column}"))

    return (
        stack_id, row.id, row.name, row.type, "INIT", "COMPLETE", "",
        adopted.physical_id if adopted else None, {},
        secret("data", adopted.data) if adopted else {},
        secret("metadata", adopted.metadata) if adopted else {}, "", row.requires,
        encode_rules(row.rules),
        row.label,
    )  # fmt: skip


def _node_records(
    columns: Sequence[str],
    stack_id: UUID,
    number: int,
    plan: Plan,
    inputs: Mapping[str, NodeInputs],
    now: datetime | None,
    view: Mapping[str, Json] | None,
    *,
    stepped: bool,
) -> list[tuple[object, ...]]:
    """columns: of the records. stepped: stepping mode; every node has a breakpoint."""
    dependents: list[list[int]] = [[] for _ in plan.nodes]
    for index, node in enumerate(plan.nodes):
        for before in node.after:
            dependents[before].append(index)
    added = encode_added_nodes(plan, dependents)
    fresh = {row.id for row in plan.rows}
    moving = {node.name for node in plan.nodes if node.replacement_id is not None}
    records: list[tuple[object, ...]] = []
    for index, node in enumerate(plan.nodes):
        if node.added_by is not None:
            continue
        waits = (node.waits_for_running is not None) + sum(
            plan.nodes[before].added_by is None for before in node.after
        )
        needs = inputs[node.name] if _changes(node) else None
        definition = needs.definition if needs else view if node.is_gate else _without(node)
        if index in added:
            definition = {**(definition or {}), IF_REPLACED: added[index]}
        record: tuple[object, ...] = (
            stack_id, number, index, node.resource_id, node.replacement_id, node.name, node.type,
            node.operation.value, node.direction.value,
            (State.WAITING if waits else State.READY).value,
            (Phase.PRE if stepped and node.operation in STEPPED else node.phase).value,
            waits,
            [one for one in dependents[index] if plan.nodes[one].added_by is None],
            None
            if needs is None or _has_requirements(node, needs, fresh, moving)
            else needs.requires,
            needs.reads if needs else [],
            definition,
            encode_rules(node.rules), [], 0, None if waits else now,
            size_of(definition) if needs else 0,
            node.label or "",
        )  # fmt: skip
        records.append(record[: len(columns)])
    return records


def _node_documents(
    columns: Sequence[str],
    stack_id: UUID,
    number: int,
    plan: Plan,
    inputs: Mapping[str, NodeInputs],
    view: Mapping[str, Json] | None,
) -> list[Json]:
    """The records as `accept_change` reads them, which sets wake_at and the phase."""
    documents: list[Json] = []
    records = _node_records(columns, stack_id, number, plan, inputs, None, view, stepped=False)
    stored = [node for node in plan.nodes if node.added_by is None]
    for node, record in zip(stored, records, strict=True):
        document = dict(zip(columns, record, strict=True))
        steps = node.operation in STEPPED
        document["stepped_phase"] = Phase.PRE.value if steps else node.phase.value
        documents.append(document)
    return documents


def _has_requirements(
    node: PlannedNode, needs: NodeInputs, fresh: Collection[UUID], moving: Collection[str]
) -> bool:
    """Whether its row has the resources that it requires: a new row has, unless one of these may be
    replaced before."""
    return node.resource_id in fresh and not any(name in moving for name in needs.requires)


def _without(node: PlannedNode) -> Json:
    """The definition of a node without properties: the conditions under which it does nothing."""
    return {"only_if_replaced": node.only_if_replaced, "retained": node.retained}


#: Number of new nodes from which a wrong estimate costs more than the check.
LARGE = 100
#: $1: minimum number of rows of a table.
ESTIMATED_TOO_SMALL = """
select exists (
    select from pg_class c
     where c.oid = any ('{node,resource}'::regclass[]) and c.relpages > 0 and c.reltuples >= 0
       and c.reltuples / c.relpages * pg_relation_size(c.oid)
           / current_setting('block_size')::integer < $1)
"""
#: One column is enough for the number of rows. Tables that another process analyzes are skipped.
ANALYZE = "analyze (skip_locked) node (id), resource (id)"


async def correct_estimates(conn: Connection, nodes: int) -> None:
    """Analyze the hot tables if their estimated size is below the number of nodes just stored."""
    if nodes >= LARGE and await conn.fetchval(ESTIMATED_TOO_SMALL, nodes):
        await conn.execute(ANALYZE)
