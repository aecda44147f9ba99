"""Templates are read in threads of their own: one may take a second, and others are not to wait."""

import asyncio
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from contextvars import copy_context
from typing import TypeVar

#: With one of them a costly template would hold up all the others; more only take turns.
READERS = 2

T = TypeVar("T")


class Aside:
    """What is asked of it takes bounded time (engine.hot.effort), also when nobody waits for it."""

    def __init__(self) -> None:
        self._threads = ThreadPoolExecutor(READERS, thread_name_prefix="read")

    async def __call__(self, work: Callable[[], T]) -> T:
        """What work gives; raises what it raises. It does no I/O and changes nothing."""
        loop = asyncio.get_running_loop()
        return await loop.run_in_executor(self._threads, copy_context().run, work)
