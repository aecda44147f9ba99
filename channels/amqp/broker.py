"""The connection to a broker: made, declared upon, watched, and made again when it is lost.

aio-pika's robust connections repeat declarations, but know one address only and leave publications
that were under way to whoever asked. Here all of it is one loop over plain connections.
"""

import asyncio
import ssl
from collections.abc import Callable, Coroutine, Sequence
from dataclasses import dataclass, field

import aio_pika
import structlog
from aio_pika import ExchangeType, Message
from aio_pika.abc import AbstractChannel, AbstractConnection, AbstractExchange
from aio_pika.exceptions import AMQPError, ChannelNotFoundEntity, DeliveryError, PublishError
from pamqp.common import FieldTable
from pamqp.exceptions import PAMQPException
from structlog.typing import FilteringBoundLogger
from yarl import URL

from engine.back_off import BackOff
from engine.loops import Supervisor, wait_at_most

log: FilteringBoundLogger = structlog.get_logger()

#: What goes wrong with a connection, whoever notices.
LOST = (AMQPError, OSError, PAMQPException)
#: Seconds for the orderly end of a connection.
CLOSING = 2.0

QUORUM: FieldTable = {"x-queue-type": "quorum"}


@dataclass(frozen=True, slots=True)
class BrokerSettings:
    """urls: of the nodes of one cluster, tried in turn. Times in seconds.

    exchanges: those that are there from the beginning; others when something is published.
    answers: the queue that answers come in; what is refused goes to ``<answers>.refused``.
    tls: for amqps:// only; None: the system's authorities, and no certificate of our own.
    unrouted: what no queue is bound for is kept there, at most so many messages, the newest.
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
    """The broker has it not, or has not said so."""


Consumer = Callable[[AbstractConnection], Coroutine[None, None, None]]


class Broker:
    def __init__(self, settings: BrokerSettings, supervisor: Supervisor | None = None) -> None:
        self.settings = settings
        self._guard = (supervisor or Supervisor()).guard(
            "amqp", first=settings.first_retry, longest=settings.max_retry
        )
        self._failures = 0
        self._link: _Link | None = None
        self._why = "it has not been reached yet"

    @property
    def ready(self) -> bool:
        """Whether a connection stands."""
        return self._link is not None

    async def run(self, stop: asyncio.Event, consume: Consumer | None = None) -> None:
        """Keep a connection until told to stop. consume: works on each as long as it stands."""

        async def turn() -> None:
            await self._connected(stop, consume)

        await self._guard.run(turn, stop)

    async def _connected(self, stop: asyncio.Event, consume: Consumer | None) -> None:
        """One connection, from its beginning to its end."""
        urls, failures = self.settings.urls, self._failures
        url = URL(urls[failures % len(urls)])
        self._failures = failures + 1  # until it stands
        try:
            connection = await self._connect(url)
        except (*LOST, TimeoutError) as error:
            self._lost(url, f"it cannot be reached: {_words(error)}")
            back_off = BackOff(self.settings.first_retry, self.settings.max_retry)
            await wait_at_most(stop, back_off.ceiling(self._failures + 1))
            return
        try:
            await self._use(connection, url, stop, consume)
            self._failures = 0
        except* LOST as group:
            self._lost(url, _words(group.exceptions[0]))
            self._failures = 1
            await wait_at_most(stop, self.settings.first_retry)
        finally:
            self._link = None
            await _closed(connection)

    async def probe(self) -> str | None:
        """Why no node of the cluster can be reached; None: one can."""
        why = None
        for text in self.settings.urls:
            try:
                connection = await self._connect(URL(text))
            except (*LOST, TimeoutError) as error:
                why = _words(error)
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
        """Until the broker confirms it. Raises NotPublished with the reason."""
        link = self._link
        if link is None:
            raise NotPublished(f"the broker is away: {self._why}")
        try:
            async with asyncio.timeout(self.settings.publish_timeout):
                there = await link.exchange(exchange)
                await there.publish(message, routing_key, mandatory=True)
        except PublishError:
            raise NotPublished(f'no queue is there for "{routing_key}"') from None
        except DeliveryError:
            raise NotPublished("the broker did not take it") from None
        except TimeoutError:
            seconds = self.settings.publish_timeout
            raise NotPublished(f"the broker did not confirm it within {seconds:g} s") from None
        except (*LOST, RuntimeError) as error:  # aiormq's for a connection that is closed
            raise NotPublished(f"the connection was lost: {_words(error)}") from None

    def _lost(self, url: URL, why: str) -> None:
        if why != self._why:
            log.warning("amqp.away", broker=f"{url.host}:{url.port or 5672}", reason=why)
        self._why = why

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
        self._why = "the connection was lost"
        log.info("amqp.ready", broker=f"{url.host}:{url.port or 5672}")
        async with asyncio.TaskGroup() as group:
            consuming = group.create_task(consume(connection)) if consume else None
            stopping = group.create_task(stop.wait())
            ended = asyncio.ensure_future(connection.closed())
            await asyncio.wait((stopping, ended), return_when=asyncio.FIRST_COMPLETED)
            stopping.cancel()
            if consuming is not None:
                consuming.cancel()

    async def _declare(self, connection: AbstractConnection) -> None:
        """The queues that are ours: of answers, of those refused, and of what nobody waits for."""
        settings = self.settings
        async with connection.channel() as channel:
            await channel.declare_queue(settings.answers, durable=True, arguments=QUORUM)
            await channel.declare_queue(settings.refused, durable=True, arguments=QUORUM)
            unrouted = await channel.declare_exchange(
                settings.unrouted, ExchangeType.FANOUT, durable=True
            )
            newest: FieldTable = {"x-max-length": settings.kept, "x-overflow": "drop-head"}
            queue = await channel.declare_queue(
                settings.unrouted, durable=True, arguments={**QUORUM, **newest}
            )
            await queue.bind(unrouted)


class _Link:
    """A connection that stands, and what was found or declared on it to publish to."""

    def __init__(self, connection: AbstractConnection, unrouted: str) -> None:
        self._connection = connection
        self._unrouted = unrouted
        self._channel: AbstractChannel | None = None
        self._exchanges: dict[str, AbstractExchange] = {}
        self._opening = asyncio.Lock()

    async def exchange(self, name: str) -> AbstractExchange:
        """ "" is the broker's own, which takes the name of a queue as the key."""
        async with self._opening:
            if self._channel is None or self._channel.is_closed:
                # A broker closes the channel when an exchange is gone, not the connection.
                self._exchanges.clear()
                self._channel = await self._connection.channel(on_return_raises=True)
            if not name:
                return self._channel.default_exchange
            if name not in self._exchanges:
                await self._make_sure(name)
                self._exchanges[name] = await self._channel.get_exchange(name, ensure=False)
            return self._exchanges[name]

    async def _make_sure(self, name: str) -> None:
        """An exchange that is there is used as it is; else it becomes a durable topic exchange."""
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
        pass  # it is closed then, as far as we are concerned


def _words(error: BaseException) -> str:
    """An error of the library in one line, never with the address and its password."""
    if isinstance(error, OSError) and error.strerror:
        return error.strerror
    said = " ".join(str(part) for part in error.args if isinstance(part, str))
    return said.splitlines()[0][:200] if said and "://" not in said else type(error).__name__
