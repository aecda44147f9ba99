"""Answers over AMQP: a message in the answer queue answers the hook that its correlation ID names.

A message is acknowledged after it was accepted, or moved to the queue of refused answers with the
reason, which is also recorded with the delivery of the hook notification. Until then, the broker
redelivers it if the connection is lost, perhaps to another process.
"""

import asyncio
from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass, replace
from uuid import UUID

import orjson
import structlog
from aio_pika import DeliveryMode, Message
from aio_pika.abc import AbstractConnection, AbstractIncomingMessage
from structlog.typing import FilteringBoundLogger

from channels.amqp.broker import Broker, NotPublished
from channels.amqp.connection import LOST, raise_when_cancelled, watch_consumers
from channels.ignored_answers import IgnoredAnswer, IgnoredReason, kept_text
from engine.errors import Unavailable
from engine.loop_guard import Fault, Supervisor
from engine.words import Json

log: FilteringBoundLogger = structlog.get_logger()


@dataclass(frozen=True, slots=True)
class AcceptedAnswer:
    """An answer that counts. deadline: of the hook, after the answer, as its events have it."""

    deadline: str | None


#: Submits an answer: hook id, token, the answer, the user of the broker. Raises Unavailable if it
#: cannot be stored now.
TakeAnswer = Callable[
    [UUID, str, Mapping[str, Json], str], Awaitable[AcceptedAnswer | IgnoredAnswer]
]

#: Records an answer to a hook that does not count. Raises Unavailable.
RecordIgnored = Callable[[UUID, IgnoredAnswer], Awaitable[None]]

#: The header of a refused message that contains the reason.
REASON = "headgate-reason"
#: The maximum size of a message in bytes.
MAX_BODY_BYTES = 262_144
#: Seconds between attempts to process an answer while the database is unavailable.
PAUSE = 1.0
#: In place of a token that an answer repeats outside of `token`.
HIDDEN = "******"


class InvalidMessage(Exception):
    """The message is not a valid answer; the text has the reason."""


class Answers:
    """at_once: how many messages are processed concurrently. ignored: counts messages that were
    moved to the queue of refused answers."""

    def __init__(
        self,
        broker: Broker,
        take: TakeAnswer,
        record: RecordIgnored,
        *,
        at_once: int = 16,
        ignored: Callable[[IgnoredReason], None] = lambda _: None,
        supervisor: Supervisor | None = None,
    ) -> None:
        self._broker = broker
        self._take = take
        self._record = record
        self._at_once = at_once
        self._ignored = ignored
        self._guard = (supervisor or Supervisor()).guard("amqp.answer")

    async def consume(self, connection: AbstractConnection) -> None:
        """Process messages until cancelled. The broker redelivers those that are not
        acknowledged."""
        async with connection.channel() as channel:
            await channel.set_qos(prefetch_count=self._at_once)
            queue = await channel.get_queue(self._broker.settings.answers)
            cancelled = await watch_consumers(channel)
            async with asyncio.TaskGroup() as group, queue.iterator() as messages:
                group.create_task(raise_when_cancelled(cancelled, queue.name))
                async for message in messages:
                    group.create_task(self._process_guarded(message))
                raise ConnectionResetError(f"the queue {queue.name} was closed")

    async def _process_guarded(self, message: AbstractIncomingMessage) -> None:
        """Process a message. After an internal error, move it to the queue of refused answers."""
        known = {"message": message.message_id, "hook": message.correlation_id}
        fault = await self._guard.attempt(_unless_lost(message, self._process(message)), **known)
        if isinstance(fault, Fault):
            move = _unless_lost(message, self._give_up(message, fault))
            await self._guard.attempt(move, **known)

    async def _give_up(self, message: AbstractIncomingMessage, fault: Fault) -> None:
        try:
            await self._move_to_refused(message, str(fault))
        except Exception:
            await message.reject(requeue=False)
            raise
        self._ignored(IgnoredReason.INTERNAL_ERROR)
        await message.ack()

    async def _process(self, message: AbstractIncomingMessage) -> None:
        outcome = await self._submit(message)
        try:
            await self._reply(message, outcome)
            if isinstance(outcome, IgnoredAnswer):
                await self._move_to_refused(message, outcome.reason)
                self._ignored(outcome.kind)
        except NotPublished as error:
            log.warning("amqp.answer.requeued", message=message.message_id, reason=str(error))
            await message.nack(requeue=True)
        else:
            await message.ack()

    async def _submit(self, message: AbstractIncomingMessage) -> AcceptedAnswer | IgnoredAnswer:
        """Submit an answer. Records one that does not count."""
        while True:
            try:
                outcome = await self._judge(message)
                if isinstance(outcome, IgnoredAnswer):
                    await self._record_ignored(message, outcome)
                return outcome
            except Unavailable as error:
                log.warning("amqp.answer.deferred", hook=message.correlation_id, reason=str(error))
                await asyncio.sleep(PAUSE)

    async def _judge(self, message: AbstractIncomingMessage) -> AcceptedAnswer | IgnoredAnswer:
        try:
            hook_id, token, answer = read(message.correlation_id, message.body)
        except InvalidMessage as error:
            reason = kept_text(str(error))
            return IgnoredAnswer(reason, IgnoredReason.MALFORMED, 400, "Invalid")
        submission = self._take(hook_id, token, answer, message.user_id or "")
        outcome = await self._guard.attempt(submission, hook=str(hook_id))
        if isinstance(outcome, Fault):
            # Redelivery would raise the same error again.
            reason = str(outcome)
            return IgnoredAnswer(reason, IgnoredReason.INTERNAL_ERROR, 500, "InternalError")
        if isinstance(outcome, AcceptedAnswer) or outcome.subscription_id is None:
            return outcome
        reason = kept_text(outcome.reason.replace(token, HIDDEN))
        return replace(
            outcome, reason=reason, answer=recordable_text(answer).replace(token, HIDDEN)
        )

    async def _record_ignored(
        self, message: AbstractIncomingMessage, ignored: IgnoredAnswer
    ) -> None:
        """Record the answer. If that fails, the message is moved to the queue anyway."""
        try:
            hook_id = hook_of(message.correlation_id)
        except InvalidMessage:
            return
        await self._guard.attempt(self._record(hook_id, ignored), hook=str(hook_id))

    async def _reply(
        self, message: AbstractIncomingMessage, outcome: AcceptedAnswer | IgnoredAnswer
    ) -> None:
        """Send the result to the queue in `reply_to`, if any. A missing queue is only logged."""
        if not message.reply_to:
            return
        ignored = outcome if isinstance(outcome, IgnoredAnswer) else None
        document = {
            "accepted": ignored is None,
            "reason": ignored.reason if ignored else None,
            "status": ignored.status if ignored else None,
            "type": ignored.error_type if ignored else None,
            "deadline": outcome.deadline if isinstance(outcome, AcceptedAnswer) else None,
            "message_id": message.message_id,
        }
        reply = Message(
            orjson.dumps(document),
            content_type="application/json",
            correlation_id=message.correlation_id,
        )
        try:
            await self._broker.publish("", message.reply_to, reply)
        except NotPublished as error:
            log.info("amqp.answer.reply_failed", queue=message.reply_to, reason=str(error))

    async def _move_to_refused(self, message: AbstractIncomingMessage, reason: str) -> None:
        log.info("amqp.answer.refused", hook=message.correlation_id, reason=reason)
        kept = Message(
            message.body,
            content_type=message.content_type,
            delivery_mode=DeliveryMode.PERSISTENT,
            correlation_id=message.correlation_id,
            message_id=message.message_id,
            headers={REASON: reason},
        )
        await self._broker.publish("", self._broker.settings.refused, kept)


async def _unless_lost(message: AbstractIncomingMessage, work: Awaitable[None]) -> None:
    """Ignore an error that a lost connection caused: the broker redelivers the message."""
    try:
        await work
    except (*LOST, RuntimeError):
        if not _is_lost(message):
            raise


def _is_lost(message: AbstractIncomingMessage) -> bool:
    try:
        return message.channel.is_closed
    except RuntimeError:  # aio-pika's for a channel that is closed
        return True


def hook_of(correlation_id: str | None) -> UUID:
    """The hook that a message answers. Raises InvalidMessage."""
    try:
        return UUID(correlation_id or "")
    except ValueError:
        raise InvalidMessage("the correlation id is not the id of a hook") from None


def recordable_text(answer: Mapping[str, Json]) -> str:
    """The part of an answer that is recorded: decision and reason. The rest may be secret."""
    kept = {name: answer[name] for name in ("decision", "reason") if name in answer}
    return orjson.dumps(kept).decode()


def read(correlation_id: str | None, body: bytes) -> tuple[UUID, str, Mapping[str, Json]]:
    """Hook id, token, and the answer without the token. Raises InvalidMessage."""
    hook_id = hook_of(correlation_id)
    if len(body) > MAX_BODY_BYTES:
        raise InvalidMessage(f"it is longer than {MAX_BODY_BYTES} bytes")
    try:
        document = orjson.loads(body)
    except orjson.JSONDecodeError as error:
        raise InvalidMessage(f"the body is not JSON: {error}") from None
    if not isinstance(document, dict):
        raise InvalidMessage("the body is not an object")
    token = document.pop("token", None)
    if not isinstance(token, str) or not token:
        raise InvalidMessage("it has no `token`; include the token of the hook notification")
    return hook_id, token, document
