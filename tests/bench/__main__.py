"""Prints the figures of README and docs, medians of several runs, next to the machine's limit.

``python -m tests.bench language hooks``: those parts alone.
"""

import asyncio
import logging
import os
import random
import statistics
import sys
import tempfile
import time
from collections.abc import Awaitable, Callable, Mapping
from pathlib import Path

import aiohttp
import structlog
import uvloop

from engine.service import StackRequest
from engine.service.requests.blueprint import build
from engine.store.database import Database, open_database
from engine.store.records import StackRecord
from engine.types.registry import built_in
from hub.program.wiring import make_limits
from hub.settings.settings import Quotas, Settings
from tests.bench import (
    bare,
    channels,
    dashboard,
    deadlines,
    hooks,
    language,
    reads,
    restarts,
    streams,
    trees,
)
from tests.bench.process import cpu, memory, settled
from tests.bench.shapes import chain, layered, wide
from tests.support.keys import A_SEALER
from tests.support.postgres import TestServer, running_server
from tests.support.program import Http, Json, Program, ServerProcess, program, resource, template

RUNS = 5
HELD = {"resource_registry": {"resources": {"*": {"hooks": "pre-create"}}}}


async def main(wanted: list[str]) -> None:
    # Programs in this process write their lines with colours here, as no server does.
    structlog.configure(wrapper_class=structlog.make_filtering_bound_logger(logging.WARNING))
    if unknown := [one for one in wanted if one not in PARTS]:
        sys.exit(f"bench: there is no part {unknown[0]}; parts are {', '.join(PARTS)}")
    print(f"{os.cpu_count()} cores; medians of {RUNS} runs; synchronous commit on\n")
    async with running_server() as postgres:
        for name in wanted or PARTS:
            await PARTS[name](postgres)


async def templates(_: TestServer) -> None:
    language.templates()


async def lives(postgres: TestServer) -> None:
    """Creates, signals and updates of whole stacks."""
    async with postgres.new_database() as url:
        await creates(url)
    async with postgres.new_database() as url, program(url) as running:
        await signals(running)
        await one_of_a_thousand(running)
    large = {"quotas.template_bytes": 8_000_000}
    async with postgres.new_database() as url, program(url, large) as running:
        await one_of_ten_thousand(running)


async def crashes(postgres: TestServer) -> None:
    await restarts.rolling_restart(postgres)
    await restarts.recovery(postgres)


async def held(postgres: TestServer) -> None:
    await hooks.answers(postgres)
    await waiting()


async def listeners(_: TestServer) -> None:
    await streams.readers()


async def nested(_: TestServer) -> None:
    await trees.trees()


async def pages(_: TestServer) -> None:
    await dashboard.graph()


#: What `make bench ARGS=...` can name.
PARTS: Mapping[str, Callable[[TestServer], Awaitable[None]]] = {
    "language": templates,
    "stacks": lives,
    "restarts": crashes,
    "channels": channels.deliveries,
    "hooks": held,
    "deadlines": deadlines.expiry,
    "reads": reads.reads,
    "streams": listeners,
    "trees": nested,
    "dashboard": pages,
}


async def creates(url: str) -> None:
    """Whole creates through HTTP: from the POST to the stack's end."""
    print("create through the API               resources/s   bare store/s   share")
    for kind, make, count in (
        ("wide", wide, 1000),
        ("layered", layered, 1000),
        ("chain", chain, 300),
    ):
        resources = make(count)
        async with program(url) as running:
            rates = [await created(running, f"{kind}{n}", resources) for n in range(RUNS)]
        database = await open_database(url, sealer=A_SEALER)
        try:
            limits = [await bare.rate(database, resources, 250) for _ in range(RUNS)]
        finally:
            await database.close()
        rate, limit = statistics.median(rates), statistics.median(limits)
        print(f"  {kind + ' ' + str(count):<32}{rate:>12,.0f}{limit:>15,.0f}{rate / limit:>9.0%}")
    print()


async def created(running: Program, name: str, resources: Json) -> float:
    """By the database's clock, from before the POST to the written end of the traversal.

    The stack is looked at seldom: looking often slows what is measured.
    """
    async with running.database.connection() as conn:
        began = await conn.fetchval("select clock_timestamp()")
        await running.create(name, resources)
        await until_complete(running.database, name, pause=0.05)
        ended = await conn.fetchval(
            "select t.ended_at from stack s join traversal t on t.stack_id = s.id"
            " and t.number = s.traversal where s.name = $1",
            name,
        )
    return len(resources) / float((ended - began).total_seconds())


async def until_complete(database: Database, name: str, *, pause: float = 0.002) -> None:
    """Look at the row, cheaply, so that looking does not slow what is measured."""
    async with asyncio.timeout(60), database.connection() as conn:
        while (
            await conn.fetchval(
                "select t.state from stack s join traversal t on t.stack_id = s.id"
                " and t.number = s.traversal where s.name = $1",
                name,
            )
            != "complete"
        ):
            await asyncio.sleep(pause)


async def signals(running: Program) -> None:
    """From the signal's POST to the operation's end, as the events say."""
    took = []
    for n in range(50):
        name = f"signal{n}"
        await running.create(name, {"a": resource()}, environment=HELD)
        (hook,) = await running.waiting(name)
        began = time.perf_counter()
        await running.signal(hook)
        await until_complete(running.database, name)
        took.append(time.perf_counter() - began)
    took.sort()
    print("from the signal's POST to the stack's end")
    print(f"  median {statistics.median(took) * 1000:.1f} ms, p90 {took[45] * 1000:.1f} ms\n")


async def one_of_a_thousand(running: Program) -> None:
    """From the PUT to the end, and the statements that took."""
    print("update of one resource, through the API")
    for count in (100, 1000):
        name, resources = f"update{count}", wide(count)
        await running.create(name, resources)
        await until_complete(running.database, name)
        took, statements = [], []
        for n in range(RUNS):
            resources["r5"] = resource(f"new {n}")
            before = await calls(running.database)
            began = time.perf_counter()
            await running.update(name, "PUT", template=template(resources))
            await until_complete(running.database, name)
            took.append(time.perf_counter() - began)
            statements.append(await calls(running.database) - before)
        print(
            f"  1 among {count:<5} {statistics.median(took) * 1000:>8.1f} ms"
            f" {statistics.median(statements):>6.0f} commits in the database"
        )
    print()


async def one_of_ten_thousand(running: Program) -> None:
    """What an update costs apart from its template: that is read, defined and stored whole."""
    print("update of one resource, in the engine         whole   template   the rest")
    rests: list[float] = []
    for count in (100, 10_000):
        resources = wide(count)
        name, engine = f"many{count}", running.engine
        request = StackRequest(name=name, template=template(resources))
        stack = await engine.stacks.create("p", request)
        await until_complete(running.database, name)
        wholes, templates = [], []
        for n in range(RUNS):
            resources["r5"] = resource(f"new {n}")
            request = StackRequest(template=template(resources))
            templates.append(await cost_of_template(running, stack, request))
            began = time.perf_counter()
            await engine.stacks.update("p", stack.id, request)
            await until_complete(running.database, name)
            wholes.append(time.perf_counter() - began)
        whole, read = statistics.median(wholes), statistics.median(templates)
        rests.append(whole - read)
        times = "".join(f"{one * 1000:>9.1f} ms" for one in (whole, read, whole - read))
        print(f"  1 among {count:<28}{times}")
    print(f"  the rest, 1 among 10,000 against 1 among 100: {rests[1] / rests[0]:.1f} times\n")


async def cost_of_template(running: Program, stack: StackRecord, request: StackRequest) -> float:
    """Reading and defining a template, and writing it down, with nothing around it."""
    registry = built_in(random.Random(0))
    limits = make_limits(Settings(quotas=Quotas(template_bytes=8_000_000)))
    async with running.database.connection() as conn:
        await conn.execute("create temporary table if not exists kept (template jsonb)")
        began = time.perf_counter()
        build(
            request,
            None,
            project="p",
            stack_id=stack.id,
            stack_name=stack.name,
            registry=registry,
            limits=limits,
        )
        await conn.execute("insert into kept values ($1)", request.template)
        return time.perf_counter() - began


async def calls(database: Database) -> int:
    async with database.connection() as conn:
        await conn.execute("select pg_stat_force_next_flush()")
        found: int = await conn.fetchval(
            "select xact_commit from pg_stat_database where datname = current_database()"
        )
        return found


async def waiting() -> None:
    """10,000 hooks waiting at once: what the process needs for that."""
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        folder.chmod(0o711)
        server = ServerProcess(folder)
        server.start()
        try:
            async with aiohttp.ClientSession() as session:
                http = Http(session, server.url)
                # What a process keeps once it has worked at all is not what waiting costs.
                await http.create("warm", wide(1000))
                await http.until_ended("warm")
                before = await settled(lambda: memory(server.pid))
                for n in range(10):
                    await http.create(f"held{n}", wide(1000), environment=HELD)
                    await http.waiting_count(f"held{n}", 1000)
                after = await settled(lambda: memory(server.pid))
                began, used = time.monotonic(), cpu(server.pid)
                await asyncio.sleep(10)
                share = (cpu(server.pid) - used) / (time.monotonic() - began)
        finally:
            server.stop()
    print("10,000 hooks waiting")
    print(f"  memory {before:.1f} MB before, {after:.1f} MB after: {after - before:+.1f} MB")
    print(f"  idle CPU {share:.2%} of a core\n")


if __name__ == "__main__":
    with asyncio.Runner(loop_factory=uvloop.new_event_loop) as runner:
        runner.run(main(sys.argv[1:]))
