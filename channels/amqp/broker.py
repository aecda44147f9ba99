"""The connection to a broker: connects, declares exchanges and queues, and reconnects.

The robust connections of aio-pika support one address only and do not fail publications that were
active when the connection was lost, so this is a loop over plain connections.
"""

import asyncio
import ssl
from collections.abc import Callable, Coroutine, Sequence
from dataclasses import dataclass, field

import aio_pika
import structlog
from aio_pika import ExchangeType, Message
from aio_pika.abc import AbstractChannel, AbstractConnection, AbstractExchange
from aio_pika.exceptions import (
    AMQPError,
    ChannelNotFoundEntity,
    ChannelPreconditionFailed,
    DeliveryError,
    PublishError,
)
from pamqp.common import FieldTable
from pamqp.exceptions import PAMQPException
from structlog.typing import FilteringBoundLogger
from yarl import URL

from channels.amqp.message_properties import replace_property_decoder
from engine.back_off import BackOff
from engine.loops import Supervisor, wait_at_most

log: FilteringBoundLogger = structlog.get_logger()

#: Errors of a lost connection.
LOST = (AMQPError, OSError, PAMQPException)
#: Seconds for closing a connection.
CLOSING = 2.0

QUORUM: FieldTable = {"x-queue-type": "quorum"}
#: Of the queue of refused answers: the newest messages and bytes that it keeps.
REFUSED: FieldTable = {
    "x-max-length": 10_000, "x-max-length-bytes": 100_000_000, "x-overflow": "drop-head",
}  # fmt: skip

replace_property_decoder()


@dataclass(frozen=True, slots=True)
class BrokerSettings:
    """urls: of the nodes of one cluster, tried in turn. Times in seconds.

    exchanges: declared at the start; others are declared at the first publication. answers: the
    queue of answers; refused ones go to ``<answers>.refused``. tls: for amqps:// only; None: the
    system's certificate authorities, no client certificate. unrouted: the exchange and queue of
    messages for which no queue is bound. kept: the newest messages that this queue keeps.
    """

    urls: Sequence[str] = field(repr=False)
    exchanges: Sequence[str] = ()
    answers: str = "headgate.answers"
    unrouted: str = "headgate.unrouted"
    kept: int = 10_000
    tls: ssl.SSLContext | None = field(default=None, repr=False)
    connect_timeout: float = 5.0
    publish_timeout: float = 10.0
    first_retry: float = 0.2
    max_retry: float = 10.0

    @property
    def refused(self) -> str:
        return f"{self.answers}.refused"


class NotPublished(Exception):
    """The broker has not confirmed a message."""


Consumer = Callable[[AbstractConnection], Coroutine[None, None, None]]


class Broker:
    def __init__(self, settings: BrokerSettings, supervisor: Supervisor | None = None) -> None:
        self.settings = settings
        self._guard = (supervisor or Supervisor()).guard(
            "amqp", first=settings.first_retry, max_pause=settings.max_retry
        )
        self._failures = 0
        self._link: _Link | None = None
        self._reason = "not connected yet"

    @property
    def ready(self) -> bool:
        """Whether there is a connection."""
        return self._link is not None

    async def run(self, stop: asyncio.Event, consume: Consumer | None = None) -> None:
        """Keep a connection until `stop` is set. consume: runs on each connection while it is
        open."""

        async def turn() -> None:
            await self._connected(stop, consume)

        await self._guard.run(turn, stop)

    async def _connected(self, stop: asyncio.Event, consume: Consumer | None) -> None:
        """Open one connection and use it until it ends."""
        urls, failures = self.settings.urls, self._failures
        url = URL(urls[failures % len(urls)])
        self._failures = failures + 1  # reset when the connection works
        try:
            connection = await self._connect(url)
        except (*LOST, TimeoutError) as error:
            self._lost(url, f"cannot connect: {_error_text(error)}")
            back_off = BackOff(self.settings.first_retry, self.settings.max_retry)
            await wait_at_most(stop, back_off.ceiling(self._failures + 1))
            return
        try:
            await self._use(connection, url, stop, consume)
            self._failures = 0
        except* LOST as group:
            self._lost(url, _error_text(group.exceptions[0]))
            self._failures = 1
            await wait_at_most(stop, self.settings.first_retry)
        finally:
            self._link = None
            await _closed(connection)

    async def probe(self) -> str | None:
        """Why no node of the cluster can be reached; None: a node can be reached."""
        why = None
        for text in self.settings.urls:
            try:
                connection = await self._connect(URL(text))
            except (*LOST, TimeoutError) as error:
                why = _error_text(error)
            else:
                await _closed(connection)
                return None
        return why

    async def _connect(self, url: URL) -> AbstractConnection:
        async with asyncio.timeout(self.settings.connect_timeout):
            return await aio_pika.connect(
                str(url),
                ssl_context=self.settings.tls if url.scheme == "amqps" else None,
                client_properties={"connection_name": "headgate"},
            )

    async def publish(self, exchange: str, routing_key: str, message: Message) -> None:
        """Publish and wait for the broker's confirmation. Raises NotPublished with the reason."""
        link = self._link
        if link is None:
            raise NotPublished(f"no connection to the broker: {self._reason}")
        try:
            async with asyncio.timeout(self.settings.publish_timeout):
                target = await link.exchange(exchange)
                await target.publish(message, routing_key, mandatory=True)
        except PublishError:
            raise NotPublished(f'no queue is bound for "{routing_key}"') from None
        except DeliveryError:
            raise NotPublished("the broker rejected the message") from None
        except TimeoutError:
            seconds = self.settings.publish_timeout
            raise NotPublished(f"the broker did not confirm it within {seconds:g} s") from None
        except (*LOST, RuntimeError) as error:  # aiormq raises it for a closed connection
            raise NotPublished(f"the connection was lost: {_error_text(error)}") from None

    def _lost(self, url: URL, why: str) -> None:
        if why != self._reason:
            log.warning("amqp.disconnected", broker=f"{url.host}:{url.port or 5672}", reason=why)
        self._reason = why

    async def _use(
        self,
        connection: AbstractConnection,
        url: URL,
        stop: asyncio.Event,
        consume: Consumer | None,
    ) -> None:
        await self._declare(connection)
        link = _Link(connection, self.settings.unrouted)
        for name in self.settings.exchanges:
            await link.exchange(name)
        self._link = link
        self._reason = "the connection was lost"
        log.info("amqp.connected", broker=f"{url.host}:{url.port or 5672}")
        async with asyncio.TaskGroup() as group:
            consuming = group.create_task(consume(connection)) if consume else None
            stopping = group.create_task(stop.wait())
            ended = asyncio.ensure_future(connection.closed())
            await asyncio.wait((stopping, ended), return_when=asyncio.FIRST_COMPLETED)
            stopping.cancel()
            if consuming is not None:
                consuming.cancel()

    async def _declare(self, connection: AbstractConnection) -> None:
        """Declare the queues of answers, refused answers and unrouted messages."""
        settings = self.settings
        async with connection.channel() as channel:
            unrouted = await channel.declare_exchange(
                settings.unrouted, ExchangeType.FANOUT, durable=True
            )
            await _ensure_queue(connection, settings.answers, QUORUM)
            await _ensure_queue(connection, settings.refused, {**QUORUM, **REFUSED})
            newest: FieldTable = {"x-max-length": settings.kept, "x-overflow": "drop-head"}
            await _ensure_queue(connection, settings.unrouted, {**QUORUM, **newest})
            queue = await channel.get_queue(settings.unrouted, ensure=False)
            await queue.bind(unrouted)


async def _ensure_queue(connection: AbstractConnection, name: str, arguments: FieldTable) -> None:
    """Declare a durable queue. One that exists with other arguments is used as it is: the broker
    does not change them."""
    try:
        async with connection.channel() as channel:
            await channel.declare_queue(name, durable=True, arguments=arguments)
    except ChannelPreconditionFailed as error:
        async with connection.channel() as channel:
            await channel.get_queue(name)
        remedy = "to change them, stop its users, delete the queue and start again"
        log.warning("amqp.queue_differs", queue=name, reason=_error_text(error), remedy=remedy)


class _Link:
    """An open connection with the exchanges that were found or declared on it."""

    def __init__(self, connection: AbstractConnection, unrouted: str) -> None:
        self._connection = connection
        self._unrouted = unrouted
        self._channel: AbstractChannel | None = None
        self._exchanges: dict[str, AbstractExchange] = {}
        self._opening = asyncio.Lock()

    async def exchange(self, name: str) -> AbstractExchange:
        """name: "" is the default exchange, whose routing keys are names of queues."""
        async with self._opening:
            if self._channel is None or self._channel.is_closed:
                # The broker closes the channel, not the connection, if an exchange was deleted.
                self._exchanges.clear()
                self._channel = await self._connection.channel(on_return_raises=True)
            if not name:
                return self._channel.default_exchange
            if name not in self._exchanges:
                await self._ensure(name)
                self._exchanges[name] = await self._channel.get_exchange(name, ensure=False)
            return self._exchanges[name]

    async def _ensure(self, name: str) -> None:
        """Use an existing exchange unchanged, or declare a durable topic exchange."""
        try:
            async with self._connection.channel() as channel:
                await channel.get_exchange(name)
        except ChannelNotFoundEntity:
            async with self._connection.channel() as channel:
                await channel.declare_exchange(
                    name,
                    ExchangeType.TOPIC,
                    durable=True,
                    arguments={"alternate-exchange": self._unrouted},
                )


async def _closed(connection: AbstractConnection) -> None:
    try:
        async with asyncio.timeout(CLOSING):
            await connection.close()
    except (*LOST, TimeoutError):
        pass  # the connection is unusable either way


def _error_text(error: BaseException) -> str:
    """An error of the library in one line, without the URL, which contains the password."""
    if isinstance(error, OSError) and error.strerror:
        return error.strerror
    text = " ".join(str(part) for part in error.args if isinstance(part, str))
    return text.splitlines()[0][:200] if text and "://" not in text else "the connection failed"
