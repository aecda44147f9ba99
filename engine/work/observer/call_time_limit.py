"""A time limit of calls of resource types that does not count how long they wait for a budget."""

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

#: Seconds that all calls of a time limit may wait in addition to it.
PAUSES = 1_800.0


class CallTimeLimit:
    """seconds: from now on, for all calls."""

    def __init__(self, seconds: float) -> None:
        self._clock = asyncio.get_running_loop().time
        self._end = self._clock() + seconds
        self._left = PAUSES
        self._paused_until = 0.0
        self._open = set[asyncio.Timeout]()

    @property
    def is_over(self) -> bool:
        return self._clock() >= self._end

    @asynccontextmanager
    async def apply(self, seconds: float | None = None) -> AsyncIterator[None]:
        """Apply it to a block. seconds: a shorter limit of the block. Raises TimeoutError."""
        end = self._end if seconds is None else min(self._end, self._clock() + seconds)
        async with asyncio.timeout_at(end) as timeout:
            self._open.add(timeout)
            try:
                yield
            finally:
                self._open.discard(timeout)

    async def pause(self, seconds: float) -> None:
        """Wait; no block has less time because of it. Blocks that wait at the same time wait
        once."""
        until = self._clock() + seconds
        more = min(until - max(self._clock(), self._paused_until), self._left)
        if more > 0:
            self._left -= more
            self._end += more
            for timeout in self._open:
                if (end := timeout.when()) is not None and not timeout.expired():
                    timeout.reschedule(end + more)
        self._paused_until = max(self._paused_until, until)
        await asyncio.sleep(seconds)
