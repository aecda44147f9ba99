"""A connection to a broker that is opened again after it was lost.

The robust connections of aio-pika support one address only and do not fail publications that were
active when the connection was lost, so this is a loop over plain connections.
"""

import asyncio
import ssl
from collections.abc import AsyncIterator, Awaitable, Callable, Coroutine, Iterator, Sequence
from contextlib import asynccontextmanager, contextmanager
from dataclasses import dataclass, field

import aio_pika
import structlog
from aio_pika.abc import AbstractChannel, AbstractConnection
from aio_pika.exceptions import AMQPError, ChannelPreconditionFailed
from pamqp.common import FieldTable
from pamqp.exceptions import PAMQPException
from structlog.typing import FilteringBoundLogger
from yarl import URL

from channels.amqp.message_properties import replace_property_decoder
from engine.back_off import BackOff
from engine.bounded_wait import wait_at_most
from engine.loop_guard import Supervisor

log: FilteringBoundLogger = structlog.get_logger()

#: Errors of a lost connection.
LOST = (AMQPError, OSError, PAMQPException)
#: Seconds for closing a connection.
CLOSING = 2.0

QUORUM: FieldTable = {"x-queue-type": "quorum"}

#: Uses a connection. Cancelled when the connection ends.
Consumer = Callable[[AbstractConnection], Coroutine[None, None, None]]

replace_property_decoder()


@dataclass(frozen=True, slots=True)
class ConnectionSettings:
    """urls: of the nodes of one cluster, tried in turn. tls: for amqps:// only; None: the system's
    certificate authorities, no client certificate. Times in seconds. prepare_timeout: for the
    declarations on a new connection, and for each consumer and binding, which nodes without a
    majority may never answer."""

    urls: Sequence[str] = field(repr=False)
    tls: ssl.SSLContext | None = field(default=None, repr=False)
    connect_timeout: float = 5.0
    prepare_timeout: float = 30.0
    first_retry: float = 0.2
    max_retry: float = 10.0


@asynccontextmanager
async def answered_within(seconds: float, what: str) -> AsyncIterator[None]:
    """Limits requests to a broker that keeps the connection open, but may never answer. what: that
    the broker "did not". Raises ConnectionError if they take longer, or the connection is lost."""
    try:
        async with asyncio.timeout(seconds):
            with rejected_requests():
                yield
    except TimeoutError:
        raise ConnectionError(f"the broker did not {what} within {seconds:g} s") from None


@contextmanager
def rejected_requests() -> Iterator[None]:
    """Raises ConnectionResetError for a request that the library rejects because heartbeats are
    missing: it raises CancelledError, as if this task was cancelled."""
    try:
        yield
    except asyncio.CancelledError:
        task = asyncio.current_task()
        if task is None or task.cancelling():
            raise
        raise ConnectionResetError("the connection was lost") from None


class BrokerConnection:
    """name: the first word of its log events."""

    def __init__(
        self,
        settings: ConnectionSettings,
        supervisor: Supervisor | None = None,
        name: str = "amqp",
    ) -> None:
        self._settings = settings
        self._name = name
        self._guard = (supervisor or Supervisor()).guard(
            name, first=settings.first_retry, max_pause=settings.max_retry
        )
        self._tried = 0  # nodes, which have their turns
        self._failures = 0  # in succession
        self.is_open = False
        #: Why there is no connection.
        self.reason = "not connected yet"

    async def run(
        self,
        stop: asyncio.Event,
        prepare: Callable[[AbstractConnection], Awaitable[None]],
        consume: Consumer | None = None,
    ) -> None:
        """Keep a connection until `stop` is set. prepare: called first on each connection. consume:
        runs on each connection while it is open."""

        async def turn() -> None:
            await self._run_connection(stop, prepare, consume)

        await self._guard.run(turn, stop)

    async def _run_connection(
        self,
        stop: asyncio.Event,
        prepare: Callable[[AbstractConnection], Awaitable[None]],
        consume: Consumer | None,
    ) -> None:
        """Open one connection and use it until it ends."""
        urls = self._settings.urls
        url = URL(urls[self._tried % len(urls)])
        self._tried += 1
        self._failures += 1  # reset after a connection that lasted
        back_off = BackOff(self._settings.first_retry, self._settings.max_retry)
        try:
            connection = await self._connect(url)
        except (*LOST, TimeoutError) as error:
            self._report_loss(url, f"cannot connect: {error_text(error)}")
            await wait_at_most(stop, back_off.ceiling(self._failures + 1))
            return
        try:
            lost: str | None = None
            opened = asyncio.get_running_loop().time()
            try:
                await self._prepare(connection, prepare)
                self.is_open = True
                self.reason = ""
                log.info(f"{self._name}.connected", broker=_address(url))
                await _use(connection, stop, consume)
            except* LOST as group:
                lost = error_text(group.exceptions[0])
            if lost is not None:
                if asyncio.get_running_loop().time() - opened >= self._settings.max_retry:
                    self._failures = 0
                self._report_loss(url, lost)
                await wait_at_most(stop, back_off.ceiling(self._failures + 1))
        finally:
            self.is_open = False
            await close(connection)

    async def _prepare(
        self,
        connection: AbstractConnection,
        prepare: Callable[[AbstractConnection], Awaitable[None]],
    ) -> None:
        """Prepare a new connection. Raises ConnectionError if the broker takes too long."""
        async with answered_within(self._settings.prepare_timeout, "declare exchanges and queues"):
            await prepare(connection)

    async def probe(self) -> str | None:
        """Why no node of the cluster can be reached; None: a node can be reached."""
        why = None
        for text in self._settings.urls:
            try:
                connection = await self._connect(URL(text))
            except (*LOST, TimeoutError) as error:
                why = error_text(error)
            else:
                await close(connection)
                return None
        return why

    async def _connect(self, url: URL) -> AbstractConnection:
        async with asyncio.timeout(self._settings.connect_timeout):
            return await aio_pika.connect(
                str(url),
                ssl_context=self._settings.tls if url.scheme == "amqps" else None,
                client_properties={"connection_name": "headgate"},
            )

    def _report_loss(self, url: URL, why: str) -> None:
        if why != self.reason:
            log.warning(f"{self._name}.disconnected", broker=_address(url), reason=why)
        self.reason = why


async def _use(
    connection: AbstractConnection, stop: asyncio.Event, consume: Consumer | None
) -> None:
    """Use a connection until `stop` is set. Raises the error with which it was lost, those of
    `consume` in a group."""
    loss = _loss_of(connection)
    async with asyncio.TaskGroup() as group:
        consuming = group.create_task(consume(connection)) if consume else None
        stopping = group.create_task(stop.wait())
        try:
            await asyncio.wait((stopping, loss), return_when=asyncio.FIRST_COMPLETED)
        finally:
            stopping.cancel()
            if consuming is not None:
                consuming.cancel()
                await asyncio.wait((consuming,), timeout=CLOSING)
                if not consuming.done():
                    await close(connection)  # fails the requests that it waits for
    if loss.done():
        raise loss.result()


def _loss_of(connection: AbstractConnection) -> asyncio.Future[Exception]:
    """The error with which a connection is lost, once it is. (`closed` of aio-pika is done only
    after a call of `close`.)"""
    loss: asyncio.Future[Exception] = asyncio.get_running_loop().create_future()

    def lose(_: AbstractConnection | None, error: BaseException | None) -> None:
        if not loss.done():
            unknown = ConnectionResetError("the connection was lost")
            loss.set_result(error if isinstance(error, LOST) else unknown)

    connection.close_callbacks.add(lose)
    if not connection.connected.is_set():
        lose(connection, None)
    return loss


async def watch_consumers(channel: AbstractChannel) -> asyncio.Event:
    """Return an event that is set when the broker cancels a consumer of a channel, because its
    queue was deleted or is not available: the iterators of aio-pika would wait for ever."""
    cancelled = asyncio.Event()
    underlay = await channel.get_underlay_channel()
    underlay.on_consumer_cancel_callbacks.add(lambda _: cancelled.set())
    return cancelled


async def raise_when_cancelled(cancelled: asyncio.Event, queue: str) -> None:
    """Raises ConnectionResetError when the broker has cancelled the consumer of a queue."""
    await cancelled.wait()
    raise ConnectionResetError(f"the broker cancelled the consumer of the queue {queue}")


async def ensure_queue(connection: AbstractConnection, name: str, arguments: FieldTable) -> None:
    """Declare a durable queue. One that exists with other arguments is used as it is: the broker
    does not change them."""
    try:
        async with connection.channel() as channel:
            await channel.declare_queue(name, durable=True, arguments=arguments)
    except ChannelPreconditionFailed as error:
        async with connection.channel() as channel:
            await channel.get_queue(name)
        remedy = "to change them, stop its users, delete the queue and start again"
        log.warning("amqp.queue_differs", queue=name, reason=error_text(error), remedy=remedy)


async def close(connection: AbstractConnection) -> None:
    """Close a connection within CLOSING. Its requests that wait for an answer then fail."""
    closing = asyncio.ensure_future(connection.close())
    try:
        await asyncio.wait((closing,), timeout=CLOSING)
    finally:
        closing.cancel()  # not awaited: the library may wait for the broker even then
        closing.add_done_callback(_read_error)


def _read_error(closing: asyncio.Future[None]) -> None:
    """The connection is unusable either way; asyncio logs an error that is not read."""
    if not closing.cancelled():
        closing.exception()


def _address(url: URL) -> str:
    return f"{url.host}:{url.port or 5672}"


def error_text(error: BaseException) -> str:
    """An error of the library in one line (the first one of a group), without the URL, which
    contains the password."""
    while isinstance(error, BaseExceptionGroup):
        error = error.exceptions[0]
    if isinstance(error, OSError) and error.strerror:
        return error.strerror
    text = " ".join(str(part) for part in error.args if isinstance(part, str))
    return text.splitlines()[0][:200] if text and "://" not in text else "the connection failed"
