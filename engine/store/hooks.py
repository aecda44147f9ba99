"""Hooks under lock: read, decide, and those whose deadline has come."""

from collections.abc import Sequence
from dataclasses import asdict, dataclass
from datetime import datetime
from typing import Any
from uuid import UUID

from engine.hooks.answers import Asked
from engine.store.database import Connection
from engine.words import HookState, Json

STACK_OF_HOOK = "select stack_id from hook where id = $1 and project = coalesce($2, project)"
LOCK_STACKS = "select id from stack where id = any ($1::uuid[]) order by id for no key update"
WAITING_HOOK_AT = """
select h.id from hook h
  join stack s on s.id = h.stack_id and s.traversal = h.traversal
 where h.stack_id = $1 and h.resource_name = $2 and h.point = $3 and h.state = 'waiting'
 order by h.opened_at limit 1
"""
READ_HOOKS = """
select h.id, h.stack_id, h.traversal, h.node, h.resource_name, h.point, h.mode, h.state,
       h.on_timeout, h.digest, h.deadline, h.decision, h.decided_by, h.decided_at,
       n.claim, n.operation, n.state as node_state, n.phase, n.rules, n.passed, n.type,
       n.definition, n.resource_id, n.replacement_id, n.name, n.direction, n.operation_key,
       h.notice, h.project, s.name as stack_name, to_jsonb(r) as resource,
       clock_timestamp() as now
  from hook h join stack s on s.id = h.stack_id
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
       decided_by = d.decided_by, door = d.door, decided_at = clock_timestamp()
  from jsonb_to_recordset($1) as d (stack_id uuid, id uuid, state text, decision text,
       reason text, data jsonb, decided_by text, door text)
 where h.stack_id = d.stack_id and h.id = d.id and h.state = 'waiting'
"""
DUE_HOOKS = """
select stack_id, id from hook
 where state = 'waiting' and deadline <= clock_timestamp() order by deadline limit $1
"""
NEXT_DEADLINE = """
select extract(epoch from min(deadline) - clock_timestamp())::double precision as seconds
  from hook where state = 'waiting'
"""


@dataclass(frozen=True, slots=True)
class Held:
    """A hook with the node it holds. claim None: the node is gone with its traversal.

    resource: the resource's row as JSON (column names as keys), or None.
    """

    id: UUID
    stack_id: UUID
    traversal: int
    node: int
    mode: str
    on_timeout: str
    asked: Asked
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
    door: str


async def stack_of_hook(conn: Connection, hook_id: UUID, project: str | None) -> UUID | None:
    found: UUID | None = await conn.fetchval(STACK_OF_HOOK, hook_id, project)
    return found


async def waiting_hook_at(
    conn: Connection, stack_id: UUID, resource_name: str, point: str
) -> UUID | None:
    found: UUID | None = await conn.fetchval(WAITING_HOOK_AT, stack_id, resource_name, point)
    return found


async def lock_hooks(conn: Connection, keys: Sequence[tuple[UUID, UUID]]) -> list[Held]:
    """Lock the stacks of `keys` (stack, hook), in order, and read the hooks as they are then."""
    stacks = sorted({stack_id for stack_id, _ in keys})
    await conn.execute(LOCK_STACKS, stacks)
    rows = await conn.fetch(READ_HOOKS, stacks, [hook_id for _, hook_id in keys])
    return [_held(dict(row)) for row in rows]


def _held(row: dict[str, Any]) -> Held:
    asked = Asked(
        state=HookState(row.pop("state")),
        resource_name=row.pop("resource_name"),
        point=row.pop("point"),
        digest=row.pop("digest"),
        deadline=row.pop("deadline"),
        decision=row.pop("decision"),
        decided_by=row.pop("decided_by"),
        decided_at=row.pop("decided_at"),
    )
    return Held(asked=asked, **row)


async def decide_hooks(conn: Connection, decisions: Sequence[Decision]) -> None:
    """Write what was decided; a hook that is not waiting any more is left as it is."""
    if decisions:
        await conn.execute(DECIDE_HOOKS, [asdict(decision) for decision in decisions])


async def due_hooks(conn: Connection, limit: int) -> list[tuple[UUID, UUID]]:
    """(stack, hook) of waiting hooks whose deadline has come."""
    return [(row["stack_id"], row["id"]) for row in await conn.fetch(DUE_HOOKS, limit)]


async def next_deadline(conn: Connection) -> float | None:
    """Seconds until the next deadline, negative when it is late; None: no hook waits."""
    seconds: float | None = await conn.fetchval(NEXT_DEADLINE)
    return seconds
