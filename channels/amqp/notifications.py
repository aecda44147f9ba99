"""Heat's notifications of stack events, in the envelope of oslo.messaging.

Heat sends them before a change is durable, and loses them if the broker is not available. These are
sent after the change is durable, and retried like every delivery.
"""

from collections.abc import Mapping
from datetime import datetime

import orjson
from aio_pika import DeliveryMode, Message

from channels.amqp.broker import NotPublished
from channels.amqp.publisher import ExchangeChannel
from channels.contract import Delivered, Endpoint, EventMessage, Failed
from engine.errors import Invalid
from engine.words import Json

TOPIC = "notifications"
PUBLISHER = "orchestration.headgate"
#: Last segment of the event type -> last segment of Heat's event type, priority. Heat has no
#: STOPPED; its listeners get a failure.
ENDS: Mapping[str, tuple[str, str]] = {
    "started": ("start", "INFO"),
    "completed": ("end", "INFO"),
    "failed": ("error", "ERROR"),
    "stopped": ("error", "ERROR"),
}
NOT_SENT = "Heat has no notification of this event type: nothing was sent"


class HeatChannel(ExchangeChannel):
    """Publishes Heat's notifications; Heat's exchange is ``heat``."""

    name = "heat"

    async def deliver(self, event: EventMessage, endpoint: Endpoint) -> Delivered | Failed:
        document = notification(event)
        if document is None:
            return Delivered(None, note=NOT_SENT)
        message = Message(
            orjson.dumps({"oslo.version": "2.0", "oslo.message": orjson.dumps(document).decode()}),
            content_type="application/json",
            content_encoding="utf-8",
            delivery_mode=DeliveryMode.PERSISTENT,
            message_id=event.id,
        )
        try:
            await self.check_target(endpoint.target)
            key = f"{TOPIC}.{document['priority'].lower()}"
            await self._broker.publish(endpoint.target, key, message)
        except (Invalid, NotPublished) as error:
            return Failed(str(error))
        return Delivered(None)


def notification(event: EventMessage) -> dict[str, Json] | None:
    """The notification of a Heat server; None: Heat has none for this event type."""
    _, about, *rest = event.type.split(".")
    if about != "stack":
        return None
    action, moment = rest
    end, priority = ENDS[moment]
    stack = event.document["data"]["stack"]
    status = "FAILED" if moment == "stopped" else stack["status"]
    return {
        "message_id": event.id,
        "publisher_id": PUBLISHER,
        "event_type": f"orchestration.stack.{action}.{end}",
        "priority": priority,
        "payload": {
            "tenant_id": stack["project"],
            "user_id": stack["owner"],
            "user_identity": stack["owner"],
            "username": stack["owner"],
            "stack_identity": stack["id"],
            "stack_name": stack["name"],
            "state": f"{stack['action']}_{status}",
            "state_reason": stack["reason"],
            "create_at": _seconds(stack["created_at"]),
            "updated_at": None if action == "create" else _seconds(event.document["time"]),
            "tags": stack["tags"],
            "description": "No description",
        },
        "timestamp": _format_time(event.document["time"]),
        "_unique_id": event.id.replace("-", ""),
    }


def _seconds(time: str) -> str:
    """Heat's notation of the times of stacks, in seconds."""
    return f"{datetime.fromisoformat(time):%Y-%m-%dT%H:%M:%SZ}"


def _format_time(time: str) -> str:
    """The notation of oslo.messaging."""
    return f"{datetime.fromisoformat(time):%Y-%m-%d %H:%M:%S.%f}"
