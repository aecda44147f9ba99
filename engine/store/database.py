"""The one way to PostgreSQL: a pool of connections, transactions, and LISTEN.

Everything that needs the database gets a `Database`; nobody else calls asyncpg's connect. Errors of
asyncpg that mean "not now" become `engine.errors.Unavailable` here; what else asyncpg raises
(a broken constraint, a wrong statement) is a fact about the statement and passes through.

Connections are given back as they are: nothing resets them, which saves a round trip each time.
So whoever borrows one leaves nothing on it: locks are taken for a transaction
(``pg_advisory_xact_lock``), settings are set for a transaction (``set local``), LISTEN has
connections of its own.
"""

import asyncio
from collections.abc import AsyncIterator, Callable, Iterator
from contextlib import asynccontextmanager, contextmanager, suppress
from typing import Any, TypeAlias, cast

import asyncpg
import orjson
import structlog
from asyncpg.pool import PoolConnectionProxy
from structlog.typing import FilteringBoundLogger

from engine import errors
from engine.store.faults import reach
from engine.store.sealing import Hidden, Sealer
from engine.words import Json

log: FilteringBoundLogger = structlog.get_logger()

Connection: TypeAlias = "asyncpg.Connection[asyncpg.Record]"

#: Seconds: to connect; to wait for a free connection; for one statement, measured by us.
CONNECT_TIMEOUT = 10.0
ACQUIRE_TIMEOUT = 15.0
#: Plans of this transaction only.
REPLAN = "set local plan_cache_mode = force_custom_plan"
COMMAND_TIMEOUT = 60.0

#: Seconds a listening connection may be silent before it is asked whether it still lives.
PROBE_INTERVAL = 30.0
RECONNECT_FIRST = 0.1
RECONNECT_MAX = 5.0

#: What PostgreSQL itself bounds, so that a lost client leaves no lock behind.
SESSION = {
    "application_name": "headgate",
    "timezone": "UTC",
    "jit": "off",
    "statement_timeout": "30s",
    "lock_timeout": "15s",
    "idle_in_transaction_session_timeout": "60s",
}

#: Errors of asyncpg that say nothing about the statement, only that it could not be run now.
TRANSIENT = (
    asyncpg.PostgresConnectionError,
    asyncpg.OperatorInterventionError,
    asyncpg.InsufficientResourcesError,
    asyncpg.LockNotAvailableError,
    asyncpg.TransactionRollbackError,
    asyncpg.IdleInTransactionSessionTimeoutError,
    asyncpg.PostgresSystemError,
    asyncpg.ReadOnlySQLTransactionError,
)
#: All that may come of a connection that is made, given back or asked whether it lives.
FAILURES = (
    OSError,
    asyncpg.PostgresError,
    asyncpg.InterfaceError,
    asyncpg.InternalClientError,
)
#: The server is there, but these settings do not get in: waiting does not help.
REFUSED = (asyncpg.InvalidAuthorizationSpecificationError, asyncpg.InvalidCatalogNameError)


def unavailable(error: BaseException) -> errors.Unavailable:
    """Say that the database does not answer, and why; holds no password and no statement."""
    said = str(error) or type(error).__name__
    reason = f"the database cannot be used now: {said}"
    return errors.Unavailable(reason, place="[database]", remedy=_remedy(error))


def _remedy(error: BaseException) -> str:
    if isinstance(error, REFUSED):
        return "Check the account and database named by [database] url"
    if isinstance(error, asyncpg.DiskFullError):
        return "Make room on the volume of the database, and try again"
    return "Try again; see whether PostgreSQL runs and can be reached"


@contextmanager
def _connecting() -> Iterator[None]:
    try:
        yield
    except FAILURES as error:
        raise unavailable(error) from error


@contextmanager
def _using(connection: Connection) -> Iterator[None]:
    try:
        yield
    except (OSError, *TRANSIENT) as error:
        raise unavailable(error) from error
    except (asyncpg.InterfaceError, asyncpg.InternalClientError) as error:
        # asyncpg says so of a lost connection and of wrong use; only the first is nobody's fault.
        if not (_lost(connection) or _out_of_step(error)):
            raise
        with suppress(asyncpg.InterfaceError):  # the pool has taken it back already
            connection.terminate()
        raise unavailable(error) from error


def _out_of_step(error: BaseException) -> bool:
    """Whether asyncpg has lost track of what the server does, be it before it tried to roll back.

    So it is when a connection is cut in the midst of a COPY.
    """
    return isinstance(error, asyncpg.InternalClientError) or (
        isinstance(error.__context__, (OSError, asyncpg.InternalClientError, *TRANSIENT))
    )


def _lost(connection: Connection) -> bool:
    try:
        return connection.is_closed()
    except asyncpg.InterfaceError:  # so lost that the pool has taken it back already
        return True


#: The first byte of jsonb's binary form: its version.
_JSONB = b"\x01"


class _Documents:
    """How jsonb is written and read. sealer: None: hidden values cannot be written, and are read as
    they are."""

    def __init__(self, sealer: Sealer | None) -> None:
        self._sealer = sealer

    def encode(self, value: Json) -> bytes:
        return _JSONB + orjson.dumps(value, default=self._plain)

    def _plain(self, value: object) -> Json:
        if not isinstance(value, Hidden):
            return str(value)  # asyncpg has a UUID of its own
        if self._sealer is None:
            raise RuntimeError("a hidden value is written without a key to seal it with")
        return self._sealer.hide(value)

    def decode(self, stored: bytes) -> Json:
        document = orjson.loads(memoryview(stored)[1:])
        if self._sealer is not None and self._sealer.marker in stored:
            return self._sealer.shown(document)
        return document

    async def prepare(self, connection: Connection) -> None:
        # In binary form, because COPY takes nothing else; it was as fast as text.
        await connection.set_type_codec(
            "jsonb", schema="pg_catalog", encoder=self.encode, decoder=self.decode, format="binary"
        )


async def _keep(_: Connection) -> None:
    """Give a connection back as it is."""


async def connect(url: str, *, session: dict[str, str] | None = None) -> Connection:
    """Open one connection outside of any pool, codecs set. Unavailable when it cannot be had."""
    with _connecting():
        connection = await asyncpg.connect(
            url,
            timeout=CONNECT_TIMEOUT,
            command_timeout=COMMAND_TIMEOUT,
            server_settings=SESSION | (session or {}),
        )
        try:
            await _Documents(None).prepare(connection)
        except BaseException:
            connection.terminate()
            raise
    return connection


@asynccontextmanager
async def all_or_nothing(connection: Connection) -> AsyncIterator[None]:
    """A part of a transaction: when it fails, it alone is taken back."""
    async with connection.transaction():
        yield


@asynccontextmanager
async def taken_back(connection: Connection) -> AsyncIterator[None]:
    """A transaction of which nothing is kept, whatever is done in it."""
    transaction = connection.transaction()
    await transaction.start()
    try:
        yield
    finally:
        await transaction.rollback()


class Database:
    """A pool of connections to one database. Made by `open_database`, closed by `close`."""

    def __init__(self, url: str, pool: "asyncpg.Pool[asyncpg.Record]") -> None:
        self._url = url
        self.pool = pool

    @asynccontextmanager
    async def connection(self) -> AsyncIterator[Connection]:
        """Borrow a connection, each statement its own transaction. Raises Unavailable."""
        with _connecting():
            borrowed = await self.pool.acquire(timeout=ACQUIRE_TIMEOUT)
        try:
            # A proxy of a connection, which does all that a connection does.
            connection = cast(Connection, borrowed)
            with _using(connection):
                yield connection
        finally:
            await self._give_back(borrowed)

    async def _give_back(self, borrowed: "PoolConnectionProxy[asyncpg.Record]") -> None:
        """One that fails on its way back is closed by the pool, which makes another.

        What was done with it is done, or has failed and is told: nothing is to be added to that.
        """
        try:
            await self.pool.release(borrowed)
        except FAILURES as error:
            log.info("connection.lost", reason=str(error) or type(error).__name__)

    @asynccontextmanager
    async def transaction(
        self, what: str = "", *, replan: bool = False
    ) -> AsyncIterator[Connection]:
        """Borrow a connection with a transaction begun: committed at the end, or rolled back.

        what: names the commit's fault points, see engine/store/faults.py. replan: its statements
        are planned by what the tables are now. A plan kept from when they were small may read a
        hundred thousand hooks to find one.
        """
        async with self.connection() as connection:
            async with connection.transaction():
                if replan:
                    await connection.execute(REPLAN)
                yield connection
                reach(f"{what}.before")
            reach(f"{what}.after")

    @asynccontextmanager
    async def snapshot(self) -> AsyncIterator[Connection]:
        """Borrow a connection whose statements all see the database as it was at the first."""
        async with (
            self.connection() as connection,
            connection.transaction(isolation="repeatable_read", readonly=True),
        ):
            yield connection

    @asynccontextmanager
    async def rehearsal(self) -> AsyncIterator[Connection]:
        """A transaction of which nothing is kept, whatever is done in it."""
        async with self.connection() as connection, taken_back(connection):
            yield connection

    @asynccontextmanager
    async def listen(self, channel: str, callback: Callable[[], None]) -> AsyncIterator[None]:
        """Call back at each notification on a channel, over a connection of its own.

        Also after each reconnection, because notifications may have been lost between. Not on
        entry: look for yourself once inside. Raises Unavailable when the first connection fails.
        """
        listener = _Listener(self._url, channel, callback)
        connection = await listener.connect()
        task = asyncio.create_task(listener.run(connection), name=f"listen {channel}")
        try:
            yield
        finally:
            task.cancel()
            await asyncio.wait([task])
            connection.terminate()  # in case the task never began

    async def close(self) -> None:
        """Wait for borrowed connections, a bounded time; then cut whatever is left."""
        try:
            async with asyncio.timeout(CONNECT_TIMEOUT):
                await self.pool.close()
        except FAILURES:
            self.pool.terminate()


class _Listener:
    """One listening connection, made anew whenever it is lost."""

    def __init__(self, url: str, channel: str, callback: Callable[[], None]) -> None:
        self._url = url
        self._channel = channel
        self._callback = callback
        self._lost = asyncio.Event()

    async def connect(self) -> Connection:
        connection = await connect(self._url)
        self._lost = lost = asyncio.Event()
        try:
            with _connecting():
                connection.add_termination_listener(lambda _: lost.set())
                await connection.add_listener(self._channel, self._notified)
        except BaseException:
            connection.terminate()
            raise
        return connection

    def _notified(self, *_: Any) -> None:
        self._callback()

    async def run(self, connection: Connection) -> None:
        while True:
            try:
                await self._until_lost(connection)
            finally:
                connection.terminate()
            connection = await self._reconnect()
            self._callback()

    async def _until_lost(self, connection: Connection) -> None:
        """Return when the connection is gone. A silent network is found out by asking."""
        while not self._lost.is_set():
            try:
                async with asyncio.timeout(PROBE_INTERVAL):
                    await self._lost.wait()
            except TimeoutError:
                try:
                    await connection.execute("select 1", timeout=CONNECT_TIMEOUT)
                except FAILURES:
                    return

    async def _reconnect(self) -> Connection:
        pause = RECONNECT_FIRST
        while True:
            try:
                return await self.connect()
            except errors.Unavailable:
                await asyncio.sleep(pause)
                pause = min(pause * 2, RECONNECT_MAX)


async def open_database(url: str, *, size: int = 10, sealer: Sealer | None = None) -> Database:
    """Open a pool of at most ``size`` connections. Raises Unavailable when none can be made.

    sealer: of hidden values; whoever only looks needs none.
    """
    with _connecting():
        pool = await asyncpg.create_pool(
            url,
            min_size=1,
            max_size=size,
            max_inactive_connection_lifetime=0,
            timeout=CONNECT_TIMEOUT,
            command_timeout=COMMAND_TIMEOUT,
            server_settings=SESSION,
            init=_Documents(sealer).prepare,
            reset=_keep,
        )
    return Database(url, pool)
