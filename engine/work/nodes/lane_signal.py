"""The signal that wakes a lane of a worker."""

import asyncio
from collections import deque


class LaneSignal:
    """Each `set` wakes one waiting lane. Without one, the next wait returns at once."""

    def __init__(self) -> None:
        self._set = False
        self._waiting: deque[asyncio.Future[None]] = deque()

    def set(self) -> None:
        if self._waiting:
            self._waiting.popleft().set_result(None)
        else:
            self._set = True

    def set_all(self) -> None:
        """Wake all waiting lanes, and let the next wait return at once."""
        while self._waiting:
            self._waiting.popleft().set_result(None)
        self._set = True

    def clear(self) -> None:
        self._set = False

    async def wait(self, seconds: float) -> bool:
        """Wait for the signal, for at most `seconds`. Returns whether it came."""
        if self._set:
            return True
        waiting = asyncio.get_running_loop().create_future()
        self._waiting.append(waiting)
        try:
            await asyncio.wait((waiting,), timeout=seconds)
        finally:
            if waiting in self._waiting:
                self._waiting.remove(waiting)
        return waiting.done()
