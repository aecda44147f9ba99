"""Counts the resources of all projects every hour, and rolls up the usage of finished days, in one
process at a time."""

import asyncio
from datetime import timedelta

import structlog
from structlog.typing import FilteringBoundLogger

from engine.bounded_wait import wait_at_most
from engine.loop_guard import START_DELAY, Supervisor
from engine.principal import Principal
from engine.store.connection import Connection, try_lock
from engine.store.database import Database, savepoint
from engine.store.projects import usage

log: FilteringBoundLogger = structlog.get_logger()

#: How often the loop looks.
EVERY = timedelta(minutes=5)
#: How long transactions of a day may take after its end.
SETTLING = timedelta(minutes=15)
_DAY = timedelta(days=1)


async def roll_up(conn: Connection, repairs_by: Principal) -> int:
    """Count resources if that is due, and roll up all finished days; return the number of rows."""
    async with savepoint(conn):
        if not await try_lock(conn, usage.LOCK_KEY):
            return 0
        await usage.sample_resources(conn)
        days = await usage.read_days(conn, SETTLING)
        if days.ended <= days.rolled_up:
            return 0
        return await usage.roll_up(conn, days.rolled_up + _DAY, days.ended, repairs_by)


class UsageRollUp:
    """One loop. repairs_by: who requests repairs."""

    def __init__(
        self,
        database: Database,
        repairs_by: Principal,
        *,
        supervisor: Supervisor | None = None,
    ) -> None:
        self._database = database
        self._repairs_by = repairs_by
        pause = EVERY.total_seconds()
        self._guard = (supervisor or Supervisor()).guard("usage", max_pause=pause)

    async def run(self, stop: asyncio.Event) -> None:
        async def turn() -> None:
            await self.roll_up()
            await wait_at_most(stop, EVERY.total_seconds())

        await self._guard.run(turn, stop, after=START_DELAY)

    async def roll_up(self) -> None:
        async with self._database.connection() as conn:
            count = await roll_up(conn, self._repairs_by)
        if count:
            log.info("usage.rolled_up", rows=count)
