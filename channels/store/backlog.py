"""Measures the backlog: unpublished commits, and pending and overdue deliveries."""

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import timedelta

from engine.store.connection import Connection

UNPUBLISHED = """
select (select count(*) from outbox where position is null) as unpublished,
       (select extract(epoch from clock_timestamp() - min(created_at))::double precision
          from outbox where position is null) as oldest_unpublished,
       (select count(*) from delivery d join subscription s on s.id = d.subscription_id
         where d.state = 'pending' and d.next_at < clock_timestamp() - $1::interval
           and s.state = 'enabled') as overdue,
       (select count(*) from subscription s
         where s.state = 'disabled' and s.named_until is null) as disabled
"""
# Partial indexes contain the pending deliveries.
PENDING = """
select s.channel, count(*) as many, count(*) filter (where s.state = 'disabled') as held,
       extract(epoch from clock_timestamp() - min(d.created_at))::double precision as oldest
  from delivery d join subscription s on s.id = d.subscription_id
 where d.state = 'pending' group by s.channel
"""
# Seconds; metrics are scraped often.
TIMEOUT = 5.0


@dataclass(frozen=True, slots=True)
class Pending:
    """Deliveries of one channel. held: for disabled subscriptions. oldest: age in seconds."""

    many: int
    held: int
    oldest: float


@dataclass(frozen=True, slots=True)
class Backlog:
    """unpublished: commits in the outbox. oldest_unpublished: its age in seconds. overdue:
    deliveries that are due and not claimed. disabled: subscriptions. pending: by channel."""

    unpublished: int
    oldest_unpublished: float | None
    overdue: int
    disabled: int
    pending: Mapping[str, Pending]


async def read_backlog(conn: Connection, patience: timedelta) -> Backlog:
    """patience: how long a due delivery may wait before it counts as overdue."""
    row = await conn.fetchrow(UNPUBLISHED, patience, timeout=TIMEOUT)
    pending = await conn.fetch(PENDING, timeout=TIMEOUT)
    return Backlog(
        **row,  # type: ignore[arg-type]
        pending={
            one["channel"]: Pending(one["many"], one["held"], one["oldest"]) for one in pending
        },
    )
