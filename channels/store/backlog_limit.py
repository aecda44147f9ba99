"""Disables subscriptions whose backlog exceeds the limit of the settings, and records events."""

from channels.store.subscription_events import Kind, SubscriptionEvent, record_subscription_events
from channels.store.subscriptions import record_of
from engine.store.database import Database

# Counts only up to the limit.
DISABLE_OVER_LIMIT = """
update subscription s
   set state = 'disabled',
       reason = 'more than ' || $1 || ' deliveries to it are pending'
 where s.id in (select o.id from subscription o
                 where o.state = 'enabled'
                   and exists (select from delivery d
                                where d.subscription_id = o.id and d.state = 'pending'
                               offset $1::integer limit 1)
                 order by o.id for no key update)
returning id, project, channel, target, events, stacks, resources, types, points, tags, ordered,
          state, reason, origin, stack_id, nested, named_until, failures, created_at,
       name, owner
"""


async def disable_over_limit(database: Database, limit: int) -> int:
    """Return the number of disabled subscriptions. They keep their pending deliveries, which are
    sent after they are enabled."""
    async with database.transaction("deliver") as conn:
        rows = await conn.fetch(DISABLE_OVER_LIMIT, limit)
        disabled = [record_of(row) for row in rows]
        events = [SubscriptionEvent(Kind.DISABLED, one, one.reason, "headgate") for one in disabled]
        await record_subscription_events(conn, events)
    return len(disabled)
