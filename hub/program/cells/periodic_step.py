"""Repeats a step until the process stops, whether it fails or not."""

import asyncio
from collections.abc import Awaitable, Callable

import structlog
from structlog.typing import FilteringBoundLogger

from engine.bounded_wait import wait_at_most
from engine.errors import HeadgateError

log: FilteringBoundLogger = structlog.get_logger()

#: Seconds between two attempts to reach a cell, and between two steps.
RETRY_INTERVAL = 3.0


async def repeat(step: Callable[[], Awaitable[None]], stop: asyncio.Event, failed: str) -> None:
    """Repeat a step until `stop` is set. failed: the event that is logged if a step fails for
    another reason than the last failed one."""
    logged = ""
    while not stop.is_set():
        try:
            await step()
            logged = ""
        except Exception as error:
            is_expected = isinstance(error, HeadgateError)
            if str(error) != logged:
                logged = str(error)
                log.warning(failed, reason=logged, exc_info=None if is_expected else error)
        await wait_at_most(stop, RETRY_INTERVAL)
