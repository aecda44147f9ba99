"""Waiting for an event, but not for ever."""

import asyncio


async def wait_at_most(event: asyncio.Event, seconds: float) -> bool:
    """Return whether the event was set before so many seconds were over."""
    try:
        async with asyncio.timeout(seconds):
            return await event.wait()
    except TimeoutError:
        return False
