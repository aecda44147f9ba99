"""How costs grow up to a million: a tree of resources, waiting hooks, and stacks in many projects.

Each part measures a hundredth and a tenth of `--largest` and the whole, each on a new database. A
size is resources, hooks, or ten times the stacks.
"""

import asyncio
import itertools
import time
from collections.abc import AsyncIterator, Iterator, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass

from tests.bench.client import Client, Request, exchange
from tests.bench.hooks import SIGNALS, STACK, signals
from tests.bench.machine import processes_memory
from tests.bench.run import Run
from tests.bench.server import Server
from tests.bench.shapes import BREAKPOINTS, wide
from tests.bench.trees import MEMBERS, group

TREE, HOOKS, STACKS = PARTS = ("million-tree", "million-hooks", "million-stacks")
#: The measured sizes, as parts of the largest.
DIVISORS = (100, 10, 1)
#: Where many stacks are measured: resources of a stack, and stacks of a project.
RESOURCES, STACKS_OF_PROJECT = 10, 100
#: Requests for a stack or a page; requests that create stacks at the same time.
REQUESTS, CREATORS = 200, 8
#: Seconds between two questions whether the work is done.
PAUSE = 0.5
WAITING = "select count(*) from hook where state = 'waiting'"
RUNNING = "select count(*) from traversal where state in ('running', 'ending')"


async def million_tree(run: Run) -> None:
    """Groups of 1,000 members: created, one member more, deleted."""
    async for at, client in each_size(run, TREE):
        groups = {f"g{number}": group(MEMBERS) for number in range(at.size // MEMBERS)}
        async with at.measured("create"):
            stack = await client.create("tree", groups)
            await client.until_ended(stack, pause=PAUSE)
        await at.read(client, "show", [stack])
        await at.read(client, "list of the groups", [f"{stack}/resources"])
        await at.read(client, "20 events", [f"{stack}/events?limit=20"])
        groups["g0"] = group(MEMBERS + 1)
        async with at.measured("one member more", units=1):
            await client.update(stack, groups)
            await client.until_ended(stack, pause=0.05)
        async with at.measured("delete"):
            await client.delete(stack)
            await client.until_ended(stack, pause=PAUSE)


async def million_hooks(run: Run) -> None:
    """Stacks of 1,000 resources that all wait before their create."""
    async for at, client in each_size(run, HOOKS):
        names = [f"held{number}" for number in range(at.size // STACK)]
        requests = (client.creation(name, wide(STACK), environment=BREAKPOINTS) for name in names)
        async with at.measured("until they wait"):
            await exchange(at.server.url, requests, connections=CREATORS)
            await at.until(WAITING, at.size)
        await at.read(client, "20 of the project", ["/hooks?state=waiting&limit=20"])
        paths = [f"/hooks?state=waiting&limit=20&stack={name}" for name in names]
        await at.read(client, "20 of a stack", paths)
        durations, usage = await signals(at.server, client, "more", SIGNALS)
        median = sorted(durations)[len(durations) // 2] * 1000
        run.add(HOOKS, "answer to operation", at.size, median=median, **usage.each(SIGNALS))


async def million_stacks(run: Run) -> None:
    """Stacks of 10 resources, 100 in each project."""
    async for at, client in each_size(run, STACKS):
        count = at.size // RESOURCES
        projects = [
            client.of_project(f"p{number}") for number in range(max(1, count // STACKS_OF_PROJECT))
        ]
        requests = (
            project.creation(f"s{number}", wide(RESOURCES))
            for number, project in zip(range(count), itertools.cycle(projects), strict=False)
        )
        async with at.measured("create"):
            await exchange(at.server.url, requests, connections=CREATORS)
            await at.until(RUNNING, 0)
        for case, path in (
            ("20 of a project", "/stacks?limit=20"),
            ("one by its name", "/stacks?name=s0"),
            ("20 of all projects", "/stacks?global_tenant=true&limit=20"),
        ):
            await at.read(projects[0], case, [path])


@dataclass(frozen=True, slots=True)
class Size:
    """A server that is measured at one size."""

    run: Run
    part: str
    size: int
    server: Server

    @asynccontextmanager
    async def measured(self, case: str, units: int = 0) -> AsyncIterator[None]:
        """What the block needs: CPU time and bytes of the database for each of `units`, by default
        the size, and the highest memory of one process of the server."""
        highest = 0.0

        async def watch() -> None:
            nonlocal highest
            while True:
                highest = max(highest, *processes_memory(self.server.pid))
                await asyncio.sleep(PAUSE)

        before = await self._database_size()
        watching = asyncio.create_task(watch())
        used, started = self.server.usage(), time.perf_counter()
        try:
            yield
            elapsed, used = time.perf_counter() - started, self.server.usage() - used
        finally:
            watching.cancel()
            await asyncio.wait([watching])
        grown = await self._database_size() - before
        values = {"rate": self.size / elapsed, "bytes": grown / self.size}
        if units:
            values = {"median": elapsed * 1000}
        costs = used.each(units or self.size)
        self.run.add(self.part, case, self.size, **values, **costs, memory=highest)

    async def read(self, client: Client, case: str, paths: Sequence[str]) -> None:
        """Requests for these paths in turn, one after the other."""
        requests: Iterator[Request] = (
            Request("GET", f"{client.root}{path}")
            for path in itertools.islice(itertools.cycle(paths), REQUESTS)
        )
        used = self.server.usage()
        result = await exchange(self.server.url, requests, connections=1)
        used = self.server.usage() - used
        values = {"median": result.median, "p99": result.p99}
        self.run.add(self.part, case, self.size, **values, **used.each(REQUESTS))

    async def until(self, statement: str, count: int) -> None:
        """Until a statement counts as many rows."""
        async with (
            self.run.postgres.connection(self.server.database_url) as conn,
            asyncio.timeout(7200),
        ):
            while await conn.fetchval(statement) != count:
                await asyncio.sleep(PAUSE)

    async def start(self) -> None:
        """From the start of `headgate serve` until it is ready."""
        await asyncio.to_thread(self.server.stop)
        started = time.perf_counter()
        await asyncio.to_thread(self.server.start)
        self.run.add(self.part, "start", self.size, seconds=time.perf_counter() - started)

    async def _database_size(self) -> int:
        return await self.run.postgres.size_of(self.server.database_url)


async def each_size(run: Run, part: str) -> AsyncIterator[tuple[Size, Client]]:
    """Each size with a new server and a client of it. Measures a start of the server last."""
    for divisor in DIVISORS:
        async with run.server() as (server, client):
            size = Size(run, part, run.largest // divisor, server)
            yield size, client
            await size.start()
