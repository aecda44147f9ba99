"""What one core carries: creates by 1 to 8 engines on one database, with each role in a process of
its own. What else a process costs is measured beside it: requests of the API, and an idle time."""

import asyncio
import time
from collections.abc import Sequence

from tests.bench.client import Client, Request, exchange
from tests.bench.machine import process_tree_cpu
from tests.bench.restarts import Fleet, fleet
from tests.bench.run import Run
from tests.bench.server import Settings
from tests.bench.shapes import layered

#: Engines that share one database.
ENGINES = (1, 2, 4, 8)
#: Stacks that are requested at once, and resources of each.
STACKS, SIZE = 200, 50
#: Stacks before them, so that every process has executed everything once.
WARM = 40
#: Requests for the state of a stack.
SHOWN = 2_000
#: Seconds without requests.
IDLE = 10.0
ONE_PROCESS: Settings = {"server": {"processes": 1}}


async def capacity(run: Run) -> None:
    for _ in range(min(run.rounds, 3)):
        for count in ENGINES:
            await measure_engines(run, count)


async def measure_engines(run: Run, count: int) -> None:
    """The size of a figure is the number of engines."""
    async with fleet(run, ONE_PROCESS) as (servers, client):
        for _ in range(count):
            await servers.engine()
        await create_stacks(servers, client, "warm", WARM)
        before, commits = cpu_times(run, servers), await committed(run, servers)
        started = time.perf_counter()
        await create_stacks(servers, client, "s", STACKS)
        rate = STACKS * SIZE / (time.perf_counter() - started)
        engines, api, postgres = costs(before, cpu_times(run, servers), STACKS * SIZE)
        written = (await committed(run, servers) - commits) / (STACKS * SIZE)
        run.add(
            "capacity", "engine, a resource", count,
            rate=rate, server_cpu=engines, postgres_cpu=postgres, commits=written,
        )  # fmt: skip
        run.add("capacity", "API, a resource of a new stack", count, server_cpu=api)
        await measure_reads(run, servers, client, count)
        before = cpu_times(run, servers)
        await asyncio.sleep(IDLE)
        engines, _, postgres = costs(before, cpu_times(run, servers), 1)
        for case, used in (("engine, idle", engines / count), ("PostgreSQL, idle", postgres)):
            run.add("capacity", case, count, core=used / IDLE / 1e6 * 100)


async def measure_reads(run: Run, servers: Fleet, client: Client, count: int) -> None:
    paths = (await client.stacks())[:STACKS]
    requests = [Request("GET", f"{client.root}{paths[n % len(paths)]}") for n in range(SHOWN)]
    before = cpu_times(run, servers)
    latencies = await exchange(servers.api.url, requests)
    _, api, postgres = costs(before, cpu_times(run, servers), SHOWN)
    run.add(
        "capacity", "API, show a stack", count,
        rate=latencies.rate, server_cpu=api, postgres_cpu=postgres,
    )  # fmt: skip


async def create_stacks(servers: Fleet, client: Client, name: str, count: int) -> None:
    requests = [client.creation(f"{name}{n}", layered(SIZE)) for n in range(count)]
    await exchange(servers.api.url, requests)
    await client.until_idle()


def cpu_times(run: Run, servers: Fleet) -> Sequence[float]:
    """Seconds of CPU time of all engines, of the API and of PostgreSQL."""
    engines = sum(process_tree_cpu(engine.pid) for engine in servers.engines)
    return engines, process_tree_cpu(servers.api.pid), process_tree_cpu(run.postgres.pid)


def costs(before: Sequence[float], after: Sequence[float], count: int) -> list[float]:
    """Microseconds of one of `count` units, of each."""
    return [(now - then) * 1e6 / count for then, now in zip(before, after, strict=True)]


async def committed(run: Run, servers: Fleet) -> int:
    """Transactions of the database that wrote something: each has an ID."""
    async with run.postgres.connection(servers.api.database_url) as conn:
        next_id: int = await conn.fetchval(
            "select pg_snapshot_xmax(pg_current_snapshot())::text::bigint"
        )
        return next_id
