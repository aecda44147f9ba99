"""Reads hooks under the lock of their stacks, and writes decisions."""

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any
from uuid import UUID

from engine.hooks.answer_rights import StoredHook
from engine.hooks.hash_chain import Entry
from engine.hooks.rule import decode_rule
from engine.principal import Principal
from engine.store.audit import audit_log
from engine.store.connection import Connection
from engine.store.encryption.encrypted_rows import try_decrypt_row
from engine.store.encryption.secret_values import (
    EncryptedDocument,
    Scope,
    Secret,
    encrypted_members,
)
from engine.store.hooks.deadlines import CLOCK_COLUMNS, clock_of
from engine.store.stacks.stack_locks import lock_stacks
from engine.words import HookState, Json

FIND_HOOKS = """
select k.id, k.project as of_project, h.stack_id, h.project,
       coalesce((h.rule ->> 'stepped')::boolean, false) as stepped,
       case when h.state = 'waiting' then h.rule ->> 'ask' end as ask
  from unnest($1::uuid[], $2::text[]) k (id, project)
 cross join lateral (
       select * from hook h
        where h.id = k.id and h.project = coalesce(k.project, h.project) offset 0) h
"""
#: As FIND_HOOKS, for one key. PostgreSQL plans it once for each connection, and FIND_HOOKS at each
#: call, because it does not know that a set has few keys.
FIND_HOOK = """
select h.id, $2::text as of_project, h.stack_id, h.project,
       coalesce((h.rule ->> 'stepped')::boolean, false) as stepped,
       case when h.state = 'waiting' then h.rule ->> 'ask' end as ask
  from hook h where h.id = $1 and ($2 is null or h.project = $2)
"""
FIND_WAITING_HOOK = """
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
       t.step_mode, n.progress, n.attempts, n.claim, n.operation,
       n.state as node_state, n.phase,
       n.rules, n.breakpoints_hit, n.type, n.definition, n.resource_id, n.replacement_id, n.name,
       n.direction, n.operation_key, h.notification, h.project, h.stack_name, h.stack_path,
       h.operator_approval,
       to_jsonb(r) as resource,
       clock_timestamp() as now
  from unnest($1::uuid[], $2::uuid[]) k (stack_id, id)
 cross join lateral (
       select * from hook_details
        where stack_id = k.stack_id and id = k.id offset 0) h
 cross join lateral (
       select step_mode from traversal
        where stack_id = h.stack_id and number = h.traversal offset 0) t
  left join lateral (
       select * from node
        where stack_id = h.stack_id and traversal = h.traversal and id = h.node offset 0) n on true
  left join lateral (
       select * from resource
        where stack_id = h.stack_id
          and id = resource_at_hook(n.phase, n.operation, n.resource_id, n.replacement_id)
        offset 0) r on true
"""
#: In one statement, which is one round trip: the decisions of hooks ($2, $3), and the entries of
#: the audit log ($1).
DECIDE_HOOKS = f"""
with decided as (
    update hook h
       set state = d.state, decision = d.decision, reason = d.reason,
           data = d.data,
           decided_by = d.decided_by, decided_by_id = d.decided_by_id, channel = d.channel,
           decided_at = clock_timestamp()
      from jsonb_to_recordset($2) as d (stack_id uuid, id uuid, state text, decision text,
           reason text, data jsonb, decided_by text, decided_by_id text, channel text)
     where h.stack_id = d.stack_id and h.id = d.id
       and h.id = any ($3::uuid[]) -- for the planner, which cannot estimate the number of decisions
       -- Not "h.state = 'waiting'": a partial index would be read as a whole.
       and case h.state when 'waiting' then true end
)
{audit_log.INSERT}"""  # noqa: S608 - of constants
#: The condition of the state is one of DECIDE_HOOKS.
ASSIGN_HOOK = """
update hook set assigned = $3
 where stack_id = $1 and id = $2 and case state when 'waiting' then true end
"""
PATCH_NODE = """
update node set patched = $4 where stack_id = $1 and traversal = $2 and id = $3
"""
#: Nodes without hooks that have not started enter the phase of hooks first.
READ_WAITING = """
select h.stack_id, h.id
  from unnest($1::uuid[], $2::integer[]) s (stack_id, traversal)
 cross join lateral (
       select * from hook
        where stack_id = s.stack_id and traversal = s.traversal and state = 'waiting' offset 0) h
 order by h.opened_at, h.id
"""
RECORD_EVENTS = """
select record_events(array_agg(
           row (e.stack_id, e.type, e.resource_name, e.resource_type, e.physical_id, e.action,
                e.status, e.reason, e.data)::event_draft))
  from jsonb_to_recordset($1) as e (stack_id uuid, type text, resource_name text,
       resource_type text, physical_id text, action text, status text, reason text, data jsonb)
having count(*) > 0
"""

#: The ID of a hook, and the project in which to search for it; None: in any project.
HookKey = tuple[UUID, str | None]
#: Encrypted columns of a node.
_ENCRYPTED = ("definition", "progress", "patched")


@dataclass(frozen=True, slots=True, kw_only=True)
class LockedHook(StoredHook):
    """A locked hook with its node. claim: None if the node was deleted with its traversal.

    resource: the resource's row as JSON (column names as keys), or None. step_mode: of its
    traversal.
    """

    id: UUID
    stack_id: UUID
    traversal: int
    node: int
    mode: str
    on_timeout: str
    wake_at: datetime | None
    reminders: int
    step_mode: str | None
    progress: Json
    attempts: int | None
    claim: int | None
    operation: str
    node_state: str
    phase: str
    rules: Json
    breakpoints_hit: list[str]
    type: str
    definition: Json
    resource_id: UUID
    replacement_id: UUID | None
    name: str
    direction: str
    operation_key: UUID | None
    notification: Json
    project: str
    stack_name: str
    stack_path: str
    resource: Json
    now: datetime

    @property
    def key(self) -> tuple[UUID, UUID]:
        """Its stack, and its ID."""
        return self.stack_id, self.id


@dataclass(frozen=True, slots=True)
class FoundHook:
    """A hook, unlocked. stepped: stepping opened it. ask: the JSON schema, as text, that the data
    of an answer must fit; None if it asks for no data or no longer waits."""

    stack_id: UUID
    project: str
    stepped: bool
    ask: str | None


async def find_hooks(conn: Connection, keys: Sequence[HookKey]) -> dict[HookKey, FoundHook]:
    """Find hooks by ID and project; missing hooks are left out."""
    if len(keys) == 1:
        rows = await conn.fetch(FIND_HOOK, *keys[0])
    else:
        rows = await conn.fetch(FIND_HOOKS, *map(list, zip(*keys, strict=True)))
    return {
        (row["id"], row["of_project"]): FoundHook(
            row["stack_id"], row["project"], row["stepped"], row["ask"]
        )
        for row in rows
    }


async def find_hook(conn: Connection, hook_id: UUID, project: str | None) -> FoundHook | None:
    """Find a hook. project: as in `HookKey`."""
    key = (hook_id, project)
    return (await find_hooks(conn, [key])).get(key)


async def find_waiting_hook(
    conn: Connection, stack_id: UUID, resource_name: str, point: str
) -> UUID | None:
    found: UUID | None = await conn.fetchval(FIND_WAITING_HOOK, stack_id, resource_name, point)
    return found


async def lock_hooks(conn: Connection, keys: Sequence[tuple[UUID, UUID]]) -> list[LockedHook]:
    """Lock the stacks of the hooks (stack, hook), and read the hooks."""
    await lock_stacks(conn, {stack_id for stack_id, _ in keys})
    return await read_locked_hooks(conn, keys)


async def read_locked_hooks(
    conn: Connection, keys: Sequence[tuple[UUID, UUID]]
) -> list[LockedHook]:
    """Read hooks (stack, hook), whose stacks the caller has locked."""
    rows = await conn.fetch(READ_HOOKS, *map(list, zip(*keys, strict=True)))
    return [_locked_hook(dict(row)) for row in rows]


def _locked_hook(row: dict[str, Any]) -> LockedHook:
    project, stack_id = row["project"], row["stack_id"]
    node, _ = try_decrypt_row(row, project, stack_id, "node", _ENCRYPTED)
    # A value that cannot be decrypted fails the node when it is claimed.
    row |= {name: None if isinstance(node[name], EncryptedDocument) else node[name]
            for name in ("definition", "patched")}  # fmt: skip
    row["progress"] = node["progress"]
    if row["resource"] is not None:
        row["resource"], _ = try_decrypt_row(
            encrypted_members(row["resource"]), project, stack_id, "resource"
        )
    stored = {
        "clock": clock_of(row),
        "state": HookState(row["state"]),
        "rule": decode_rule(row["rule"]),
        "requested_by": Principal(row["requested_by_id"], row["requested_by"]),
        "escalated": row["escalated_at"] is not None,
        "approved_by": row["approved_keys"],
        "seen": row["notification"].get("seen") or {},
    }
    for name in (*CLOCK_COLUMNS, "requested_by_id", "escalated_at", "approved_keys"):
        del row[name]
    return LockedHook(**row | stored)


async def decide_hooks(
    conn: Connection, decisions: Sequence[Json], entries: Sequence[Entry]
) -> None:
    """Write decisions, and their entries in the audit log. A hook that is decided already stays
    unchanged.

    decisions: {stack_id, id, state, decision, reason, data, decided_by, decided_by_id, channel}.
    """
    if decisions:
        rows = await audit_log.new_rows(conn, entries)
        await conn.execute(DECIDE_HOOKS, rows, decisions, [one["id"] for one in decisions])


async def assign_hook(conn: Connection, hook: LockedHook, to: str) -> None:
    await conn.execute(ASSIGN_HOOK, hook.stack_id, hook.id, to)


async def patch_node(conn: Connection, hook: LockedHook, properties: Json) -> None:
    """Store the properties from an answer with the hook's node."""
    encrypted = Secret(properties, Scope(hook.project, hook.stack_id, "node.patched"))
    await conn.execute(PATCH_NODE, hook.stack_id, hook.traversal, hook.node, encrypted)


async def read_waiting_hooks(
    conn: Connection, traversals: Sequence[tuple[UUID, int]]
) -> list[tuple[UUID, UUID]]:
    """The waiting hooks (stack, hook) of traversals (stack, number)."""
    if not traversals:
        return []
    rows = await conn.fetch(READ_WAITING, *map(list, zip(*traversals, strict=True)))
    return [(row["stack_id"], row["id"]) for row in rows]


async def record_events(conn: Connection, events: Sequence[Json]) -> None:
    """The caller has locked the stacks."""
    if events:
        await conn.execute(RECORD_EVENTS, events)
