"""Access to PostgreSQL: a pool of connections, transactions, and LISTEN.

Everything that needs the database gets a `Database`. Connections are given back as they are:
nothing resets them, which saves a round trip each time. So whoever borrows one leaves nothing on
it: locks are taken for a transaction (``pg_advisory_xact_lock``), settings are set for a
transaction (``set local``), LISTEN has a connection of its own.
"""

import asyncio
from collections.abc import AsyncIterator, Callable, Iterator
from contextlib import asynccontextmanager, contextmanager, suppress
from typing import cast

import asyncpg
import structlog
from asyncpg.pool import PoolConnectionProxy
from structlog.typing import FilteringBoundLogger

from engine.store.connection import (
    COMMAND_TIMEOUT,
    CONNECT_TIMEOUT,
    FAILURES,
    STARTUP,
    TRANSIENT,
    Connection,
    Documents,
    connecting,
    unavailable,
)
from engine.store.encryption import Sealer
from engine.store.fault_points import reach
from engine.store.listener import Listening

log: FilteringBoundLogger = structlog.get_logger()

#: Seconds to wait for a free connection.
ACQUIRE_TIMEOUT = 15.0
#: Plans of this transaction only.
REPLAN = "set local plan_cache_mode = force_custom_plan"
#: Plans that look rows up by an index, in its order, whatever the statistics say: of a table that
#: has grown by many rows since it was analysed, they say that it is nothing to read it whole.
BY_INDEX = """
select set_config(name, 'off', true)
  from unnest('{enable_seqscan, enable_hashjoin, enable_mergejoin, enable_sort,
                enable_incremental_sort}'::text[]) name
"""


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


async def _keep(_: Connection) -> None:
    """Give a connection back as it is."""


@asynccontextmanager
async def all_or_nothing(connection: Connection) -> AsyncIterator[None]:
    """A part of a transaction: when it fails, it alone is taken back. Raises Unavailable."""
    with _using(connection):
        async with connection.transaction():
            yield


@asynccontextmanager
async def taken_back(connection: Connection) -> AsyncIterator[None]:
    """A transaction that is always rolled back."""
    transaction = connection.transaction()
    await transaction.start()
    try:
        yield
    finally:
        await transaction.rollback()


class Database:
    """A pool of connections to one database. Made by `open_database`, closed by `close`."""

    def __init__(self, url: str, pool: "asyncpg.Pool[asyncpg.Record]") -> None:
        self.pool = pool
        self._listening = Listening(url)

    @asynccontextmanager
    async def connection(self) -> AsyncIterator[Connection]:
        """Borrow a connection, each statement its own transaction. Raises Unavailable."""
        with connecting():
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
        self, what: str = "", *, replan: bool = False, by_index: bool = False
    ) -> AsyncIterator[Connection]:
        """Borrow a connection with a transaction begun: committed at the end, or rolled back.

        what: names the commit's fault points (engine/store/fault_points.py). replan: plan the
        statements for the current sizes of the tables; a plan made when they were small may read
        100,000 hooks to find one. by_index: plan them without scans of whole tables; see
        `BY_INDEX`.
        """
        async with self.connection() as connection:
            async with connection.transaction():
                if replan:
                    await connection.execute(REPLAN)
                if by_index:
                    await connection.execute(BY_INDEX)
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
        """A transaction that is always rolled back."""
        async with self.connection() as connection, taken_back(connection):
            yield connection

    @asynccontextmanager
    async def listen(self, channel: str, callback: Callable[[], None]) -> AsyncIterator[None]:
        """Call back at each notification on a channel. All who listen share one connection.

        Also after each reconnection, because notifications may have been lost between. Not on
        entry: look for yourself once inside. Raises Unavailable when nobody listened yet and no
        connection can be made.
        """
        async with self._listening.listen(channel, callback):
            yield

    async def close(self) -> None:
        """Wait for borrowed connections, a bounded time; then cut whatever is left."""
        try:
            async with asyncio.timeout(CONNECT_TIMEOUT):
                await self.pool.close()
        except FAILURES:
            self.pool.terminate()


async def open_database(url: str, *, size: int = 10, sealer: Sealer | None = None) -> Database:
    """Open a pool of at most ``size`` connections. Raises Unavailable when none can be made.

    sealer: of hidden values; whoever only looks needs none.
    """
    with connecting():
        pool = await asyncpg.create_pool(
            url,
            min_size=1,
            max_size=size,
            max_inactive_connection_lifetime=0,
            timeout=CONNECT_TIMEOUT,
            command_timeout=COMMAND_TIMEOUT,
            server_settings=STARTUP,
            init=Documents(sealer).prepare,
            reset=_keep,
        )
    return Database(url, pool)
