"""A tree of resources in groups: created, changed in one place, deleted; beside flat stacks."""

import asyncio
import time
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any

import orjson

from tests.bench.client import Client
from tests.bench.create import measure_create
from tests.bench.run import Run
from tests.bench.server import Server
from tests.bench.shapes import wide
from tests.support.program import resource

Json = Any
#: Members of a group.
MEMBERS = 1000
#: Seconds between two requests for the state of the tree.
PAUSE = 0.2


async def trees(run: Run) -> None:
    async with run.server() as (server, client):
        for number in range(run.rounds):
            _, values = await measure_create(server, client, f"flat{number}", wide(MEMBERS))
            run.add("tree", "flat stack", MEMBERS, **values)
        for size in sorted({max(run.sizes), run.largest or max(run.sizes)}):
            await measure_tree(run, server, client, size)


async def measure_tree(run: Run, server: Server, client: Client, size: int) -> None:
    groups: Json = {f"g{n}": group(MEMBERS) for n in range(size // MEMBERS)}
    async with measurement(run, server, "create", size) as stream:
        stack = await client.create(f"tree{size}", groups)
        await client.until_ended(stack, pause=PAUSE)
        ended = time.monotonic()
        await stream.until_ended(stack)
        stream.lag = time.monotonic() - ended
    groups["g1"] = group(MEMBERS + 1)
    async with measurement(run, server, "one more member", size, units=1):
        await client.update(stack, groups)
        await client.until_ended(stack)
    async with measurement(run, server, "delete", size):
        await client.delete(stack)
        await client.until_ended(stack, pause=PAUSE)


def group(size: int) -> Json:
    return {
        "type": "OS::Heat::ResourceGroup",
        "properties": {"count": size, "resource_def": resource("%index%")},
    }


class Stream:
    """A reader of the event stream. lag: seconds between the end in the API and its event."""

    def __init__(self, server: Server) -> None:
        self.server = server
        self.lag = 0.0
        self._ended: set[str] = set()
        self._changed = asyncio.Event()

    async def read(self) -> None:
        reader, writer = await asyncio.open_connection("127.0.0.1", self.server.port, limit=2**26)
        try:
            writer.write(b"GET /v1/p/events/stream HTTP/1.1\r\nHost: localhost\r\n\r\n")
            while line := await reader.readline():
                if line.startswith(b"data: ") and b".create.completed" in line:
                    event = orjson.loads(line[6:])
                    if event["type"] == "headgate.stack.create.completed":
                        self._ended.add(event["source"])
                        self._changed.set()
        finally:
            writer.close()

    async def until_ended(self, stack: str) -> None:
        async with asyncio.timeout(600):
            while not any(source.endswith(stack) for source in self._ended):
                self._changed.clear()
                await self._changed.wait()


@asynccontextmanager
async def measurement(
    run: Run, server: Server, case: str, size: int, units: int = 0
) -> AsyncIterator[Stream]:
    """units: of the costs; default: size."""
    stream, highest = Stream(server), server.memory()

    async def watch() -> None:
        nonlocal highest
        while True:
            highest = max(highest, server.memory())
            await asyncio.sleep(0.2)

    tasks = [asyncio.create_task(coroutine) for coroutine in (stream.read(), watch())]
    used, started = server.usage(), time.monotonic()
    try:
        yield stream
        elapsed, used = time.monotonic() - started - stream.lag, server.usage() - used
    finally:
        for task in tasks:
            task.cancel()
        await asyncio.wait(tasks)
    values = {"rate": size / elapsed} if not units else {"median": elapsed * 1000}
    lag = {"behind": stream.lag} if stream.lag else {}
    run.add("tree", case, size, **values, **used.each(units or size), memory=highest, **lag)
