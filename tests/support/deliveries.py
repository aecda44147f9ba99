"""Claims and results of deliveries, as a dispatcher makes them, one step at a time."""

from channels.store.claim import Capacity, claim
from channels.store.records import DeliveryResult, DeliveryState, PendingDelivery
from engine.store.database import Database
from tests.support.engine_rows import EngineRows

CAPACITY = Capacity(free=50, retries=50, each=50, busy={})


async def claim_deliveries(
    database: Database, capacity: Capacity = CAPACITY
) -> list[PendingDelivery]:
    async with database.connection() as conn:
        return await claim(conn, urgent=False, capacity=capacity, lease=30.0)


def delivered(delivery: PendingDelivery) -> DeliveryResult:
    return result_of(delivery, DeliveryState.DELIVERED)


def dead(delivery: PendingDelivery) -> DeliveryResult:
    return result_of(delivery, DeliveryState.DEAD)


def result_of(delivery: PendingDelivery, state: DeliveryState) -> DeliveryResult:
    return DeliveryResult(
        key=delivery.key, id=delivery.id, hook_id=delivery.hook_id, channel=delivery.channel,
        target=delivery.target, event_id=delivery.event.id, event_type=delivery.event.type,
        attempts=delivery.attempts, state=state,
        code=200, error="", response="",
    )  # fmt: skip


async def all_ended(engine_rows: EngineRows) -> bool:
    rows = await engine_rows.deliveries()
    return bool(rows) and all(row["state"] != "pending" for row in rows)
