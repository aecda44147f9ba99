"""The audit trail in the store. Whoever adds to it holds the locks on the stacks."""

from collections.abc import Sequence
from dataclasses import asdict
from uuid import UUID

import orjson

from engine.hooks.audit import Entry, chained
from engine.store.database import Connection

LAST = """
select s.id, d.number, d.hash
  from unnest($1::uuid[]) s (id)
 cross join lateral (select number, hash from decision
                      where stack_id = s.id order by number desc limit 1) d
"""
INSERT = """
insert into decision (stack_id, number, hook_id, kind, by, door, address, reason, digest, data, at,
                      hash)
select stack_id, number, hook_id, kind, by, door, address, reason, digest, data, at, hash
  from jsonb_to_recordset($1) as e (stack_id uuid, number integer, hook_id uuid, kind text, by text,
       door text, address text, reason text, digest text, data text, at timestamptz, hash text)
"""
READ = """
select stack_id, number, hook_id, kind, by, door, address, reason, digest, data, at, hash
  from decision where stack_id = $1 and number > $2 order by number limit $3
"""
OF_HOOK = """
select stack_id, number, hook_id, kind, by, door, address, reason, digest, data, at, hash
  from decision where stack_id = $1 and hook_id = $2 order by number
"""
#: By their hooks, too: a trail of which nothing is left is still missed.
STACKS = """
select stack_id from decision
 union
select stack_id from hook where state in ('answered', 'expired') and door is distinct from 'rule'
 order by stack_id
"""
#: An approval or a hand-over is no decision yet. What was decided before there was a trail cannot
#: be in it.
WITHOUT_ENTRY = """
select h.id from hook h
 where h.stack_id = $1 and h.state in ('answered', 'expired') and h.door is distinct from 'rule'
   and not exists (select from decision d
                    where d.stack_id = h.stack_id and d.hook_id = h.id and d.by = h.decided_by
                      and d.kind = h.decision)
   and h.decided_at >= coalesce((select applied_at from migration where name = '0005_hooks.sql'),
                                '-infinity')
 order by h.opened_at, h.id limit 1
"""


async def record(conn: Connection, entries: Sequence[Entry]) -> None:
    """Add to the trails of the entries' stacks, which the caller has locked."""
    if not entries:
        return
    stacks = sorted({entry.stack_id for entry in entries})
    rows = await conn.fetch(LAST, stacks)
    last = {row["id"]: (row["number"], row["hash"]) for row in rows}
    made = [
        asdict(one) | {"data": orjson.dumps(one.data, option=orjson.OPT_SORT_KEYS).decode()}
        for one in chained(entries, last)
    ]
    await conn.execute(INSERT, made)


async def read_trail(
    conn: Connection, stack_id: UUID, *, after: int = 0, limit: int | None = None
) -> list[Entry]:
    """A stack's entries behind number `after`, in order; its rows stay when it is deleted."""
    return [_entry(row) for row in await conn.fetch(READ, stack_id, after, limit)]


async def trail_of_hook(conn: Connection, stack_id: UUID, hook_id: UUID) -> list[Entry]:
    return [_entry(row) for row in await conn.fetch(OF_HOOK, stack_id, hook_id)]


async def stacks_with_trail(conn: Connection) -> list[UUID]:
    return [row["stack_id"] for row in await conn.fetch(STACKS)]


async def decided_without_entry(conn: Connection, stack_id: UUID) -> UUID | None:
    """A hook that somebody decided, of which the trail says nothing."""
    found: UUID | None = await conn.fetchval(WITHOUT_ENTRY, stack_id)
    return found


def _entry(row: object) -> Entry:
    fields = dict(row)  # type: ignore[call-overload]
    return Entry(**fields | {"data": orjson.loads(fields["data"])})
