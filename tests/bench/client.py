"""A minimal client of the HTTP API: it shares the machine with the server.

It uses only routes that every version has, so that one client measures two versions.
"""

import asyncio
import statistics
import time
from collections.abc import AsyncIterator, Iterable, Iterator
from contextlib import asynccontextmanager
from dataclasses import dataclass
from datetime import datetime
from typing import Any

import orjson
from yarl import URL

from tests.support.program import template

Json = Any
#: Seconds until a stack must have ended.
TIMEOUT = 7200.0
#: Connections at the same time, each with one request after the other.
CONNECTIONS = 16
HEADER_END = b"\r\n\r\n"


@dataclass(frozen=True, slots=True)
class Request:
    method: str
    path: str
    body: bytes | None = None

    def encoded(self) -> bytes:
        head = f"{self.method} {self.path} HTTP/1.1\r\nHost: 127.0.0.1\r\n"
        if self.body is None:
            return f"{head}\r\n".encode()
        head += f"Content-Type: application/json\r\nContent-Length: {len(self.body)}\r\n\r\n"
        return head.encode() + self.body


class Connection:
    """A connection that is kept open, and opened again if the server closes it while it is idle.

    Responses have a Content-Length, or no body.
    """

    def __init__(self, url: str) -> None:
        self._address = URL(url)
        self._streams: tuple[asyncio.StreamReader, asyncio.StreamWriter] | None = None

    @classmethod
    @asynccontextmanager
    async def open(cls, url: str) -> AsyncIterator["Connection"]:
        connection = cls(url)
        try:
            yield connection
        finally:
            connection.close()

    def close(self) -> None:
        if self._streams:
            self._streams[1].close()
            self._streams = None

    async def send(self, encoded: bytes) -> tuple[int, bytes]:
        """The status and the body of the response."""
        if self._streams:
            try:
                return await self._exchange(*self._streams, encoded)
            except (asyncio.IncompleteReadError, ConnectionError) as error:
                if getattr(error, "partial", b""):
                    raise
                self.close()
        host, port = self._address.host, self._address.port
        self._streams = await asyncio.open_connection(host, port, limit=2**26)
        return await self._exchange(*self._streams, encoded)

    async def _exchange(
        self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter, encoded: bytes
    ) -> tuple[int, bytes]:
        writer.write(encoded)
        head = (await reader.readuntil(HEADER_END)).lower()
        status = int(head[9:12])
        length = head.partition(b"content-length: ")[2].partition(b"\r\n")[0]
        if length:
            return status, await reader.readexactly(int(length))
        assert status in (204, 304), f"a response without a length: {head.decode()}"
        return status, b""

    async def call(self, method: str, path: str, body: Json = None) -> tuple[int, Json]:
        """The status and the document of the response."""
        sent = None if body is None else orjson.dumps(body)
        status, received = await self.send(Request(method, path, sent).encoded())
        return status, orjson.loads(received) if received else None


@dataclass(frozen=True, slots=True)
class Latencies:
    """count: requests. rate: per second. median, p99: milliseconds. size: bytes of the last
    response."""

    count: int
    rate: float
    median: float
    p99: float
    size: int

    def measures(self) -> dict[str, float]:
        return {"rate": self.rate, "median": self.median, "p99": self.p99}


def percentiles(seconds: Iterable[float]) -> dict[str, float]:
    """The median and the 99th percentile in milliseconds, as measures."""
    durations = sorted(seconds)
    p99 = durations[min(len(durations) - 1, int(len(durations) * 0.99))]
    return {"median": statistics.median(durations) * 1000, "p99": p99 * 1000}


async def exchange(
    url: str, requests: Iterable[Request], *, connections: int = CONNECTIONS, seconds: float = 0
) -> Latencies:
    """Send requests over `at_once` connections, until there are no more of them.

    seconds: stop after this time. Raises AssertionError for a response that is no success.
    """
    queue, durations, size = iter(requests), list[float](), 0
    ends = time.perf_counter() + seconds

    async def send_requests(connection: Connection) -> None:
        nonlocal size
        for request in queue:
            started = time.perf_counter()
            status, body = await connection.send(request.encoded())
            now = time.perf_counter()
            durations.append(now - started)
            assert status < 300, f"{request.method} {request.path}: {status} {body[:200]!r}"
            size = len(body)
            if seconds and now > ends:
                return

    async def run_connection() -> None:
        async with Connection.open(url) as connection:
            await send_requests(connection)

    started = time.perf_counter()
    async with asyncio.TaskGroup() as group:
        for _ in range(connections):
            group.create_task(run_connection())
    elapsed = time.perf_counter() - started
    latency = percentiles(durations)
    return Latencies(
        len(durations), len(durations) / elapsed, latency["median"], latency["p99"], size
    )


class Client:
    """Requests about the stacks of one project."""

    def __init__(self, connection: Connection, project: str = "p") -> None:
        self._connection = connection
        self.root = f"/v1/{project}"

    @classmethod
    @asynccontextmanager
    async def open(cls, url: str, project: str = "p") -> AsyncIterator["Client"]:
        async with Connection.open(url) as connection:
            yield cls(connection, project)

    def of_project(self, project: str) -> "Client":
        """A client of another project, over the same connection."""
        return Client(self._connection, project)

    async def call(self, method: str, path: str, body: Json = None, *, expected: int) -> Json:
        status, document = await self._connection.call(method, f"{self.root}{path}", body)
        assert status == expected, f"{method} {path}: {status} {document}"
        return document

    def creation(self, name: str, resources: Json, **more: Json) -> Request:
        body = {"stack_name": name, "template": template(resources), **more}
        return Request("POST", f"{self.root}/stacks", orjson.dumps(body))

    async def create(self, name: str, resources: Json, **more: Json) -> str:
        """The stack's path below the project."""
        body = {"stack_name": name, "template": template(resources), **more}
        document = await self.call("POST", "/stacks", body, expected=201)
        return f"/stacks/{name}/{document['stack']['id']}"

    async def update(self, stack: str, resources: Json) -> None:
        await self.call("PUT", stack, {"template": template(resources)}, expected=202)

    async def delete(self, stack: str) -> None:
        await self.call("DELETE", stack, expected=204)

    async def until_ended(self, stack: str, *, pause: float = 0.05) -> str:
        """The status of the stack when its action has ended. Frequent requests slow down what is
        measured."""
        async with asyncio.timeout(TIMEOUT):
            while True:
                document = await self.call("GET", stack, expected=200)
                status = str(document["stack"]["stack_status"])
                if not status.endswith("IN_PROGRESS"):
                    assert status.endswith("COMPLETE"), document["stack"]["stack_status_reason"]
                    return status
                await asyncio.sleep(pause)

    async def end_time(self, stack: str) -> float:
        """When the stack's last action ended, by the server's clock, which is this machine's."""
        document = await self.call("GET", f"{stack}/versions?limit=1", expected=200)
        return seconds_of(document["traversals"][0]["ended_at"])

    async def until_waiting(self, stack: str, count: int, *, pause: float = 0.2) -> None:
        """Until `count` resources of the stack wait at a hook."""
        async with asyncio.timeout(TIMEOUT):
            while len(list(parked(await self.graph(stack)))) < count:
                await asyncio.sleep(pause)

    async def graph(self, stack: str) -> Json:
        return await self.call("GET", f"{stack}/graph", expected=200)

    async def hooks(self, stack: str = "") -> list[Json]:
        """The waiting hooks of a stack, or the first 1,000 of the project."""
        filter_ = f"&stack={stack}" if stack else ""
        document = await self.call("GET", f"/hooks?state=waiting&limit=1000{filter_}", expected=200)
        return list(document["hooks"])

    def signal_request(self, hook: Json) -> Request:
        """The request that continues a hook."""
        body = orjson.dumps({"decision": "continue"})
        return Request("POST", f"{self.root}/hooks/{hook['id']}/signal", body)

    async def answer(self, hook: Json) -> None:
        """Continue a hook."""
        path = f"/hooks/{hook['id']}/signal"
        await self.call("POST", path, {"decision": "continue"}, expected=200)

    async def until_idle(self, *, pause: float = 0.05) -> None:
        """Until no stack of the project is in progress."""
        async with asyncio.timeout(TIMEOUT):
            while (await self.call("GET", "/stacks?status=IN_PROGRESS&limit=1", expected=200))[
                "stacks"
            ]:
                await asyncio.sleep(pause)

    async def stacks(self) -> list[str]:
        """The paths of all stacks of the project, the newest first."""
        paths: list[str] = []
        marker = ""
        while True:
            page = await self.call("GET", f"/stacks?limit=1000{marker}", expected=200)
            paths += [f"/stacks/{stack['stack_name']}/{stack['id']}" for stack in page["stacks"]]
            if len(page["stacks"]) < 1000:
                return paths
            marker = f"&marker={page['stacks'][-1]['id']}"


def parked(graph: Json) -> Iterator[Json]:
    return (node for node in graph["nodes"] if node["state"] == "parked")


def seconds_of(text: str) -> float:
    """A time of the API as seconds since 1970."""
    return datetime.fromisoformat(text).timestamp()
