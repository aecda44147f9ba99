"""A process that is told to stop, and has nothing under way, stops."""

import asyncio

from tests.support.program import PATIENCE, program

#: A lane that nobody wakes would sleep for all of that.
SLEEPY = {"engine.poll": "1h", "engine.drain": "1h"}


async def test_it_stops_wherever_its_lanes_are(database_url: str) -> None:
    """A lane may be anywhere between two looks for work; so it is tried often."""
    async with asyncio.timeout(PATIENCE):
        for _ in range(20):
            async with program(database_url, SLEEPY) as run:
                await run.call("GET", "//healthz")
