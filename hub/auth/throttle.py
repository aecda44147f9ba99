"""Limits of authentication attempts: address blocks, turns, and the error TooManyRequests.

hub/auth/token_lockout.py and engine/store/password_lockout.py have the lockouts.
"""

import asyncio
from collections import Counter, OrderedDict, deque
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from ipaddress import IPv6Address, ip_address, ip_network
from math import ceil

from engine.errors import LimitReached

#: The smallest IPv6 network that providers assign to a customer.
IPV6_PREFIX = 64


def block_of(address: str) -> str:
    """An IPv4 address by itself; the /64 of an IPv6 address; other text as it is."""
    try:
        parsed = ip_address(address)
    except ValueError:
        return address
    if isinstance(parsed, IPv6Address):
        if parsed.ipv4_mapped is not None:
            return str(parsed.ipv4_mapped)
        return str(ip_network((int(parsed), IPV6_PREFIX), strict=False))
    return str(parsed)


class TooManyRequests(LimitReached):
    """wait: seconds until the next attempt, rounded up."""

    def __init__(self, reason: str, remedy: str, wait: float) -> None:
        super().__init__(reason, remedy=remedy, code="TooManyRequests")
        self.wait = max(ceil(wait), 1)


class QueueFull(Exception):
    """The maximum number of waiting turns is reached."""


class TurnQueue:
    """A bounded queue that serves its keys in turn, so that one key cannot delay the others.

    at_once: concurrent turns; each: of one key. waiting: the maximum number of waiting turns of one
    key; total: of all keys.
    """

    def __init__(self, *, at_once: int, each: int, waiting: int, total: int) -> None:
        self._at_once = at_once
        self._each = each
        self._max_waiting = waiting
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
        if len(queue) >= self._max_waiting or sum(map(len, self._queues.values())) >= self._total:
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
        """Start the first waiting turn of a key, and move the key to the end."""
        queue = self._queues.pop(key)
        place = queue.popleft()
        if queue:
            self._queues[key] = queue
        if not place.done():  # a cancelled one removes itself
            self._running[key] += 1
            place.set_result(None)
