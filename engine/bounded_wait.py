"""Waiting for an event, with a bound."""

import asyncio


async def wait_at_most(event: asyncio.Event, seconds: float) -> bool:
    """Wait for an event for at most `seconds`; return whether it was set."""
    try:
        async with asyncio.timeout(seconds):
            return await event.wait()
    except TimeoutError:
        return False
