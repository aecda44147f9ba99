"""Stores the plan of a new traversal: its nodes, new resource rows, and breakpoint rules."""

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import NamedTuple
from uuid import UUID

from engine.hooks.rule import Rule, decode_rules, encode_rules
from engine.plan.draft import NewRow, Plan, PlannedNode
from engine.principal import Principal
from engine.store.archived_graphs import archive_nodes
from engine.store.connection import Connection
from engine.store.document_size import size_of
from engine.store.encryption import Hidden, Scope
from engine.words import GATES, VISITS, Action, Direction, Json, Operation, Phase, State

INSERT_TRAVERSAL = """
insert into traversal (stack_id, number, project, action, version, state, reason, digest, active,
                       time_limit, working_since, stale, wake_at, requested_by, watched,
                       traceparent, asked, cleared, parent_traversal, parent_node, parent_key, step,
                       worked, pace, requested_by_id)
select $1, $2, s.project, $3, $4, $5, $6, $7, $8,
       case when p.number is null then make_interval(mins => s.timeout_mins) else p.time_limit end,
       working_time_since($5, $8, 0, clock_timestamp()), $9, clock_timestamp(), $10, $11,
       s.traceparent, $12, $13, $14, $15, $16, $17,
       -- A nested stack's working time begins with what its parent has worked.
       coalesce(working_time(p.worked, p.working_since, clock_timestamp()), '0'),
       case when n.step_into then 'step' when p.pace = 'run' then 'run' end, $18
  from stack s
  left join traversal p on p.stack_id = s.parent_id and p.number = $14
  left join node n on n.stack_id = p.stack_id and n.traversal = p.number and n.id = $15
 where s.id = $1
returning wake_at, coalesce(pace = 'step', false) as stepped
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
MARK_STALE = """
update resource set digest = ''
 where stack_id = $1 and (id = any ($2::uuid[]) or name = any ($3::text[]) and replaced_by is null)
"""
#: Nodes that waited for earlier operations belong to the previous traversal.
FORGET_SUCCESSORS = """
update node set successor = null
 where stack_id = $1 and traversal < $2 and successor is not null
"""
SET_SUCCESSORS = """
update node n set successor = s.successor
  from unnest($2::integer[], $3::integer[], $4::integer[]) s (traversal, id, successor)
 where n.stack_id = $1 and n.traversal = s.traversal and n.id = s.id
"""
WAKE_WORKERS = "select pg_notify('headgate_work', '')"

#: Operations that have breakpoints in stepping mode.
STEPPED = frozenset({*Operation}) - GATES - {Operation.ADOPT, Operation.SNAPSHOT}

NODE_COLUMNS = (
    "stack_id", "traversal", "id", "resource_id", "replacement_id", "name", "type", "operation",
    "direction", "state", "phase", "waits", "requirers", "requires", "reads", "definition",
    "rules", "passed", "claim", "wake_at", "bytes",
)  # fmt: skip
ROW_COLUMNS = (
    "stack_id", "id", "name", "type", "action", "status", "reason", "physical_id", "attributes",
    "data", "metadata", "digest", "requires", "rules",
)  # fmt: skip


class Within(NamedTuple):
    """The step of the parent's operation that starts a traversal."""

    traversal: int | None
    node: int | None
    key: UUID | None
    step: str | None


NOWHERE = Within(None, None, None, None)


class Below(NamedTuple):
    """How a traversal stands among stacks inside of stacks. within: the step that begins it; None:
    its stack is the outermost. asked: breakpoints for what is inside of its resources, the
    strongest last ({pattern, rule, asked: with the change}); cleared: those left out there."""

    within: Within | None = None
    asked: Sequence[Json] = ()
    cleared: Sequence[str] = ()


@dataclass(frozen=True, slots=True)
class NodeInputs:
    """Inputs of the nodes of one resource; see `node.definition` in the schema."""

    definition: Json
    reads: list[str]
    requires: list[str]


async def insert_traversal(
    conn: Connection,
    *,
    project: str,
    stack_id: UUID,
    number: int,
    action: Action,
    version: int,
    plan: Plan,
    inputs: Mapping[str, NodeInputs],
    requested_by: Principal,
    view: Mapping[str, Json] | None = None,
    watched: bool = False,
    below: Below,
) -> None:
    """Store a plan: its new rows, its nodes and the traversal itself, and wake the workers.

    view: what is kept at the stack's own gates. watched: plug-ins are to be told of the end.
    """
    if plan.rows:
        await conn.copy_records_to_table(
            "resource",
            columns=ROW_COLUMNS,
            records=[_row_record(project, stack_id, row) for row in plan.rows],
        )
    active = sum(1 for node in plan.nodes if not node.after or node.waits_for_running)
    ((now, stepped),) = await conn.fetch(
        INSERT_TRAVERSAL, stack_id, number, action.value, version,
        "running" if active else "ending", f"Stack {action} started", plan.digest, active,
        plan.stale, requested_by.name, view if watched else None, list(below.asked),
        list(below.cleared), *(below.within or NOWHERE), requested_by.id,
    )  # fmt: skip
    if plan.nodes:
        await conn.copy_records_to_table(
            "node",
            columns=NODE_COLUMNS,
            records=_node_records(stack_id, number, plan, inputs, now, view, stepped=stepped),
        )
        await correct_estimates(conn, len(plan.nodes))
    await archive_nodes(conn, stack_id, number)
    await conn.execute(FORGET_SUCCESSORS, stack_id, number)
    successors = [
        (*node.waits_for_running, index)
        for index, node in enumerate(plan.nodes)
        if node.waits_for_running is not None
    ]
    if successors:
        traversals, nodes, new = zip(*successors, strict=True)
        await conn.execute(SET_SUCCESSORS, stack_id, traversals, nodes, new)
    await _mark_stale(conn, stack_id, plan)
    await conn.execute(WAKE_WORKERS)


async def _mark_stale(conn: Connection, stack_id: UUID, plan: Plan) -> None:
    """A row that a node is to change is stale until it has: the node may never get to it.

    So is what a partial update leaves out: what it reads may have changed since.
    """
    fresh = {row.id for row in plan.rows}
    stale = [
        node.resource_id for node in plan.nodes if _changes(node) and node.resource_id not in fresh
    ]
    if stale or plan.stale:
        await conn.execute(MARK_STALE, stack_id, stale, plan.stale)


def _changes(node: PlannedNode) -> bool:
    return node.direction is Direction.FORWARD and node.operation not in VISITS | GATES


def has_gate(plan: Plan) -> bool:
    return any(node.operation in GATES for node in plan.nodes)


async def stack_rules(conn: Connection, stack_id: UUID) -> tuple[Rule, ...]:
    """The hook rules that stay with the whole stack."""
    return decode_rules(await conn.fetchval(STACK_RULES, stack_id))


async def store_rules(
    conn: Connection, stack_id: UUID, rules: Mapping[str, Json], of_stack: Json
) -> None:
    """Store hook rules with their resources, also with those without a node."""
    await conn.execute(STORE_STACK_RULES, stack_id, of_stack)
    if rules:
        said = [{"name": name, "rules": kept} for name, kept in rules.items()]
        await conn.execute(STORE_RULES, stack_id, said)


def _row_record(project: str, stack_id: UUID, row: NewRow) -> tuple[object, ...]:
    taken = row.adopted

    def sealed(column: str, value: Mapping[str, Json]) -> Hidden:
        return Hidden(dict(value), Scope(project, stack_id, f"resource.{column}"))

    return (
        stack_id, row.id, row.name, row.type, "INIT", "COMPLETE", "",
        taken.physical_id if taken else None, {}, sealed("data", taken.data) if taken else {},
        sealed("metadata", taken.metadata) if taken else {}, "", row.requires,
        encode_rules(row.rules),
    )  # fmt: skip


def _node_records(
    stack_id: UUID,
    number: int,
    plan: Plan,
    inputs: Mapping[str, NodeInputs],
    now: datetime,
    view: Mapping[str, Json] | None,
    *,
    stepped: bool,
) -> list[tuple[object, ...]]:
    """stepped: stepping mode; every node has a breakpoint."""
    requirers: list[list[int]] = [[] for _ in plan.nodes]
    for index, node in enumerate(plan.nodes):
        for before in node.after:
            requirers[before].append(index)
    fresh = {row.id for row in plan.rows}
    moving = {node.name for node in plan.nodes if node.replacement_id is not None}
    records: list[tuple[object, ...]] = []
    for index, node in enumerate(plan.nodes):
        waits = len(node.after) + (node.waits_for_running is not None)
        needs = inputs[node.name] if _changes(node) else None
        definition = (
            needs.definition if needs else view if node.operation in GATES else _without(node)
        )
        records.append((
            stack_id, number, index, node.resource_id, node.replacement_id, node.name, node.type,
            node.operation.value, node.direction.value,
            (State.WAITING if waits else State.READY).value,
            (Phase.PRE if stepped and node.operation in STEPPED else node.phase).value,
            waits,
            requirers[index],
            None if needs is None or _known(node, needs, fresh, moving) else needs.requires,
            needs.reads if needs else [],
            definition,
            encode_rules(node.rules), [], 0, None if waits else now,
            size_of(definition) if needs else 0,
        ))  # fmt: skip
    return records


def _known(
    node: PlannedNode, needs: NodeInputs, fresh: Collection[UUID], moving: Collection[str]
) -> bool:
    """Whether its row tells already which rows it uses: a new row does, unless one of them may be
    replaced before it is its turn."""
    return node.resource_id in fresh and not any(name in moving for name in needs.requires)


def _without(node: PlannedNode) -> Json:
    """The definition of a node without properties: the work it can skip."""
    return {"only_if_replaced": node.only_if_replaced, "retained": node.retained}


#: Number of new nodes from which a wrong estimate costs more than the check.
LARGE = 100
#: $1: rows that a table has at least.
ESTIMATED_TOO_SMALL = """
select exists (
    select from pg_class c
     where c.oid = any ('{node,resource}'::regclass[]) and c.relpages > 0 and c.reltuples >= 0
       and c.reltuples / c.relpages * pg_relation_size(c.oid)
           / current_setting('block_size')::integer < $1)
"""
#: One column is enough for the number of rows. Tables that another process analyzes are skipped.
COUNT_AGAIN = "analyze (skip_locked) node (id), resource (id)"


async def correct_estimates(conn: Connection, nodes: int) -> None:
    """Analyze the hot tables if their estimated size is below the number of nodes just stored."""
    if nodes >= LARGE and await conn.fetchval(ESTIMATED_TOO_SMALL, nodes):
        await conn.execute(COUNT_AGAIN)
