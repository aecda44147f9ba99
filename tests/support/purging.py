"""Purges in tests, while the program under test purges as well."""

from collections import Counter
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

from engine.store.connection import Connection
from engine.store.database import Database
from engine.store.maintenance.retention import LOCK_KEY
from engine.work.archive import archive_graphs
from engine.work.purge import Ages, purge_old
from tests.support.program import eventually


@asynccontextmanager
async def hold_purge_lock(database: Database) -> AsyncIterator[Connection]:
    """A connection that holds the purge lock.

    A process purges when it starts, and `purge_old` does nothing while another process purges.
    Without the lock, a test may find that nothing was purged.
    """
    async with database.connection() as conn:
        await conn.execute("select pg_advisory_lock($1)", LOCK_KEY)
        try:
            yield conn
        finally:
            await conn.execute("select pg_advisory_unlock($1)", LOCK_KEY)


async def archive_all_graphs(database: Database) -> None:
    """Archive the graphs of earlier traversals, which a process does at intervals, until none is
    left. A graph is skipped while its stack is locked, or while a process archives it."""

    async def none_left() -> bool:
        await archive_graphs(database)
        async with database.connection() as conn:
            return bool(await conn.fetchval("select not exists (select from archive_queue)"))

    await eventually(none_left)


async def purge_now(database: Database, ages: Ages) -> Counter[str]:
    """Archive graphs, purge, and return the number of deleted rows by kind, without kinds that had
    none."""
    await archive_graphs(database)
    async with hold_purge_lock(database) as conn:
        return +await purge_old(conn, ages)
