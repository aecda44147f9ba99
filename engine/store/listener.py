"""LISTEN over one connection of a process, which is opened again when it is lost."""

import asyncio
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from dataclasses import dataclass

from engine import errors
from engine.back_off import BackOff
from engine.store.connection import CONNECT_TIMEOUT, Connection, connect_with
from engine.store.database_errors import FAILURES, connection_errors
from engine.store.server_connector import HOST_TIMEOUT, NoPrimary, ServerConnector


@dataclass(frozen=True, slots=True)
class Probing:
    """interval: seconds of silence after which a query checks the connection. timeout: in which it
    must be answered. reconnect: pauses between attempts to reconnect."""

    interval: float
    timeout: float
    reconnect: BackOff


#: Of a URL with one host; of one with several, where another one may take over.
ONE_HOST = Probing(30.0, CONNECT_TIMEOUT, BackOff(0.1, 5.0))
SEVERAL_HOSTS = Probing(2.0, HOST_TIMEOUT, BackOff(0.1, 1.0))


class NotificationListener:
    """The connection is open while there are listeners."""

    def __init__(self, connector: ServerConnector) -> None:
        self._connector = connector
        self._callbacks: dict[str, list[Callable[[], None]]] = {}
        #: None: there are no listeners, or it was lost and is being opened again.
        self._connection: Connection | None = None
        self._task: asyncio.Task[None] | None = None
        self._starting = asyncio.Lock()

    @property
    def _probing(self) -> Probing:
        return SEVERAL_HOSTS if self._connector.hosts else ONE_HOST

    @asynccontextmanager
    async def listen(self, channel: str, callback: Callable[[], None]) -> AsyncIterator[None]:
        """Call back at each notification on a channel, and after each reconnection.

        Raises Unavailable if this is the first listener and no connection can be opened.
        """
        callbacks = self._callbacks.setdefault(channel, [])
        callbacks.append(callback)
        try:
            async with self._starting:
                await self._begin(channel)
            yield
        finally:
            callbacks.remove(callback)
            if not any(self._callbacks.values()):
                await self._end()

    async def _begin(self, channel: str) -> None:
        if self._task is None:
            connection = await self._connect()
            self._task = asyncio.create_task(self._keep(connection), name="listening")
        elif self._connection is not None:
            try:
                await self._connection.add_listener(channel, self._notify)
            except FAILURES:
                self._connection.terminate()  # the loop opens another, also for this channel

    async def _end(self) -> None:
        task, connection = self._task, self._connection
        self._task = self._connection = None
        if task is not None:
            task.cancel()
            await asyncio.wait([task])
        if connection is not None:
            connection.terminate()  # in case the task has not started

    async def _connect(self) -> Connection:
        connection = await connect_with(self._connector)
        listened: set[str] = set()
        try:
            with connection_errors():
                # Listeners can be added meanwhile.
                while more := self._callbacks.keys() - listened:
                    for channel in more:  # few; asyncpg adds one listener at a time
                        await connection.add_listener(channel, self._notify)
                    listened |= more
        except BaseException:
            connection.terminate()
            raise
        self._connection = connection
        return connection

    def _notify(self, _: object, _pid: int, channel: str, _payload: object) -> None:
        for callback in self._callbacks[channel]:
            callback()

    async def _keep(self, connection: Connection) -> None:
        while True:
            try:
                await _until_lost(connection, self._probing)
            finally:
                if self._connection is connection:
                    self._connection = None
                connection.terminate()
            connection = await self._reconnect()
            for channel in self._callbacks.values():
                for callback in channel:
                    callback()

    async def _reconnect(self) -> Connection:
        failures = 0
        while True:
            try:
                return await self._connect()
            except errors.Unavailable as error:
                if isinstance(error.__cause__, NoPrimary) and not error.__cause__.is_up:
                    self._connector.close_all()  # statements may wait for a dead host
                failures += 1
                await asyncio.sleep(self._probing.reconnect.ceiling(failures))


async def _until_lost(connection: Connection, probing: Probing) -> None:
    """Return when the connection is lost. A query now and then detects a silent network."""
    lost = asyncio.Event()
    connection.add_termination_listener(lambda _: lost.set())
    while not (lost.is_set() or connection.is_closed()):
        try:
            async with asyncio.timeout(probing.interval):
                await lost.wait()
        except TimeoutError:
            try:
                await connection.execute("select 1", timeout=probing.timeout)
            except FAILURES:
                return
