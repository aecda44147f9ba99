"""Watches the database's clock: whether it goes as the process's own, and whether it was set."""

import asyncio
from collections.abc import Callable
from datetime import datetime, timedelta

import structlog
from structlog.typing import FilteringBoundLogger

from engine.loops import Supervisor, wait_at_most
from engine.store.clock_correction import ClockReading, read_clock
from engine.store.database import Database

log: FilteringBoundLogger = structlog.get_logger()

#: Seconds between two readings.
INTERVAL = 20.0
#: A clock that is so much off between two readings was set.
JUMP = timedelta(seconds=5)
#: What waits is corrected where the clock was set back by so much; less is waited for.
CORRECTED = timedelta(minutes=1)


class ClockWatch:
    """lease: of nodes. jumped: told of each jump, in seconds; less than 0 where it was set back."""

    def __init__(
        self,
        database: Database,
        *,
        lease: timedelta,
        jumped: Callable[[float], None] = lambda _: None,
        supervisor: Supervisor | None = None,
    ) -> None:
        self._database = database
        self._lease = lease
        self._jumped = jumped
        self._guard = (supervisor or Supervisor()).guard("clock", longest=INTERVAL)
        self._last: tuple[datetime, float] | None = None

    async def run(self, stop: asyncio.Event) -> None:
        async def turn() -> None:
            await self.look()
            await wait_at_most(stop, INTERVAL)

        await self._guard.run(turn, stop)

    async def look(self) -> None:
        """Read the clock once."""
        async with self._database.transaction() as conn:
            reading = await read_clock(conn, self._lease, CORRECTED)
        self._compare(reading, asyncio.get_running_loop().time())

    def _compare(self, reading: ClockReading, elapsed: float) -> None:
        """elapsed: by the process's clock, which is never set."""
        jump = -reading.behind
        if self._last is not None:
            before, then = self._last
            jump = min(jump, reading.now - before - timedelta(seconds=elapsed - then), key=_least)
        self._last = reading.now, elapsed
        if abs(jump) < JUMP:
            return
        self._jumped(jump.total_seconds())
        log.error(
            "database.clock_set",
            seconds=round(jump.total_seconds(), 1),
            corrected=reading.behind >= CORRECTED,
            remedy="Have the database's machine keep time by NTP, which changes it in small steps",
        )


def _least(jump: timedelta) -> timedelta:
    """The larger jump first."""
    return -abs(jump)
