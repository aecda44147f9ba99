"""What is old and needed no more goes; a pin keeps a stack, and all that is of it.

Each statement here looks at so many rows behind a place, deletes those of them that may go, and
says how far it came. So none takes long, and rows that stay are passed by.
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

TAKE_TURN = "select pg_try_advisory_xact_lock($1)"
HOLD_OFF = "select pg_advisory_xact_lock_shared($1)"

# By the rows of the outbox, which are in the order of time and say which events they are of. The
# newest event of what is there stays, those of a change that is under way, and those that somebody
# is still to get.
PURGE_EVENTS = """
with looked as materialized (
    select id, stack_id, project, first, last, position,
           position is not null and created_at < clock_timestamp() - $1::interval as old, created_at
      from outbox where id > $2 order by id limit $3
), doomed as materialized (
    select l.* from looked l
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
                          and d.state = 'pending')
), queued as (
    delete from outbox o using doomed w where o.id = w.id
), delivered as (
    delete from delivery d using doomed w
     where d.stack_id = w.stack_id and d.sequence between w.first and w.last
), gone as (
    delete from event e using doomed w
     where e.stack_id = w.stack_id and e.sequence between w.first and w.last
    returning 1
), raised as (
    insert into stream_floor as f (project, position, sequence)
    select distinct on (project) project, position, last from doomed
     order by project, position desc
    on conflict (project) do update
       set position = excluded.position, sequence = excluded.sequence
     where f.position < excluded.position
)
select (select max(id) from looked where old) as reached, (select count(*) from gone) as gone,
       (select count(*) from looked where old) = $3 as more
"""
PURGE_DELIVERIES = """
with looked as materialized (
    select id, stack_id, hook_id, settled_at from delivery
     where settled_at > $2 and settled_at < clock_timestamp() - $1::interval
     order by settled_at limit $3
), gone as (
    delete from delivery d using looked l
     where d.id = l.id and d.state <> 'pending'
       and not exists (select from stack s where s.id = l.stack_id and s.pinned_at is not null)
       and not exists (select from hook h where h.stack_id = l.stack_id and h.id = l.hook_id
                                            and h.state = 'waiting')
    returning 1
)
select (select max(settled_at) from looked) as reached, (select count(*) from gone) as gone,
       (select count(*) from looked) = $3 as more
"""
# No hook of an existing event: events are shown with their hooks.
PURGE_HOOKS = """
with looked as materialized (
    select stack_id, id, traversal, decided_at from hook
     where state <> 'waiting' and decided_at > $2
       and decided_at < clock_timestamp() - $1::interval
     order by decided_at limit $3
), told as materialized (
    select e.stack_id, e.data ->> 'hook_id' as hook_id
      from (select distinct stack_id from looked) l join event e on e.stack_id = l.stack_id
     where e.data ->> 'hook_id' is not null
), gone as (
    delete from hook h using looked l, stack s
     where h.stack_id = l.stack_id and h.id = l.id and s.id = l.stack_id
       and s.pinned_at is null and l.traversal < s.traversal
       and not exists (select from told t where t.stack_id = l.stack_id and t.hook_id = l.id::text)
       and not exists (select from node n
                        where n.stack_id = l.stack_id and n.traversal = l.traversal)
    returning 1
)
select (select max(decided_at) from looked) as reached, (select count(*) from gone) as gone,
       (select count(*) from looked) = $3 as more
"""
# None that a snapshot is of, that still says of a version that it was reached, or whose end is to
# be told of.
PURGE_TRAVERSALS = """
with looked as materialized (
    select stack_id, number, version, state, watched is null as told, ended_at from traversal
     where ended_at > $2 and ended_at < clock_timestamp() - $1::interval
     order by ended_at limit $3
), gone as (
    delete from traversal t using looked l, stack s
     where t.stack_id = l.stack_id and t.number = l.number and s.id = l.stack_id
       and s.pinned_at is null and l.number < s.traversal and l.told
       and not (l.state = 'complete' and exists (
               select from template v where v.stack_id = l.stack_id and v.version = l.version))
       and not exists (select from node n
                        where n.stack_id = l.stack_id and n.traversal = l.number)
       and not exists (select from hook h
                        where h.stack_id = l.stack_id and h.traversal = l.number)
       and not exists (select from snapshot p
                        where p.stack_id = l.stack_id and p.traversal = l.number)
       and not exists (select from resource_snapshot k
                        where k.stack_id = l.stack_id and k.traversal = l.number)
    returning t.stack_id, t.number
), graphs as (
    delete from past_graph p using gone g where p.stack_id = g.stack_id and p.traversal = g.number
)
select (select max(ended_at) from looked) as reached, (select count(*) from gone) as gone,
       (select count(*) from looked) = $3 as more
"""
PURGE_KEYS = """
with looked as materialized (
    select project, key, created_at from idempotency
     where created_at > $2 and created_at < clock_timestamp() - $1::interval
     order by created_at limit $3
), gone as (
    delete from idempotency i using looked l where i.project = l.project and i.key = l.key
    returning 1
)
select (select max(created_at) from looked) as reached, (select count(*) from gone) as gone,
       (select count(*) from looked) = $3 as more
"""
# Tokens that are no longer accepted; there are few.
PURGE_TOKENS = """
with looked as materialized (
    select id, over from (
        select id, least(revoked_at, expires_at) as over from token) t
     where over > $2 and over < clock_timestamp() - $1::interval
     order by over limit $3
), gone as (
    delete from token t using looked l where t.id = l.id
    returning 1
)
select (select max(over) from looked) as reached, (select count(*) from gone) as gone,
       (select count(*) from looked) = $3 as more
"""
PURGE_SESSIONS = """
with looked as materialized (
    select id, expires_at from session
     where expires_at > $2 and expires_at < clock_timestamp() - $1::interval
     order by expires_at limit $3
), gone as (
    delete from session s using looked l where s.id = l.id
    returning 1
)
select (select max(expires_at) from looked) as reached, (select count(*) from gone) as gone,
       (select count(*) from looked) = $3 as more
"""
PURGE_SIGN_IN_PLACES = """
with looked as materialized (
    select key, last_at from sign_in_place
     where last_at > $2 and last_at < clock_timestamp() - $1::interval
     order by last_at limit $3
), gone as (
    delete from sign_in_place p using looked l where p.key = l.key
    returning 1
)
select (select max(last_at) from looked) as reached, (select count(*) from gone) as gone,
       (select count(*) from looked) = $3 as more
"""
# Of purged stacks without newer decisions.
PURGE_TRAILS = """
with looked as materialized (
    select stack_id, at from decision
     where number = 1 and at > $2 and at < clock_timestamp() - $1::interval
     order by at limit $3
), gone as (
    delete from decision d using looked l
     where d.stack_id = l.stack_id
       and not exists (select from stack s where s.id = l.stack_id)
       and not exists (select from decision n where n.stack_id = l.stack_id
                                                and n.at >= clock_timestamp() - $1::interval)
    returning d.stack_id
), unsigned as (
    delete from audit_head h using gone g where h.stack_id = g.stack_id
)
select (select max(at) from looked) as reached, (select count(*) from gone) as gone,
       (select count(*) from looked) = $3 as more
"""
# Not before its last event was purged, so that every subscriber has received it.
LOOK_AT_DELETED = """
with looked as materialized (
    select id, deleted_at from stack
     where deleted_at > $2 and deleted_at < clock_timestamp() - $1::interval
     order by deleted_at limit $3
), held as materialized (
    select s.id from stack s join looked l on l.id = s.id
     where s.pinned_at is null
       and not exists (select from event e where e.stack_id = s.id)
       and not exists (select from traversal t where t.stack_id = s.id and t.watched is not null)
     order by s.id for update of s skip locked
)
select (select max(deleted_at) from looked) as reached,
       array(select id from held) as doomed, (select count(*) from looked) = $3 as more
"""
LOCK_SINKS = "select id from subscription where stack_id = any ($1::uuid[]) order by id for update"
# Every table with rows of a stack, except events, which are purged before, and the audit log.
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
), graphs as (
    delete from past_graph where stack_id = any ($1)
), resources as (
    delete from resource where stack_id = any ($1)
), hooks as (
    delete from hook where stack_id = any ($1)
), snapshots as (
    delete from snapshot where stack_id = any ($1)
), kept as (
    delete from resource_snapshot where stack_id = any ($1)
), breakpoints as (
    delete from breakpoint where stack_id = any ($1)
), credentials as (
    delete from credential where stack_id = any ($1)
), signals as (
    delete from resource_signal where stack_id = any ($1)
), keys as (
    delete from idempotency where stack_id = any ($1)
)
delete from stack where id = any ($1)
"""
PIN = """
update stack
   set pinned_at = case when $3 then coalesce(pinned_at, clock_timestamp()) end,
       pinned_by = case when $3 then $4 end, pinned_reason = case when $3 then $5 end
 where project = $1 and id = $2
"""

#: Places of the next rows, one statement for each kind.
NEXT_EVENTS = "select min(id) from outbox where id > $1"
NEXT_DELIVERY = "select min(settled_at) from delivery where settled_at > $1"
NEXT_HOOK = "select min(decided_at) from hook where state <> 'waiting' and decided_at > $1"
NEXT_TRAVERSAL = "select min(ended_at) from traversal where ended_at > $1"
NEXT_KEY = "select min(created_at) from idempotency where created_at > $1"
NEXT_REVOKED = "select min(t) from token, least(revoked_at, expires_at) t where t > $1"
NEXT_SESSION = "select min(expires_at) from session where expires_at > $1"
NEXT_SIGN_IN_PLACE = "select min(last_at) from sign_in_place where last_at > $1"
NEXT_DELETED = "select min(deleted_at) from stack where deleted_at > $1"
NEXT_TRAIL = "select min(at) from decision where number = 1 and at > $1"

#: Before everything.
FIRST = datetime(1, 1, 1, tzinfo=UTC)


@dataclass(frozen=True, slots=True)
class Batch:
    """What one look did. reached: where to go on. more: there may be."""

    reached: Json
    gone: int
    more: bool


@dataclass(frozen=True, slots=True)
class _Old:
    statement: str
    next: str
    first: Json = FIRST


#: Kind -> its statement. In this order, no row refers to a purged one.
OLD: Mapping[str, _Old] = MappingProxyType(
    {
        "events": _Old(PURGE_EVENTS, NEXT_EVENTS, first=0),
        "deliveries": _Old(PURGE_DELIVERIES, NEXT_DELIVERY),
        "hooks": _Old(PURGE_HOOKS, NEXT_HOOK),
        "traversals": _Old(PURGE_TRAVERSALS, NEXT_TRAVERSAL),
        "idempotency_keys": _Old(PURGE_KEYS, NEXT_KEY),
        "tokens": _Old(PURGE_TOKENS, NEXT_REVOKED),
        "sessions": _Old(PURGE_SESSIONS, NEXT_SESSION),
        "sign_in_places": _Old(PURGE_SIGN_IN_PLACES, NEXT_SIGN_IN_PLACE),
        "deleted_stacks": _Old(LOOK_AT_DELETED, NEXT_DELETED),
        "trails": _Old(PURGE_TRAILS, NEXT_TRAIL),
    }
)


async def take_turn(conn: Connection) -> bool:
    """Whether this transaction may purge: no other one purges, or replays events."""
    mine: bool = await conn.fetchval(TAKE_TURN, LOCK_KEY)
    return mine


async def hold_off(conn: Connection) -> None:
    """Nothing is purged until this transaction ends."""
    await conn.execute(HOLD_OFF, LOCK_KEY)


async def purge(conn: Connection, kind: str, age: timedelta, after: Json, limit: int) -> Batch:
    """Purge in one page of rows of a kind, after a place (None: the start)."""
    old = OLD[kind]
    row = await conn.fetchrow(old.statement, age, old.first if after is None else after, limit)
    if row is None:
        raise LookupError(f"there is no result for {kind}")
    gone = await _purge_stacks(conn, row["doomed"]) if "doomed" in row else row["gone"]
    return Batch(row["reached"], gone, row["more"])


async def next_row(conn: Connection, kind: str, after: Json) -> Json:
    """The place of the first row of a kind behind a place (None: of all); None: there is none."""
    old = OLD[kind]
    return await conn.fetchval(old.next, old.first if after is None else after)


async def _purge_stacks(conn: Connection, stacks: list[UUID]) -> int:
    if stacks:
        await conn.execute(LOCK_SINKS, stacks)
        await conn.execute(PURGE_STACKS, stacks)
    return len(stacks)


async def pin(
    conn: Connection, project: str, stack_id: UUID, *, pinned: bool, by: str, reason: str
) -> None:
    """Keep a stack, deleted or not, from being purged; or let it go again."""
    await conn.execute(PIN, project, stack_id, pinned, by, reason)
