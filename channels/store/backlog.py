"""The backlog: measures unpublished commits and pending deliveries, and disables subscriptions with
too many pending deliveries."""

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import timedelta

from channels.store.subscription_events import (
    SubscriptionEvent,
    SubscriptionEventKind,
    record_subscription_events,
)
from channels.store.subscriptions import COLUMNS, record_of
from engine.store.connection import Connection
from engine.store.database import Database

UNPUBLISHED = """
select (select count(*) from outbox where position is null) as unpublished,
       (select extract(epoch from clock_timestamp() - min(created_at))::double precision
          from outbox where position is null) as oldest_unpublished,
       (select count(*) from delivery d join subscription s on s.id = d.subscription_id
         where d.state = 'pending' and d.next_at < clock_timestamp() - $1::interval
           and s.state = 'enabled') as overdue,
       (select count(*) from subscription s
         where s.state = 'disabled' and s.removed_at_sequence is null) as disabled
"""
# Partial indexes contain the pending deliveries.
PENDING = """
select s.channel, count(*) as count, count(*) filter (where s.state = 'disabled') as disabled,
       extract(epoch from clock_timestamp() - min(d.created_at))::double precision as oldest
  from delivery d join subscription s on s.id = d.subscription_id
 where d.state = 'pending' group by s.channel
"""
# Seconds; metrics are scraped often.
TIMEOUT = 5.0


@dataclass(frozen=True, slots=True)
class PendingDeliveries:
    """Deliveries of one channel. disabled: to disabled subscriptions. oldest: age in seconds."""

    count: int
    disabled: int
    oldest: float


@dataclass(frozen=True, slots=True)
class Backlog:
    """unpublished: commits in the outbox. oldest_unpublished: its age in seconds. overdue:
    deliveries that are due and not claimed. disabled: subscriptions. pending: by channel."""

    unpublished: int
    oldest_unpublished: float | None
    overdue: int
    disabled: int
    pending: Mapping[str, PendingDeliveries]


async def read_backlog(conn: Connection, patience: timedelta) -> Backlog:
    """patience: how long a due delivery may wait before it counts as overdue."""
    row = await conn.fetchrow(UNPUBLISHED, patience, timeout=TIMEOUT)
    pending = await conn.fetch(PENDING, timeout=TIMEOUT)
    return Backlog(
        **row,  # type: ignore[arg-type]
        pending={
            one["channel"]: PendingDeliveries(one["count"], one["disabled"], one["oldest"])
            for one in pending
        },
    )


# Counts only up to the limit.
DISABLE_OVER_LIMIT = f"""
update subscription s
   set state = 'disabled',
       reason = 'more than ' || $1 || ' deliveries to it are pending'
 where s.id = any (array(
           select o.id from subscription o
            where o.state = 'enabled'
              and exists (select from delivery d
                           where d.subscription_id = o.id and d.state = 'pending'
                          offset $1::integer limit 1)
            order by o.id for no key update))
returning {COLUMNS}
"""  # noqa: S608 - of constants


async def disable_over_limit(database: Database, limit: int) -> int:
    """Return the number of disabled subscriptions. They keep their pending deliveries, which are
    sent after they are enabled."""
    async with database.transaction("deliver") as conn:
        rows = await conn.fetch(DISABLE_OVER_LIMIT, limit)
        disabled = [record_of(row) for row in rows]
        events = [
            SubscriptionEvent(SubscriptionEventKind.DISABLED, one, one.reason, "headgate")
            for one in disabled
        ]
        await record_subscription_events(conn, events)
    return len(disabled)
