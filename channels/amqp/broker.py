"""The connection to the broker of events and answers: declares exchanges and queues, and publishes
messages."""

import asyncio
from collections.abc import Sequence
from dataclasses import dataclass

from aio_pika import ExchangeType, Message
from aio_pika.abc import AbstractChannel, AbstractConnection, AbstractExchange
from aio_pika.exceptions import ChannelNotFoundEntity, DeliveryError, PublishError
from pamqp.common import FieldTable

from channels.amqp.connection import (
    LOST,
    QUORUM,
    BrokerConnection,
    ConnectionSettings,
    Consumer,
    ensure_queue,
    error_text,
    rejected_requests,
)
from engine.loop_guard import Supervisor

#: Of the queue of refused answers: the newest messages and bytes that it keeps.
REFUSED: FieldTable = {
    "x-max-length": 10_000, "x-max-length-bytes": 100_000_000, "x-overflow": "drop-head",
}  # fmt: skip


@dataclass(frozen=True, slots=True)
class BrokerSettings(ConnectionSettings):
    """exchanges: declared at the start; others are declared at the first publication. answers: the
    queue of answers; refused ones go to ``<answers>.refused``. unrouted: the exchange and queue of
    messages for which no queue is bound. kept: the newest messages that this queue keeps.
    """

    exchanges: Sequence[str] = ()
    answers: str = "headgate.answers"
    unrouted: str = "headgate.unrouted"
    kept: int = 10_000
    publish_timeout: float = 10.0

    @property
    def refused(self) -> str:
        return f"{self.answers}.refused"


class NotPublished(Exception):
    """The broker has not confirmed a message."""


class Broker:
    def __init__(self, settings: BrokerSettings, supervisor: Supervisor | None = None) -> None:
        self.settings = settings
        self._connection = BrokerConnection(settings, supervisor)
        self._link: _Link | None = None

    async def run(self, stop: asyncio.Event, consume: Consumer | None = None) -> None:
        """Keep a connection until `stop` is set. consume: runs on each connection while it is
        open."""
        await self._connection.run(stop, self._prepare, consume)

    async def publish(self, exchange: str, routing_key: str, message: Message) -> None:
        """Publish and wait for the broker's confirmation. Raises NotPublished with the reason."""
        link = self._link
        if link is None or not self._connection.is_open:
            raise NotPublished(f"no connection to the broker: {self._connection.reason}")
        try:
            async with asyncio.timeout(self.settings.publish_timeout):
                with rejected_requests():
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
            raise NotPublished(f"the connection was lost: {error_text(error)}") from None

    async def _prepare(self, connection: AbstractConnection) -> None:
        await self._declare(connection)
        link = _Link(connection, self.settings.unrouted)
        for name in self.settings.exchanges:
            await link.exchange(name)
        self._link = link

    async def _declare(self, connection: AbstractConnection) -> None:
        """Declare the queues of answers, refused answers and unrouted messages."""
        settings = self.settings
        async with connection.channel() as channel:
            unrouted = await channel.declare_exchange(
                settings.unrouted, ExchangeType.FANOUT, durable=True
            )
            await ensure_queue(connection, settings.answers, QUORUM)
            await ensure_queue(connection, settings.refused, {**QUORUM, **REFUSED})
            newest: FieldTable = {"x-max-length": settings.kept, "x-overflow": "drop-head"}
            await ensure_queue(connection, settings.unrouted, {**QUORUM, **newest})
            queue = await channel.get_queue(settings.unrouted, ensure=False)
            await queue.bind(unrouted)


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
