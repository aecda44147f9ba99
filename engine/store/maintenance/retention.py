"""Purges old rows. A pin exempts a stack and all its rows.

Each statement reads a page of rows, deletes those that are no longer needed, and returns the last
position that it read. So no statement takes long, and rows that stay are read once in each round.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from types import MappingProxyType
from uuid import UUID

from engine.store.connection import Connection
from engine.words import Json

#: Key of the advisory lock for purging.
LOCK_KEY = 0x6865616470757267

BLOCK = "select pg_advisory_xact_lock_shared($1)"

#: Rows of the outbox are in the order of time, and name their events. These events stay: the newest
#: of each stack and subscription, those of a change under way, those with pending deliveries.
PURGE_EVENTS = """
with page as materialized (
    select id, stack_id, project, first, last, position,
           position is not null and created_at < clock_timestamp() - $1::interval as old, created_at
      from outbox where id > $2 order by id limit $3
), purged as materialized (
    select l.* from page l
      left join stack s on s.id = l.stack_id
     where l.old and s.pinned_at is null
       and not (s.deleted_at is null and l.last is not distinct from s.sequence)
       and not exists (select from subscription u left join stack g on g.id = u.stack_id
                        where u.id = l.stack_id
                          and (u.sequence = l.last and g.deleted_at is null
                               or g.pinned_at is not null))
       and not exists (select from traversal t
                        where t.stack_id = s.id and t.number = s.traversal
                          and t.state in ('running', 'ending') and t.started_at <= l.created_at)
       and not exists (select from delivery d
                        where d.stack_id = l.stack_id and d.sequence between l.first and l.last
                          and d.state = 'pending' offset 0)
), queued as (
    delete from outbox o using purged w where o.id = w.id
), delivered as (
    delete from delivery d using purged w
     where d.stack_id = w.stack_id and d.sequence between w.first and w.last
), deleted as (
    delete from event e using purged w
     where e.stack_id = w.stack_id and e.sequence between w.first and w.last
    returning 1
), raised as (
    insert into purged_position as f (project, position, sequence)
    select distinct on (project) project, position, last from purged
     order by project, position desc
    on conflict (project) do update
       set position = excluded.position, sequence = excluded.sequence
     where f.position < excluded.position
)
select (select max(id) from page where old) as reached, (select count(*) from deleted) as deleted,
       (select count(*) from page where old) = $3 as more
"""
PURGE_DELIVERIES = """
with page as materialized (
    select id, stack_id, hook_id, ended_at from delivery
     where ended_at > $2 and ended_at < statement_timestamp() - $1::interval
     order by ended_at limit $3
), deleted as (
    delete from delivery d using page l
     where d.id = l.id and d.state <> 'pending'
       and not exists (select from stack s where s.id = l.stack_id and s.pinned_at is not null)
       and not exists (select from hook h where h.stack_id = l.stack_id and h.id = l.hook_id
                                            and h.state = 'waiting')
    returning 1
)
select (select max(ended_at) from page) as reached, (select count(*) from deleted) as deleted,
       (select count(*) from page) = $3 as more
"""
#: Hooks of existing events stay, because events are shown with their hooks.
PURGE_HOOKS = """
with page as materialized (
    select stack_id, id, traversal, decided_at from hook
     where state <> 'waiting' and decided_at > $2
       and decided_at < statement_timestamp() - $1::interval
     order by decided_at limit $3
), mentioned as materialized (
    select e.stack_id, e.data ->> 'hook_id' as hook_id
      from (select distinct stack_id from page) l join event e on e.stack_id = l.stack_id
     where e.data ->> 'hook_id' is not null
), deleted as (
    delete from hook h using page l, stack s
     where h.stack_id = l.stack_id and h.id = l.id and s.id = l.stack_id
       and s.pinned_at is null
       and not exists (select from mentioned m
                        where m.stack_id = l.stack_id and m.hook_id = l.id::text)
       -- Hooks about drift belong to no change.
       and (h.point = 'drift'
            or l.traversal < s.traversal
               and not exists (select from node n
                                where n.stack_id = l.stack_id and n.traversal = l.traversal))
    returning 1
)
select (select max(decided_at) from page) as reached, (select count(*) from deleted) as deleted,
       (select count(*) from page) = $3 as more
"""
#: Traversals stay that belong to a snapshot, that completed a version that still exists, or of
#: whose end lifecycle plug-ins were not notified yet.
PURGE_TRAVERSALS = """
with page as materialized (
    select stack_id, number, version, state, lifecycle_view is null as notified, ended_at
      from traversal
     where ended_at > $2 and ended_at < statement_timestamp() - $1::interval
     order by ended_at limit $3
), deleted as (
    delete from traversal t using page l, stack s
     where t.stack_id = l.stack_id and t.number = l.number and s.id = l.stack_id
       and s.pinned_at is null and l.number < s.traversal and l.notified
       and not (l.state = 'complete' and exists (
               select from template v where v.stack_id = l.stack_id and v.version = l.version))
       and not exists (select from node n
                        where n.stack_id = l.stack_id and n.traversal = l.number)
       and not exists (select from archive_queue q
                        where q.stack_id = l.stack_id and q.traversal = l.number)
       and not exists (select from hook h
                        where h.stack_id = l.stack_id and h.traversal = l.number)
       and not exists (select from snapshot p
                        where p.stack_id = l.stack_id and p.traversal = l.number)
       and not exists (select from resource_snapshot k
                        where k.stack_id = l.stack_id and k.traversal = l.number)
    returning t.stack_id, t.number
), graphs as (
    delete from archived_graph p using deleted g
     where p.stack_id = g.stack_id and p.traversal = g.number
), labels as (
    delete from labelled_work w using deleted g
     where w.stack_id = g.stack_id and w.traversal = g.number
)
select (select max(ended_at) from page) as reached, (select count(*) from deleted) as deleted,
       (select count(*) from page) = $3 as more
"""
PURGE_KEYS = """
with page as materialized (
    select project, key, created_at from idempotency
     where created_at > $2 and created_at < statement_timestamp() - $1::interval
     order by created_at limit $3
), deleted as (
    delete from idempotency i using page l where i.project = l.project and i.key = l.key
    returning 1
)
select (select max(created_at) from page) as reached, (select count(*) from deleted) as deleted,
       (select count(*) from page) = $3 as more
"""
_purge_rows = """
with page as materialized (
    select {key}, over from {rows}
     where over > $2 and over < statement_timestamp() - $1::interval
     order by over limit $3
), deleted as (
    delete from {table} t using page l where t.{key} = l.{key}
    returning 1
)
select (select max(over) from page) as reached, (select count(*) from deleted) as deleted,
       (select count(*) from page) = $3 as more
"""
#: Tokens, with the time when they were no longer accepted. A cell keeps one that was valid in every
#: project until it expires, so that no other cell, which may have been away, brings it back.
_BY_END = """
(select id, case when project = '*' and exists (select from cell) then expires_at
                 else least(revoked_at, expires_at) end as over from token) r"""
PURGE_TOKENS = _purge_rows.format(table="token", key="id", rows=_BY_END)
PURGE_SESSIONS = _purge_rows.format(
    table="session", key="id", rows="(select id, expires_at as over from session) r"
)
PURGE_SIGN_IN_PLACES = _purge_rows.format(
    table="sign_in_place", key="key", rows="(select key, last_at as over from sign_in_place) r"
)
#: Credentials for observations that have expired in Keystone.
PURGE_OBSERVATION_CREDENTIALS = _purge_rows.format(
    table="observation_credential", key="id",
    rows="(select id, expires_at as over from observation_credential) r",
)  # fmt: skip
#: The audit logs of purged stacks, and of observation credentials that were deleted, without newer
#: entries.
PURGE_AUDIT_LOGS = """
with page as materialized (
    select stack_id, at from decision
     where number = 1 and at > $2 and at < statement_timestamp() - $1::interval
     order by at limit $3
), deleted as (
    delete from decision d using page l
     where d.stack_id = l.stack_id
       and not exists (select from stack s where s.id = l.stack_id)
       and not exists (select from observation_credential c where c.id = l.stack_id)
       and not exists (select from decision n where n.stack_id = l.stack_id
                                                and n.at >= clock_timestamp() - $1::interval)
    returning d.stack_id
), unsigned as (
    delete from audit_head h using deleted g where h.stack_id = g.stack_id
)
select (select max(at) from page) as reached, (select count(*) from deleted) as deleted,
       (select count(*) from page) = $3 as more
"""
PURGE_USAGE = """
with page as materialized (
    select project, day, day::timestamp at time zone 'UTC' as over from project_usage
     where day > ($2::timestamptz at time zone 'UTC')::date
       and day < ((clock_timestamp() - $1::interval) at time zone 'UTC')::date
     order by day fetch first ($3) rows with ties
), deleted as (
    delete from project_usage u using page l where u.project = l.project and u.day = l.day
    returning 1
)
select (select max(over) from page) as reached, (select count(*) from deleted) as deleted,
       (select count(*) from page) >= $3 as more
"""
#: Only stacks whose last event was purged, so that every subscriber has received it.
FIND_DELETED_STACKS = """
with page as materialized (
    select id, deleted_at from stack
     where deleted_at > $2 and deleted_at < statement_timestamp() - $1::interval
     order by deleted_at limit $3
), locked as materialized (
    select s.id from stack s join page l on l.id = s.id
     where s.pinned_at is null
       and not exists (select from event e where e.stack_id = s.id)
       and not exists (select from traversal t
                        where t.stack_id = s.id and t.lifecycle_view is not null)
     order by s.id for update of s skip locked
)
select (select max(deleted_at) from page) as reached,
       array(select id from locked) as stacks, (select count(*) from page) = $3 as more
"""
LOCK_SINKS = "select id from subscription where stack_id = any ($1::uuid[]) order by id for update"
#: All tables with rows of a stack, except events, which are purged before, and the audit log.
PURGE_STACKS = """
with sinks as (
    delete from subscription where stack_id = any ($1::uuid[]) returning id
), deliveries as (
    delete from delivery d using sinks k where d.subscription_id = k.id
), templates as (
    delete from template where stack_id = any ($1)
), traversals as (
    delete from traversal where stack_id = any ($1)
), nodes as (
    delete from node where stack_id = any ($1)
), labels as (
    delete from labelled_work where stack_id = any ($1)
), graphs as (
    delete from archived_graph where stack_id = any ($1)
), queue as (
    delete from archive_queue where stack_id = any ($1)
), resources as (
    delete from resource where stack_id = any ($1)
), hooks as (
    delete from hook where stack_id = any ($1)
), snapshots as (
    delete from snapshot where stack_id = any ($1)
), resource_snapshots as (
    delete from resource_snapshot where stack_id = any ($1)
), breakpoints as (
    delete from breakpoint where stack_id = any ($1)
), credentials as (
    delete from credential where stack_id = any ($1)
), signals as (
    delete from resource_signal where stack_id = any ($1)
), keys as (
    delete from idempotency where stack_id = any ($1)
), observations as (
    delete from observation where stack_id = any ($1)
), schedules as (
    delete from observation_schedule where stack_id = any ($1)
), completions as (
    delete from completion where stack_id = any ($1)
), drift_hooks as (
    delete from drift_hook where stack_id = any ($1)
), converges as (
    delete from converge_request where stack_id = any ($1)
)
delete from stack where id = any ($1)
"""
PIN = """
update stack
   set pinned_at = case when $3 then coalesce(pinned_at, clock_timestamp()) end,
       pinned_by = case when $3 then $4 end, pinned_reason = case when $3 then $5 end
 where project = $1 and id = $2
"""

#: The position of the next row of each kind.
NEXT_EVENTS = "select min(id) from outbox where id > $1"
NEXT_DELIVERY = "select min(ended_at) from delivery where ended_at > $1"
NEXT_HOOK = "select min(decided_at) from hook where state <> 'waiting' and decided_at > $1"
NEXT_TRAVERSAL = "select min(ended_at) from traversal where ended_at > $1"
NEXT_KEY = "select min(created_at) from idempotency where created_at > $1"
NEXT_REVOKED = f"select min(over) from {_BY_END} where over > $1"  # noqa: S608 - of a constant
NEXT_SESSION = "select min(expires_at) from session where expires_at > $1"
NEXT_SIGN_IN_PLACE = "select min(last_at) from sign_in_place where last_at > $1"
NEXT_OBSERVATION_CREDENTIAL = """
select min(expires_at) from observation_credential where expires_at > $1
"""
NEXT_DELETED = "select min(deleted_at) from stack where deleted_at > $1"
NEXT_USAGE = """
select min(day)::timestamp at time zone 'UTC' from project_usage
 where day > ($1::timestamptz at time zone 'UTC')::date
"""
NEXT_AUDIT_LOG = "select min(at) from decision where number = 1 and at > $1"

#: Before every row.
FIRST = datetime(1, 1, 1, tzinfo=UTC)


@dataclass(frozen=True, slots=True)
class PurgedPage:
    """reached: the position after which the next page starts. deleted: number of rows. more: there
    may be more old rows."""

    reached: Json
    deleted: int
    more: bool


@dataclass(frozen=True, slots=True)
class _Kind:
    statement: str
    next: str
    first: Json = FIRST


#: By kind. In this order, no row refers to a purged one.
KINDS: Mapping[str, _Kind] = MappingProxyType(
    {
        "events": _Kind(PURGE_EVENTS, NEXT_EVENTS, first=0),
        "deliveries": _Kind(PURGE_DELIVERIES, NEXT_DELIVERY),
        "hooks": _Kind(PURGE_HOOKS, NEXT_HOOK),
        "traversals": _Kind(PURGE_TRAVERSALS, NEXT_TRAVERSAL),
        "idempotency_keys": _Kind(PURGE_KEYS, NEXT_KEY),
        "tokens": _Kind(PURGE_TOKENS, NEXT_REVOKED),
        "sessions": _Kind(PURGE_SESSIONS, NEXT_SESSION),
        "sign_in_places": _Kind(PURGE_SIGN_IN_PLACES, NEXT_SIGN_IN_PLACE),
        "observation_credentials": _Kind(
            PURGE_OBSERVATION_CREDENTIALS, NEXT_OBSERVATION_CREDENTIAL
        ),
        "deleted_stacks": _Kind(FIND_DELETED_STACKS, NEXT_DELETED),
        "audit_logs": _Kind(PURGE_AUDIT_LOGS, NEXT_AUDIT_LOG),
        "usage": _Kind(PURGE_USAGE, NEXT_USAGE),
    }
)


async def block_purging(conn: Connection) -> None:
    """Prevent purging until this transaction ends."""
    await conn.execute(BLOCK, LOCK_KEY)


async def purge(conn: Connection, kind: str, age: timedelta, after: Json, limit: int) -> PurgedPage:
    """Purge one page of rows of a kind, after a position (None: the start)."""
    purging = KINDS[kind]
    row = await conn.fetchrow(
        purging.statement, age, purging.first if after is None else after, limit
    )
    if row is None:
        raise LookupError(f"there is no result for {kind}")
    deleted = await _purge_stacks(conn, row["stacks"]) if "stacks" in row else row["deleted"]
    return PurgedPage(row["reached"], deleted, row["more"])


async def next_row(conn: Connection, kind: str, after: Json) -> Json:
    """The position of the first row of a kind after a position (None: the start), or None."""
    purging = KINDS[kind]
    return await conn.fetchval(purging.next, purging.first if after is None else after)


async def _purge_stacks(conn: Connection, stacks: list[UUID]) -> int:
    if stacks:
        await conn.execute(LOCK_SINKS, stacks)
        await conn.execute(PURGE_STACKS, stacks)
    return len(stacks)


async def pin(
    conn: Connection, project: str, stack_id: UUID, *, pinned: bool, by: str, reason: str
) -> None:
    """Pin or unpin a stack, deleted or not."""
    await conn.execute(PIN, project, stack_id, pinned, by, reason)
