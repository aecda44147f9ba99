"""Consumes notifications from a queue, and publishes answers."""

import asyncio
import logging
from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager
from typing import TYPE_CHECKING, Any
from uuid import uuid4

import aio_pika
import orjson
from aio_pika.abc import AbstractChannel, AbstractIncomingMessage

from headgate.connection import CONNECT
from headgate.errors import UnreachableError, response_error
from headgate.listener.handler_runner import HandlerRunner, is_hook_notification
from headgate.listener.notification import HookClosed, HookNotification
from headgate.listener.sending import read_refusals

if TYPE_CHECKING:
    from headgate.listener.sources import AmqpQueue

Json = Any
log = logging.getLogger("headgate.listener")
#: Seconds for the result of an answer.
RESULT_TIMEOUT = 30.0
#: Messages that are received and not yet acknowledged.
PREFETCH = 20


class QueueSender:
    """Publishes answers to the `reply_to` of notifications, and waits for the results."""

    def __init__(self, channel: AbstractChannel, replies: str) -> None:
        self._channel = channel
        self._replies = replies
        #: By the ID of the message with the answer, because a hook can get several answers.
        self._results: dict[str, asyncio.Future[Json]] = {}

    async def send(self, notification: HookNotification, body: Mapping[str, Json]) -> str | None:
        token = notification.data["token"]
        if not notification.reply_to or token is None:
            raise HookClosed("the subscription may not answer this hook")
        async with read_refusals():
            result = await self._publish(notification, {**body, "token": token})
            if not result.get("accepted"):
                error = {"type": result.get("type"), "message": result.get("reason")}
                raise response_error(int(result["status"]), {"error": error})
        return str(result.get("deadline") or "") or None

    async def _publish(self, notification: HookNotification, body: Mapping[str, Json]) -> Json:
        message_id = uuid4().hex
        result = asyncio.get_running_loop().create_future()
        self._results[message_id] = result
        message = aio_pika.Message(
            orjson.dumps(body),
            message_id=message_id,
            correlation_id=notification.id,
            reply_to=self._replies,
            delivery_mode=aio_pika.DeliveryMode.PERSISTENT,
        )
        try:
            async with asyncio.timeout(RESULT_TIMEOUT):
                await self._channel.default_exchange.publish(message, notification.reply_to)
                return await result
        except (TimeoutError, aio_pika.exceptions.AMQPError, OSError) as error:
            reason = "Headgate did not report the result of an answer over AMQP"
            raise UnreachableError(reason, "Check that the server and the broker run.") from error
        finally:
            del self._results[message_id]

    async def take_result(self, message: AbstractIncomingMessage) -> None:
        await message.ack()
        document = _json_object(message.body)
        waiting = self._results.get(str(document.get("message_id")))
        if waiting is not None and not waiting.done():
            waiting.set_result(document)


def _json_object(body: bytes) -> dict[str, Json]:
    try:
        document = orjson.loads(body)
    except orjson.JSONDecodeError:
        return {}
    return document if isinstance(document, dict) else {}


@asynccontextmanager
async def open_queue(source: "AmqpQueue", listener: HandlerRunner) -> AsyncIterator[None]:
    """Consume the queue in the background. Reconnects to the broker."""
    connection = await aio_pika.connect_robust(source.url, timeout=CONNECT)
    async with connection:
        channel = await connection.channel()
        await channel.set_qos(prefetch_count=PREFETCH)
        replies = await channel.declare_queue(
            f"{source.queue}.results.{uuid4().hex}", exclusive=True, auto_delete=True
        )
        sender = QueueSender(channel, replies.name)
        await replies.consume(sender.take_result)
        exchange = await channel.get_exchange(source.exchange, ensure=False)
        queue = await channel.declare_queue(source.queue, durable=True)
        await queue.bind(exchange, source.binding)

        async def take(message: AbstractIncomingMessage) -> None:
            event = _json_object(message.body)
            if not isinstance(event.get("type"), str) or not isinstance(event.get("data"), dict):
                log.warning("a message in %s is not an event of Headgate", source.queue)
            elif is_hook_notification(event):
                await _notify(listener, sender, event, message.reply_to)
            else:
                await listener.handle_event_once(event)
            await message.ack()

        async with listener.working():
            listener.resume(sender)
            tag = await queue.consume(take)
            log.info("listening to the queue %s", source.queue)
            try:
                yield
            finally:
                await queue.cancel(tag)


async def _notify(
    listener: HandlerRunner, sender: QueueSender, event: dict[str, Json], reply_to: str | None
) -> None:
    if not reply_to:
        return  # the subscription may not answer this hook
    await listener.until_free()
    run = listener.accept(event, sender, reply_to)
    if run is not None:
        listener.keep(run)
