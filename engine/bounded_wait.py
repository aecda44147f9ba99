"""Waiting for an event or a result, with a bound."""

import asyncio
from collections.abc import Awaitable
from typing import Any, TypeVar

T = TypeVar("T")


async def wait_at_most(event: asyncio.Event, seconds: float) -> bool:
    """Wait for an event for at most `seconds`; return whether it was set."""
    try:
        async with asyncio.timeout(seconds):
            return await event.wait()
    except TimeoutError:
        return False


async def wait_for_result(answer: Awaitable[T], seconds: float) -> T:
    """Wait for a result for at most `seconds`, also if the work does not end when it is cancelled.
    Raises TimeoutError."""
    task = asyncio.ensure_future(answer)
    try:
        await asyncio.wait([task], timeout=seconds)
        if not task.done():
            raise TimeoutError
        return task.result()
    finally:
        abandon(task)


#: Cancelled tasks, until they end.
_ABANDONED: set[asyncio.Future[Any]] = set()


def abandon(task: "asyncio.Future[Any]") -> None:
    """Cancel a task without waiting for its end. The result of one that has ended is dropped."""
    if task.done():
        _end_abandoned(task)
    else:
        _ABANDONED.add(task)
        task.add_done_callback(_end_abandoned)
        task.cancel()


def _end_abandoned(task: "asyncio.Future[Any]") -> None:
    _ABANDONED.discard(task)
    if not task.cancelled():
        task.exception()  # read, so that it is not logged
