"""Purges old rows periodically, in small transactions, in one process at a time."""

import asyncio
from collections import Counter
from collections.abc import Callable, Mapping
from datetime import timedelta

import structlog
from structlog.typing import FilteringBoundLogger

from engine.bounded_wait import wait_at_most
from engine.loop_guard import START_DELAY, BatchSize, Guard, Supervisor
from engine.store.connection import Connection, try_lock
from engine.store.database import Database, discard_changes, savepoint
from engine.store.maintenance.retention import KINDS, LOCK_KEY, PurgedPage, next_row, purge
from engine.words import Json
from engine.work.archive import archive_graphs_on

log: FilteringBoundLogger = structlog.get_logger()

#: Rows read per transaction.
BATCH = 500
#: Rows of a kind that are skipped in one run after errors; then the kind waits for the next run.
MAX_SKIPPED = 20

#: Maximum age by kind. Rows of other kinds are never purged.
Ages = Mapping[str, timedelta]
#: Called with each kind and the number of rows purged.
Record = Callable[[str, int], None]


async def purge_old(
    conn: Connection, ages: Ages, *, batch: int = BATCH, guard: Guard | None = None
) -> Counter[str]:
    """Purge rows older than the age of their kind; return the number by kind.

    If another process is purging, this call stops. With a guard, rows that raise an internal error
    are logged and skipped.
    """
    purged: Counter[str] = Counter()
    for kind in KINDS:
        if kind in ages:
            purged[kind] = await _purge_kind(conn, kind, ages[kind], batch, guard)
    return purged


async def archive_and_purge(conn: Connection, ages: Ages) -> Counter[str]:
    """As `purge_old`, after the queued graphs are archived: traversals are purged only then."""
    await archive_graphs_on(conn)
    return await purge_old(conn, ages)


async def count_purgeable(conn: Connection, ages: Ages) -> Counter[str]:
    """Return the number of rows by kind that `archive_and_purge` would delete. Deletes nothing."""
    async with discard_changes(conn):
        return await archive_and_purge(conn, ages)


async def _purge_kind(
    conn: Connection, kind: str, age: timedelta, batch: int, guard: Guard | None
) -> int:
    purged, reached, more, size, left = 0, None, True, BatchSize(batch), MAX_SKIPPED
    while more:
        try:
            done = await _purge_batch(conn, kind, age, reached, size.now)
        except Exception as error:
            if guard is None:
                raise
            if size.shrink(error):
                left -= 1
                reached = await _skip(conn, kind, reached, error, guard)
                more = reached is not None and left > 0
            continue
        if done is None:
            break
        purged, reached, more = purged + done.deleted, done.reached, done.more
        size.grow()
    return purged


async def _purge_batch(
    conn: Connection, kind: str, age: timedelta, after: Json, size: int
) -> PurgedPage | None:
    """Purge one batch. Return None if another process purges."""
    async with savepoint(conn):
        return await purge(conn, kind, age, after, size) if await try_lock(conn, LOCK_KEY) else None


async def _skip(conn: Connection, kind: str, after: Json, error: Exception, guard: Guard) -> Json:
    """Log the row that cannot be purged; return its position."""
    place = await next_row(conn, kind, after)
    guard.report(error, kind=kind, row=str(place))
    return place


class PurgeLoop:
    """One loop. every: its interval. record: for metrics."""

    def __init__(
        self,
        database: Database,
        ages: Ages,
        *,
        every: timedelta,
        record: Record,
        supervisor: Supervisor | None = None,
    ) -> None:
        self._database = database
        self._ages = ages
        self._every = every.total_seconds()
        self._record = record
        self._guard = (supervisor or Supervisor()).guard("purge", max_pause=self._every)

    async def run(self, stop: asyncio.Event) -> None:
        async def turn() -> None:
            await self.purge()
            await wait_at_most(stop, self._every)

        await self._guard.run(turn, stop, after=min(START_DELAY, self._every))

    async def purge(self) -> None:
        async with self._database.connection() as conn:
            purged = await purge_old(conn, self._ages, guard=self._guard)
        for kind, count in purged.items():
            self._record(kind, count)
        if purged.total():
            log.info("purged", **{kind: count for kind, count in purged.items() if count})
