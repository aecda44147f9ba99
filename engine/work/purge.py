"""Purges old rows periodically, in small transactions, in one process at a time."""

import asyncio
from collections import Counter
from collections.abc import Callable, Mapping
from datetime import timedelta

import structlog
from structlog.typing import FilteringBoundLogger

from engine.loops import BatchSize, Guard, Supervisor, wait_at_most
from engine.store.connection import Connection
from engine.store.database import Database, all_or_nothing, taken_back
from engine.store.retention import OLD, Batch, next_row, purge, take_turn
from engine.words import Json

log: FilteringBoundLogger = structlog.get_logger()

#: Rows read per transaction.
BATCH = 500
#: Rows of a kind that are skipped in one run after errors; then the kind waits for the next run.
MOST_SKIPPED = 20

#: Maximum age by kind. Rows of other kinds are never purged.
Ages = Mapping[str, timedelta]
#: Called with each kind and the number of rows purged.
Record = Callable[[str, int], None]


async def purge_old(
    conn: Connection, ages: Ages, *, batch: int = BATCH, guard: Guard | None = None
) -> Counter[str]:
    """Purge rows older than the age of their kind; return the number by kind.

    If another process purges at the same time, it purges the rest. With a guard, rows that raise an
    internal error are logged and skipped.
    """
    gone: Counter[str] = Counter()
    for kind in OLD:
        if kind in ages:
            gone[kind] = await _purge_kind(conn, kind, ages[kind], batch, guard)
    return gone


async def count_purgeable(conn: Connection, ages: Ages) -> Counter[str]:
    """Return the number of rows by kind that `purge_old` would delete. Deletes nothing."""
    async with taken_back(conn):
        return await purge_old(conn, ages)


async def _purge_kind(
    conn: Connection, kind: str, age: timedelta, batch: int, guard: Guard | None
) -> int:
    gone, reached, more, size, left = 0, None, True, BatchSize(batch), MOST_SKIPPED
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
        gone, reached, more = gone + done.gone, done.reached, done.more
        size.grow()
    return gone


async def _purge_batch(
    conn: Connection, kind: str, age: timedelta, after: Json, size: int
) -> Batch | None:
    """Purge one batch. Return None if another process purges."""
    async with all_or_nothing(conn):
        return await purge(conn, kind, age, after, size) if await take_turn(conn) else None


async def _skip(conn: Connection, kind: str, after: Json, error: Exception, guard: Guard) -> Json:
    """Log the row that cannot be purged; return its position."""
    place = await next_row(conn, kind, after)
    guard.report(error, kind=kind, row=str(place))
    return place


class Purging:
    """One loop. every: its interval. record: for metrics."""

    def __init__(
        self,
        database: Database,
        ages: Ages,
        *,
        every: timedelta,
        record: Record = lambda *_: None,
        supervisor: Supervisor | None = None,
    ) -> None:
        self._database = database
        self._ages = ages
        self._every = every.total_seconds()
        self._record = record
        self._guard = (supervisor or Supervisor()).guard("purging", longest=self._every)

    async def run(self, stop: asyncio.Event) -> None:
        async def turn() -> None:
            await self.look()
            await wait_at_most(stop, self._every)

        await self._guard.run(turn, stop)

    async def look(self) -> None:
        async with self._database.connection() as conn:
            gone = await purge_old(conn, self._ages, guard=self._guard)
        for kind, count in gone.items():
            self._record(kind, count)
        if gone.total():
            log.info("purged", **{kind: count for kind, count in gone.items() if count})
