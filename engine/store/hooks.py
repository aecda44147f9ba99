"""Hooks under lock: reading and deciding them, and those whose deadline has passed."""

from collections.abc import Sequence
from dataclasses import dataclass, fields
from datetime import datetime
from typing import Any
from uuid import UUID

from engine.hooks.answers import Asked
from engine.hooks.rule import decode_rule
from engine.principal import Principal
from engine.store.connection import Connection
from engine.store.encryption import Hidden, Scope, SealedDocument, members
from engine.store.hook_deadlines import CLOCK_COLUMNS, clock_of
from engine.store.secret_rows import readable_columns
from engine.store.stack_locks import lock_stacks
from engine.words import HookState, Json, Pace

FIND_HOOK = """
select stack_id, coalesce((rule ->> 'stepped')::boolean, false) as stepped
  from hook where id = $1 and project = coalesce($2, project)
"""
#: The schema that an answer to the hook must fit, as its rule has it.
READ_ASK = """
select rule ->> 'ask' as ask, project from hook
 where id = $1 and project = coalesce($2, project) and state = 'waiting'
   and rule ->> 'ask' is not null
"""
WAITING_HOOK_AT = """
select h.id from hook h
  join stack s on s.id = h.stack_id and s.traversal = h.traversal
 where h.stack_id = $1 and h.resource_name = $2 and h.point = $3 and h.state = 'waiting'
 order by h.opened_at limit 1
"""
READ_HOOKS = """
select h.id, h.stack_id, h.traversal, h.node, h.resource_name, h.point, h.mode, h.state,
       h.on_timeout, h.digest, h.opened_at, h.timeout, h.deadline, h.undeliverable_at, h.decision,
       h.decided_by, h.decided_at, h.rule, h.requested_by, h.requested_by_id, h.assigned,
       h.escalated_at, h.approved_keys, h.data, n.patched, h.wake_at, h.reminders, h.notified_at,
       t.pace, n.progress, n.attempts, n.claim, n.operation, n.state as node_state, n.phase,
       n.rules, n.passed, n.type, n.definition, n.resource_id, n.replacement_id, n.name,
       n.direction, n.operation_key, h.notice, h.project, h.stack_name, h.stack_path,
       to_jsonb(r) as resource,
       clock_timestamp() as now
  from hook_details h join traversal t on t.stack_id = h.stack_id and t.number = h.traversal
  left join node n on n.stack_id = h.stack_id and n.traversal = h.traversal and n.id = h.node
  left join resource r on r.stack_id = h.stack_id and r.id =
       case when n.phase = 'post' and n.operation = 'replace' then n.replacement_id
            else n.resource_id end
 where h.stack_id = any ($1::uuid[]) and h.id = any ($2::uuid[])
"""
DECIDE_HOOKS = """
update hook h
   set state = d.state, decision = d.decision, reason = d.reason,
       data = d.data,
       decided_by = d.decided_by, decided_by_id = d.decided_by_id, door = d.door,
       decided_at = clock_timestamp()
  from jsonb_to_recordset($1) as d (stack_id uuid, id uuid, state text, decision text,
       reason text, data jsonb, decided_by text, decided_by_id text, door text)
 where h.stack_id = d.stack_id and h.id = d.id
   -- Not as it stands in the partial indexes: one of them would be read whole.
   and case h.state when 'waiting' then true end
"""
ASSIGN = "update hook set assigned = $3 where stack_id = $1 and id = $2 and state = 'waiting'"
PATCH_NODE = """
update node set patched = $4 where stack_id = $1 and traversal = $2 and id = $3
"""
#: Nodes that were to begin at once ask first from now on.
SET_PACE = """
with said as (
    select * from unnest($1::uuid[], $2::integer[], $3::text[]) s (stack_id, traversal, pace)
), paced as (
    update traversal t set pace = s.pace from said s
     where t.stack_id = s.stack_id and t.number = s.traversal
)
update node n set phase = 'pre' from said s
 where s.pace = 'step' and n.stack_id = s.stack_id and n.traversal = s.traversal
   and n.phase = 'act' and n.state in ('waiting', 'ready') and n.started_at is null
   and n.operation not in ('begin', 'finish', 'adopt', 'snapshot')
"""
STEP_INTO = """
update node set step_into = true where stack_id = $1 and traversal = $2 and id = $3
"""
WAITING_HERE = """
select h.stack_id, h.id
  from unnest($1::uuid[], $2::integer[]) s (stack_id, traversal)
  join hook h on h.stack_id = s.stack_id and h.traversal = s.traversal and h.state = 'waiting'
 order by h.opened_at, h.id
"""
DUE_REMINDERS = """
select stack_id, id from hook
 where state = 'waiting' and wake_at <= statement_timestamp() order by wake_at limit $1
"""
REMINDED = """
update hook h
   set wake_at = r.wake_at, reminders = h.reminders + r.reminded::integer,
       escalated_at = case when r.escalated then clock_timestamp() else h.escalated_at end
  from jsonb_to_recordset($1) as r (stack_id uuid, id uuid, wake_at timestamptz, reminded boolean,
       escalated boolean)
 where h.stack_id = r.stack_id and h.id = r.id and h.state = 'waiting'
"""
RECORD_EVENTS = """
select record_events(array_agg(
           row (e.stack_id, e.type, e.resource_name, e.resource_type, e.physical_id, e.action,
                e.status, e.reason, e.data)::event_draft))
  from jsonb_to_recordset($1) as e (stack_id uuid, type text, resource_name text,
       resource_type text, physical_id text, action text, status text, reason text, data jsonb)
having count(*) > 0
"""
# clock_timestamp() changes while a statement runs, so no index can be searched by it: every hook
# that waits would be looked at.
DUE_HOOKS = """
select stack_id, id from hook
 where state = 'waiting' and deadline <= statement_timestamp() order by deadline limit $1
"""
# One step by index for each project with hooks that wait; each has its turn before any has a
# second one.
DUE_HOOKS_IN_TURN = """
with recursive project (name, deadline) as (
    (select h.project, h.deadline from hook h where h.state = 'waiting'
      order by h.project, h.deadline limit 1)
    union all
    select n.* from project p
     cross join lateral (
           select h.project, h.deadline from hook h
            where h.state = 'waiting' and h.project > p.name
            order by h.project, h.deadline limit 1) n
)
select d.stack_id, d.id
  from project p
 cross join lateral (
       select n.*, row_number() over (order by n.deadline, n.id) as turn
         from (select h.stack_id, h.id, h.deadline from hook h
                -- As a range, in the order of the index `hook_due_by_project`: no other has that
                -- order.
                where h.state = 'waiting' and h.project >= p.name and h.project <= p.name
                  and h.deadline <= statement_timestamp()
                order by h.project, h.deadline limit $1) n) d
 where p.deadline <= statement_timestamp()
 order by d.turn, d.deadline limit $1
"""
NEXT_DEADLINE = """
select extract(epoch from min(deadline) - clock_timestamp())::double precision as seconds
  from hook where state = 'waiting'
"""
NEXT_REMINDER = """
select extract(epoch from min(wake_at) - clock_timestamp())::double precision as seconds
  from hook where state = 'waiting' and wake_at is not null
"""

#: Encrypted columns of a node.
_ENCRYPTED = ("definition", "progress", "patched")


@dataclass(frozen=True, slots=True)
class Held:
    """A hook with the node it holds. claim None: the node is gone with its traversal.

    resource: the resource's row as JSON (column names as keys), or None. pace: of its traversal.
    """

    id: UUID
    stack_id: UUID
    traversal: int
    node: int
    mode: str
    on_timeout: str
    asked: Asked
    wake_at: datetime | None
    reminders: int
    pace: str | None
    progress: Json
    attempts: int | None
    patched: Json
    claim: int | None
    operation: str
    node_state: str
    phase: str
    rules: Json
    passed: list[str]
    type: str
    definition: Json
    resource_id: UUID
    replacement_id: UUID | None
    name: str
    direction: str
    operation_key: UUID | None
    notice: Json
    project: str
    stack_name: str
    stack_path: str
    resource: Json
    now: datetime


@dataclass(frozen=True, slots=True)
class Decision:
    """What a hook's row is to say from now on."""

    stack_id: UUID
    id: UUID
    state: str
    decision: str
    reason: str
    data: Json
    decided_by: str
    decided_by_id: str
    door: str


_DECIDED = tuple(one.name for one in fields(Decision))


async def find_hook(
    conn: Connection, hook_id: UUID, project: str | None
) -> tuple[UUID, bool] | None:
    """A waiting hook's stack, and whether stepping opened the hook."""
    row = await conn.fetchrow(FIND_HOOK, hook_id, project)
    return (row["stack_id"], row["stepped"]) if row else None


async def read_ask(conn: Connection, hook_id: UUID, project: str | None) -> tuple[str, str] | None:
    """The schema that an answer must fit, as text, and the hook's project; None for a hook that
    asks for no data, and for one that is decided."""
    row = await conn.fetchrow(READ_ASK, hook_id, project)
    return (row["ask"], row["project"]) if row else None


async def waiting_hook_at(
    conn: Connection, stack_id: UUID, resource_name: str, point: str
) -> UUID | None:
    found: UUID | None = await conn.fetchval(WAITING_HOOK_AT, stack_id, resource_name, point)
    return found


async def lock_hooks(conn: Connection, keys: Sequence[tuple[UUID, UUID]]) -> list[Held]:
    """Lock the stacks of `keys` (stack, hook), in order, and read the hooks as they are then."""
    stacks = sorted({stack_id for stack_id, _ in keys})
    await lock_stacks(conn, stacks)
    rows = await conn.fetch(READ_HOOKS, stacks, [hook_id for _, hook_id in keys])
    return [_held(dict(row)) for row in rows]


def _held(row: dict[str, Any]) -> Held:
    row, stack_id = dict(row), row["stack_id"]
    project = row["project"]
    node, _ = readable_columns(row, project, stack_id, "node", _ENCRYPTED)
    # A value that cannot be decrypted fails the node, with the reason, when it is claimed.
    row |= {name: None if isinstance(node[name], SealedDocument) else node[name]
            for name in ("definition", "patched")}  # fmt: skip
    row["progress"] = node["progress"]
    if row["resource"] is not None:
        row["resource"], _ = readable_columns(
            members(row["resource"]), project, stack_id, "resource"
        )
    clock = clock_of(row)
    for name in CLOCK_COLUMNS:
        del row[name]
    asked = Asked(
        state=HookState(row.pop("state")),
        resource_name=row.pop("resource_name"),
        point=row.pop("point"),
        digest=row.pop("digest"),
        clock=clock,
        decision=row.pop("decision"),
        decided_by=row.pop("decided_by"),
        decided_at=row.pop("decided_at"),
        rule=decode_rule(row.pop("rule")),
        requested_by=Principal(row.pop("requested_by_id"), row.pop("requested_by")),
        assigned=row.pop("assigned"),
        escalated=row.pop("escalated_at") is not None,
        approved_by=row.pop("approved_keys"),
        data=row.pop("data"),
        properties=row["patched"],
        seen=row["notice"].get("seen") or {},
    )
    return Held(asked=asked, **row)


async def decide_hooks(conn: Connection, decisions: Sequence[Decision]) -> None:
    """Write a decision; a hook that no longer waits stays unchanged."""
    if decisions:
        rows = [{name: getattr(one, name) for name in _DECIDED} for one in decisions]
        await conn.execute(DECIDE_HOOKS, rows)


async def assign_hook(conn: Connection, held: Held, to: str) -> None:
    await conn.execute(ASSIGN, held.stack_id, held.id, to)


async def patch_node(conn: Connection, held: Held, properties: Json) -> None:
    """Keep what an answer changed with the node that is to act on it."""
    sealed = Hidden(properties, Scope(held.project, held.stack_id, "node.patched"))
    await conn.execute(PATCH_NODE, held.stack_id, held.traversal, held.node, sealed)


async def set_paces(conn: Connection, said: Sequence[tuple[UUID, int, Pace | None]]) -> None:
    """How traversals go on: (stack, traversal, pace); None: as the rules say."""
    if said:
        await conn.execute(SET_PACE, *map(list, zip(*said, strict=True)))


async def step_into(conn: Connection, held: Held) -> None:
    """The stack that the hook's node is about to begin is stepped through."""
    await conn.execute(STEP_INTO, held.stack_id, held.traversal, held.node)


async def waiting_of(
    conn: Connection, traversals: Sequence[tuple[UUID, int]]
) -> list[tuple[UUID, UUID]]:
    """(stack, hook) of what waits in traversals, (stack, number)."""
    if not traversals:
        return []
    rows = await conn.fetch(WAITING_HERE, *map(list, zip(*traversals, strict=True)))
    return [(row["stack_id"], row["id"]) for row in rows]


async def due_reminders(conn: Connection, limit: int) -> list[tuple[UUID, UUID]]:
    """(stack, hook) whose next reminder or escalation is due."""
    return [(row["stack_id"], row["id"]) for row in await conn.fetch(DUE_REMINDERS, limit)]


async def reminded(conn: Connection, said: Sequence[Json]) -> None:
    """said: [{stack_id, id, wake_at, reminded, escalated}]."""
    await conn.execute(REMINDED, said)


async def record_events(conn: Connection, events: Sequence[Json]) -> None:
    """Events of stacks that the caller has locked."""
    if events:
        await conn.execute(RECORD_EVENTS, events)


async def due_hooks(conn: Connection, limit: int) -> list[tuple[UUID, UUID]]:
    """(stack, hook) of waiting hooks whose deadline has come; of many, projects take turns."""
    rows = await conn.fetch(DUE_HOOKS, limit)
    if len(rows) == limit:
        rows = await conn.fetch(DUE_HOOKS_IN_TURN, limit)
    return [(row["stack_id"], row["id"]) for row in rows]


async def next_deadline(conn: Connection) -> float | None:
    """Seconds until the next deadline, negative when it is late; None: no hook waits."""
    seconds: float | None = await conn.fetchval(NEXT_DEADLINE)
    return seconds


async def next_reminder(conn: Connection) -> float | None:
    """Seconds until the next reminder, negative when it is late; None: there is none."""
    seconds: float | None = await conn.fetchval(NEXT_REMINDER)
    return seconds
