"""Receives notifications of providers, and reports the objects that may have changed.

Any number of processes consume one queue. A notification is acknowledged after its objects were
reported, or if it cannot be used; until then, the broker delivers it again after a lost connection.
Notifications that have arrived together are reported together, each object once.
"""

import asyncio
from collections.abc import Awaitable, Callable, Sequence
from dataclasses import dataclass
from enum import StrEnum
from time import monotonic

import structlog
from aio_pika.abc import AbstractConnection, AbstractIncomingMessage
from aio_pika.exceptions import ChannelNotFoundEntity
from pamqp.common import FieldTable
from structlog.typing import FilteringBoundLogger

from channels.amqp.connection import (
    QUORUM,
    BrokerConnection,
    ConnectionSettings,
    answered_within,
    close,
    ensure_queue,
    error_text,
    raise_when_cancelled,
    watch_consumers,
)
from channels.amqp.provider_notifications import (
    ChangedObject,
    InvalidNotification,
    NotificationRule,
    read,
)
from engine.errors import Unavailable
from engine.loop_guard import Fault, Supervisor
from engine.rate_limiter import RateLimiter

log: FilteringBoundLogger = structlog.get_logger()

#: Reports changes. Raises Unavailable if that is not possible now.
ReportChanges = Callable[[Sequence[ChangedObject]], Awaitable[object]]

NAME = "observer.amqp"
#: Notifications of one report.
BATCH = 200
#: Seconds between attempts to report while the database is unavailable.
PAUSE = 1.0
#: Seconds between two attempts to bind the queue to all exchanges.
REBIND = 30.0
#: Lines in the log per second about unusable messages of one exchange.
LOGGED = 1 / 60


class NotificationOutcome(StrEnum):
    """What became of a notification. IGNORED: no rule matches. FAILED: after an internal error."""

    REPORTED = "reported"
    IGNORED = "ignored"
    INVALID = "invalid"
    FAILED = "failed"


@dataclass(frozen=True, slots=True)
class ListenerSettings:
    """queue: bound to each exchange, with the routing keys of each topic. kept: the newest messages
    that it keeps. prefetch: messages that a process receives before it has reported them. rate:
    objects per second that a process reports; 0.0: unlimited."""

    exchanges: Sequence[str]
    topics: Sequence[str]
    rules: Sequence[NotificationRule]
    queue: str = "headgate.observations"
    kept: int = 10_000
    prefetch: int = 200
    rate: float = 0.0


@dataclass(frozen=True, slots=True)
class _Notification:
    message: AbstractIncomingMessage
    changes: Sequence[ChangedObject]


class ProviderNotificationListener:
    """count: counts notifications by outcome. clock: seconds."""

    def __init__(
        self,
        connection: ConnectionSettings,
        settings: ListenerSettings,
        report: ReportChanges,
        *,
        count: Callable[[NotificationOutcome], None] = lambda _: None,
        clock: Callable[[], float] = monotonic,
        supervisor: Supervisor | None = None,
    ) -> None:
        self._settings = settings
        self._timeout = connection.prepare_timeout
        self._report = report
        self._count = count
        self._clock = clock
        supervisor = supervisor or Supervisor()
        self._connection = BrokerConnection(connection, supervisor, NAME)
        self._guard = supervisor.guard(f"{NAME}.notification")
        self._limit = RateLimiter[None](settings.rate)
        self._batch = BATCH if not settings.rate else max(1, min(BATCH, int(settings.rate)))
        self._logged = RateLimiter[tuple[str, str | None]](LOGGED)

    async def run(self, stop: asyncio.Event) -> None:
        """Receive notifications until `stop` is set."""
        await self._connection.run(stop, self._declare, self._consume)

    async def _declare(self, connection: AbstractConnection) -> None:
        limits: FieldTable = {"x-max-length": self._settings.kept, "x-overflow": "drop-head"}
        await ensure_queue(connection, self._settings.queue, {**QUORUM, **limits})

    async def _consume(self, connection: AbstractConnection) -> None:
        """Process notifications until cancelled."""
        arrived: asyncio.Queue[AbstractIncomingMessage] = asyncio.Queue(self._settings.prefetch)
        async with answered_within(self._timeout, f"open the queue {self._settings.queue}"):
            channel = await connection.channel()
            await channel.set_qos(prefetch_count=self._settings.prefetch)
            queue = await channel.get_queue(self._settings.queue)
            cancelled = await watch_consumers(channel)
            messages = queue.iterator()
            await messages.consume()
        async with channel, asyncio.TaskGroup() as group:
            group.create_task(raise_when_cancelled(cancelled, queue.name))
            group.create_task(self._keep_bound(connection))
            group.create_task(self._process_arrived(arrived))
            async with messages:
                async for message in messages:
                    await arrived.put(message)
            raise ConnectionResetError(f"the queue {queue.name} was closed")

    async def _keep_bound(self, connection: AbstractConnection) -> None:
        """Bind the queue to the exchanges of the providers. These declare them, perhaps later or
        once more: an exchange with other arguments would stop the provider."""
        missing: set[str] = set()
        while True:
            for exchange in self._settings.exchanges:
                if await self._bind(connection, exchange):
                    missing.discard(exchange)
                elif exchange not in missing:
                    missing.add(exchange)
                    log.info(f"{NAME}.exchange_missing", exchange=exchange, again_in=REBIND)
            await asyncio.sleep(REBIND)

    async def _bind(self, connection: AbstractConnection, exchange: str) -> bool:
        try:
            async with (
                answered_within(self._timeout, f"bind the queue to {exchange}"),
                connection.channel() as channel,
            ):
                queue = await channel.get_queue(self._settings.queue, ensure=False)
                for topic in self._settings.topics:
                    await queue.bind(exchange, f"{topic}.#")
        except ChannelNotFoundEntity:
            return False
        except ConnectionError:
            await close(connection)  # else, the consumer would wait for an answer when it ends
            raise
        return True

    async def _process_arrived(self, arrived: asyncio.Queue[AbstractIncomingMessage]) -> None:
        while True:
            messages = [await arrived.get()]
            while len(messages) < self._batch and not arrived.empty():
                messages.append(arrived.get_nowait())
            await self._process(messages)
            try:
                await messages[-1].ack(multiple=True)
            except RuntimeError as error:  # aio-pika's for a channel that is closed
                raise ConnectionResetError(error_text(error)) from None

    async def _process(self, messages: Sequence[AbstractIncomingMessage]) -> None:
        """Report the changes of notifications."""
        read_ones = [self._read(message) for message in messages]
        found = [one for one in read_ones if one is not None]
        while found:
            try:
                return await self._guard.split(
                    found,
                    self._report_all,
                    self._report_failure,
                    lambda one: _source_of(one.message),
                )
            except Unavailable as error:
                self._log("deferred", str(error))
                await asyncio.sleep(PAUSE)

    def _read(self, message: AbstractIncomingMessage) -> _Notification | None:
        """None: it cannot be used, and is counted."""
        try:
            changes = read(message.body, self._settings.rules)
        except InvalidNotification as error:
            self._count(NotificationOutcome.INVALID)
            self._log("invalid", str(error), **_source_of(message))
            return None
        except Exception as error:
            self._count(NotificationOutcome.FAILED)
            self._guard.report(error, **_source_of(message))
            return None
        if changes is None:
            self._count(NotificationOutcome.IGNORED)
            return None
        return _Notification(message, changes)

    async def _report_all(self, notifications: Sequence[_Notification]) -> None:
        changes = list(dict.fromkeys(one for each in notifications for one in each.changes))
        seconds = self._limit.wait(None, self._clock())
        while seconds > 0:
            await asyncio.sleep(seconds)
            seconds = self._limit.wait(None, self._clock())
        self._limit.charge(None, self._clock(), len(changes))
        await self._report(changes)
        for _ in notifications:
            self._count(NotificationOutcome.REPORTED)

    async def _report_failure(self, _: _Notification, fault: Fault) -> None:
        self._count(NotificationOutcome.FAILED)
        self._log("lost", str(fault))

    def _log(self, what: str, reason: str, **fields: str | None) -> None:
        """Log at most once a minute for each exchange: a provider can send many such messages."""
        if self._logged.spend((what, fields.get("exchange")), self._clock()) == 0:
            log.warning(f"{NAME}.{what}", reason=reason, **fields)


def _source_of(message: AbstractIncomingMessage) -> dict[str, str | None]:
    return {"exchange": message.exchange, "routing_key": message.routing_key}
