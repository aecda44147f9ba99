"""The delivery history of a subscription: listing and resending."""

from datetime import datetime
from uuid import UUID

from channels.store import publish, subscriptions
from channels.store.records import DeliveryRecord, SubscriptionRecord
from channels.store.subscription_events import Kind, SubscriptionEvent, record_subscription_events
from engine.store.connection import Connection
from engine.store.retention import hold_off

LIST = """
select id, subscription_id, stack_id, sequence, event_id, type, state, attempts, next_at, code,
       nullif(concat_ws('; ', error, ignored), '') as error,
       coalesce(ignored_answer, answer) as answer, created_at, settled_at
  from delivery
 where subscription_id = $1 and ($2::text is null or state = $2)
   and ($3::uuid is null
        or (created_at, id) < (select created_at, id from delivery where id = $3))
 order by created_at desc, id desc limit $4
"""
LOCK_SUBSCRIPTION = "select ordered from subscription where id = $1 for no key update"
REVIVE = """
update delivery
   set state = 'pending', next_at = case when not $2 then clock_timestamp() end, attempts = 0,
       claim = claim + 1, settled_at = null
 where subscription_id = $1 and state <> 'pending'
   and case when $3::uuid is null then state = 'dead' else id = $3 end
returning subscription_id, stack_id
"""
RELEASE = "select release_deliveries($1::uuid[], $2::uuid[])"
PENDING = "select 1 from delivery where subscription_id = $1 and id = $2"
NOTIFY_QUEUES = "select pg_notify('headgate_delivery', '')"


async def list_page(
    conn: Connection,
    subscription_id: UUID,
    *,
    state: str | None,
    marker: UUID | None,
    limit: int,
) -> list[DeliveryRecord]:
    """Newest first. marker: the last one of the previous page."""
    rows = await conn.fetch(LIST, subscription_id, state, marker, limit)
    return [DeliveryRecord(**row) for row in rows]


async def redeliver_one(conn: Connection, subscription_id: UUID, delivery_id: UUID) -> bool:
    """Send a delivered or dead delivery again; a pending one stays unchanged.

    False: the subscription has no such delivery.
    """
    async with conn.transaction():
        if await _revive(conn, subscription_id, delivery_id):
            return True
        return await conn.fetchval(PENDING, subscription_id, delivery_id) is not None


async def redeliver_dead(conn: Connection, subscription_id: UUID) -> int:
    """Send all dead deliveries again; return their number."""
    async with conn.transaction():
        return await _revive(conn, subscription_id, None)


async def redeliver_since(
    conn: Connection,
    project: str,
    subscription_id: UUID,
    since: datetime,
    *,
    horizon: publish.Horizon,
    limit: int = 10_000,
) -> int:
    """Deliver the selected events since a time that were not delivered; return their number.

    Includes events from before the subscription was created and while it was disabled. At most
    `limit`, the oldest first; another call continues.
    """
    async with conn.transaction():
        await hold_off(conn)
        subscription = await subscriptions.get(conn, project, subscription_id)
        if subscription is None:
            return 0
        return await publish.insert_missed(conn, subscription, since, horizon=horizon, limit=limit)


async def record_redelivered(
    conn: Connection, one: SubscriptionRecord, count: int, by: str
) -> None:
    """Record a resend in its transaction. count: of deliveries; 0: no event."""
    if count:
        reason = f"{count} {'delivery' if count == 1 else 'deliveries'} will be sent again"
        event = SubscriptionEvent(Kind.REDELIVERED, one, reason, by)
        await record_subscription_events(conn, [event])


async def _revive(conn: Connection, subscription_id: UUID, delivery_id: UUID | None) -> int:
    await hold_off(conn)
    ordered = await conn.fetchval(LOCK_SUBSCRIPTION, subscription_id)
    if ordered is None:
        return 0
    rows = await conn.fetch(REVIVE, subscription_id, ordered, delivery_id)
    if rows:
        await conn.execute(
            RELEASE, [row["subscription_id"] for row in rows], [row["stack_id"] for row in rows]
        )
        await conn.execute(NOTIFY_QUEUES)
    return len(rows)
