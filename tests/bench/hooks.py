"""What hooks cost while they wait, and how quick an answer is among many that wait."""

import asyncio
import statistics
import tempfile
import time
from pathlib import Path

import aiohttp

from engine.store.database import Database, open_database
from tests.bench.process import memory, settled
from tests.bench.shapes import wide
from tests.support.keys import A_SEALER
from tests.support.postgres import TestServer
from tests.support.program import Http, Json, ServerProcess, resource

HELD = {"resource_registry": {"resources": {"*": {"hooks": "pre-create"}}}}
#: For all the stacks of a run.
ROOM = "[quotas]\nstacks_per_project = 5000\nwaiting_hooks_per_project = 0\n"
#: In stacks of so many resources.
STACK = 1000
SIGNALS = 200
#: Answers under way at once, when all that waits is answered.
AT_ONCE = 32
AFTER_SIGNAL = """
select extract(epoch from n.started_at)::float8 from node n join stack s on s.id = n.stack_id
 where s.name = $1 and n.started_at is not null
"""


async def answers(postgres: TestServer) -> None:
    """From a signal's POST to the start of its operation, among 0, 1,000 and 100,000 that wait."""
    with tempfile.TemporaryDirectory() as name:
        async with postgres.new_database() as url:
            server = ServerProcess(Path(name), database_url=url, settings=ROOM)
            server.start()
            database = await open_database(url, sealer=A_SEALER)
            try:
                async with aiohttp.ClientSession() as session:
                    await _measured(Http(session, server.url), server, database)
            finally:
                await database.close()
                server.stop()


async def _measured(http: Http, server: ServerProcess, database: Database) -> None:
    print("from the signal's POST to the operation's start       median        p99")
    await http.create("warm", wide(STACK))
    await http.until_ended("warm")
    await _signals(http, database, "warming")
    made, p99s = 0, []
    small = before = 0.0
    for count in (0, 1_000, 100_000):
        while made < count:
            await http.create(f"held{made}", wide(STACK), environment=HELD)
            await http.waiting_count(f"held{made}", STACK)
            made += STACK
            if made == STACK:
                before = await settled(lambda: memory(server.pid))
                small = await _bytes(database)
        took = await _signals(http, database, f"among{count}")
        p99s.append(took[int(len(took) * 0.99) - 1])
        middle = statistics.median(took)
        print(f"  {count:>7,} others wait{middle * 1000:>34.1f} ms{p99s[-1] * 1000:>8.1f} ms")
    print(f"  p99 among 100,000 against none: {p99s[-1] / p99s[0]:.2f} times")
    after, large = await settled(lambda: memory(server.pid)), await _bytes(database)
    grown = made - STACK
    print(f"  memory among 1,000: {before:.1f} MB, among 100,000: {after:.1f} MB")
    print(
        f"  database: {(large - small) / grown:,.0f} bytes for a resource and the hook it waits at"
    )
    seconds = await _answer_all(http)
    print(f"  {made:,} answered through the API in {seconds:.1f} s: {made / seconds:,.0f}/s\n")


async def _signals(http: Http, database: Database, name: str) -> list[float]:
    took = []
    for number in range(SIGNALS):
        stack = f"{name}-{number}"
        await http.create(stack, {"a": resource()}, environment=HELD)
        (hook,) = await http.waiting(stack)
        began = time.time()
        await http.signal(hook)
        took.append(await _started(database, stack) - began)
    return sorted(took)


async def _started(database: Database, stack: str) -> float:
    """When the operation began, by the clock of the machine that both run on."""
    async with asyncio.timeout(60), database.connection() as conn:
        while (found := await conn.fetchval(AFTER_SIGNAL, stack)) is None:
            await asyncio.sleep(0.005)
        return float(found)


async def _bytes(database: Database) -> int:
    async with database.connection() as conn:
        await conn.execute("vacuum")
        found: int = await conn.fetchval("select pg_database_size(current_database())")
        return found


async def _answer_all(http: Http) -> float:
    """Page by page, so many at once."""
    began, left = time.perf_counter(), asyncio.Semaphore(AT_ONCE)

    async def one(hook: Json) -> None:
        async with left:
            status, said = await http.signal(hook)
            assert status == 200, said

    while True:
        _, page = await http.call("GET", "/hooks?state=waiting&limit=1000")
        if not page["hooks"]:
            return time.perf_counter() - began
        async with asyncio.TaskGroup() as group:
            for hook in page["hooks"]:
                group.create_task(one(hook))
