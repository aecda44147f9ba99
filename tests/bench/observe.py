"""What observations cost a provider and this machine: by lists, and by a request for each resource.

Also operations that the observer completes, beside operations that poll their objects.
"""

import asyncio
import subprocess
import sys
import time
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass
from typing import Any

import aiohttp
import asyncpg

from tests.bench.client import Client
from tests.bench.run import Run
from tests.bench.server import ROOT, Settings
from tests.support.program import free_port

Json = Any
#: Resources of a stack, and objects of a page of the list.
STACK, PAGE = 1_000, 1_000
#: Seconds in which an object is built.
BUILD = 60
#: Stacks are observed when this part says so.
POLICY = {"convergence": {"observe": {"every": "10h"}}}
SETTINGS: Settings = {
    "resource_types.http": {"enabled": True, "allow": ["127.0.0.0/8"]},
}
MAKE_DUE = """
with due as (update observation_schedule set next_at = now(), early_at = null, observed_at = null)
select pg_notify('headgate_observe', '')
"""
COUNT_UNOBSERVED = "select count(*) from observation_schedule where observed_at is null"
#: Rows that were written since a transaction, except the scheduler's.
COUNT_WRITTEN = """
select sum(count)::integer
  from (select count(*) from observation where xmin::text::bigint >= $1 % 4294967296
        union all select count(*) from resource where xmin::text::bigint >= $1 % 4294967296
        union all select count(*) from node where xmin::text::bigint >= $1 % 4294967296
        union all select count(*) from stack where xmin::text::bigint >= $1 % 4294967296
        union all select count(*) from event where xmin::text::bigint >= $1 % 4294967296) w
"""
TRANSACTION = "select pg_current_xact_id()::text::bigint"


@dataclass(frozen=True, slots=True)
class RunningProvider:
    url: str
    session: aiohttp.ClientSession

    async def fill(self, count: int) -> None:
        async with self.session.put(f"{self.url}/objects/{count}") as answer:
            answer.raise_for_status()

    async def requests(self) -> int:
        """The requests since the last call."""
        async with self.session.delete(f"{self.url}/requests") as answer:
            return int(await answer.json())


async def observe(run: Run) -> None:
    for size in (*run.sizes, *([run.largest] if run.largest else [])):
        for case, listed in (("by list", True), ("one request each", False)):
            await measure_observation(run, case, size, listed=listed)
        for case, listed in (("create, by list", True), ("create, one request each", False)):
            await measure_creation(run, case, size, listed=listed)


async def measure_observation(run: Run, case: str, size: int, *, listed: bool) -> None:
    """Observe resources twice: the first time has no figures, because it fills caches."""
    async with running_provider() as provider, run.server(settings=SETTINGS) as (server, client):
        await provider.fill(size)
        for first in range(0, size, STACK):
            numbers = range(first, min(first + STACK, size))
            resources = {f"r{n}": external(provider.url, n, listed=listed) for n in numbers}
            stack = await client.create(f"s{first}", resources, environment=POLICY)
            await client.until_ended(stack)
        async with run.postgres.connection(server.database_url) as conn:
            await observe_all(conn)
            since = await conn.fetchval(TRANSACTION)
            await provider.requests()
            used, started = server.usage(), time.perf_counter()
            await observe_all(conn)
            seconds, used = time.perf_counter() - started, server.usage() - used
            rows = await conn.fetchval(COUNT_WRITTEN, since)
        run.add(
            "observe", case, size, seconds=seconds, requests=await provider.requests(), rows=rows,
            memory=server.memory(), **used.each(size),
        )  # fmt: skip


async def observe_all(conn: asyncpg.Connection) -> None:
    await conn.execute(MAKE_DUE)
    async with asyncio.timeout(1800):
        while await conn.fetchval(COUNT_UNOBSERVED):
            await asyncio.sleep(0.1)


async def measure_creation(run: Run, case: str, size: int, *, listed: bool) -> None:
    """Create objects that take a while to be built."""
    async with running_provider() as provider, run.server(settings=SETTINGS) as (server, client):
        used, started = server.usage(), time.perf_counter()
        await create_built(client, provider.url, size, listed=listed)
        seconds, used = time.perf_counter() - started, server.usage() - used
        # Each object was created by one request.
        requests = await provider.requests() - size
        run.add(
            "observe", case, size, seconds=seconds, requests=requests, memory=server.memory(),
            **used.each(size),
        )  # fmt: skip


async def create_built(client: Client, url: str, size: int, *, listed: bool) -> None:
    for first in range(0, size, STACK):
        numbers = range(first, min(first + STACK, size))
        resources = {f"r{n}": built(url, listed=listed) for n in numbers}
        await client.create(f"s{first}", resources)
    await client.until_idle(pause=0.5)
    for stack in await client.stacks():
        await client.until_ended(stack)


def external(url: str, number: int, *, listed: bool) -> Json:
    """A resource that stands for an existing object."""
    properties = {"compare": {"$.size": 1}, **reads(url, listed=listed, name="check")}
    return {"type": "Headgate::HTTP", "external_id": f"t{number}", "properties": properties}


def built(url: str, *, listed: bool) -> Json:
    ready = {"path": "$.state", "values": ["ready"], **({"source": "list"} if listed else {})}
    properties = {
        **reads(url, listed=listed, name="read"),
        "create": {"url": "/things", "body": {"build": BUILD}},
        "ready": ready,
        "timeout": 3_000,
    }
    return {"type": "Headgate::HTTP", "properties": properties}


def reads(url: str, *, listed: bool, name: str) -> dict[str, Json]:
    """The properties with which an object is read."""
    common = {"base": url, "create": {"url": "/things", "body": {}}, "id": "$.id"}
    if not listed:
        return {**common, name: {"url": "/things/${id}"}}
    listing = {"url": "/things", "items": "$.things", "id": "$.id", "next": "$.next"}
    return {**common, "list": listing}


@asynccontextmanager
async def running_provider() -> AsyncIterator[RunningProvider]:
    port = free_port()
    command = [sys.executable, "-m", "tests.bench.provider", str(port), str(PAGE)]
    process = subprocess.Popen(command, cwd=ROOT)
    try:
        async with aiohttp.ClientSession() as session:
            provider = RunningProvider(f"http://127.0.0.1:{port}", session)
            async with asyncio.timeout(20):
                while True:
                    try:
                        await provider.requests()
                        break
                    except aiohttp.ClientError:
                        await asyncio.sleep(0.05)
            yield provider
    finally:
        process.terminate()
        process.wait()
