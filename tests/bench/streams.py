"""The event stream: what a reader costs, and how soon thousands of them have an event."""

import asyncio
import os
import statistics
import tempfile
import time
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path

import aiohttp

from tests.bench.process import cpu, memory, settled
from tests.support.program import Http, ServerProcess, resource

READERS, ROUNDS = 2000, 10
#: Of a stack with one resource: it began, the resource began, it was made, the stack is there.
EVENTS = 4


async def readers() -> None:
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        folder.chmod(0o711)
        for limit in ("CONNECTIONS_PER_ADDRESS", "STREAMS_PER_USER"):
            os.environ[f"HEADGATE_SERVER__{limit}"] = "0"
        server = ServerProcess(folder)
        server.start()
        try:
            async with aiohttp.ClientSession() as session:
                http = Http(session, server.url)
                await http.create("warm", {"a": resource()})
                await http.until_ended("warm")
                before = await settled(lambda: memory(server.pid))
                async with _reading(server) as lines:
                    held = await settled(lambda: memory(server.pid)) - before
                    used = cpu(server.pid)
                    took = [await _round(http, lines, number) for number in range(ROUNDS)]
                    used = cpu(server.pid) - used
        finally:
            server.stop()
    sent = READERS * ROUNDS * EVENTS
    first, last = (statistics.median(column) for column in zip(*took, strict=True))
    print(f"event stream, {READERS:,} readers, {ROUNDS} stacks of {EVENTS} events")
    print(f"  memory {held / READERS * 1000:.1f} kB a reader")
    print(f"  from the POST until the first, the last reader has all: "
          f"{first * 1000:.0f} ms, {last * 1000:.0f} ms (medians)")  # fmt: skip
    print(f"  {sent / used:,.0f} events to a reader for a second of one core\n")


class _Lines:
    """Counts the events of every reader."""

    def __init__(self) -> None:
        self.counts = [0] * READERS
        self.first = self.last = 0.0
        self._wanted, self._left, self._there = 0, READERS, asyncio.Event()

    def expect(self, wanted: int) -> None:
        self._wanted, self._left, self.first = wanted, READERS, 0.0
        self._there.clear()

    def add(self, reader: int) -> None:
        self.counts[reader] += 1
        if self.counts[reader] == self._wanted:
            self.last = time.monotonic()
            self.first = self.first or self.last
            self._left -= 1
            if not self._left:
                self._there.set()

    async def all(self) -> None:
        async with asyncio.timeout(60):
            await self._there.wait()


async def _round(http: Http, lines: _Lines, number: int) -> tuple[float, float]:
    lines.expect((number + 1) * EVENTS)
    began = time.monotonic()
    await http.create(f"s{number}", {"a": resource()})
    await lines.all()
    return lines.first - began, lines.last - began


@asynccontextmanager
async def _reading(server: ServerProcess) -> AsyncIterator[_Lines]:
    lines, ready = _Lines(), asyncio.Semaphore(0)
    async with asyncio.TaskGroup() as group:
        tasks = []
        for number in range(READERS):
            tasks.append(group.create_task(_read(server.port, number, lines, ready)))
            if number % 100 == 99:
                for _ in range(100):
                    await ready.acquire()
        yield lines
        for task in tasks:
            task.cancel()


async def _read(port: int, number: int, lines: _Lines, ready: asyncio.Semaphore) -> None:
    reader, writer = await asyncio.open_connection("127.0.0.1", port)
    try:
        writer.write(b"GET /v1/p/events/stream HTTP/1.1\r\nHost: localhost\r\n\r\n")
        while line := await reader.readline():
            if line.startswith(b": connected"):
                ready.release()
            elif line.startswith(b"data: "):
                lines.add(number)
    finally:
        writer.close()
