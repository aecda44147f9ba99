"""Archives the graphs of earlier changes, in small transactions, after those changes were replaced.

Several processes may do so at the same time: each skips the stacks that others have locked.
"""

import asyncio
from collections.abc import AsyncIterator, Callable
from contextlib import AbstractAsyncContextManager, asynccontextmanager
from datetime import timedelta
from functools import partial

from engine.loops import Supervisor, wait_at_most
from engine.store.connection import Connection
from engine.store.database import Database, savepoint
from engine.store.graph_archive import BATCH, FIRST, archive_page

#: Between two looks at the queue.
INTERVAL = timedelta(seconds=10)


def _never() -> bool:
    return False


async def archive_graphs(
    database: Database, *, batch: int = BATCH, stopped: Callable[[], bool] = _never
) -> int:
    """Archive all ended nodes of the graphs in the queue; return their number. stopped: whether to
    leave the rest for later."""
    return await _archive(partial(database.transaction, "archive", by_index=True), batch, stopped)


async def archive_graphs_on(conn: Connection) -> int:
    """As `archive_graphs`, on one connection; within its transaction if it has begun one."""

    @asynccontextmanager
    async def transaction() -> AsyncIterator[Connection]:
        async with savepoint(conn):
            yield conn

    return await _archive(transaction, BATCH, _never)


async def _archive(
    transaction: Callable[[], AbstractAsyncContextManager[Connection]],
    batch: int,
    stopped: Callable[[], bool],
) -> int:
    after, nodes = FIRST, 0
    while not stopped():
        async with transaction() as conn:
            page = await archive_page(conn, after, batch)
        if page is None:
            break
        nodes += page.nodes
        if page.more:
            continue
        if not page.graphs:
            break
        after = page.reached
    return nodes


class ArchiveLoop:
    """One loop. every: its interval."""

    def __init__(
        self,
        database: Database,
        *,
        every: timedelta = INTERVAL,
        supervisor: Supervisor | None = None,
    ) -> None:
        self._database = database
        self._every = every.total_seconds()
        self._guard = (supervisor or Supervisor()).guard("archive", max_pause=self._every)

    async def run(self, stop: asyncio.Event) -> None:
        async def turn() -> None:
            await archive_graphs(self._database, stopped=stop.is_set)
            await wait_at_most(stop, self._every)

        await self._guard.run(turn, stop)
