"""What observations cost a provider and this machine: by lists, and by a request for each resource.

Also operations that the observer completes, beside operations that poll their objects; the time
from an external event to the webhook of a hook about drift; and the scheduler's cost alone.
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

from tests.bench.channels import arrivals, reset_sink, running_sink, subscribe, until_arrived
from tests.bench.client import Client, percentiles
from tests.bench.run import Run
from tests.bench.server import ROOT, Settings
from tests.support.ports import free_port

Json = Any
#: Resources of a stack, and objects of a page of the list.
STACK, PAGE = 1_000, 1_000
#: Seconds in which an object is built.
BUILD = 60
#: Seconds between two polls of the client meanwhile.
POLL = 0.5
#: Creates: the case, whether the observer completes them, and seconds until an object is ready.
CREATIONS = (
    ("create, by list", True, BUILD),
    ("create, one request each", False, BUILD),
    ("create, ready at once", False, 0),
)
#: Resources that the scheduler is measured with, for each one that is observed.
SCHEDULED = 10
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
#: Copies a stack, with its policy and without resources. $1: its ID. $2: how many copies. Their
#: observations are spread over a day.
COPY_STACK = """
with copied as (
    insert into stack
    select c.* from stack s
     cross join generate_series(1, $2::integer) n
     cross join lateral jsonb_populate_record(
           s, jsonb_build_object('id', gen_random_uuid(), 'name', 'copy' || n)) c
     where s.id = $1
    returning id, project, version
), versions as (
    insert into template
    select c.* from copied n
      join template t on t.stack_id = $1 and t.version = n.version
     cross join lateral jsonb_populate_record(t, jsonb_build_object('stack_id', n.id)) c
)
insert into observation_schedule (stack_id, project, next_at)
select id, project, now() + random() * interval '1 day' from copied
"""
#: Hours of a day, and seconds of an hour.
DAY_HOURS, HOUR_SECONDS = 24, 3_600
#: Changes whose webhooks are measured, one after the other, of a stack with so many resources.
EVENTS, EVENTS_OF = 100, 100
HOLD = {"convergence": {"observe": {"every": "10h"}, "on_drift": "hold"}}
TRANSACTION = "select pg_current_xact_id()::text::bigint"


@dataclass(frozen=True, slots=True)
class RunningProvider:
    url: str
    session: aiohttp.ClientSession

    async def fill(self, count: int) -> None:
        async with self.session.put(f"{self.url}/objects/{count}") as answer:
            answer.raise_for_status()

    async def change(self, object_id: str) -> None:
        async with self.session.put(f"{self.url}/things/{object_id}") as answer:
            answer.raise_for_status()

    async def requests(self) -> int:
        """The requests since the last call."""
        async with self.session.delete(f"{self.url}/requests") as answer:
            return int(await answer.json())


async def observe(run: Run) -> None:
    """Creates are measured at the sizes without the largest: each builds objects for a minute."""
    for size in (*run.sizes, *([run.largest] if run.largest else [])):
        for case, listed in (("by list", True), ("one request each", False)):
            await measure_observation(run, case, size, listed=listed)
        await measure_schedule(run, size * SCHEDULED)
    for size in run.sizes:
        for case, listed, build in CREATIONS:
            await measure_creation(run, case, size, listed=listed, build=build)
        await measure_waiting(run, size)
    for case, listed in (("event to webhook, by list", True), ("event to webhook", False)):
        await measure_events(run, case, listed=listed)


async def measure_schedule(run: Run, size: int) -> None:
    """What the scheduler costs if each of so many resources is observed once a day: claims,
    policies and ends of observations, without resources. CPU times are of a resource."""
    stacks = max(size // STACK, 1)
    async with run.server(settings=SETTINGS) as (server, client):
        policy = {"convergence": {"observe": {"every": "24h"}}}
        value = {"type": "OS::Heat::Value", "properties": {"value": 1}}
        path = await client.create("pattern", {"value": value}, environment=policy)
        await client.until_ended(path)
        async with run.postgres.connection(server.database_url) as conn:
            pattern = await conn.fetchval("select id from stack where name = 'pattern'")
            await conn.execute(COPY_STACK, pattern, stacks)
            await conn.execute("analyze")
            used, started = server.usage(), time.perf_counter()
            await observe_all(conn)
            seconds, used = time.perf_counter() - started, server.usage() - used
        hourly = (used.server + used.postgres) / DAY_HOURS
        run.add(
            "observe", "scheduler, once a day", size, seconds=seconds,
            core=hourly / HOUR_SECONDS * 100, memory=server.memory(), **used.each(size),
        )  # fmt: skip


async def measure_events(run: Run, case: str, *, listed: bool) -> None:
    """From the report of a change to the webhook of the hook that asks about it."""
    async with (
        running_provider() as provider,
        running_sink() as sink,
        run.server(settings=SETTINGS) as (server, client),
    ):
        await provider.fill(EVENTS_OF)
        numbers = range(EVENTS_OF)
        resources = {f"r{n}": external(provider.url, n, listed=listed) for n in numbers}
        await client.until_ended(await client.create("s", resources, environment=HOLD))
        await subscribe(client, "webhook", sink, "headgate.hook.waiting")
        durations: list[float] = []
        for number in range(min(EVENTS, EVENTS_OF)):
            await reset_sink(sink)
            await provider.change(f"t{number}")
            report = {"observations": [{"physical_resource_id": f"t{number}"}]}
            started = time.time()
            await client.call("POST", "/observations", report, expected=202)
            arrived = await until_arrived(lambda: arrivals(sink), 1)
            durations.append(arrived.last - started)
        run.add("observe", case, EVENTS_OF, **percentiles(durations), memory=server.memory())


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


async def measure_creation(run: Run, case: str, size: int, *, listed: bool, build: int) -> None:
    """Create objects that take a while to be built, or none: what all creates cost."""
    async with running_provider() as provider, run.server(settings=SETTINGS) as (server, client):
        used, started = server.usage(), time.perf_counter()
        await create_built(client, provider.url, size, listed=listed, build=build)
        seconds, used = time.perf_counter() - started, server.usage() - used
        # Each object was created by one request.
        requests = await provider.requests() - size
        run.add(
            "observe", case, size, seconds=seconds, requests=requests, memory=server.memory(),
            **used.each(size),
        )  # fmt: skip


async def measure_waiting(run: Run, size: int) -> None:
    """What the server and the client's polls cost while so many objects are built, without these.
    Measured for a sixth of the time."""
    async with run.server(settings=SETTINGS) as (server, client):
        used, ends = server.usage(), time.perf_counter() + BUILD / 6
        while time.perf_counter() < ends:
            await client.until_idle()
            await asyncio.sleep(POLL)
        used = server.usage() - used
        run.add("observe", "create, the time alone", size, **used.each(max(size // 6, 1)))


async def create_built(client: Client, url: str, size: int, *, listed: bool, build: int) -> None:
    for first in range(0, size, STACK):
        numbers = range(first, min(first + STACK, size))
        resources = {f"r{n}": built(url, listed=listed, build=build) for n in numbers}
        await client.create(f"s{first}", resources)
    await client.until_idle(pause=POLL)
    for stack in await client.stacks():
        await client.until_ended(stack)


def external(url: str, number: int, *, listed: bool) -> Json:
    """A resource that stands for an existing object."""
    properties = {"compare": {"$.size": 1}, **reads(url, listed=listed, name="check")}
    return {"type": "Headgate::HTTP", "external_id": f"t{number}", "properties": properties}


def built(url: str, *, listed: bool, build: int) -> Json:
    ready = {"path": "$.state", "values": ["ready"], **({"source": "list"} if listed else {})}
    properties = {
        **reads(url, listed=listed, name="read"),
        "create": {"url": "/things", "body": {"build": build}},
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
