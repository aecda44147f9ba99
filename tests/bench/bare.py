"""The limit of a request on this machine: a server that does nothing but one statement for each.

``python -m tests.bench.bare PORT DATABASE BYTES NUMBER``. It shares no code and no table with
Headgate. As many processes as cores share the port, as those of `headgate serve` do.

GET /empty returns so many bytes; GET /row/N one row, found by key; GET /rows 20 rows in the order
of an index. POST /insert decodes a JSON document and stores it; POST /answer/N updates a row, and
notifies a worker, which updates another one. Both commit durably before they respond.
"""

import asyncio
import itertools
import os
import statistics
import subprocess
import sys
import time
from collections.abc import AsyncIterator, Iterable, Iterator
from contextlib import asynccontextmanager

import asyncpg
import orjson
import uvloop
from aiohttp import web

from tests.bench.client import CONNECTIONS, Latencies, Request, exchange
from tests.bench.server import ROOT, BenchPostgres
from tests.support.ports import free_port

#: Seconds that a read is measured.
SECONDS = 2.0
#: Rows that can be read, and answered.
ROWS = 10_000
#: Connections of each process.
POOL = 10
SCHEMA = f"""
create table bare_row (id integer primary key, text text not null, state text not null);
create table bare_node (id integer primary key, started_at timestamptz) with (fillfactor = 50);
create table bare_document (
    id bigint generated always as identity primary key, document jsonb not null);
create table bare_process (number integer primary key);
insert into bare_row
select n, repeat('x', 500), 'waiting' from generate_series(0, {ROWS - 1}) n;
insert into bare_node select n, null from generate_series(0, {ROWS - 1}) n;
vacuum analyze
"""
ROW = "select text from bare_row where id = $1"
LIST = "select text from bare_row where id > $1 order by id limit 20"
INSERT = "insert into bare_document (document) values ($1)"
ANSWER = """
with answered as (
    update bare_row set state = 'answered' where id = $1 and state = 'waiting' returning id
)
select pg_notify('bare', id::text) from answered
"""
START = "update bare_node set started_at = clock_timestamp() where id = $1"
STARTED_AT = "select extract(epoch from started_at)::double precision from bare_node where id = $1"


class BareServer:
    """A running server, and what it needs for each kind of request."""

    def __init__(self, url: str, conn: asyncpg.Connection) -> None:
        self._url, self._conn = url, conn
        self._numbers = itertools.count()

    async def empty(self) -> Latencies:
        return await self._read(itertools.repeat(Request("GET", "/empty")))

    async def show(self) -> Latencies:
        numbers = itertools.cycle(range(0, ROWS, 37))
        return await self._read(Request("GET", f"/row/{number}") for number in numbers)

    async def list(self) -> Latencies:
        return await self._read(itertools.repeat(Request("GET", "/rows")))

    async def store(self, bodies: Iterable[bytes], *, connections: int = CONNECTIONS) -> Latencies:
        """Decode and store documents, with one commit for each."""
        requests = [Request("POST", "/insert", body) for body in bodies]
        return await exchange(self._url, requests, connections=connections)

    async def answer(self, count: int, *, connections: int) -> Latencies:
        requests = [Request("POST", f"/answer/{next(self._numbers)}", b"{}") for _ in range(count)]
        return await exchange(self._url, requests, connections=connections)

    async def signal(self, count: int) -> float:
        """The median of the milliseconds from a request to the update by the worker."""
        durations = list[float]()
        for _ in range(count):
            number = next(self._numbers)
            began = time.time()
            await exchange(self._url, [Request("POST", f"/answer/{number}", b"{}")], connections=1)
            started: float | None = None
            while started is None:
                started = await self._conn.fetchval(STARTED_AT, number)
            durations.append(started - began)
        return statistics.median(durations) * 1000

    async def _read(self, requests: Iterator[Request]) -> Latencies:
        return await exchange(self._url, requests, seconds=SECONDS)


@asynccontextmanager
async def running_bare_server(
    postgres: BenchPostgres, size: int = 1000
) -> AsyncIterator[BareServer]:
    """size: bytes of the responses of /empty."""
    port = free_port()
    async with postgres.new_database() as url, postgres.connection(url) as conn:
        for statement in SCHEMA.split(";"):
            await conn.execute(statement)
        command = [sys.executable, "-m", "tests.bench.bare", str(port), url, str(size)]
        count = os.cpu_count() or 1
        processes = [subprocess.Popen([*command, str(number)], cwd=ROOT) for number in range(count)]
        try:
            async with asyncio.timeout(90):
                while await conn.fetchval("select count(*) from bare_process") < count:
                    assert all(process.poll() is None for process in processes)
                    await asyncio.sleep(0.05)
            yield BareServer(f"http://127.0.0.1:{port}", conn)
        finally:
            for process in processes:
                process.kill()
                process.wait()


class Handlers:
    def __init__(self, pool: "asyncpg.Pool[asyncpg.Record]", size: int) -> None:
        self._pool = pool
        self._body = b"x" * size

    async def empty(self, _: web.Request) -> web.Response:
        return web.Response(body=self._body, content_type="application/json")

    async def row(self, request: web.Request) -> web.Response:
        async with self._pool.acquire() as conn:
            text = await conn.fetchval(ROW, int(request.match_info["number"]))
        return web.Response(text=text, content_type="application/json")

    async def rows(self, _: web.Request) -> web.Response:
        async with self._pool.acquire() as conn:
            found = await conn.fetch(LIST, ROWS // 2)
        body = orjson.dumps([row["text"] for row in found])
        return web.Response(body=body, content_type="application/json")

    async def insert(self, request: web.Request) -> web.Response:
        document = orjson.loads(await request.read())
        async with self._pool.acquire() as conn:
            await conn.execute(INSERT, document)
        return web.Response(status=201)

    async def answer(self, request: web.Request) -> web.Response:
        orjson.loads(await request.read())
        async with self._pool.acquire() as conn:
            await conn.execute(ANSWER, int(request.match_info["number"]))
        return web.Response()


async def use_jsonb(conn: asyncpg.Connection) -> None:
    await conn.set_type_codec(
        "jsonb",
        schema="pg_catalog",
        encoder=lambda value: b"\x01" + orjson.dumps(value),
        decoder=orjson.loads,
        format="binary",
    )


async def work(url: str) -> None:
    """Update a node at each notification, until cancelled."""
    answered: asyncio.Queue[int] = asyncio.Queue()
    listening, conn = await asyncpg.connect(url), await asyncpg.connect(url)

    def notified(_: object, _pid: int, _channel: str, number: object) -> None:
        answered.put_nowait(int(str(number)))

    await listening.add_listener("bare", notified)
    while True:
        await conn.execute(START, await answered.get())


async def serve(port: int, url: str, size: int, number: int) -> None:
    async with asyncpg.create_pool(url, min_size=1, max_size=POOL, init=use_jsonb) as pool:
        handlers, app = Handlers(pool, size), web.Application(client_max_size=2**27)
        app.router.add_get("/empty", handlers.empty)
        app.router.add_get("/row/{number}", handlers.row)
        app.router.add_get("/rows", handlers.rows)
        app.router.add_post("/insert", handlers.insert)
        app.router.add_post("/answer/{number}", handlers.answer)
        runner = web.AppRunner(app, access_log=None)
        await runner.setup()
        await web.TCPSite(runner, "127.0.0.1", port, reuse_port=True).start()
        await pool.execute("insert into bare_process values ($1)", number)
        if number == 0:
            await work(url)
        else:
            await asyncio.Event().wait()


def main() -> None:
    port, url, size, number = sys.argv[1:]
    uvloop.run(serve(int(port), url, int(size), int(number)))


if __name__ == "__main__":
    main()
