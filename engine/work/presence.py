"""Reports periodically that this process runs, for the list of services and for upgrades."""

import asyncio
from collections.abc import Callable
from contextlib import suppress

import structlog
from structlog.typing import FilteringBoundLogger

from engine.bounded_wait import wait_at_most
from engine.errors import Conflict
from engine.loop_guard import Supervisor
from engine.store.database import Database
from engine.store.maintenance.processes import OtherEngines, Process, remove, report

log: FilteringBoundLogger = structlog.get_logger()

#: Seconds to remove the record at the end. If it stays, the process is listed as down for a while.
LEAVE_TIMEOUT = 2.0


class Presence:
    def __init__(
        self,
        database: Database,
        process: Process,
        supervisor: Supervisor | None = None,
        *,
        set_other_engines: Callable[[OtherEngines], None] = lambda _: None,
    ) -> None:
        """set_other_engines: gets what each report returns."""
        self._set_other_engines = set_other_engines
        self._database = database
        self._process = process
        self._interval = process.report_interval.total_seconds()
        self._guard = (supervisor or Supervisor()).guard("presence", max_pause=self._interval)

    async def report(self) -> None:
        """Raises Unavailable, and Conflict if the program is too old for the database."""
        async with self._database.connection() as conn:
            self._set_other_engines(await report(conn, self._process))

    async def run(self, stop: asyncio.Event) -> None:
        """Report until `stop` is set. Then remove the record, so that the process is not listed as
        down. Sets `stop` if the database was upgraded for later programs only: a process that could
        not report for a while counts as ended."""

        async def turn() -> None:
            try:
                await self.report()
            except Conflict as error:
                log.error("process.too_old", reason=str(error))
                stop.set()
                return
            await wait_at_most(stop, self._interval)

        await self._guard.run(turn, stop)
        with suppress(Exception):
            async with asyncio.timeout(LEAVE_TIMEOUT), self._database.connection() as conn:
                await remove(conn, self._process.id)
