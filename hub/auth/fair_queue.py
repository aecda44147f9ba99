"""A bounded queue that serves its keys in turn, so that one key cannot hold up another."""

import asyncio
from collections import Counter, OrderedDict, deque
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager


class QueueFull(Exception):
    """As many wait as may."""


class FairQueue:
    """at_once: turns at a time, of one key `each` at most. waiting: of one key; total: of all."""

    def __init__(self, *, at_once: int, each: int, waiting: int, total: int) -> None:
        self._at_once = at_once
        self._each = each
        self._most = waiting
        self._total = total
        self._running: Counter[str] = Counter()
        self._queues: OrderedDict[str, deque[asyncio.Future[None]]] = OrderedDict()

    @asynccontextmanager
    async def turn(self, key: str) -> AsyncIterator[None]:
        """Raises QueueFull."""
        await self._enter(key)
        try:
            yield
        finally:
            self._leave(key)

    async def _enter(self, key: str) -> None:
        if key not in self._queues and self._is_free(key):
            self._running[key] += 1
            return
        queue = self._queues.get(key, ())
        if len(queue) >= self._most or sum(map(len, self._queues.values())) >= self._total:
            raise QueueFull
        place = asyncio.get_running_loop().create_future()
        self._queues.setdefault(key, deque()).append(place)
        try:
            await place
        except asyncio.CancelledError:
            if place.done() and not place.cancelled():
                self._leave(key)
            else:
                self._forget(key, place)
            raise

    def _is_free(self, key: str) -> bool:
        return self._running.total() < self._at_once and self._running[key] < self._each

    def _forget(self, key: str, place: asyncio.Future[None]) -> None:
        queue = self._queues.get(key)
        if queue is not None and place in queue:
            queue.remove(place)
            if not queue:
                del self._queues[key]

    def _leave(self, key: str) -> None:
        self._running[key] -= 1
        if not self._running[key]:
            del self._running[key]
        while (following := next(filter(self._is_free, self._queues), None)) is not None:
            self._admit(following)

    def _admit(self, key: str) -> None:
        """The first that waits has its turn; the key goes to the end of the line."""
        queue = self._queues.pop(key)
        place = queue.popleft()
        if queue:
            self._queues[key] = queue
        if not place.done():  # one that is cancelled leaves by itself
            self._running[key] += 1
            place.set_result(None)
