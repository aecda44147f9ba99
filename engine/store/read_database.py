"""Reads that a replica of the database can serve: lists, histories, and the events that a stream
has to catch up with.

Such a read sees all that was committed before it began, by whatever process, as on the primary: it
asks the primary for the end of its log, and waits until the replica has replayed that. The primary
serves the read if the replica takes too long, is unreachable, or is no replica of the primary.
"""

import asyncio
from collections.abc import Awaitable, Callable, Mapping, Sequence
from datetime import timedelta
from typing import TypeAlias, TypeVar

import asyncpg
import structlog
from structlog.typing import FilteringBoundLogger

from engine import errors
from engine.back_off import BackOff
from engine.store.connection import Connection
from engine.store.database import SET, Database, open_pool, transaction_settings
from engine.store.database_errors import FAILURES, TOO_SLOW
from engine.store.encryption.secret_values import Keyring
from engine.store.gathered_reads import GatheredReads
from engine.store.replica import (
    NO_POSITION,
    ReadOutcome,
    ReplicaConnector,
    ReplicaUnusable,
    WalPosition,
    read_position,
    until_replayed,
)
from engine.store.server_connector import HOST_TIMEOUT

log: FilteringBoundLogger = structlog.get_logger()

T = TypeVar("T")
#: Reads with a connection. It is called again if the replica fails, and after a migration.
Read: TypeAlias = Callable[[Connection], Awaitable[T]]

#: How long a read waits for a replica that is behind.
LAG = timedelta(seconds=1)
#: Seconds for a read by a replica, after which it is repeated on the primary: a list takes
#: milliseconds, and the replica's host may be lost.
READ_TIMEOUT = 10.0
#: Pauses after which a replica is tried again.
RETRY = BackOff(1.0, 30.0)


class ReadDatabase:
    """The primary, and a replica that serves reads if there is one.

    lag: how long a read waits for the replica. record: called with the outcome of each read.
    """

    def __init__(
        self,
        primary: Database,
        replica: Database | None = None,
        *,
        lag: timedelta = LAG,
        record: Callable[[ReadOutcome], None] = lambda _: None,
    ) -> None:
        self._primary = primary
        self._replica = replica
        self._lag = lag
        self._record = record
        self._positions: GatheredReads[None, WalPosition] = GatheredReads(self._read_position)
        self._failures = 0  # in succession
        self._failed_at = self._retry_at = 0.0
        self._logged: ReadOutcome | None = None  # None: the replica served the last read

    async def read(self, read: Read[T], *, replan: bool = False, by_index: bool = False) -> T:
        """Return what `read` returns. It must not write. replan, by_index: see
        `Database.transaction`. Raises Unavailable."""
        if self._replica is not None:
            served = await self._try_replica(self._replica, read, replan=replan, by_index=by_index)
            if served:
                return served[0]
        try:
            return await self._read_primary(read, replan=replan, by_index=by_index)
        except errors.Unavailable as error:
            # A migration changed the columns of a prepared statement. asyncpg repeats it only
            # outside of transactions, and has dropped the statements of all connections.
            if not isinstance(error.__cause__, asyncpg.InvalidCachedStatementError):
                raise
        return await self._read_primary(read, replan=replan, by_index=by_index)

    async def _read_primary(self, read: Read[T], *, replan: bool, by_index: bool) -> T:
        if not replan:
            async with self._primary.connection() as conn:
                return await read(conn)
        async with self._primary.transaction(replan=True, by_index=by_index) as conn:
            return await read(conn)

    async def page(self, read: Read[T]) -> T:
        """Like `read`, for a page in the order of an index. For any values, or without statistics
        of a table, PostgreSQL would rather read and sort all rows of the list."""
        return await self.read(read, replan=True, by_index=True)

    async def _read_position(self, keys: Sequence[None]) -> Mapping[None, WalPosition]:
        async with self._primary.connection() as conn:
            position = await read_position(conn)
        return dict.fromkeys(keys, position) if position else {}

    async def _try_replica(
        self, replica: Database, read: Read[T], *, replan: bool, by_index: bool
    ) -> tuple[()] | tuple[T]:
        """What the replica returned; empty: the primary must serve the read."""
        if not self._is_due():
            self._record(ReadOutcome.PAUSED)
            return ()
        began = asyncio.get_running_loop().time()
        position = await self._positions.get(None)
        try:
            if position is None:
                raise ReplicaUnusable(ReadOutcome.UNSUITABLE, NO_POSITION)
            settings = transaction_settings(replan=replan, by_index=by_index)
            result = await self._read_replica(replica, position, read, settings)
        except errors.TimedOut:
            raise  # it would take as long on the primary
        except (ReplicaUnusable, errors.Unavailable, *FAILURES) as error:
            self._note_failure(error, began)
            return ()
        except errors.HeadgateError:
            self._note_success(began)
            raise
        self._note_success(began)
        return (result,)

    def _is_due(self) -> bool:
        """Whether to try the replica. After a failure, one read after each pause tries it."""
        if not self._failures:
            return True
        now = asyncio.get_running_loop().time()
        if now < self._retry_at:
            return False
        self._retry_at = now + RETRY.ceiling(self._failures)
        return True

    async def _read_replica(
        self, replica: Database, position: WalPosition, read: Read[T], settings: Mapping[str, str]
    ) -> T:
        ready = HOST_TIMEOUT + self._lag.total_seconds()
        async with asyncio.timeout(ready) as bound, replica.connection() as conn:
            try:
                await until_replayed(conn, position, self._lag)
                bound.reschedule(asyncio.get_running_loop().time() + READ_TIMEOUT)
                return await _read(conn, read, settings)
            except (asyncio.CancelledError, ReplicaUnusable):
                # Its host may answer nothing any more, and another one may be better.
                conn.terminate()
                raise

    def _note_failure(self, error: BaseException, began: float) -> None:
        outcome = error.outcome if isinstance(error, ReplicaUnusable) else ReadOutcome.AWAY
        self._record(outcome)
        if outcome is ReadOutcome.REPEATED or began < self._failed_at:
            return
        self._failures += 1
        self._failed_at = asyncio.get_running_loop().time()
        self._retry_at = self._failed_at + RETRY.ceiling(self._failures)
        if outcome is not self._logged:
            self._logged = outcome
            reason = str(error) or type(error).__name__
            log.warning("replica.unusable", outcome=outcome, reason=reason)

    def _note_success(self, began: float) -> None:
        self._record(ReadOutcome.REPLICA)
        if began < self._failed_at:
            return
        self._failures = 0
        if self._logged is not None:
            self._logged = None
            log.info("replica.usable")


async def _read(conn: Connection, read: Read[T], settings: Mapping[str, str]) -> T:
    """Read in a transaction. Raises ReplicaUnusable if the replica fails a statement, for example
    to replay its log. After a cancellation, the transaction is still open."""
    transaction = conn.transaction(readonly=True)
    await transaction.start()
    try:
        if settings:
            await conn.execute(SET, [*settings], [*settings.values()])
        result = await read(conn)
    except (asyncio.CancelledError, asyncpg.PostgresConnectionError):
        raise
    except TOO_SLOW:
        await transaction.rollback()
        raise
    except asyncpg.PostgresError as error:
        raise ReplicaUnusable(ReadOutcome.REPEATED, str(error)) from error
    except BaseException:
        await transaction.rollback()
        raise
    await transaction.rollback()
    return result


async def open_replica(url: str, *, size: int, keyring: Keyring | None) -> Database:
    """A pool of at most `size` connections to replicas, which are opened when they are used."""
    return await open_pool(ReplicaConnector(url), size=size, keyring=keyring, min_size=0)
