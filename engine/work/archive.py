"""Archives the graphs of earlier changes, in small transactions, after those changes were replaced.

Several processes may do so at the same time: each skips the stacks that others have locked.
"""

import asyncio
from collections.abc import AsyncIterator, Callable
from contextlib import AbstractAsyncContextManager, asynccontextmanager
from datetime import timedelta
from functools import partial

from engine.bounded_wait import wait_at_most
from engine.loop_guard import BatchSize, Guard, Supervisor
from engine.store.connection import Connection
from engine.store.database import Database, savepoint
from engine.store.traversals.graph_archive import BATCH, FIRST, PAGE, archive_page, next_graph

#: Seconds between two polls of the queue.
INTERVAL = timedelta(seconds=10)
#: Graphs that one turn skips after errors; then the loop pauses.
MAX_SKIPPED = 20


def _never() -> bool:
    return False


async def archive_graphs(
    database: Database,
    *,
    batch: int = BATCH,
    stopped: Callable[[], bool] = _never,
    guard: Guard | None = None,
) -> int:
    """Archive all ended nodes of the graphs in the queue; return their number. stopped: whether to
    leave the rest for later. With a guard, graphs that raise an internal error are logged and
    skipped.
    """
    transaction = partial(database.transaction, "archive", by_index=True)
    return await _archive(transaction, batch, stopped, guard)


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
    guard: Guard | None = None,
) -> int:
    after, nodes, size, left = FIRST, 0, BatchSize(PAGE), MAX_SKIPPED
    while not stopped():
        try:
            async with transaction() as conn:
                page = await archive_page(conn, after, batch, size.now)
        except Exception as error:
            if guard is None or not left:
                raise
            if size.shrink(error):
                async with transaction() as conn:
                    failed = await next_graph(conn, after)
                if failed is None:
                    break
                guard.report(error, stack_id=str(failed[0]), traversal=failed[1])
                after, left = failed, left - 1
            continue
        if page is None:
            break
        size.grow()
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
            await archive_graphs(self._database, stopped=stop.is_set, guard=self._guard)
            await wait_at_most(stop, self._every)

        await self._guard.run(turn, stop)
