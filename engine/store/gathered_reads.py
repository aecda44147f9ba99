"""Reads that several requests need at the same time, by one statement."""

import asyncio
import contextvars
from collections import deque
from collections.abc import Awaitable, Callable, Hashable, Mapping, Sequence
from typing import Generic, TypeVar

K = TypeVar("K", bound=Hashable)
V = TypeVar("V")
#: Maximum number of keys in one statement.
MAX_KEYS = 100


class GatheredReads(Generic[K, V]):
    """One statement is under way at a time. The next one reads the keys that were requested
    meanwhile, so a single request does not wait.

    read: returns the values that exist, by key.
    """

    def __init__(self, read: Callable[[Sequence[K]], Awaitable[Mapping[K, V]]]) -> None:
        self._read = read
        self._pending: deque[tuple[K, asyncio.Future[V | None]]] = deque()
        self._task: asyncio.Task[None] | None = None

    async def get(self, key: K) -> V | None:
        """The value of a key, or None. Raises what `read` raises for the keys read together."""
        result: asyncio.Future[V | None] = asyncio.get_running_loop().create_future()
        self._pending.append((key, result))
        if self._task is None:
            # It belongs to no single request, so it runs without the request's log context.
            self._task = asyncio.create_task(self._run(), context=contextvars.Context())
        return await result

    async def _run(self) -> None:
        batch: list[tuple[K, asyncio.Future[V | None]]] = []
        try:
            while self._pending:
                count = min(len(self._pending), MAX_KEYS)
                batch = [self._pending.popleft() for _ in range(count)]
                await self._complete(batch)
        finally:
            self._task = None
            for _, result in (*batch, *self._pending):  # cancelled: the process ends
                result.cancel()

    async def _complete(self, batch: Sequence[tuple[K, "asyncio.Future[V | None]"]]) -> None:
        error: Exception | None = None
        values: Mapping[K, V] = {}
        try:
            values = await self._read(list(dict.fromkeys(key for key, _ in batch)))
        except Exception as raised:
            error = raised
        for key, result in batch:
            if result.done():
                continue  # its caller was cancelled
            if error is not None:
                result.set_exception(error)
            else:
                result.set_result(values.get(key))
