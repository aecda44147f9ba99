"""The delivery history of a subscription: listing and resending."""

from datetime import datetime
from uuid import UUID

from channels.store import publish, subscriptions
from channels.store.delivery_results import NOTIFY_QUEUES, RELEASE
from channels.store.records import DeliveryRecord, SubscriptionRecord
from channels.store.subscription_events import (
    SubscriptionEvent,
    SubscriptionEventKind,
    record_subscription_events,
)
from engine.store.connection import Connection
from engine.store.maintenance.retention import block_purging

_COLUMNS = """id, subscription_id, stack_id, sequence, event_id, type, state, attempts, next_at,
       code, nullif(concat_ws('; ', error, ignored_reason), '') as error,
       coalesce(ignored_answer, response) as response, created_at, ended_at"""
_AFTER = """($3::uuid is null
        or (created_at, id) < (select created_at, id from delivery where id = $3))
 order by created_at desc, id desc limit $4"""
LIST = f"""
select {_COLUMNS}
  from delivery
 where subscription_id = $1 and ($2::text is null or state = $2)
   and {_AFTER}
"""  # noqa: S608 - of constants
#: $2: pending. "coalesce": the condition of the index delivery_pending.
LIST_PENDING = f"""
select {_COLUMNS}
  from delivery
 where subscription_id = $1 and $2::text is not null and coalesce(state, 'delivered') = 'pending'
   and {_AFTER}
"""  # noqa: S608 - of constants
LOCK_SUBSCRIPTION = "select ordered from subscription where id = $1 for no key update"
REDELIVER = """
update delivery
   set state = 'pending', next_at = case when not $2 then clock_timestamp() end, attempts = 0,
       claim = claim + 1, ended_at = null
 where subscription_id = $1 and state <> 'pending'
   and case when $3::uuid is null then state = 'dead' else id = $3 end
returning subscription_id, stack_id
"""
PENDING = "select 1 from delivery where subscription_id = $1 and id = $2"


async def list_page(
    conn: Connection,
    subscription_id: UUID,
    *,
    state: str | None,
    marker: UUID | None,
    limit: int,
) -> list[DeliveryRecord]:
    """Newest first. marker: the last one of the previous page. Call it in `ReadDatabase.page`."""
    statement = LIST_PENDING if state == "pending" else LIST
    rows = await conn.fetch(statement, subscription_id, state, marker, limit)
    return [DeliveryRecord(**row) for row in rows]


async def redeliver_one(conn: Connection, subscription_id: UUID, delivery_id: UUID) -> bool:
    """Send a delivered or dead delivery again; a pending one stays unchanged.

    False: the subscription has no such delivery.
    """
    async with conn.transaction():
        if await _redeliver(conn, subscription_id, delivery_id):
            return True
        return await conn.fetchval(PENDING, subscription_id, delivery_id) is not None


async def redeliver_dead(conn: Connection, subscription_id: UUID) -> int:
    """Send all dead deliveries again; return their number."""
    async with conn.transaction():
        return await _redeliver(conn, subscription_id, None)


#: The maximum number of events that one call delivers.
MAX_REDELIVERED = 10_000


async def redeliver_since(
    conn: Connection,
    project: str,
    subscription_id: UUID,
    since: datetime,
    *,
    horizon: publish.Horizon,
) -> int:
    """Deliver the selected events since a time that were not delivered; return their number.

    Includes events from before the subscription was created and while it was disabled. At most
    `MAX_REDELIVERED`, the oldest first; another call continues.
    """
    async with conn.transaction():
        await block_purging(conn)
        subscription = await subscriptions.get(conn, project, subscription_id)
        if subscription is None:
            return 0
        return await publish.insert_missed(
            conn, subscription, since, horizon=horizon, limit=MAX_REDELIVERED
        )


async def record_redelivered(
    conn: Connection, subscription: SubscriptionRecord, count: int, by: str
) -> None:
    """Record a resend in its transaction. count: of deliveries; 0: no event."""
    if count:
        reason = f"{count} {'delivery' if count == 1 else 'deliveries'} will be sent again"
        event = SubscriptionEvent(SubscriptionEventKind.REDELIVERED, subscription, reason, by)
        await record_subscription_events(conn, [event])


async def _redeliver(conn: Connection, subscription_id: UUID, delivery_id: UUID | None) -> int:
    await block_purging(conn)
    ordered = await conn.fetchval(LOCK_SUBSCRIPTION, subscription_id)
    if ordered is None:
        return 0
    rows = await conn.fetch(REDELIVER, subscription_id, ordered, delivery_id)
    if rows:
        await conn.execute(
            RELEASE, [row["subscription_id"] for row in rows], [row["stack_id"] for row in rows]
        )
        await conn.execute(NOTIFY_QUEUES)
    return len(rows)
