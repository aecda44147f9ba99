"""Purging what is old: now and then, in small transactions, by one process at a time."""

import asyncio
from collections import Counter
from collections.abc import Callable, Mapping
from datetime import timedelta

import structlog
from structlog.typing import FilteringBoundLogger

from engine.errors import Unavailable
from engine.store.connection import Connection
from engine.store.database import Database, all_or_nothing, taken_back
from engine.store.retention import OLD, purge, take_turn

log: FilteringBoundLogger = structlog.get_logger()

#: How many rows are looked at in one transaction.
BATCH = 500

#: Kind -> how old it may become; a kind that is not in it is kept for good.
Ages = Mapping[str, timedelta]
#: Told of each kind and how many rows of it went.
Tell = Callable[[str, int], None]


async def purge_old(conn: Connection, ages: Ages, *, batch: int = BATCH) -> Counter[str]:
    """Purge whatever is older than its age; return how many of which kind.

    Where somebody else is purging, what is left is left to them.
    """
    gone: Counter[str] = Counter()
    for kind in OLD:
        if kind in ages:
            gone[kind] = await _purge_kind(conn, kind, ages[kind], batch)
    return gone


async def rehearsed(conn: Connection, ages: Ages) -> Counter[str]:
    """How many of which kind would go; they stay."""
    async with taken_back(conn):
        return await purge_old(conn, ages)


async def _purge_kind(conn: Connection, kind: str, age: timedelta, batch: int) -> int:
    gone, reached, more = 0, None, True
    while more:
        async with all_or_nothing(conn):
            if not await take_turn(conn):
                break
            done = await purge(conn, kind, age, reached, batch)
        gone, reached, more = gone + done.gone, done.reached, done.more
    return gone


class Purging:
    """One loop. every: how often it looks. tell: for the metrics."""

    def __init__(
        self, database: Database, ages: Ages, *, every: timedelta, tell: Tell = lambda *_: None
    ) -> None:
        self._database = database
        self._ages = ages
        self._every = every.total_seconds()
        self._tell = tell

    async def run(self, stop: asyncio.Event) -> None:
        while not stop.is_set():
            try:
                await self.look()
            except Unavailable as error:
                log.warning("purging.unavailable", reason=str(error))
            except Exception:
                log.exception("purging.broken")
            try:
                async with asyncio.timeout(self._every):
                    await stop.wait()
            except TimeoutError:
                continue

    async def look(self) -> None:
        async with self._database.connection() as conn:
            gone = await purge_old(conn, self._ages)
        for kind, count in gone.items():
            self._tell(kind, count)
        if gone.total():
            log.info("purged", **{kind: count for kind, count in gone.items() if count})
