"""Deliveries by hand: claimed and settled as a dispatcher would, a step at a time."""

from channels.store.claim import Capacity, claim
from channels.store.records import DeliveryResult, DeliveryState, PendingDelivery
from engine.store.database import Database
from tests.support.events import Scene

CAPACITY = Capacity(free=50, retries=50, each=50, busy={})


async def claim_ordinary(database: Database, room: Capacity = CAPACITY) -> list[PendingDelivery]:
    async with database.connection() as conn:
        return await claim(conn, urgent=False, capacity=room, lease=30.0)


def delivered(delivery: PendingDelivery) -> DeliveryResult:
    return settled(delivery, DeliveryState.DELIVERED)


def dead(delivery: PendingDelivery) -> DeliveryResult:
    return settled(delivery, DeliveryState.DEAD)


def settled(delivery: PendingDelivery, state: DeliveryState) -> DeliveryResult:
    return DeliveryResult(
        key=delivery.key, id=delivery.id, hook_id=delivery.hook_id, channel=delivery.channel,
        target=delivery.target, event_id=delivery.event.id, event_type=delivery.event.type,
        attempts=delivery.attempts, state=state,
        code=200, error="", answer="",
    )  # fmt: skip


async def none_pending(scene: Scene) -> bool:
    rows = await scene.deliveries()
    return bool(rows) and all(row["state"] != "pending" for row in rows)
