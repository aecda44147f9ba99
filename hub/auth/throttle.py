"""Limits of authentication attempts: address blocks, turns, and the error TooManyRequests.

hub/auth/lockout.py and engine/store/access/password_lockout.py have the lockouts.
"""

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass
from ipaddress import IPv6Address, ip_address, ip_network
from math import ceil

from engine.errors import LimitReached
from engine.fair_queue import FairQueue

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


@dataclass(frozen=True, slots=True, eq=False)
class _Turn:
    group: str
    member: str
    start: "asyncio.Future[None]"


#: Concurrent turns of a queue that limits its groups only: the pool of connections limits them.
UNLIMITED = 1_000_000


class TurnQueue:
    """A bounded queue for coroutines that serves its groups, and their members, in turn, so that
    one cannot delay the others.

    at_once: concurrent turns; each: of one group; each_member: of one member, if that is less.
    waiting: the maximum number of waiting turns of one member; total: of all. None: no limit.
    """

    def __init__(
        self,
        *,
        at_once: int,
        each: int,
        each_member: int | None = None,
        waiting: int | None,
        total: int | None = None,
    ) -> None:
        per_member = each if each_member is None else each_member
        self._queue: FairQueue[_Turn] = FairQueue(at_once, each, per_member)
        self._max_waiting = waiting
        self._total = total

    @asynccontextmanager
    async def turn(self, group: str, member: str = "") -> AsyncIterator[None]:
        """Wait for a turn, which lasts until the context ends. Raises QueueFull."""
        turn = _Turn(group, member, asyncio.get_running_loop().create_future())
        self._queue.add(turn)
        self._start_next()
        try:
            if not turn.start.done() and self._is_too_full(turn):
                raise QueueFull
            await turn.start
            yield
        finally:
            if turn.start.done() and not turn.start.cancelled():
                self._queue.release(turn)
            else:
                self._queue.discard(turn)
            self._start_next()

    def _is_too_full(self, turn: _Turn) -> bool:
        """Whether a turn that waits exceeds a limit."""
        of_member = self._queue.waiting(turn.group, turn.member)
        return (self._max_waiting is not None and of_member > self._max_waiting) or (
            self._total is not None and len(self._queue) > self._total
        )

    def _start_next(self) -> None:
        while (turn := self._queue.take()) is not None:
            if turn.start.done():  # cancelled
                self._queue.release(turn)
            else:
                turn.start.set_result(None)
