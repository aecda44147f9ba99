"""Stores the signed checkpoints of the audit log (engine/hooks/checkpoint.py)."""

from collections.abc import Sequence
from datetime import datetime, timedelta
from typing import NamedTuple
from uuid import UUID

from engine.hooks.checkpoint import Checkpoint, Head, as_document
from engine.store.connection import Connection
from engine.words import Json

#: Key of the advisory lock for signing.
LOCK_KEY = 0x6865616467617465 + 7
#: Transactions with entries may commit late, so the entries of the hour before the newest
#: checkpoint are read again.
UNSIGNED = """
select coalesce(d.project, '') as project, c.stack_id, d.number, d.hash
  from (select distinct stack_id from decision
         where at >= coalesce((select max(at) from audit_checkpoint), '-infinity')
                     - interval '1 hour') c
 cross join lateral (select project, number, hash from decision
                      where stack_id = c.stack_id order by number desc limit 1) d
  left join audit_head h on h.stack_id = c.stack_id
 where h.number is distinct from d.number
 order by 1, 2
"""
LOCK_CHAINS = """
with added as (
    insert into audit_chain (project) select unnest($1::text[]) on conflict (project) do nothing
    returning project, number, digest
)
select project, number, digest, clock_timestamp() as now from added
union all
select project, number, digest, clock_timestamp() from audit_chain where project = any ($1)
"""
#: $1: the signed documents, which events contain unchanged.
INSERT = """
with signed as (
    select d ->> 'project' as project, (d ->> 'number')::integer as number,
           d ->> 'digest' as digest, d as document
      from jsonb_array_elements($1) d
), stored as (
    insert into audit_checkpoint (project, number, at, previous, heads, digest, key_id, signature)
    select project, number, (document ->> 'at')::timestamptz, document ->> 'previous',
           document -> 'heads', digest, document ->> 'key_id', document ->> 'signature'
      from signed
), newest as (
    select distinct on (project) project, number, digest
      from signed order by project, number desc
), chained as (
    update audit_chain a set number = n.number, digest = n.digest
      from newest n where a.project = n.project
    returning a.project, a.id
), heads as (
    insert into audit_head (stack_id, number)
    select (h ->> 0)::uuid, (h ->> 1)::integer
      from signed g cross join lateral jsonb_array_elements(g.document -> 'heads') h
    on conflict (stack_id) do update set number = excluded.number
)
select record_numbered_events(
           array_agg(c.id), array_agg(g.project), array_agg(g.number::bigint),
           array_agg('headgate.audit.signed'::text), array_agg(''::text), array_agg(g.document))
  from signed g join chained c on c.project = g.project
"""
TO_EXPORT = """
select project, number, at, previous, heads, digest, key_id, signature
  from audit_checkpoint where not exported order by project, number limit $1
"""
MARK_EXPORTED = """
update audit_checkpoint c set exported = true
  from unnest($1::text[], $2::integer[]) e (project, number)
 where c.project = e.project and c.number = e.number
"""
HASHES = """
select e.stack_id, e.number, d.hash
  from unnest($1::uuid[], $2::integer[]) e (stack_id, number)
  left join decision d on d.stack_id = e.stack_id and d.number = e.number
"""
PURGED_BEFORE = "select clock_timestamp() - $1::interval"


class Chain(NamedTuple):
    """The number (0: none) and the digest of a project's newest checkpoint."""

    number: int
    digest: str


async def unsigned_heads(conn: Connection) -> dict[str, list[Head]]:
    """The heads that no checkpoint has, by project."""
    found: dict[str, list[Head]] = {}
    for row in await conn.fetch(UNSIGNED):
        head = Head(row["stack_id"], row["number"], row["hash"])
        found.setdefault(row["project"], []).append(head)
    return found


async def lock_chains(
    conn: Connection, projects: Sequence[str]
) -> tuple[dict[str, Chain], datetime | None]:
    """The chains of projects, locked, and the database's time."""
    rows = await conn.fetch(LOCK_CHAINS, list(projects))
    found = {row["project"]: Chain(row["number"], row["digest"]) for row in rows}
    return found, rows[0]["now"] if rows else None


async def store_checkpoints(conn: Connection, checkpoints: Sequence[Checkpoint]) -> None:
    """Store checkpoints, with an event for each."""
    if checkpoints:
        await conn.execute(INSERT, [as_document(one) for one in checkpoints])


async def checkpoints_to_export(conn: Connection, limit: int) -> list[Checkpoint]:
    return [_checkpoint(dict(row)) for row in await conn.fetch(TO_EXPORT, limit)]


def _checkpoint(row: dict[str, Json]) -> Checkpoint:
    heads = [Head(UUID(stack), number, text) for stack, number, text in row.pop("heads")]
    return Checkpoint(heads=heads, **row)


async def mark_exported(conn: Connection, done: Sequence[Checkpoint]) -> None:
    projects, numbers = [one.project for one in done], [one.number for one in done]
    await conn.execute(MARK_EXPORTED, projects, numbers)


async def hashes_of(conn: Connection, heads: Sequence[Head]) -> dict[tuple[UUID, int], str | None]:
    """The current hash of each entry; None: the entry is missing."""
    stacks, numbers = [head.stack_id for head in heads], [head.number for head in heads]
    rows = await conn.fetch(HASHES, stacks, numbers)
    return {(row["stack_id"], row["number"]): row["hash"] for row in rows}


async def purged_before(conn: Connection, kept_for: timedelta) -> datetime:
    """Logs of deleted stacks that ended before this time may have been purged."""
    before: datetime = await conn.fetchval(PURGED_BEFORE, kept_for)
    return before
