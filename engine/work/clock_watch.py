"""Detects changes of the database's clock by comparison with the process's monotonic clock."""

import asyncio
from collections.abc import Callable
from datetime import datetime, timedelta

import structlog
from structlog.typing import FilteringBoundLogger

from engine.bounded_wait import wait_at_most
from engine.loop_guard import Supervisor
from engine.store.database import Database
from engine.store.maintenance.clock_correction import ClockReading, read_clock

log: FilteringBoundLogger = structlog.get_logger()

#: Seconds between two readings.
INTERVAL = 20.0
#: A larger deviation between two readings means that the clock was set.
JUMP = timedelta(seconds=5)
#: Waiting times are corrected if the clock was set back by at least this.
CORRECTED = timedelta(minutes=1)


class ClockWatch:
    """lease: of nodes. jumped: called with the seconds of each jump; negative if set back."""

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
        self._guard = (supervisor or Supervisor()).guard("clock", max_pause=INTERVAL)
        self._last: tuple[datetime, float] | None = None

    async def run(self, stop: asyncio.Event) -> None:
        async def turn() -> None:
            await self.check()
            await wait_at_most(stop, INTERVAL)

        await self._guard.run(turn, stop)

    async def check(self) -> None:
        """Read the clock once."""
        async with self._database.transaction() as conn:
            reading = await read_clock(conn, self._lease, CORRECTED)
        self._compare(reading, asyncio.get_running_loop().time())

    def _compare(self, reading: ClockReading, elapsed: float) -> None:
        """Report a jump. elapsed: seconds of the process's monotonic clock."""
        jump = -reading.behind
        if self._last is not None:
            before, then = self._last
            jump = min(
                jump, reading.now - before - timedelta(seconds=elapsed - then), key=_largest_first
            )
        self._last = reading.now, elapsed
        if abs(jump) < JUMP:
            return
        self._jumped(jump.total_seconds())
        log.error(
            "database.clock_set",
            seconds=round(jump.total_seconds(), 1),
            corrected=reading.behind >= CORRECTED,
            remedy="Use NTP on the database's host; it adjusts the clock in small steps.",
        )


def _largest_first(jump: timedelta) -> timedelta:
    """Sort key: the larger jump first."""
    return -abs(jump)
