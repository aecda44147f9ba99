"""Computes hashes of passwords in threads: few at a time, in turn between senders."""

import asyncio
from collections.abc import Callable
from typing import TypeVar

from hub.auth.fair_queue import FairQueue, QueueFull
from hub.auth.throttle import TooMany

Result = TypeVar("Result")
#: Hashes that one process computes at a time, each with 128 MiB; for one address block, one.
AT_ONCE, EACH = 2, 1
#: Senders that may wait: of one address block, and all together.
WAITING, TOTAL = 32, 1024
#: Seconds after which a full queue is worth another try.
SOON = 5.0


class PasswordHasher:
    def __init__(self) -> None:
        self.queue = FairQueue(at_once=AT_ONCE, each=EACH, waiting=WAITING, total=TOTAL)
        self._tasks: set[asyncio.Task[object]] = set()

    async def run(self, block: str, work: Callable[[], Result]) -> Result:
        """Call a function that computes one hash, when it is this address block's turn.

        When the caller is cancelled, the turn lasts until the thread has ended: memory stays
        bounded. Raises TooMany.
        """
        task = asyncio.create_task(self._run(block, work))
        self._tasks.add(task)
        task.add_done_callback(self._done)
        return await asyncio.shield(task)

    async def _run(self, block: str, work: Callable[[], Result]) -> Result:
        try:
            async with self.queue.turn(block):
                return await asyncio.to_thread(work)
        except QueueFull:
            raise queue_full() from None

    def _done(self, task: asyncio.Task[object]) -> None:
        self._tasks.discard(task)
        if not task.cancelled():
            task.exception()  # the caller may be gone


def queue_full() -> TooMany:
    return TooMany(
        "too many sign-ins from this address are being checked",
        "Wait for the time in Retry-After, or use a token.",
        SOON,
    )
