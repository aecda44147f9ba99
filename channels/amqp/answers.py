"""Answers in: a message on the queue of answers decides the hook that its correlation id names.

Acknowledged once it is decided what becomes of it: taken, or moved to the queue of refused ones
with the reason. Until then it is the broker's, and comes again to whoever is next.
"""

import asyncio
from collections.abc import Awaitable, Callable, Mapping
from uuid import UUID

import orjson
import structlog
from aio_pika import DeliveryMode, Message
from aio_pika.abc import AbstractConnection, AbstractIncomingMessage
from structlog.typing import FilteringBoundLogger

from channels.amqp.broker import Broker, NotPublished
from engine.errors import Unavailable
from engine.words import Json

log: FilteringBoundLogger = structlog.get_logger()

#: Takes an answer: hook id, token, the answer, who sent it as far as the broker knows. Returns why
#: it is refused, or None. Raises Unavailable when it could not be taken now.
TakeAnswer = Callable[[UUID, str, Mapping[str, Json], str], Awaitable[str | None]]

#: The header of a refused message that says why.
REASON = "headgate-reason"
#: Bytes of a message that are read.
LONGEST = 262_144
#: Seconds until an answer that could not be taken is tried again.
PAUSE = 1.0


class Refused(Exception):
    """It is no answer; the text says why."""


class Answers:
    """at_once: how many messages are worked on at the same time."""

    def __init__(self, broker: Broker, take: TakeAnswer, *, at_once: int = 16) -> None:
        self._broker = broker
        self._take = take
        self._at_once = at_once

    async def consume(self, connection: AbstractConnection) -> None:
        """Until cancelled; what was not acknowledged then comes again."""
        async with connection.channel() as channel:
            await channel.set_qos(prefetch_count=self._at_once)
            queue = await channel.get_queue(self._broker.settings.answers)
            async with asyncio.TaskGroup() as group, queue.iterator() as messages:
                async for message in messages:
                    group.create_task(self._settle(message))
                raise ConnectionResetError(f"the queue {queue.name} was closed")

    async def _settle(self, message: AbstractIncomingMessage) -> None:
        refusal = await self._refusal(message)
        try:
            await self._reply(message, refusal)
            if refusal is not None:
                await self._set_aside(message, refusal)
        except NotPublished as error:
            log.warning("amqp.answer.kept", message=message.message_id, reason=str(error))
            await message.nack(requeue=True)
        else:
            await message.ack()

    async def _refusal(self, message: AbstractIncomingMessage) -> str | None:
        try:
            hook_id, token, answer = read(message.correlation_id, message.body)
        except Refused as error:
            return str(error)
        while True:
            try:
                return await self._take(hook_id, token, answer, message.user_id or "")
            except Unavailable as error:
                log.warning("amqp.answer.waits", hook=str(hook_id), reason=str(error))
                await asyncio.sleep(PAUSE)
            except Exception as error:
                # Set aside like any other: one that breaks us is not to come again and again.
                log.exception("amqp.answer.broken", hook=str(hook_id))
                return f"an error of ours: {type(error).__name__}; the log has more"

    async def _reply(self, message: AbstractIncomingMessage, refusal: str | None) -> None:
        """To who wants to know. A queue that is gone is no reason to keep the answer."""
        if not message.reply_to:
            return
        said = {"taken": refusal is None, "reason": refusal}
        reply = Message(
            orjson.dumps(said),
            content_type="application/json",
            correlation_id=message.correlation_id,
        )
        try:
            await self._broker.publish("", message.reply_to, reply)
        except NotPublished as error:
            log.info("amqp.answer.no_reply", queue=message.reply_to, reason=str(error))

    async def _set_aside(self, message: AbstractIncomingMessage, reason: str) -> None:
        log.info("amqp.answer.refused", hook=message.correlation_id, reason=reason)
        kept = Message(
            message.body,
            content_type=message.content_type,
            delivery_mode=DeliveryMode.PERSISTENT,
            correlation_id=message.correlation_id,
            message_id=message.message_id,
            headers={REASON: reason[:2000]},
        )
        await self._broker.publish("", self._broker.settings.refused, kept)


def read(correlation_id: str | None, body: bytes) -> tuple[UUID, str, Mapping[str, Json]]:
    """Hook id, token, and the answer without it. Raises Refused."""
    try:
        hook_id = UUID(correlation_id or "")
    except ValueError:
        raise Refused("the correlation id is not the id of a hook") from None
    if len(body) > LONGEST:
        raise Refused(f"it is longer than {LONGEST} bytes")
    try:
        said = orjson.loads(body)
    except orjson.JSONDecodeError as error:
        raise Refused(f"the body is not JSON: {error}") from None
    if not isinstance(said, dict):
        raise Refused("the body is not an object")
    token = said.pop("token", None)
    if not isinstance(token, str) or not token:
        raise Refused("it has no `token`: that of the hook's notice is to be in it")
    return hook_id, token, said
