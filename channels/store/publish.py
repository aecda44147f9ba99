"""From the outbox to deliveries: one transaction gives positions and says who gets what.

One publisher at a time works in a database; whoever comes while another works goes away again,
for the other sees its rows or is woken for them. Positions are given to what is committed, so
whoever has read up to a position has missed nothing before it.
"""

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any
from uuid import UUID

from channels.selection import EVERY_PROJECT, WAITING, Traits, about, is_for
from channels.store import subscriptions
from channels.store.records import SubscriptionRecord, SubscriptionState
from channels.store.sinks import Named, follow_sinks
from engine.hooks.deadline import Pending
from engine.store.connection import Connection
from engine.store.database import Database
from engine.store.hook_deadlines import HookKey, report_notices
from engine.store.stack_locks import lock_stacks
from engine.words import Mode

LOCK = "select position from publishing for update skip locked"
GIVE_POSITIONS = """
with waiting as materialized (
    select id, row_number() over (order by id) as nth
      from outbox where position is null order by id limit $2
), counted as (
    update publishing set position = $1 + (select count(*) from waiting)
     where exists (select 1 from waiting)
)
update outbox o set position = $1 + w.nth
  from waiting w
 where o.id = w.id
returning o.stack_id, o.project, o.first, o.last
"""
READ_EVENTS = """
select e.stack_id, e.sequence, e.id, e.type, e.resource_name, e.resource_type, e.data, w.project,
       s.name as stack_name, s.path as stack_path, s.root_id, r.name as root_name,
       coalesce(r.tags, s.tags) as tags, h.id as hook_id
  from unnest($1::uuid[], $2::text[], $3::bigint[], $4::bigint[]) w (stack_id, project, first, last)
  join event e on e.stack_id = w.stack_id and e.sequence between w.first and w.last
  left join stack s on s.id = w.stack_id
  left join stack r on r.id = s.root_id
  left join hook h on h.stack_id = e.stack_id and h.id = (e.data ->> 'hook_id')::uuid
"""
READ_SINCE = """
select e.stack_id, e.sequence, e.id, e.type, e.resource_name, e.resource_type, e.data, o.project,
       s.name as stack_name, s.path as stack_path, s.root_id, r.name as root_name,
       coalesce(r.tags, s.tags) as tags, h.id as hook_id
  from outbox o
  join event e on e.stack_id = o.stack_id and e.sequence between o.first and o.last
  left join stack s on s.id = o.stack_id
  left join stack r on r.id = s.root_id
  left join hook h on h.stack_id = e.stack_id and h.id = (e.data ->> 'hook_id')::uuid
  left join delivery d on d.stack_id = e.stack_id and d.sequence = e.sequence
   and d.subscription_id = $3
 where (o.project = $1 or $1 = $5) and o.position is not null and o.created_at >= $2
   and e.time >= $2 and (d.state is null or d.state = 'dead')
 order by o.position, e.sequence limit $4
"""
INSERT = """
insert into delivery (stack_id, sequence, subscription_id, project, event_id, type, hook_id,
                      urgent, state, next_at)
select n.stack_id, n.sequence, n.subscription_id, n.project, n.event_id, n.type, n.hook_id,
       n.urgent, 'pending', case when not n.ordered then clock_timestamp() end
  from unnest($1::uuid[], $2::bigint[], $3::uuid[], $4::text[], $5::uuid[], $6::text[], $7::uuid[],
              $8::boolean[], $9::boolean[])
       n (stack_id, sequence, subscription_id, project, event_id, type, hook_id, urgent, ordered)
on conflict (stack_id, sequence, subscription_id) do update
   set state = 'pending', next_at = excluded.next_at, attempts = 0, claim = delivery.claim + 1,
       settled_at = null
 where delivery.state = 'dead'
"""
HURRY = """
update delivery d set urgent = true
  from unnest($1::uuid[], $2::uuid[]) n (stack_id, subscription_id)
 where d.stack_id = n.stack_id and d.subscription_id = n.subscription_id
   and d.state = 'pending' and not d.urgent
"""
RELEASE = "select release_deliveries($1::uuid[], $2::uuid[])"
TELL_STREAMS = "select pg_notify('headgate_published', '')"
TELL_LANES = "select pg_notify('headgate_delivery', '')"

#: Of a channel: seconds in which a delivery that always fails is given up.
Horizon = Callable[[str], float]
#: Takes an internal error of one event or of one subscription, which is then left out.
Report = Callable[..., object]


@dataclass(frozen=True, slots=True)
class Published:
    """What one transaction did. rows: of the outbox; as many as allowed: there may be more."""

    rows: int
    deliveries: int


@dataclass(frozen=True, slots=True)
class _Event:
    stack_id: UUID
    sequence: int
    id: UUID
    type: str
    project: str
    hook_id: UUID | None
    urgent: bool
    traits: Traits


@dataclass(frozen=True, slots=True)
class _Wanted:
    event: _Event
    by: SubscriptionRecord

    @property
    def urgent(self) -> bool:
        return self.event.urgent


def _raise(error: Exception, **_: Any) -> None:
    raise error


async def publish(
    database: Database, *, horizon: Horizon, limit: int, report: Report = _raise
) -> Published | None:
    """Publish at most `limit` rows of the outbox. None: somebody else is publishing.

    The notices of hooks are reported as pending, for as long as their deliveries may be tried.
    """
    async with database.transaction("publish") as conn:
        top: int | None = await conn.fetchval(LOCK)
        if top is None:
            return None
        rows = await conn.fetch(GIVE_POSITIONS, top, limit)
        if not rows:
            return Published(0, 0)
        named = await follow_sinks(conn, rows)
        wanted = await _wanted(conn, rows, named, report)
        count = await insert_wanted(conn, wanted, horizon)
        await conn.execute(TELL_STREAMS)
        return Published(len(rows), count)


async def pass_over(database: Database) -> dict[str, str]:
    """Give the next row of the outbox its position and nothing else; return what it is, in words.

    Its events are in streams and histories, and no subscription gets them.
    """
    async with database.transaction("publish") as conn:
        top: int | None = await conn.fetchval(LOCK)
        rows = await conn.fetch(GIVE_POSITIONS, top, 1) if top is not None else []
        await conn.execute(TELL_STREAMS)
    events = [f"{row['first']} to {row['last']}" for row in rows]
    return {"stack_id": ", ".join(str(row["stack_id"]) for row in rows),
            "events_not_delivered": ", ".join(events)}  # fmt: skip


async def _wanted(
    conn: Connection, rows: Sequence[Any], named: Named, report: Report
) -> list[_Wanted]:
    projects = sorted({row["project"] for row in rows})
    listeners = await subscriptions.in_state(conn, projects, SubscriptionState.ENABLED)
    heard = {listener.project for listener in listeners}
    told = [row for row in rows if row["project"] in heard or EVERY_PROJECT in heard]
    if not told:
        return []
    columns = ("stack_id", "project", "first", "last")
    read = await conn.fetch(READ_EVENTS, *([row[name] for row in told] for name in columns))
    return _select(_events(read, report), listeners, named, report)


def _events(rows: Iterable[Any], report: Report) -> list[_Event]:
    events = []
    for row in rows:
        try:
            events.append(_event(row))
        except Exception as error:
            report(error, stack_id=str(row["stack_id"]), sequence=row["sequence"])
    return events


def _select(
    events: Iterable[_Event],
    listeners: Sequence[SubscriptionRecord],
    named: Named,
    report: Report = _raise,
) -> list[_Wanted]:
    """A subscription that raises an error gets none of these events; the others get theirs."""
    wanted, broken = [], set()
    for event in events:
        for listener in listeners:
            if listener.id in broken:
                continue
            try:
                wants = _wants(listener, event, named)
            except Exception as error:
                broken.add(listener.id)
                report(error, subscription=str(listener.id), event_id=str(event.id))
                continue
            if wants:
                wanted.append(_Wanted(event, listener))
    return wanted


def _wants(listener: SubscriptionRecord, event: _Event, named: Named) -> bool:
    return is_for(listener.id, listener.project, listener.selection, event.traits) and named.hears(
        listener, event.traits, event.sequence
    )


async def insert_wanted(conn: Connection, wanted: Sequence[_Wanted], horizon: Horizon) -> int:
    """Write deliveries; what was delivered or is on its way is left as it is."""
    if not wanted:
        return 0
    urgent = [one for one in wanted if one.urgent]
    if urgent:
        await lock_stacks(conn, {one.event.stack_id for one in urgent})
    there = await subscriptions.lock_enabled(conn, sorted({one.by.id for one in wanted}))
    going = [one for one in wanted if one.by.id in there]
    await conn.execute(INSERT, *zip(*map(_columns, going), strict=True)) if going else None
    await _let_go(conn, [one for one in going if one.by.ordered])
    noticed: dict[HookKey, float] = {}
    for one in going:
        if one.urgent and one.event.hook_id is not None:
            key = (one.event.stack_id, one.event.hook_id)
            noticed[key] = max(noticed.get(key, 0.0), horizon(one.by.channel))
    if noticed:
        pending = {key: [Pending(seconds)] for key, seconds in noticed.items()}
        await report_notices(conn, pending)
    if going:
        await conn.execute(TELL_LANES)
    return len(going)


def _columns(one: _Wanted) -> tuple[Any, ...]:
    event = one.event
    return (
        event.stack_id, event.sequence, one.by.id, event.project, event.id, event.type,
        event.hook_id if event.urgent else None, event.urgent, one.by.ordered,
    )  # fmt: skip


async def _let_go(conn: Connection, ordered: Sequence[_Wanted]) -> None:
    """Start what is first in order; what stands before an urgent one is urgent, too."""
    pairs = sorted({(one.by.id, one.event.stack_id) for one in ordered})
    hurried = sorted({(one.event.stack_id, one.by.id) for one in ordered if one.urgent})
    if hurried:
        await conn.execute(HURRY, *zip(*hurried, strict=True))
    if pairs:
        await conn.execute(RELEASE, *zip(*pairs, strict=True))


async def insert_missed(
    conn: Connection, listener: SubscriptionRecord, since: datetime, *, horizon: Horizon, limit: int
) -> int:
    """Deliver again what was published since then and has not arrived, oldest first."""
    rows = await conn.fetch(READ_SINCE, listener.project, since, listener.id, limit, EVERY_PROJECT)
    return await insert_wanted(conn, _select(map(_event, rows), [listener], Named()), horizon)


def _event(row: Any) -> _Event:
    data = row["data"] or {}
    traits = Traits(
        project=row["project"],
        type=row["type"],
        stack_id=row["stack_id"],
        stack_name=row["stack_name"],
        root_id=row["root_id"],
        root_name=row["root_name"],
        stack_path=row["stack_path"] or "",
        resource_name=row["resource_name"],
        resource_type=row["resource_type"],
        point=data.get("point"),
        about=about(data),
        tags=row["tags"] or (),
    )
    urgent = row["type"] == WAITING and (data.get("mode") == Mode.WAIT or bool(data.get("dry")))
    return _Event(
        stack_id=row["stack_id"], sequence=row["sequence"], id=row["id"], type=row["type"],
        project=row["project"], hook_id=row["hook_id"], urgent=urgent, traits=traits,
    )  # fmt: skip
