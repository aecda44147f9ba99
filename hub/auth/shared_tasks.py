"""Work that concurrent callers share, such as a request that all of them would send."""

import asyncio
from collections.abc import Callable, Coroutine
from typing import Any, Generic, TypeVar

T = TypeVar("T")


class SharedTasks(Generic[T]):
    """Tasks in progress, by key."""

    def __init__(self) -> None:
        self._running: dict[str, asyncio.Task[T]] = {}

    async def run(self, key: str, start: Callable[[], Coroutine[Any, Any, T]]) -> T:
        """The result, or the error, of the task with this key; start it if none runs. It continues
        if a caller is cancelled."""
        task = self._running.get(key)
        if task is None:
            task = asyncio.create_task(start())
            self._running[key] = task
            task.add_done_callback(lambda done: self._forget(key, done))
        return await asyncio.shield(task)

    def _forget(self, key: str, task: asyncio.Task[T]) -> None:
        del self._running[key]
        if not task.cancelled():
            task.exception()  # retrieved, because all callers may be cancelled
