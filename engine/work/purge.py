"""Purging what is old: now and then, in small transactions, by one process at a time."""

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

#: How many rows are looked at in one transaction.
BATCH = 500
#: How many rows of a kind are passed over in one look; then the kind waits for the next look.
MOST_PASSED_OVER = 20

#: Kind -> how old it may become; a kind that is not in it is kept for good.
Ages = Mapping[str, timedelta]
#: Told of each kind and how many rows of it went.
Tell = Callable[[str, int], None]


async def purge_old(
    conn: Connection, ages: Ages, *, batch: int = BATCH, guard: Guard | None = None
) -> Counter[str]:
    """Purge whatever is older than its age; return how many of which kind.

    If another process purges meanwhile, it purges the rest. With a guard, rows at which an
    internal error is raised are logged and passed over.
    """
    gone: Counter[str] = Counter()
    for kind in OLD:
        if kind in ages:
            gone[kind] = await _purge_kind(conn, kind, ages[kind], batch, guard)
    return gone


async def rehearsed(conn: Connection, ages: Ages) -> Counter[str]:
    """How many of which kind would go; they stay."""
    async with taken_back(conn):
        return await purge_old(conn, ages)


async def _purge_kind(
    conn: Connection, kind: str, age: timedelta, batch: int, guard: Guard | None
) -> int:
    gone, reached, more, size, left = 0, None, True, BatchSize(batch), MOST_PASSED_OVER
    while more:
        try:
            done = await _purge_batch(conn, kind, age, reached, size.now)
        except Exception as error:
            if guard is None:
                raise
            if size.shrink(error):
                left -= 1
                reached = await _passed_over(conn, kind, reached, error, guard)
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
    """None: another process has its turn."""
    async with all_or_nothing(conn):
        return await purge(conn, kind, age, after, size) if await take_turn(conn) else None


async def _passed_over(
    conn: Connection, kind: str, after: Json, error: Exception, guard: Guard
) -> Json:
    """The place of the row that cannot be purged."""
    place = await next_row(conn, kind, after)
    guard.report(error, kind=kind, row=str(place))
    return place


class Purging:
    """One loop. every: how often it looks. tell: for the metrics."""

    def __init__(
        self,
        database: Database,
        ages: Ages,
        *,
        every: timedelta,
        tell: Tell = lambda *_: None,
        supervisor: Supervisor | None = None,
    ) -> None:
        self._database = database
        self._ages = ages
        self._every = every.total_seconds()
        self._tell = tell
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
            self._tell(kind, count)
        if gone.total():
            log.info("purged", **{kind: count for kind, count in gone.items() if count})
