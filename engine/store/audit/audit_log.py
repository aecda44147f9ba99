"""Stores the audit log. A caller that adds entries has locked their stacks."""

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any, NamedTuple
from uuid import UUID

import orjson

from engine.hooks.hash_chain import Entry, chain_entries, columns_of
from engine.store.connection import Connection
from engine.words import Json

LAST = """
select s.id, d.number, d.hash
  from unnest($1::uuid[]) s (id)
 cross join lateral (select number, hash from decision
                      where stack_id = s.id order by number desc limit 1) d
"""
INSERT = """
insert into decision (stack_id, number, hook_id, kind, by, channel, address, reason, digest, data,
                      at, hash, principal, token_id, form)
select stack_id, number, hook_id, kind, by, channel, address, reason, digest, data, at, hash,
       principal, token_id, form
  from jsonb_to_recordset($1) as e (stack_id uuid, number integer, hook_id uuid, kind text, by text,
       channel text, address text, reason text, digest text, data text, at timestamptz, hash text,
       principal text, token_id text, form integer)
"""
READ = """
select stack_id, number, hook_id, kind, by, channel, address, reason, digest, data, at, hash,
       principal, token_id, form
  from decision where stack_id = $1 and number > $2 order by number limit $3
"""
#: "coalesce": the index of the stack has the order, too, but all entries of the stack.
OF_HOOK = """
select stack_id, number, hook_id, kind, by, channel, address, reason, digest, data, at, hash,
       principal, token_id, form
  from decision where coalesce(stack_id, $1) = $1 and hook_id = $2 order by number
"""
#: Of a stack and its nested stacks, also deleted ones; newest first.
READ_OF_PROJECT = """
with recursive tree as (
    select $3::uuid as id where $3 is not null
    union all
    select s.id from tree t
     cross join lateral (select id from stack where parent_id = t.id offset 0) s
)
select d.stack_id, d.number, d.hook_id, d.kind, d.by, d.channel, d.address, d.reason, d.digest,
       d.data, d.at, d.hash, d.principal, d.token_id, d.form, s.name as stack_name,
       s.path as stack_path, h.point, nullif(h.resource_name, '') as resource_name
  from decision d
  left join stack s on s.id = d.stack_id
  left join hook h on h.stack_id = d.stack_id and h.id = d.hook_id
 where d.project = $1 and ($2::text is null or d.by = $2 or d.principal = $2)
   and ($3::uuid is null or d.stack_id in (select id from tree))
   and ($4::timestamptz is null or (d.at, d.stack_id, d.number) < ($4, $5, $6))
 order by d.at desc, d.stack_id desc, d.number desc limit $7
"""
#: Also stacks with decided hooks, so that a log that was deleted as a whole is noticed.
STACKS = """
select stack_id from decision
 union
select stack_id from hook where state in ('answered', 'expired') and channel is distinct from 'rule'
 order by stack_id
"""
PROJECTS = "select count(distinct project) from decision where stack_id = any ($1::uuid[])"
#: Approvals and hand-overs do not decide a hook. Decisions from before the audit log existed are
#: not in it.
WITHOUT_ENTRY = """
select h.id from hook h
 where h.stack_id = $1 and h.state in ('answered', 'expired') and h.channel is distinct from 'rule'
   and not exists (select from decision d
                    where d.hook_id = h.id and d.by = h.decided_by and d.principal = h.decided_by_id
                      and d.kind = h.decision)
   and coalesce(h.decided_at, '-infinity') -- not by the index of all hooks that were decided since
       >= coalesce((select applied_at from migration where name = '0005_hooks.sql'), '-infinity')
 order by h.opened_at, h.id limit 1
"""


async def record(conn: Connection, entries: Sequence[Entry]) -> None:
    """Add entries to the audit logs of their stacks, which the caller has locked."""
    if entries:
        await conn.execute(INSERT, await new_rows(conn, entries))


async def new_rows(conn: Connection, entries: Sequence[Entry]) -> list[Json]:
    """The rows of new entries, for INSERT. The caller has locked their stacks."""
    stacks = sorted({entry.stack_id for entry in entries})
    last = {row["id"]: (row["number"], row["hash"]) for row in await conn.fetch(LAST, stacks)}
    return [
        columns_of(one) | {"data": orjson.dumps(one.data, option=orjson.OPT_SORT_KEYS).decode()}
        for one in chain_entries(entries, last)
    ]


async def read_log(
    conn: Connection, stack_id: UUID, *, after: int = 0, limit: int | None = None
) -> list[Entry]:
    """The entries of a stack, also of a deleted one, after number `after`, in order."""
    return [_entry(row) for row in await conn.fetch(READ, stack_id, after, limit)]


async def read_log_of_hook(conn: Connection, stack_id: UUID, hook_id: UUID) -> list[Entry]:
    return [_entry(row) for row in await conn.fetch(OF_HOOK, stack_id, hook_id)]


async def stacks_with_log(conn: Connection) -> list[UUID]:
    return [row["stack_id"] for row in await conn.fetch(STACKS)]


async def count_projects(conn: Connection, stack_ids: Sequence[UUID]) -> int:
    """The number of projects with entries of these stacks."""
    count: int = await conn.fetchval(PROJECTS, stack_ids)
    return count


async def find_hook_without_entry(conn: Connection, stack_id: UUID) -> UUID | None:
    """The first decided hook without an entry."""
    found: UUID | None = await conn.fetchval(WITHOUT_ENTRY, stack_id)
    return found


@dataclass(frozen=True, slots=True)
class ListedEntry:
    """An entry with its stack and hook. stack_name, stack_path: None: the stack was purged.
    resource_name, point: of the hook; None: the entry has no hook, or the hook no resource."""

    entry: Entry
    stack_name: str | None
    stack_path: str | None
    resource_name: str | None
    point: str | None


class LogPosition(NamedTuple):
    """The entry after which a page starts."""

    at: datetime
    stack_id: UUID
    number: int


@dataclass(frozen=True, slots=True)
class LogFilter:
    """None: does not filter. by: name or ID of the principal. stack_id: the stack and its nested
    stacks."""

    by: str | None = None
    stack_id: UUID | None = None
    after: LogPosition | None = None
    limit: int = 100


async def read_log_of_project(
    conn: Connection, project: str, filters: LogFilter
) -> list[ListedEntry]:
    """Newest first. Call it in `ReadDatabase.page`, or with a stack in a transaction with
    `replan`."""
    rows = await conn.fetch(
        READ_OF_PROJECT, project, filters.by, filters.stack_id,
        *(filters.after or (None, None, None)), filters.limit,
    )  # fmt: skip
    return [_listed_entry(dict(row)) for row in rows]


def _listed_entry(row: dict[str, Any]) -> ListedEntry:
    place = [row.pop(name) for name in ("stack_name", "stack_path", "resource_name", "point")]
    return ListedEntry(_entry(row), *place)


def _entry(row: object) -> Entry:
    fields = dict(row)  # type: ignore[call-overload]
    return Entry(**fields | {"data": orjson.loads(fields["data"])})
