"""Publishes the outbox: one transaction assigns stream positions and creates deliveries. Without
subscriptions that is one statement (routines/3_publish_outbox.sql).

One publisher at a time works in a database. A second one returns at once, because the first one
reads its rows or is notified of them. Only committed rows get positions, so a reader that has read
up to a position has every event before it.
"""

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from datetime import datetime
from functools import cache
from typing import Any
from uuid import UUID

from channels.selection import EVERY_PROJECT, WAITING, Traits, is_for, subject_of
from channels.store import subscriptions
from channels.store.delivery_results import NOTIFY_QUEUES, RELEASE
from channels.store.records import OutboxRows, SubscriptionRecord, SubscriptionState
from channels.store.sinks import SinkChanges, apply_sinks
from engine.hooks.deadline import NotificationPending
from engine.store.connection import Connection
from engine.store.database import Database
from engine.store.fault_points import reach
from engine.store.hooks.deadlines import HookKey, report_notifications
from engine.store.stacks.stack_locks import lock_stacks
from engine.words import Mode

PUBLISH = """
select p_locked as locked, p_subscribed as subscribed, p_stacks as stacks, p_projects as projects,
       p_first as first, p_last as last
  from publish_outbox($1, $2)
"""
#: The events of outbox rows `o`, with their stacks and hooks.
_EVENT_COLUMNS = """
e.stack_id, e.sequence, e.id, e.type, e.resource_name, e.resource_type, e.data, o.project,
       s.name as stack_name, s.path as stack_path, s.root_id, r.name as root_name,
       coalesce(r.tags, s.tags) as tags, h.id as hook_id
"""
_EVENT_JOINS = """
  join event e on e.stack_id = o.stack_id and e.sequence between o.first and o.last
  left join stack s on s.id = o.stack_id
  left join stack r on r.id = s.root_id
  left join hook h on h.stack_id = e.stack_id and h.id = (e.data ->> 'hook_id')::uuid
"""
READ_EVENTS = f"""
select {_EVENT_COLUMNS}
  from unnest($1::uuid[], $2::text[], $3::bigint[], $4::bigint[]) o (stack_id, project, first, last)
{_EVENT_JOINS}
"""  # noqa: S608 - constants of this module
READ_SINCE = f"""
select {_EVENT_COLUMNS}
  from outbox o
{_EVENT_JOINS}
  left join delivery d on d.stack_id = e.stack_id and d.sequence = e.sequence
   and d.subscription_id = $3
 where (o.project = $1 or $1 = $5) and o.position is not null and o.created_at >= $2
   and e.time >= $2 and (d.state is null or d.state = 'dead')
 order by o.position, e.sequence limit $4
"""  # noqa: S608 - constants of this module
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
       ended_at = null
 where delivery.state = 'dead'
"""
MARK_URGENT = """
update delivery d set urgent = true
  from unnest($1::uuid[], $2::uuid[]) n (stack_id, subscription_id)
 where d.stack_id = n.stack_id and d.subscription_id = n.subscription_id
   and d.state = 'pending' and not d.urgent
"""

#: By channel: seconds until a delivery whose attempts all fail is dead.
Horizon = Callable[[str], float]
#: Reports an internal error at one event or subscription, which is then skipped.
Report = Callable[..., object]


@dataclass(frozen=True, slots=True)
class PublishResult:
    """rows: outbox rows that one transaction published; if `limit`, there may be more. subscribed:
    enabled subscriptions or event sinks can match events of their projects."""

    rows: int
    deliveries: int
    subscribed: bool = False


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
class _Match:
    event: _Event
    subscription: SubscriptionRecord

    @property
    def urgent(self) -> bool:
        return self.event.urgent


def _raise(error: Exception, **_: Any) -> None:
    raise error


async def publish(
    database: Database,
    *,
    horizon: Horizon,
    limit: int,
    report: Report = _raise,
    quick: bool = True,
) -> PublishResult | None:
    """Publish at most `limit` rows of the outbox. None: another publisher is active.

    Hook notifications are reported as pending, for as long as their deliveries may be retried.
    quick: try first whether no subscription needs the rows, which takes one statement.
    """
    if quick:
        done = await _publish_quickly(database, limit)
        if done is None or not done.subscribed:
            return done
    async with database.transaction("publish") as conn:
        (published,) = await conn.fetch(PUBLISH, limit, False)
        if not published["locked"]:
            return None
        rows = _rows(published)
        if not rows:
            return PublishResult(0, 0, subscribed=True)
        sinks = await apply_sinks(conn, rows)
        enabled = await subscriptions.in_state(
            conn, sorted({*rows.projects}), SubscriptionState.ENABLED
        )
        matches = await _matches(conn, rows, enabled, sinks, report)
        count = await insert_matches(conn, matches, horizon)
        return PublishResult(len(rows), count, subscribed=bool(enabled))


async def _publish_quickly(database: Database, limit: int) -> PublishResult | None:
    """Publish without deliveries. Nothing is published if the result is `subscribed`."""
    reach("publish.before")
    async with database.connection() as conn:
        (published,) = await conn.fetch(PUBLISH, limit, True)
    reach("publish.after")
    if not published["locked"]:
        return None
    subscribed = published["subscribed"]
    return PublishResult(0 if subscribed else len(_rows(published)), 0, subscribed)


def _rows(published: Any) -> OutboxRows:
    return OutboxRows(*(published[name] or () for name in ("stacks", "projects", "first", "last")))


async def skip_next(database: Database) -> dict[str, str]:
    """Skip the next outbox row, which could not be published; return its description for the log.

    It gets a position, so streams and histories contain its events; subscriptions do not get them.
    """
    async with database.transaction("publish") as conn:
        (published,) = await conn.fetch(PUBLISH, 1, False)
    rows = _rows(published)
    events = [f"{first} to {last}" for first, last in zip(rows.first, rows.last, strict=True)]
    return {"stack_id": ", ".join(map(str, rows.stacks)), "events_not_delivered": ", ".join(events)}


async def _matches(
    conn: Connection,
    rows: OutboxRows,
    enabled: Sequence[SubscriptionRecord],
    sinks: SinkChanges,
    report: Report,
) -> list[_Match]:
    subscribed = {one.project for one in enabled}
    selected = rows if EVERY_PROJECT in subscribed else rows.of_projects(subscribed)
    if not selected:
        return []
    read = await conn.fetch(
        READ_EVENTS, selected.stacks, selected.projects, selected.first, selected.last
    )
    return _select(_events(read, report), enabled, sinks, report)


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
    enabled: Sequence[SubscriptionRecord],
    sinks: SinkChanges,
    report: Report = _raise,
) -> list[_Match]:
    """After an error, the subscription gets none of these events of the event's project. Other
    subscriptions, and the events of other projects, are unaffected."""
    by_project = _grouped_by_project(enabled)
    matches, failed = [], set()
    for event in events:
        for subscription in by_project(event.project):
            if (subscription.id, event.project) in failed:
                continue
            try:
                selected = _is_selected(subscription, event, sinks)
            except Exception as error:
                failed.add((subscription.id, event.project))
                report(error, subscription=str(subscription.id), event_id=str(event.id))
                continue
            if selected:
                matches.append(_Match(event, subscription))
    return matches


def _grouped_by_project(
    enabled: Sequence[SubscriptionRecord],
) -> Callable[[str], Sequence[SubscriptionRecord]]:
    """A function that returns the subscriptions that can select the events of a project."""

    @cache
    def of_project(project: str) -> Sequence[SubscriptionRecord]:
        return [one for one in enabled if one.project in (project, EVERY_PROJECT)]

    return of_project


def _is_selected(subscription: SubscriptionRecord, event: _Event, sinks: SinkChanges) -> bool:
    selection, traits = subscription.selection, event.traits
    return is_for(subscription.id, subscription.project, selection, traits) and sinks.includes(
        subscription, traits, event.sequence
    )


async def insert_matches(conn: Connection, matches: Sequence[_Match], horizon: Horizon) -> int:
    """Create deliveries; dead ones become pending again, and others stay unchanged."""
    if not matches:
        return 0
    urgent = [one for one in matches if one.urgent]
    if urgent:
        await lock_stacks(conn, {one.event.stack_id for one in urgent})
    locked = await subscriptions.lock_enabled(
        conn, sorted({one.subscription.id for one in matches})
    )
    inserted = [one for one in matches if one.subscription.id in locked]
    if inserted:
        await conn.execute(INSERT, *zip(*map(_columns, inserted), strict=True))
    await _release(conn, [one for one in inserted if one.subscription.ordered])
    horizons: dict[HookKey, float] = {}
    for one in inserted:
        if one.urgent and one.event.hook_id is not None:
            key = (one.event.stack_id, one.event.hook_id)
            horizons[key] = max(horizons.get(key, 0.0), horizon(one.subscription.channel))
    if horizons:
        pending = {key: [NotificationPending(seconds)] for key, seconds in horizons.items()}
        await report_notifications(conn, pending)
    if inserted:
        await conn.execute(NOTIFY_QUEUES)
    return len(inserted)


def _columns(one: _Match) -> tuple[Any, ...]:
    event = one.event
    return (
        event.stack_id, event.sequence, one.subscription.id, event.project, event.id, event.type,
        event.hook_id if event.urgent else None, event.urgent, one.subscription.ordered,
    )  # fmt: skip


async def _release(conn: Connection, ordered: Sequence[_Match]) -> None:
    """Release the first delivery of each order. Deliveries before an urgent one become urgent."""
    pairs = sorted({(one.subscription.id, one.event.stack_id) for one in ordered})
    urgent = sorted({(one.event.stack_id, one.subscription.id) for one in ordered if one.urgent})
    if urgent:
        await conn.execute(MARK_URGENT, *zip(*urgent, strict=True))
    if pairs:
        await conn.execute(RELEASE, *zip(*pairs, strict=True))


async def insert_missed(
    conn: Connection,
    subscription: SubscriptionRecord,
    since: datetime,
    *,
    horizon: Horizon,
    limit: int,
) -> int:
    """Create deliveries of events since a time that have none or a dead one, oldest first."""
    rows = await conn.fetch(
        READ_SINCE, subscription.project, since, subscription.id, limit, EVERY_PROJECT
    )
    matches = _select(map(_event, rows), [subscription], SinkChanges())
    return await insert_matches(conn, matches, horizon)


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
        about=subject_of(data),
        tags=row["tags"] or (),
    )
    urgent = row["type"] == WAITING and (data.get("mode") == Mode.WAIT or bool(data.get("dry")))
    return _Event(
        stack_id=row["stack_id"], sequence=row["sequence"], id=row["id"], type=row["type"],
        project=row["project"], hook_id=row["hook_id"], urgent=urgent, traits=traits,
    )  # fmt: skip
