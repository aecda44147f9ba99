"""Deliveries by hand: claimed and settled as a dispatcher would, a step at a time."""

from channels.store.claim import Room, claim
from channels.store.records import DeliveryState, Due, Settlement
from engine.store.database import Database
from tests.support.events import Scene

ROOM = Room(free=50, retries=50, each=50, busy={})


async def claim_ordinary(database: Database, room: Room = ROOM) -> list[Due]:
    async with database.connection() as conn:
        return await claim(conn, urgent=False, room=room, lease=30.0)


def delivered(due: Due) -> Settlement:
    return settled(due, DeliveryState.DELIVERED)


def dead(due: Due) -> Settlement:
    return settled(due, DeliveryState.DEAD)


def settled(due: Due, state: DeliveryState) -> Settlement:
    return Settlement(
        key=due.key, id=due.id, hook_id=due.hook_id, channel=due.channel, target=due.target,
        event_id=due.event.id, event_type=due.event.type, attempts=due.attempts, state=state,
        code=200, error="", answer="",
    )  # fmt: skip


async def none_pending(scene: Scene) -> bool:
    rows = await scene.deliveries()
    return bool(rows) and all(row["state"] != "pending" for row in rows)
