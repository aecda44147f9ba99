"""Purging by a test, while the program that it tests purges by itself."""

from collections import Counter
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

from engine.store.connection import Connection
from engine.store.database import Database
from engine.store.retention import LOCK_KEY
from engine.work.purge import Ages, purge_old


@asynccontextmanager
async def purge_turn(database: Database) -> AsyncIterator[Connection]:
    """A connection of which it is the turn to purge.

    A program looks for old rows when it starts; `purge_old` leaves rows to whichever process has
    the turn, so a test that does not wait for it may find nothing purged.
    """
    async with database.connection() as conn:
        await conn.execute("select pg_advisory_lock($1)", LOCK_KEY)
        try:
            yield conn
        finally:
            await conn.execute("select pg_advisory_unlock($1)", LOCK_KEY)


async def purge_now(database: Database, ages: Ages) -> Counter[str]:
    """How many rows of which kind went; kinds of which none went are left out."""
    async with purge_turn(database) as conn:
        return +await purge_old(conn, ages)
