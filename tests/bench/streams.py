"""The event stream: what a reader costs, and how soon thousands of them have an event."""

import asyncio
import resource as limits
import statistics
import time
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

from tests.bench.client import Client
from tests.bench.run import Run
from tests.bench.server import Server
from tests.bench.shapes import wide

READERS, ROUNDS = 2000, 10
#: Of a stack with one resource: stack and resource, each started and completed.
EVENTS = 4
#: Open files of this process and of the server.
FILES = 3 * READERS
SETTINGS = {"server": {"connections_per_address": 0, "streams_per_user": 0}}


async def streams(run: Run) -> None:
    raise_file_limit()
    async with run.server(settings=SETTINGS) as (server, client):
        before = await server.stable_memory()
        async with connected_readers(server) as events:
            memory = await server.stable_memory() - before
            used = server.usage()
            rounds = [await measure_round(client, events, number) for number in range(ROUNDS)]
            used = server.usage() - used
    sent = READERS * ROUNDS * EVENTS
    first, last = (statistics.median(column) for column in zip(*rounds, strict=True))
    run.add("stream", "event of a reader", READERS, **used.each(sent))
    run.add("stream", "memory of a reader", READERS, bytes=memory / READERS * 1e6)
    run.add("stream", "request to first reader", READERS, median=first * 1000)
    run.add("stream", "request to last reader", READERS, median=last * 1000)


def raise_file_limit() -> None:
    """Processes that this one starts inherit the limit."""
    _, hard_limit = limits.getrlimit(limits.RLIMIT_NOFILE)
    assert hard_limit == limits.RLIM_INFINITY or hard_limit >= FILES, (
        f"ulimit -Hn must be {FILES} or more"
    )
    limits.setrlimit(limits.RLIMIT_NOFILE, (FILES, hard_limit))


class Counts:
    """Counts the events of every reader."""

    def __init__(self) -> None:
        self._counts = [0] * READERS
        self.first = self.last = 0.0
        self._expected, self._incomplete, self._complete = 0, READERS, asyncio.Event()

    def expect(self, expected: int) -> None:
        self._expected, self._incomplete, self.first = expected, READERS, 0.0
        self._complete.clear()

    def add(self, reader: int) -> None:
        self._counts[reader] += 1
        if self._counts[reader] == self._expected:
            self.last = time.monotonic()
            self.first = self.first or self.last
            self._incomplete -= 1
            if not self._incomplete:
                self._complete.set()

    async def all(self) -> None:
        async with asyncio.timeout(60):
            await self._complete.wait()


async def measure_round(client: Client, counts: Counts, number: int) -> tuple[float, float]:
    """Seconds from the request until the first, and the last, reader has all events."""
    counts.expect((number + 1) * EVENTS)
    started = time.monotonic()
    await client.create(f"s{number}", wide(1))
    await counts.all()
    return counts.first - started, counts.last - started


@asynccontextmanager
async def connected_readers(server: Server) -> AsyncIterator[Counts]:
    counts, ready = Counts(), asyncio.Semaphore(0)
    async with asyncio.TaskGroup() as group:
        tasks = []
        for number in range(READERS):
            tasks.append(group.create_task(read(server.port, number, counts, ready)))
            if number % 100 == 99:
                for _ in range(100):
                    await ready.acquire()
        yield counts
        for task in tasks:
            task.cancel()


async def read(port: int, number: int, counts: Counts, ready: asyncio.Semaphore) -> None:
    reader, writer = await asyncio.open_connection("127.0.0.1", port)
    try:
        writer.write(b"GET /v1/p/events/stream HTTP/1.1\r\nHost: localhost\r\n\r\n")
        while line := await reader.readline():
            if line.startswith(b": connected"):
                ready.release()
            elif line.startswith(b"data: "):
                counts.add(number)
    finally:
        writer.close()
