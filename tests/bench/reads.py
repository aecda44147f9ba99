"""Stacks accepted, shown and listed, beside an HTTP handler that does nothing and a query for one
row, which are the limits of a request."""

import asyncio
import itertools
import subprocess
import sys
import time
from collections.abc import AsyncIterator, Iterator, Sequence
from contextlib import asynccontextmanager

import asyncpg

from tests.bench.client import CONNECTIONS, Client, Latencies, Request, exchange
from tests.bench.run import Run
from tests.bench.server import Server
from tests.bench.shapes import wide
from tests.support.program import free_port

SECONDS = 3.0
EMPTY_HANDLER = """
import sys
from aiohttp import web
import uvloop
body = b"x" * int(sys.argv[2])
async def handle(request): return web.Response(body=body, content_type="application/json")
app = web.Application()
app.router.add_get("/", handle)
web.run_app(app, host="127.0.0.1", port=int(sys.argv[1]), print=None, loop=uvloop.new_event_loop())
"""
ROW = "create table bench_row (id integer primary key, value text)"


async def reads(run: Run) -> None:
    async with run.server() as (server, client):
        handler = query = 0.0
        for stored in run.sizes:
            await accept(run, server, client, stored)
            stacks = await client.stacks()
            shown = await measure_requests(
                run, server, "show", stored, get_requests(client, stacks[::37])
            )
            if run.limits:
                handler = handler or await empty_handler(shown.size)
                query = query or await single_row(run)
                run.add("read", "empty handler", stored, rate=handler)
                run.add("read", "query for one row", stored, rate=query)
            half, last = (
                path.rpartition("/")[2] for path in (stacks[stored // 2], stacks[-20:][0])
            )
            for case, path in {
                "list 20, first page": "/stacks?limit=20",
                "list 20, half way": f"/stacks?limit=20&marker={half}",
                "list 20, near the end": f"/stacks?limit=20&marker={last}",
                "list 20, by name": "/stacks?limit=20&sort_keys=stack_name",
                "list one by its name": "/stacks?name=s77",
            }.items():
                await measure_requests(run, server, case, stored, get_requests(client, [path]))
        large = await client.create("large", wide(100))
        await client.until_ended(large)
        for case, path in {
            "resources of 100": "/resources",
            "50 events": "/events?limit=50",
        }.items():
            await measure_requests(
                run, server, case, max(run.sizes), get_requests(client, [f"{large}{path}"])
            )


async def accept(run: Run, server: Server, client: Client, stored: int) -> None:
    """Create stacks of one resource until so many are stored."""
    names = range(len(await client.stacks()), stored)
    requests = [client.creation(f"s{number}", wide(1)) for number in names]
    used, started = server.usage(), time.perf_counter()
    accepted = await exchange(server.url, requests)
    await client.until_idle(pause=0.2)
    elapsed, used = time.perf_counter() - started, server.usage() - used
    run.add("read", "accept a stack of one", stored, **accepted.measures())
    run.add(
        "read", "accept and complete it", stored, rate=len(names) / elapsed, **used.each(len(names))
    )


def get_requests(client: Client, paths: Sequence[str]) -> Iterator[Request]:
    """Requests for these paths in turn, without end."""
    return (Request("GET", f"{client.root}{path}") for path in itertools.cycle(paths))


async def measure_requests(
    run: Run, server: Server, case: str, stored: int, requests: Iterator[Request]
) -> Latencies:
    used = server.usage()
    result = await exchange(server.url, requests, seconds=SECONDS)
    used = server.usage() - used
    run.add("read", case, stored, **result.measures(), **used.each(result.count))
    return result


async def empty_handler(size: int) -> float:
    """Requests per second of a handler that returns so many bytes and does nothing."""
    async with running_handler(size) as url:
        result = await exchange(url, itertools.repeat(Request("GET", "/")), seconds=SECONDS)
        return result.rate


@asynccontextmanager
async def running_handler(size: int) -> AsyncIterator[str]:
    port = free_port()
    process = subprocess.Popen([sys.executable, "-c", EMPTY_HANDLER, str(port), str(size)])
    try:
        async with asyncio.timeout(20):
            while True:
                try:
                    _, writer = await asyncio.open_connection("127.0.0.1", port)
                    writer.close()
                    break
                except OSError:
                    await asyncio.sleep(0.05)
        yield f"http://127.0.0.1:{port}"
    finally:
        process.kill()
        process.wait()


async def single_row(run: Run) -> float:
    """Queries per second for one row by its key, over as many connections as requests use."""
    async with run.postgres.new_database() as url:
        async with run.postgres.connection(url) as conn:
            await conn.execute(ROW)
            await conn.execute("insert into bench_row values (1, repeat('x', 500))")
        pool = await asyncpg.create_pool(url, min_size=CONNECTIONS, max_size=CONNECTIONS)
        count, ends = 0, time.perf_counter() + SECONDS

        async def send_queries() -> None:
            nonlocal count
            async with pool.acquire() as conn:
                while time.perf_counter() < ends:
                    await conn.fetchrow("select * from bench_row where id = $1", 1)
                    count += 1

        await asyncio.gather(*(send_queries() for _ in range(CONNECTIONS)))
        await pool.close()
        return count / SECONDS
