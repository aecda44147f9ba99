"""Access to PostgreSQL: a pool of connections, transactions, and LISTEN.

Connections are not reset when they return to the pool, which saves a round trip. So callers must
not change them: acquire locks for a transaction (``pg_advisory_xact_lock``), and change settings
for a transaction (``set local``). LISTEN uses a connection of its own.
"""

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable, Iterator
from contextlib import asynccontextmanager, contextmanager
from datetime import timedelta
from typing import cast

import asyncpg
import structlog
from asyncpg.pool import PoolConnectionProxy
from structlog.typing import FilteringBoundLogger

from engine.store.connection import (
    CANCEL_TIMEOUT,
    COMMAND_TIMEOUT,
    CONNECT_TIMEOUT,
    STARTUP,
    Connection,
    JsonbCodec,
    run_transaction,
    terminate,
)
from engine.store.database_errors import (
    FAILURES,
    PROJECT_MOVED,
    REMOVALS,
    TRANSIENT,
    connection_errors,
    is_removal,
    project_moved,
    unavailable,
)
from engine.store.encryption.secret_values import Keyring
from engine.store.fault_points import reach
from engine.store.listener import NotificationListener
from engine.store.pooler_connection import PoolerConnector
from engine.store.server_connector import ServerConnector

log: FilteringBoundLogger = structlog.get_logger()

#: Seconds to wait for a free connection.
ACQUIRE_TIMEOUT = 15.0
#: One of so many returned connections goes to the pool, which replaces those with many statements.
RETURN_EACH = 1000
#: Settings of a transaction.
SET = "select set_config(name, value, true) from unnest($1::text[], $2::text[]) s (name, value)"
#: Plan the statements of this transaction again, for their parameters.
REPLAN = {"plan_cache_mode": "force_custom_plan"}
#: Plan the statements of this transaction with indexes only. Outdated statistics of a table that
#: has grown since it was analyzed suggest that reading the whole table is cheap.
BY_INDEX = dict.fromkeys(
    ("enable_seqscan", "enable_hashjoin", "enable_mergejoin", "enable_sort",
     "enable_incremental_sort"), "off",
)  # fmt: skip
#: Plan the statements of this transaction once for each connection, for searches by key. They have
#: no other plan, and planning costs more than executing them. The routines have the same settings.
BY_KEY = {"plan_cache_mode": "force_generic_plan"} | dict.fromkeys(
    ("enable_seqscan", "enable_hashjoin", "enable_mergejoin"), "off"
)


def transaction_settings(
    *, replan: bool = False, by_index: bool = False, by_key: bool = False
) -> dict[str, str]:
    """Settings of a transaction; see `Database.transaction`."""
    return (REPLAN if replan else {}) | (BY_INDEX if by_index else {}) | (BY_KEY if by_key else {})


@contextmanager
def _temporary_errors(connection: Connection) -> Iterator[None]:
    try:
        yield
    except (OSError, *TRANSIENT) as error:
        if isinstance(error, asyncpg.ReadOnlySQLTransactionError):
            terminate(connection)  # its server is no primary any more
        raise unavailable(error) from error
    except REMOVALS as error:
        if not is_removal(error):
            raise
        raise unavailable(error) from error
    except asyncpg.UnknownPostgresError as error:
        if error.sqlstate != PROJECT_MOVED:
            raise
        raise project_moved(str(error)) from error
    except (asyncpg.InterfaceError, asyncpg.InternalClientError) as error:
        # asyncpg raises these for a lost connection and for wrong use; only the former is
        # temporary.
        if not (_is_closed(connection) or _protocol_state_lost(error)):
            raise
        terminate(connection)
        raise unavailable(error) from error


def _protocol_state_lost(error: BaseException) -> bool:
    """Whether asyncpg and the server disagree about the state of the connection, for example if it
    was lost during a COPY."""
    return isinstance(error, asyncpg.InternalClientError) or (
        isinstance(error.__context__, (OSError, asyncpg.InternalClientError, *TRANSIENT))
    )


def _is_closed(connection: Connection) -> bool:
    try:
        return connection.is_closed()
    except asyncpg.InterfaceError:  # already returned to the pool
        return True


async def _no_reset(_: Connection) -> None:
    """Return a connection to the pool unchanged."""


@asynccontextmanager
async def savepoint(connection: Connection) -> AsyncIterator[None]:
    """A savepoint: if the block fails, only its part of the transaction is rolled back. Raises
    Unavailable."""
    with _temporary_errors(connection):
        async with connection.transaction():
            yield


@asynccontextmanager
async def discard_changes(connection: Connection) -> AsyncIterator[None]:
    """A transaction that is always rolled back."""
    transaction = connection.transaction()
    await transaction.start()
    try:
        yield
    finally:
        await transaction.rollback()


class Database:
    """A pool of connections to one database, which `open_database` creates.

    Half of the connections can be kept by this class between two uses, because to return one to the
    pool and to borrow it again takes about as much CPU time as a simple statement.
    """

    def __init__(self, connector: ServerConnector, pool: "asyncpg.Pool[asyncpg.Record]") -> None:
        self.pool = pool
        self.connector = connector
        self._kept: list[PoolConnectionProxy[asyncpg.Record]] = []
        self._max_kept = pool.get_max_size() // 2
        self._returned = 0  # number of times that connections were returned
        self._waiting = 0  # tasks that wait for a connection of the pool
        self._listener = NotificationListener(connector)

    @property
    def in_use(self) -> int:
        """The number of borrowed connections."""
        return self.pool.get_size() - self.pool.get_idle_size() - len(self._kept)

    @asynccontextmanager
    async def connection(self) -> AsyncIterator[Connection]:
        """Borrow a connection. Each statement is a transaction of its own. Raises Unavailable."""
        borrowed = await self._borrow()
        succeeded = False
        try:
            # A proxy with all methods of a connection.
            connection = cast(Connection, borrowed)
            with _temporary_errors(connection):
                yield connection
            succeeded = True
        finally:
            if not (succeeded and self._keep(borrowed)):
                await self._release(borrowed)

    async def _borrow(self) -> "PoolConnectionProxy[asyncpg.Record]":
        while self._kept:
            borrowed = self._kept.pop()
            if not _is_closed(cast(Connection, borrowed)):
                return borrowed
            await self._release(borrowed)
        self._waiting += 1
        try:
            with connection_errors():
                return await self.pool.acquire(timeout=ACQUIRE_TIMEOUT)
        finally:
            self._waiting -= 1

    def _keep(self, borrowed: "PoolConnectionProxy[asyncpg.Record]") -> bool:
        """Keep a connection for the next use, if no task waits for one, and it is as it was."""
        self._returned += 1
        if self._waiting or len(self._kept) >= self._max_kept or not self._returned % RETURN_EACH:
            return False
        connection = cast(Connection, borrowed)
        if _is_closed(connection) or connection.is_in_transaction():
            return False
        self._kept.append(borrowed)
        return True

    async def _release(self, borrowed: "PoolConnectionProxy[asyncpg.Record]") -> None:
        """Return a connection; a cancelled statement has `CANCEL_TIMEOUT` to end. Errors are only
        logged: the pool replaces the connection."""
        try:
            await self.pool.release(borrowed, timeout=CANCEL_TIMEOUT)
        except FAILURES as error:
            log.info("connection.lost", reason=str(error) or type(error).__name__)

    @asynccontextmanager
    async def transaction(
        self,
        what: str = "",
        *,
        replan: bool = False,
        by_index: bool = False,
        by_key: bool = False,
        lock_wait: timedelta | None = None,
    ) -> AsyncIterator[Connection]:
        """Borrow a connection in a transaction, which is committed, or rolled back after an error.

        what: the name of the commit's fault points (engine/store/fault_points.py). replan: plan the
        statements for the current sizes of the tables; a plan made when they were small may read
        100,000 hooks to find one. by_index: plan them without scans of whole tables; see
        `BY_INDEX`. by_key: all of them search by key; see `BY_KEY`. lock_wait: raise Unavailable
        if a statement waits longer for a lock.
        """
        settings = transaction_settings(replan=replan, by_index=by_index, by_key=by_key)
        if lock_wait is not None:
            settings["lock_timeout"] = f"{lock_wait / timedelta(milliseconds=1):.0f}ms"
        async with self.connection() as connection:
            async with run_transaction(connection, connection.transaction()):
                if settings:
                    await connection.execute(SET, [*settings], [*settings.values()])
                yield connection
                reach(f"{what}.before")
            reach(f"{what}.after")

    @asynccontextmanager
    async def statement(self, what: str = "") -> AsyncIterator[Connection]:
        """Borrow a connection for one statement, which is a transaction of its own. what: see
        `transaction`."""
        async with self.connection() as connection:
            reach(f"{what}.before")
            yield connection
            reach(f"{what}.after")

    @asynccontextmanager
    async def snapshot(self) -> AsyncIterator[Connection]:
        """Borrow a connection in a read-only transaction whose statements see the same state."""
        async with self.connection() as connection:
            transaction = connection.transaction(isolation="repeatable_read", readonly=True)
            async with run_transaction(connection, transaction):
                yield connection

    @asynccontextmanager
    async def rollback_only(self) -> AsyncIterator[Connection]:
        """A transaction that is always rolled back."""
        async with self.connection() as connection, discard_changes(connection):
            yield connection

    @asynccontextmanager
    async def listen(self, channel: str, callback: Callable[[], None]) -> AsyncIterator[None]:
        """Call `callback` at each notification on a channel, and after each reconnection, because
        notifications can be lost meanwhile. It is not called on entry.

        All listeners share one connection. Raises Unavailable if this is the first listener and no
        connection can be opened.
        """
        async with self._listener.listen(channel, callback):
            yield

    async def close(self) -> None:
        """Wait for borrowed connections for a limited time, and then close them."""
        self._max_kept = 0
        while self._kept:
            await self._release(self._kept.pop())
        try:
            async with asyncio.timeout(CONNECT_TIMEOUT):
                await self.pool.close()
        except FAILURES:
            self.pool.terminate()


async def open_database(
    url: str, *, size: int = 10, keyring: Keyring | None = None, pooler_url: str = ""
) -> Database:
    """Open a pool of at most ``size`` connections. Raises Unavailable.

    keyring: encrypts and decrypts secrets; None: secrets can be neither written nor decrypted.
    pooler_url: of a pooler in transaction mode in front of the server, for all connections but the
    one that listens; "": there is none.
    """
    connector = ServerConnector(url)
    pooler = PoolerConnector(pooler_url) if pooler_url else None
    with connection_errors():
        return await open_pool(connector, size=size, keyring=keyring, min_size=1, pooler=pooler)


async def open_pool(
    connector: ServerConnector,
    *,
    size: int,
    keyring: Keyring | None,
    min_size: int,
    prepare: Callable[[Connection], Awaitable[None]] | None = None,
    pooler: PoolerConnector | None = None,
) -> Database:
    """Open at least `min_size` connections. prepare: called with each new connection. pooler: opens
    them in place of the connector. Raises the errors of asyncpg."""
    codec = JsonbCodec(keyring)

    async def init(connection: Connection) -> None:
        if pooler is None:
            await codec.prepare(connection)
        else:  # which has no sessions to configure
            await codec.register(connection)
        if prepare is not None:
            await prepare(connection)

    opener = pooler or connector
    pool = await asyncpg.create_pool(
        opener.url,
        connect=opener.open,
        min_size=min_size,
        max_size=size,
        max_inactive_connection_lifetime=0,
        timeout=CONNECT_TIMEOUT,
        command_timeout=COMMAND_TIMEOUT,
        server_settings=STARTUP,
        init=init,
        reset=_no_reset,
    )
    return Database(connector, pool)
