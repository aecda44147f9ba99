"""Publishes each event as a persistent message that the broker confirms."""

from collections.abc import Sequence
from fnmatch import fnmatchcase

import orjson
from aio_pika import DeliveryMode, Message

from channels.amqp.broker import Broker, NotPublished
from channels.contract import Delivered, Endpoint, EventMessage, Failed
from channels.envelope import CONTENT_TYPE
from engine.errors import Finding, Invalid

#: The AMQP limit of names and routing keys in bytes.
MAX_NAME_BYTES = 255


class ExchangeChannel:
    """The base class of channels whose target is the name of an exchange.

    exchanges: globs of allowed names, because every subscription publishes there.
    """

    def __init__(self, broker: Broker, exchanges: Sequence[str]) -> None:
        self._broker = broker
        self._exchanges = exchanges

    async def check_target(self, target: str) -> None:
        check_exchange(target, self._exchanges)


class AmqpChannel(ExchangeChannel):
    """Publishes the events themselves."""

    name = "amqp"

    async def deliver(self, event: EventMessage, endpoint: Endpoint) -> Delivered | Failed:
        try:
            await self.check_target(endpoint.target)
            message = message_of(event, self._broker.settings.answers)
            await self._broker.publish(endpoint.target, routing_key(event), message)
        except Invalid as error:
            return Failed(str(error))
        except NotPublished as error:
            return Failed(str(error))
        return Delivered(None)


def check_exchange(target: str, exchanges: Sequence[str]) -> None:
    """Raises Invalid for a name that matches none of these globs."""
    allowed = [one for one in exchanges if fnmatchcase(target, one)]
    if not allowed or len(target.encode()) > MAX_NAME_BYTES:
        remedy = f"Use one of: {', '.join(exchanges)}."
        reason = f'"{target}" is not an allowed exchange'
        raise Invalid([Finding("target", reason, remedy, "Invalid")])


def routing_key(event: EventMessage) -> str:
    """``<type>.<project>.<stack>``, such as ``headgate.hook.waiting.demo.web``.

    In the names of project and stack, ``_`` replaces dots and the wildcards of AMQP bindings.
    Without a stack, the key ends in ``_``.
    """
    data = event.document["data"]
    stack = data.get("stack") or {}
    project = stack.get("project") or data.get("subscription", {}).get("project")
    words = (project or "", stack.get("name") or "")
    key = ".".join((event.type, *(_word(word) for word in words)))
    return key.encode()[:MAX_NAME_BYTES].decode(errors="ignore")


def _word(name: str) -> str:
    return name.translate({ord(one): "_" for one in ".*#"}) or "_"


def message_of(event: EventMessage, answers: str) -> Message:
    """The CloudEvent in structured mode. A hook notification with a token has reply_to."""
    data = event.document["data"]
    hook = data.get("hook") if event.waiting and data.get("token") else None
    return Message(
        orjson.dumps(event.document),
        content_type=CONTENT_TYPE,
        content_encoding="utf-8",
        delivery_mode=DeliveryMode.PERSISTENT,
        message_id=event.id,
        type=event.type,
        timestamp=event.sent_at,
        app_id="headgate",
        headers={"traceparent": event.traceparent} if event.traceparent else None,
        reply_to=answers if hook else None,
        correlation_id=hook["id"] if hook else None,
    )
