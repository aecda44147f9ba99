"""An idle process stops when it is asked to."""

import asyncio

from tests.support.program import PATIENCE, program

#: A worker that is not woken would sleep for this time.
LONG_POLL = {"engine.poll": "1h", "engine.drain": "1h"}


async def test_an_idle_process_stops_in_every_state_of_its_workers(database_url: str) -> None:
    """Repeated, because a worker can be anywhere between two polls."""
    async with asyncio.timeout(PATIENCE):
        for _ in range(20):
            async with program(database_url, LONG_POLL) as run:
                await run.call("GET", "//healthz")
