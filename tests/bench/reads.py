"""Stacks accepted, shown and listed, beside an HTTP handler that does nothing and a query for one
row, which are the limits of a request."""

import asyncio
import itertools
import time
from collections.abc import Iterator, Sequence
from contextlib import AsyncExitStack

import asyncpg

from tests.bench.bare import BareServer, running_bare_server
from tests.bench.client import CONNECTIONS, Client, Request, exchange, percentiles
from tests.bench.run import Run
from tests.bench.server import Server
from tests.bench.shapes import wide

SECONDS = 3.0
ROW = "create table bench_row (id integer primary key, value text)"
#: Stacks that are created one after the other, at most half of a size.
SINGLE = 100


async def reads(run: Run) -> None:
    """The limits are those of a server that executes one statement for each request."""
    async with AsyncExitStack() as stack:
        server, client = await stack.enter_async_context(run.server())
        bare = (
            await stack.enter_async_context(running_bare_server(run.postgres))
            if run.limits
            else None
        )
        limits = Limits(bare)
        query = 0.0
        for stored in run.sizes:
            await accept(run, server, client, stored, limits)
            stacks = await client.stacks()
            await measure_requests(
                run, server, "show", stored, get_requests(client, stacks[::37]),
                await limits.of("show"),
            )  # fmt: skip
            if run.limits:
                query = query or await single_row(run)
                run.add("read", "empty handler", stored, **as_rate(await limits.of("empty")))
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
                limit = await limits.of("list" if case.startswith("list 20") else "show")
                await measure_requests(
                    run, server, case, stored, get_requests(client, [path]), limit
                )
        large = await client.create("large", wide(100))
        await client.until_ended(large)
        for case, path in {
            "resources of 100": "/resources",
            "50 events": "/events?limit=50",
        }.items():
            await measure_requests(
                run, server, case, max(run.sizes), get_requests(client, [f"{large}{path}"])
            )


class Limits:
    """Rates of a server that only reads, measured when they are first needed."""

    def __init__(self, bare: BareServer | None) -> None:
        self.bare = bare
        self._known: dict[str, dict[str, float]] = {}

    async def of(self, kind: str) -> dict[str, float]:
        """kind: a method of `BareServer`. Nothing if no limits are measured."""
        if self.bare is None:
            return {}
        if kind not in self._known:
            self._known[kind] = {"limit": (await getattr(self.bare, kind)()).rate}
        return self._known[kind]


def as_rate(limit: dict[str, float]) -> dict[str, float]:
    return {"rate": limit["limit"]}


async def accept(run: Run, server: Server, client: Client, stored: int, limits: Limits) -> None:
    """Create stacks of one resource until so many are stored."""
    names = [f"s{number}" for number in range(len(await client.stacks()), stored)]
    single = min(SINGLE, len(names) // 2)
    await accept_single(run, client, stored, names[:single], limits)
    requests = [client.creation(name, wide(1)) for name in names[single:]]
    used, started = server.usage(), time.perf_counter()
    accepted = await exchange(server.url, requests)
    await client.until_idle(pause=0.2)
    elapsed, used = time.perf_counter() - started, server.usage() - used
    limit = {}
    if limits.bare:
        limit["limit"] = (await limits.bare.store([one.body or b"" for one in requests])).rate
    count = len(requests)
    run.add("read", "accept a stack of one", stored, **accepted.measures(), **limit)
    run.add("read", "accept and complete it", stored, rate=count / elapsed, **used.each(count))


async def accept_single(
    run: Run, client: Client, stored: int, names: Sequence[str], limits: Limits
) -> None:
    """Create stacks one after the other, each when the one before is complete."""
    durations, limit = list[float](), {}
    for name in names:
        started = time.perf_counter()
        stack = await client.create(name, wide(1))
        durations.append(time.perf_counter() - started)
        await client.until_ended(stack, pause=0.02)
    if limits.bare:
        bodies = [client.creation(name, wide(1)).body or b"" for name in names]
        limit["limit_ms"] = (await limits.bare.store(bodies, connections=1)).median
    run.add("read", "accept, one client", stored, **percentiles(durations), **limit)


def get_requests(client: Client, paths: Sequence[str]) -> Iterator[Request]:
    """Requests for these paths in turn, without end."""
    return (Request("GET", f"{client.root}{path}") for path in itertools.cycle(paths))


async def measure_requests(
    run: Run,
    server: Server,
    case: str,
    stored: int,
    requests: Iterator[Request],
    limit: dict[str, float] | None = None,
) -> None:
    used = server.usage()
    result = await exchange(server.url, requests, seconds=SECONDS)
    used = server.usage() - used
    run.add("read", case, stored, **result.measures(), **(limit or {}), **used.each(result.count))


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
