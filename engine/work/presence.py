"""This process says that it is at work, so that others can see which are."""

import asyncio
from contextlib import suppress

import structlog
from structlog.typing import FilteringBoundLogger

from engine.errors import Unavailable
from engine.store.database import Database
from engine.store.processes import Process, beat, leave

log: FilteringBoundLogger = structlog.get_logger()

#: Seconds. Whoever cannot take it back is down for a while, which does no harm.
LEAVE_TIMEOUT = 2.0


class Presence:
    def __init__(self, database: Database, process: Process) -> None:
        self._database = database
        self._process = process

    async def say(self) -> None:
        """Raises Unavailable."""
        async with self._database.connection() as conn:
            await beat(conn, self._process)

    async def run(self, stop: asyncio.Event) -> None:
        """Say so until `stop` is set, then take it back: what ended well is not down."""
        while not stop.is_set():
            try:
                await self.say()
            except Unavailable as error:
                log.warning("presence.unavailable", reason=str(error))
            with suppress(TimeoutError):
                async with asyncio.timeout(self._process.report_interval.total_seconds()):
                    await stop.wait()
        with suppress(Unavailable, TimeoutError):
            async with asyncio.timeout(LEAVE_TIMEOUT), self._database.connection() as conn:
                await leave(conn, self._process.id)
