"""Writing down what was accepted: a version of the template, a traversal and its graph.

Called by engine/service.py in one transaction; the stack's row is new or locked.
"""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from datetime import datetime
from uuid import UUID

from engine.errors import Unavailable
from engine.hooks.rules import encode_rules
from engine.node.machine import DROPPED_WHEN_SUPERSEDED
from engine.plan.passes import NewRow, Plan
from engine.store.database import Connection
from engine.words import Direction, Json, State

INSERT_STACK = """
insert into stack (id, project, name, owner, tags, timeout_mins, disable_rollback, version,
                   traversal)
values ($1, $2, $3, $4, $5, $6, $7, 1, 1)
on conflict (project, name) where deleted_at is null do nothing
returning id
"""
CLAIM_KEY = """
with claimed as (
    insert into idempotency (project, key, request_digest, stack_id) values ($1, $2, $3, $4)
    on conflict (project, key) do nothing
    returning request_digest, stack_id
)
select request_digest as digest, stack_id from claimed
union all
select request_digest, stack_id from idempotency where project = $1 and key = $2
limit 1
"""
COUNT_STACKS = "select count(*) from stack where project = $1 and deleted_at is null"
INSERT_TEMPLATE = """
insert into template (stack_id, version, description, template, environment, files, parameters,
                      shown, hidden, outputs, requested_by)
values ($1, $2, $3, $4, $5, $6, $7, $8, $9, $10, $11)
"""
INSERT_TRAVERSAL = """
insert into traversal (stack_id, number, action, version, state, reason, digest, active, wake_at,
                       requested_by)
values ($1, $2, $3, $4, $5, $6, $7, $8, clock_timestamp(), $9)
returning wake_at
"""
POINT_STACK = """
update stack set version = $2, traversal = $3, tags = coalesce($4, tags),
       timeout_mins = coalesce($5, timeout_mins), disable_rollback = coalesce($6, disable_rollback)
 where id = $1
"""
LOCK_STACK = """
select s.version, s.traversal, s.deleted_at is not null as deleted, t.state, t.action, now() as now
  from stack s join traversal t on t.stack_id = s.id and t.number = s.traversal
 where s.id = $1 and s.project = $2
   for no key update of s
"""
STORE_RULES = """
update resource r set rules = n.rules
  from jsonb_to_recordset($2) as n (id uuid, rules jsonb)
 where r.stack_id = $1 and r.id = n.id and r.rules is distinct from n.rules
"""
MARK_STALE = "update resource set digest = '' where stack_id = $1 and id = any ($2::uuid[])"
SET_SUCCESSORS = """
update node n set successor = s.successor
  from unnest($2::integer[], $3::integer[], $4::integer[]) s (traversal, id, successor)
 where n.stack_id = $1 and n.traversal = s.traversal and n.id = s.id
"""
SUPERSEDE_NODES = """
update node n
   set state = 'dropped', reason = 'superseded', claim = n.claim + 1, wake_at = null,
       ended_at = clock_timestamp()
  from unnest($3::text[], $4::text[]) d (state, phase)
 where n.stack_id = $1 and n.traversal = $2 and n.state = d.state and n.phase = d.phase
"""
SUPERSEDE_HOOKS = """
with closed as (
    update hook set state = 'superseded', decided_at = clock_timestamp(), decided_by = $3
     where stack_id = $1 and traversal = $2 and state = 'waiting'
    returning stack_id, id, resource_name, point, mode, node, traversal
), told as (
    select array_agg(row (c.stack_id, 'headgate.hook.superseded', c.resource_name, n.type,
                     r.physical_id, r.action, r.status,
                     'Hook ' || c.point || ' was superseded by a newer change',
                     jsonb_build_object('hook_id', c.id, 'point', c.point, 'mode', c.mode)
                     )::event_draft) as events
      from closed c
      join node n on n.stack_id = c.stack_id and n.traversal = c.traversal and n.id = c.node
      left join resource r on r.stack_id = c.stack_id and r.id = n.resource_id
)
select record_events(events) from told where events is not null
"""
SUPERSEDE_TRAVERSAL = """
update traversal
   set state = 'superseded', reason = 'superseded', ended_at = clock_timestamp(),
       wake_at = (select min(wake_at) from node where stack_id = $1 and traversal = $2)
 where stack_id = $1 and number = $2 and state in ('running', 'ending')
"""
FORGET_NODES = """
delete from node n
 where n.stack_id = $1 and n.traversal < $2
   and n.state not in ('running', 'parked', 'ready')
"""
STACK_EVENT = """
select record_events(array[row ($1::uuid, $2::text, null, null, $1::text, $3::text, $4::text,
                                $5::text, $6::jsonb)::event_draft])
"""
WAKE_WORKERS = "select pg_notify('headgate_work', '')"

NODE_COLUMNS = (
    "stack_id", "traversal", "id", "resource_id", "replacement_id", "name", "type", "operation",
    "direction", "state", "phase", "waits", "requirers", "requires", "reads", "definition",
    "rules", "passed", "claim", "wake_at",
)  # fmt: skip
ROW_COLUMNS = (
    "stack_id", "id", "name", "type", "action", "status", "reason", "attributes", "data",
    "metadata", "digest", "requires", "rules",
)  # fmt: skip


@dataclass(frozen=True, slots=True)
class Locked:
    """A stack under lock. now: the transaction's time."""

    version: int
    traversal: int
    deleted: bool
    state: str
    action: str
    now: datetime


@dataclass(frozen=True, slots=True)
class NodeInputs:
    """What the nodes of one resource need at run time; see `node.definition` in the schema."""

    definition: Json
    reads: list[str]
    requires: list[str]


async def insert_stack(
    conn: Connection,
    *,
    stack_id: UUID,
    project: str,
    name: str,
    owner: str,
    tags: Sequence[str],
    timeout_mins: int | None,
    disable_rollback: bool,
) -> bool:
    """False when the project has a stack of that name."""
    made = await conn.fetchval(
        INSERT_STACK, stack_id, project, name, owner, list(tags), timeout_mins, disable_rollback
    )
    return made is not None


@dataclass(frozen=True, slots=True)
class Key:
    """An Idempotency-Key: the digest of the request that used it first, and its stack."""

    digest: str
    stack_id: UUID


async def claim_key(conn: Connection, project: str, key: str, digest: str, stack_id: UUID) -> Key:
    """Take the key for this request, or tell who has it. Waits for whoever is taking it now."""
    row = await conn.fetchrow(CLAIM_KEY, project, key, digest, stack_id)
    if row is None:  # taken by a transaction that ended after our statement began
        row = await conn.fetchrow(CLAIM_KEY, project, key, digest, stack_id)
    if row is None:
        raise Unavailable("the Idempotency-Key is being used", remedy="Send the request again.")
    return Key(**row)


async def count_stacks(conn: Connection, project: str) -> int:
    count: int = await conn.fetchval(COUNT_STACKS, project)
    return count


async def lock_stack(conn: Connection, project: str, stack_id: UUID) -> Locked | None:
    """Lock the stack's row; None when there is no such stack in the project."""
    row = await conn.fetchrow(LOCK_STACK, stack_id, project)
    return Locked(**row) if row else None


async def insert_template(
    conn: Connection,
    *,
    stack_id: UUID,
    version: int,
    description: str,
    template: Json,
    environment: Json,
    files: Json,
    parameters: Json,
    shown: Json,
    hidden: Iterable[str],
    outputs: Json,
    requested_by: str,
) -> None:
    await conn.execute(
        INSERT_TEMPLATE, stack_id, version, description, template, environment, files,
        parameters, shown, sorted(hidden), outputs, requested_by,
    )  # fmt: skip


async def point_stack(
    conn: Connection,
    *,
    stack_id: UUID,
    version: int,
    traversal: int,
    tags: Sequence[str] | None = None,
    timeout_mins: int | None = None,
    disable_rollback: bool | None = None,
) -> None:
    kept = None if tags is None else list(tags)
    await conn.execute(
        POINT_STACK, stack_id, version, traversal, kept, timeout_mins, disable_rollback
    )


async def supersede(conn: Connection, stack_id: UUID, traversal: int, by: str) -> None:
    """End a traversal in favour of a newer one: drop what has not begun, close its hooks.

    What acts goes on to its outcome; the newer traversal waits for it where it must.
    """
    states, phases = zip(*sorted(DROPPED_WHEN_SUPERSEDED), strict=True)
    await conn.execute(SUPERSEDE_NODES, stack_id, traversal, states, phases)
    await conn.execute(SUPERSEDE_HOOKS, stack_id, traversal, by)
    await conn.execute(SUPERSEDE_TRAVERSAL, stack_id, traversal)


async def insert_traversal(
    conn: Connection,
    *,
    stack_id: UUID,
    number: int,
    action: str,
    version: int,
    plan: Plan,
    inputs: dict[str, NodeInputs],
    requested_by: str,
) -> None:
    """Store a plan: its new rows, its nodes and the traversal itself, and wake the workers."""
    if plan.rows:
        await conn.copy_records_to_table(
            "resource",
            columns=ROW_COLUMNS,
            records=[_row_record(stack_id, row) for row in plan.rows],
        )
    active = sum(1 for node in plan.nodes if not node.after or node.waits_for_running)
    now = await conn.fetchval(
        INSERT_TRAVERSAL, stack_id, number, action, version, "running" if active else "ending",
        f"Stack {action} started", plan.digest, active, requested_by,
    )  # fmt: skip
    if plan.nodes:
        await conn.copy_records_to_table(
            "node",
            columns=NODE_COLUMNS,
            records=_node_records(stack_id, number, plan, inputs, now),
        )
    successors = [
        (*node.waits_for_running, index)
        for index, node in enumerate(plan.nodes)
        if node.waits_for_running is not None
    ]
    if successors:
        traversals, nodes, new = zip(*successors, strict=True)
        await conn.execute(SET_SUCCESSORS, stack_id, traversals, nodes, new)
    await _mark_stale(conn, stack_id, plan)
    await conn.execute(FORGET_NODES, stack_id, number)
    await conn.execute(WAKE_WORKERS)


async def _mark_stale(conn: Connection, stack_id: UUID, plan: Plan) -> None:
    """A row that a node is to change is stale until it has: the node may never get to it."""
    fresh = {row.id for row in plan.rows}
    stale = [
        node.resource_id
        for node in plan.nodes
        if node.direction is Direction.FORWARD and node.resource_id not in fresh
    ]
    if stale:
        await conn.execute(MARK_STALE, stack_id, stale)


async def store_rules(conn: Connection, stack_id: UUID, rules: dict[UUID, Json]) -> None:
    """Keep the breakpoints with their resources, also with those no node is planned for."""
    if rules:
        said = [{"id": resource_id, "rules": kept} for resource_id, kept in rules.items()]
        await conn.execute(STORE_RULES, stack_id, said)


async def record_stack_event(
    conn: Connection,
    *,
    stack_id: UUID,
    kind: str,
    action: str,
    status: str,
    reason: str,
    data: Json,
) -> None:
    await conn.execute(STACK_EVENT, stack_id, kind, action, status, reason, data)


def _waits(after: set[int], running: tuple[int, int] | None) -> int:
    return len(after) + (running is not None)


def _row_record(stack_id: UUID, row: NewRow) -> tuple[object, ...]:
    return (
        stack_id, row.id, row.name, row.type, "INIT", "COMPLETE", "", {}, {}, {}, "",
        row.requires, encode_rules(row.rules),
    )  # fmt: skip


def _node_records(
    stack_id: UUID, number: int, plan: Plan, inputs: dict[str, NodeInputs], now: datetime
) -> list[tuple[object, ...]]:
    requirers: list[list[int]] = [[] for _ in plan.nodes]
    for index, node in enumerate(plan.nodes):
        for before in node.after:
            requirers[before].append(index)
    fresh = {row.id for row in plan.rows}
    records: list[tuple[object, ...]] = []
    for index, node in enumerate(plan.nodes):
        waits = _waits(node.after, node.waits_for_running)
        forward = node.direction is Direction.FORWARD
        needs = inputs[node.name] if forward else None
        definition = needs.definition if needs else {"only_if_replaced": node.only_if_replaced}
        records.append((
            stack_id, number, index, node.resource_id, node.replacement_id, node.name, node.type,
            node.operation.value, node.direction.value,
            (State.WAITING if waits else State.READY).value, node.phase.value, waits,
            requirers[index],
            None if needs is None or node.resource_id in fresh else needs.requires,
            needs.reads if needs else [], definition, encode_rules(node.rules), [], 0,
            None if waits else now,
        ))  # fmt: skip
    return records
