"""Stacks accepted, shown and listed by one process with ten thousand of them stored; beside what a
bare aiohttp handler and a bare query for one row do, asked the same way."""

import asyncio
import os
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import cast

import orjson
from yarl import URL

from engine.store.database import open_database
from tests.support.keys import A_SEALER
from tests.support.postgres import TestServer
from tests.support.program import ServerProcess, free_port, resource, template

STACKS = 10_000
#: Connections that ask at the same time, one request after the other.
AT_ONCE = 16
SECONDS = 4.0
ROOM = "[quotas]\nstacks_per_project = 50000\n"
BARE = """
import asyncio, sys
from aiohttp import web
import uvloop
body = b"x" * int(sys.argv[2])
async def handle(request): return web.Response(body=body, content_type="application/json")
app = web.Application()
app.router.add_get("/", handle)
web.run_app(app, host="127.0.0.1", port=int(sys.argv[1]), print=None, loop=uvloop.new_event_loop())
"""


class Connection(asyncio.Protocol):
    """Sends a request, and the next when the answer is whole. Answers have a Content-Length."""

    def __init__(self, next_request: Callable[[], bytes | None], took: list[float]) -> None:
        self._next, self._took = next_request, took
        self._transport: asyncio.Transport | None = None
        self._seen = bytearray()
        self.ended: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        self.bad = 0
        self.size = 0

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        self._transport = cast(asyncio.Transport, transport)  # uvloop's is no subclass
        self._send()

    def _send(self) -> None:
        assert self._transport is not None
        request = self._next()
        if request is None:
            self._transport.close()
            self.ended.set_result(None)
            return
        self._began = time.perf_counter()
        self._transport.write(request)

    def data_received(self, data: bytes) -> None:
        self._seen += data
        head = self._seen.find(b"\r\n\r\n")
        if head < 0:
            return
        lines = bytes(self._seen[:head]).lower()
        length = int(lines.partition(b"content-length: ")[2].partition(b"\r\n")[0])
        if len(self._seen) < head + 4 + length:
            return
        self.bad += not lines.startswith(b"http/1.1 2")
        self.size = length
        self._seen.clear()
        self._took.append(time.perf_counter() - self._began)
        self._send()

    def connection_lost(self, error: Exception | None) -> None:
        if not self.ended.done():
            self.ended.set_exception(error or ConnectionError("the server hung up"))


async def asked(
    url: str, requests: Sequence[bytes], *, seconds: float = SECONDS, count: int | None = None
) -> tuple[float, float, float, int]:
    """Requests a second; median and p99 in ms; bytes of the last answer.

    For so many seconds, in turn; or so many, once.
    """
    address = URL(url)
    assert address.host and address.port
    took: list[float] = []
    until, sent = time.perf_counter() + seconds, 0

    def following() -> bytes | None:
        nonlocal sent
        over = sent >= count if count is not None else time.perf_counter() > until
        if over:
            return None
        sent += 1
        return requests[sent % len(requests)]

    loop, began = asyncio.get_running_loop(), time.perf_counter()
    made = [
        await loop.create_connection(
            lambda: Connection(following, took), address.host, address.port
        )
        for _ in range(AT_ONCE)
    ]
    await asyncio.gather(*(one.ended for _, one in made))
    elapsed = time.perf_counter() - began
    assert not sum(one.bad for _, one in made), "answers that were no success"
    took.sort()
    p99 = took[int(len(took) * 0.99)]
    size = max(one.size for _, one in made)
    return len(took) / elapsed, statistics.median(took) * 1000, p99 * 1000, size


def get(path: str) -> bytes:
    return f"GET {path} HTTP/1.1\r\nHost: 127.0.0.1\r\n\r\n".encode()


def post(path: str, document: object) -> bytes:
    body = orjson.dumps(document)
    head = f"POST {path} HTTP/1.1\r\nHost: 127.0.0.1\r\nContent-Type: application/json\r\n"
    return head.encode() + f"Content-Length: {len(body)}\r\n\r\n".encode() + body


async def bare_handler(size: int) -> float:
    """Requests a second of a handler that gives so many bytes and does nothing."""
    port = free_port()
    process = subprocess.Popen([sys.executable, "-c", BARE, str(port), str(size)])
    try:
        async with asyncio.timeout(20):
            while True:
                try:
                    _, writer = await asyncio.open_connection("127.0.0.1", port)
                    writer.close()
                    break
                except OSError:
                    await asyncio.sleep(0.05)
        rate, *_ = await asked(f"http://127.0.0.1:{port}", [get("/")])
        return rate
    finally:
        process.kill()
        process.wait()


async def bare_query(url: str) -> float:
    """Rows a second, each by its key, by as many connections as ask."""
    database = await open_database(url, size=AT_ONCE, sealer=A_SEALER)
    done, until = 0, time.perf_counter() + SECONDS

    async def one() -> None:
        nonlocal done
        async with database.connection() as conn:
            stack = await conn.fetchval("select id from stack limit 1")
            while time.perf_counter() < until:
                await conn.fetchrow("select * from stack where id = $1", stack)
                done += 1

    await asyncio.gather(*(one() for _ in range(AT_ONCE)))
    await database.close()
    return done / SECONDS


async def reads(postgres: TestServer) -> None:
    async with postgres.new_database() as url:
        with tempfile.TemporaryDirectory(prefix="headgate-bench-") as folder:
            server = ServerProcess(Path(folder), settings=ROOM, database_url=url)
            server.start()
            try:
                await _measure(server, url)
            finally:
                server.stop()


async def _measure(server: ServerProcess, url: str) -> None:
    print(f"one process, {AT_ONCE} requests at a time       /s   median      p99")
    body = template({"a": resource()})
    creates = [
        post("/v1/p/stacks", {"stack_name": f"s{number}", "template": body})
        for number in range(STACKS)
    ]
    accepted = await asked(server.url, creates, count=STACKS)
    print(_line(f"accept a stack of one resource, {STACKS:,}", accepted))
    database = await open_database(url, size=2, sealer=A_SEALER)
    async with database.connection() as conn, asyncio.timeout(600):
        while await conn.fetchval("select count(*) from traversal where state = 'running'"):
            await asyncio.sleep(0.5)
        await conn.execute("vacuum analyze")
        rows = await conn.fetch("select id, name from stack order by created_at desc, id desc")
    await database.close()
    shows = [get(f"/v1/p/stacks/{row['name']}/{row['id']}") for row in rows[::37]]
    first = await asked(server.url, shows)
    print(_line("show a stack", first))
    pages = {
        "list 20, the first": "",
        "list 20, half way": f"&marker={rows[STACKS // 2]['id']}",
        "list 20, near the end": f"&marker={rows[-30]['id']}",
    }
    for what, marker in pages.items():
        print(_line(what, await asked(server.url, [get(f"/v1/p/stacks?limit=20{marker}")])))
    print(_line("list one by its name", await asked(server.url, [get("/v1/p/stacks?name=s77")])))
    size = first[3]
    print(f"  bare aiohttp handler, {size:,} bytes      {await bare_handler(size):>9,.0f}")
    print(f"  bare query for one row                {await bare_query(url):>9,.0f}\n")


def _line(what: str, figures: tuple[float, float, float, int]) -> str:
    rate, median, p99, _ = figures
    return f"  {what:<38}{rate:>9,.0f}{median:>6.1f} ms{p99:>6.1f} ms"


async def main() -> None:
    from tests.support.postgres import running_server

    print(f"{os.cpu_count()} cores")
    async with running_server() as postgres:
        await reads(postgres)


if __name__ == "__main__":
    asyncio.run(main())
