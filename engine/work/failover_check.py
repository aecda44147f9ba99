"""Compares, after a failover, what this process knows with the promoted database."""

import asyncio
from collections.abc import Callable, Sequence

import structlog
from structlog.typing import FilteringBoundLogger

from engine.bounded_wait import wait_at_most
from engine.loop_guard import Supervisor
from engine.store.connection import Connection
from engine.store.database import Database
from engine.store.maintenance.failover_losses import (
    StartedOperation,
    find_unknown,
    read_position,
    record_loss,
)
from engine.store.server_connector import Failover

log: FilteringBoundLogger = structlog.get_logger()

#: Seconds between two readings of the number of published commits.
INTERVAL = 2.0
#: Stops the operations that the database does not know.
StopOperations = Callable[[Sequence[StartedOperation]], None]


class FailoverCheck:
    """process: names it in the record. started: the last operations with effects outside of the
    database. stop: stops operations."""

    def __init__(
        self,
        database: Database,
        process: str,
        *,
        started: Callable[[], Sequence[StartedOperation]],
        stop: StopOperations,
        supervisor: Supervisor | None = None,
    ) -> None:
        self._database = database
        self._process = process
        self._started = started
        self._stop = stop
        self._guard = (supervisor or Supervisor()).guard("failover", max_pause=INTERVAL)
        self._position = 0
        self._unrecorded: list[StartedOperation] = []  # stopped, but not yet recorded
        database.connector.on_failover(self.compare)

    async def run(self, stop: asyncio.Event) -> None:
        """Note the number of published commits, if another server can take over."""

        async def turn() -> None:
            if self._database.connector.hosts:
                await self.note_position()
            await wait_at_most(stop, INTERVAL)

        await self._guard.run(turn, stop)

    async def note_position(self) -> None:
        async with self._database.connection() as conn:
            position = await read_position(conn)
        self._position = max(self._position, position)

    async def compare(self, conn: Connection, failover: Failover) -> None:
        """Stop operations that the promoted database does not know, and record what it lacks.

        No other connection of this process is used before. If it raises, it is called again.
        """
        position = await read_position(conn)
        missing = max(0, self._position - position)
        found = await find_unknown(conn, self._started())
        self._stop(found)
        self._unrecorded = [*dict.fromkeys([*self._unrecorded, *found])]
        if missing or self._unrecorded:
            await self._report(conn, failover, missing)
        self._unrecorded = []
        self._position = position

    async def _report(self, conn: Connection, failover: Failover, missing: int) -> None:
        """Log first: the database may refuse the record."""
        unknown = self._unrecorded
        remedy = "Run `headgate admin doctor`; it names the resources to look at"
        log.error("failover.commits_lost", at_least=missing, operations=len(unknown), remedy=remedy)
        for one in unknown:
            log.error("failover.operation_unknown", **one.document)
        timelines = failover.former.timeline, failover.current.timeline
        await record_loss(conn, self._process, timelines, missing, unknown)
