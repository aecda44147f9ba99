"""Consumes notifications from a queue, and publishes answers.

A lost connection is opened again here: the robust connections of aio-pika do not restore their
channels in all versions.
"""

import asyncio
import logging
from collections.abc import AsyncIterator, Awaitable, Callable, Mapping
from contextlib import asynccontextmanager, suppress
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any
from uuid import uuid4

import aio_pika
import orjson
from aio_pika.abc import (
    AbstractChannel,
    AbstractConnection,
    AbstractIncomingMessage,
    AbstractQueue,
)

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
#: Seconds before the connection is opened again, and at most.
FIRST_RETRY, MAX_RETRY = 0.5, 15.0
#: Seconds for closing a connection or a consumer, which a broker may never confirm.
CLOSING = 5.0
#: Errors of a lost connection; RuntimeError is aio-pika's for a channel that is closed.
LOST = (TimeoutError, aio_pika.exceptions.AMQPError, OSError, RuntimeError)
#: Messages that are received and not yet acknowledged.
PREFETCH = 20


class QueueSender:
    """Publishes answers to the `reply_to` of notifications, and waits for the results."""

    def __init__(self, channel: AbstractChannel, replies: str) -> None:
        self.use(channel, replies)
        #: By the ID of the message with the answer, because a hook can get several answers.
        self._results: dict[str, asyncio.Future[Json]] = {}

    def use(self, channel: AbstractChannel, replies: str) -> None:
        """Continue on another connection. replies: the queue of results."""
        self._channel = channel
        self._replies = replies

    def lose(self) -> None:
        """End the waits for results, whose queue was lost with the connection."""
        for result in self._results.values():
            if not result.done():
                result.set_exception(ConnectionResetError("the connection was lost"))

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
        result.add_done_callback(_read_error)
        self._results[message_id] = result
        message = aio_pika.Message(
            orjson.dumps(body),
            message_id=message_id,
            correlation_id=notification.id,
            reply_to=self._replies,
            delivery_mode=aio_pika.DeliveryMode.PERSISTENT,
        )
        try:
            async with _answered_within(RESULT_TIMEOUT):
                await self._channel.default_exchange.publish(message, notification.reply_to)
                return await result
        except LOST as error:
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


@asynccontextmanager
async def _answered_within(seconds: float) -> AsyncIterator[None]:
    """Limits requests to the broker. Raises TimeoutError, and ConnectionResetError for a request
    that aio-pika rejects because heartbeats are missing: it raises CancelledError, as if this task
    was cancelled."""
    async with asyncio.timeout(seconds):
        try:
            yield
        except asyncio.CancelledError:
            task = asyncio.current_task()
            if task is None or task.cancelling():
                raise
            raise ConnectionResetError("the connection was lost") from None


def _read_error(future: asyncio.Future[Any]) -> None:
    """asyncio logs an error that is not read."""
    if not future.cancelled():
        future.exception()


def _json_object(body: bytes) -> dict[str, Json]:
    try:
        document = orjson.loads(body)
    except orjson.JSONDecodeError:
        return {}
    return document if isinstance(document, dict) else {}


@asynccontextmanager
async def open_queue(source: "AmqpQueue", listener: HandlerRunner) -> AsyncIterator[None]:
    """Consume the queue in the background. Raises the error of the first connection; later ones
    are opened again."""
    link = await _open_link(source)
    sender = QueueSender(link.channel, link.replies.name)

    async def take(message: AbstractIncomingMessage) -> None:
        event = _json_object(message.body)
        if not isinstance(event.get("type"), str) or not isinstance(event.get("data"), dict):
            log.warning("a message in %s is not an event of Headgate", source.queue)
        elif is_hook_notification(event):
            await _notify(listener, sender, event, message.reply_to)
        else:
            await listener.handle_event_once(event)
        await message.ack()

    consumer = _Consumer(source, sender, take)
    try:
        await consumer.use(link)
    except BaseException:
        await _close(link.connection)
        raise
    keeping = asyncio.create_task(consumer.keep(link))
    try:
        async with listener.working():
            listener.resume(sender)
            await consumer.start()
            try:
                yield
            finally:
                await consumer.stop()  # handlers that still run send their answers
    finally:
        keeping.cancel()
        await asyncio.wait((keeping,))


@dataclass(frozen=True, slots=True)
class _Link:
    """An open connection. replies: the queue of results. lost: set when it, its channel or a
    consumer ends."""

    connection: AbstractConnection
    channel: AbstractChannel
    replies: AbstractQueue
    queue: AbstractQueue
    lost: asyncio.Event


async def _open_link(source: "AmqpQueue") -> _Link:
    """Open a connection, and declare the queues. Raises the errors of LOST."""
    connection = await aio_pika.connect(source.url, timeout=CONNECT)
    lost = asyncio.Event()

    def end(*_: object) -> None:
        lost.set()

    connection.close_callbacks.add(end)
    try:
        async with _answered_within(RESULT_TIMEOUT):
            channel = await connection.channel()
            channel.close_callbacks.add(end)
            await channel.set_qos(prefetch_count=PREFETCH)
            replies = await channel.declare_queue(
                f"{source.queue}.results.{uuid4().hex}", exclusive=True, auto_delete=True
            )
            exchange = await channel.get_exchange(source.exchange, ensure=False)
            queue = await channel.declare_queue(source.queue, durable=True)
            await queue.bind(exchange, source.binding)
            underlay = await channel.get_underlay_channel()
            underlay.on_consumer_cancel_callbacks.add(end)  # such as when its queue was deleted
    except BaseException:
        await _close(connection)
        raise
    return _Link(connection, channel, replies, queue, lost)


class _Consumer:
    """Consumes the queue of a source, on one connection after the other."""

    def __init__(
        self,
        source: "AmqpQueue",
        sender: QueueSender,
        take: Callable[[AbstractIncomingMessage], Awaitable[None]],
    ) -> None:
        self._source = source
        self._sender = sender
        self._take = take
        self._consumes = False
        self._link: _Link | None = None
        self._tag = ""

    async def use(self, link: _Link) -> None:
        """Raises the errors of LOST."""
        async with _answered_within(RESULT_TIMEOUT):
            await link.replies.consume(self._sender.take_result)
        self._sender.use(link.channel, link.replies.name)
        self._link = link
        if self._consumes:
            await self._consume(link)

    async def keep(self, link: _Link) -> None:
        """Open the connection again whenever it is lost, until cancelled."""
        while True:
            try:
                await link.lost.wait()
            finally:
                self._sender.lose()
                await _close(link.connection)
            log.warning("the connection to the broker was lost; it is opened again")
            link = await self._reopen()

    async def _reopen(self) -> _Link:
        pause = FIRST_RETRY
        while True:
            await asyncio.sleep(pause)
            pause = min(2 * pause, MAX_RETRY)
            try:
                link = await _open_link(self._source)
                try:
                    await self.use(link)
                except BaseException:
                    await _close(link.connection)
                    raise
                return link
            except Exception as error:
                # Only its type: its text may contain the URL with the password.
                reason = type(error).__name__
                log.warning("the broker cannot be used (again in %g s): %s", pause, reason)

    async def start(self) -> None:
        """Receive messages, on later connections, too."""
        self._consumes = True
        if self._link is not None:
            try:
                await self._consume(self._link)
            except LOST:
                self._link.lost.set()  # begins again on another connection

    async def _consume(self, link: _Link) -> None:
        self._tag = ""
        async with _answered_within(RESULT_TIMEOUT):
            self._tag = await link.queue.consume(self._take)
        log.info("listening to the queue %s", self._source.queue)

    async def stop(self) -> None:
        """Receive no more messages."""
        self._consumes = False
        if self._link is not None and self._tag:
            with suppress(*LOST):
                async with _answered_within(CLOSING):
                    await self._link.queue.cancel(self._tag)


async def _close(connection: AbstractConnection) -> None:
    closing = asyncio.ensure_future(connection.close())
    closing.add_done_callback(_read_error)
    try:
        await asyncio.wait((closing,), timeout=CLOSING)
    finally:
        closing.cancel()  # not awaited: aio-pika may wait for the broker even then


async def _notify(
    listener: HandlerRunner, sender: QueueSender, event: dict[str, Json], reply_to: str | None
) -> None:
    if not reply_to:
        return  # the subscription may not answer this hook
    await listener.until_free()
    run = listener.accept(event, sender, reply_to)
    if run is not None:
        listener.keep(run)
