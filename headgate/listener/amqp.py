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
from headgate.errors import UnreachableError
from headgate.listener.handler_runner import HandlerRunner, is_hook_notification
from headgate.listener.notification import AnswerInvalid, HookClosed, HookNotification

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
        self._results: dict[str, asyncio.Future[Json]] = {}
        #: One answer of a hook at a time, because results are found by the ID of the hook.
        self._locks: dict[str, asyncio.Lock] = {}

    async def send(self, notification: HookNotification, body: Mapping[str, Json]) -> str | None:
        hook_id, token = notification.id, notification.data["token"]
        if not notification.reply_to or token is None:
            raise HookClosed("the subscription may not answer this hook")
        lock = self._locks.setdefault(hook_id, asyncio.Lock())
        try:
            async with lock:
                result = await self._publish(notification, {**body, "token": token})
        finally:
            if not lock.locked():
                self._locks.pop(hook_id, None)
        if result.get("accepted"):
            return None
        reason = str(result.get("reason") or "the answer was refused")
        # The result does not say whether the hook still waits.
        raise AnswerInvalid(reason)

    async def _publish(self, notification: HookNotification, body: Mapping[str, Json]) -> Json:
        result = asyncio.get_running_loop().create_future()
        self._results[notification.id] = result
        message = aio_pika.Message(
            orjson.dumps(body),
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
            self._results.pop(notification.id, None)

    async def take_result(self, message: AbstractIncomingMessage) -> None:
        await message.ack()
        waiting = self._results.get(message.correlation_id or "")
        if waiting is not None and not waiting.done():
            waiting.set_result(_json_object(message.body))


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
