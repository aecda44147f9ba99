"""Events that alarms of Aodh evaluate. There is no Ceilometer, which sends them."""

from datetime import UTC, datetime
from uuid import uuid4

import aio_pika
import orjson

from tests.openstack.cloud import OpenStack

#: The queue of aodh-listener, to which Ceilometer sends events if its publisher is
#: notifier://?topic=alarm.all.
EVENT_QUEUE = "alarm.all.sample"


async def send_event(openstack: OpenStack, kind: str, **traits: str) -> None:
    """Send an event to Aodh in the form in which Ceilometer does."""
    now = datetime.now(UTC).isoformat()
    event = {
        "message_id": str(uuid4()), "event_type": kind, "generated": now, "raw": {},
        "traits": [[name, 1, value] for name, value in traits.items()],
    }  # fmt: skip
    body = {
        "message_id": str(uuid4()), "publisher_id": "telemetry.publisher", "event_type": "event",
        "priority": "SAMPLE", "payload": [event], "timestamp": now,
    }  # fmt: skip
    message = aio_pika.Message(orjson.dumps(body), content_type="application/json")
    async with (
        await aio_pika.connect(openstack.broker_url) as connection,
        connection.channel(on_return_raises=True) as channel,
    ):
        await channel.default_exchange.publish(message, EVENT_QUEUE, mandatory=True)
