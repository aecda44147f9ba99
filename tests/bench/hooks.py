"""Hooks: what they cost while they wait, how soon an answer starts an operation, and the rate of
answers. Their limit: a server that updates one row for each answer and notifies a worker."""

import asyncio
import time
from collections.abc import AsyncIterator
from contextlib import AsyncExitStack, asynccontextmanager
from typing import Any

from tests.bench.bare import BareServer, running_bare_server
from tests.bench.client import Client, Request, exchange, percentiles, seconds_of
from tests.bench.machine import Usage
from tests.bench.run import Run
from tests.bench.server import Server
from tests.bench.shapes import BREAKPOINTS, wide

Json = Any
#: Hooks of one stack.
STACK = 1000
#: Signals of one measurement.
SIGNALS = 100
#: Requests at the same time when many hooks are answered.
CLIENTS = 32
#: Answers of one measurement.
ANSWERS = 3000
#: Stacks whose hooks are answered in turn.
STACKS = 10


async def hooks(run: Run) -> None:
    async with AsyncExitStack() as stack:
        server, client = await stack.enter_async_context(run.server())
        bare = (
            await stack.enter_async_context(running_bare_server(run.postgres))
            if run.limits
            else None
        )
        await signals(server, client, "first", SIGNALS // 5)
        stacks: list[str] = []
        size = measured = 0
        for count in sorted({0, STACK, run.largest, *(n for n in run.sizes if n % STACK == 0)}):
            await add_waiting_hooks(client, stacks, count)
            memory = await server.stable_memory()
            before, size = size, await run.postgres.size_of(server.database_url)
            durations, usage = await signals(server, client, f"among{count}-", SIGNALS)
            values = percentiles(durations) | usage.each(SIGNALS)
            if count > STACK:
                values["bytes"] = (size - before) / (count - measured)
            if bare:
                values["limit_ms"] = await bare.signal(SIGNALS)
            measured = count
            run.add("hook", "signal to operation", count, **values, memory=memory)
        await add_waiting_hooks(client, stacks, (STACKS + 1) * STACK)
        await answers(run, server, client, stacks, bare)


async def add_waiting_hooks(client: Client, stacks: list[str], count: int) -> None:
    """Add stacks until so many hooks wait."""
    while len(stacks) * STACK < count:
        stacks.append(await waiting_stack(client, f"held{len(stacks)}"))


async def waiting_stack(client: Client, name: str) -> str:
    stack = await client.create(name, wide(STACK), environment=BREAKPOINTS)
    await client.until_waiting(stack, STACK)
    return stack


async def signals(
    server: Server, client: Client, name: str, count: int
) -> tuple[list[float], Usage]:
    """Seconds from each signal's request to the start of its operation, one after the other; and
    the CPU time from the requests to the ends of the stacks."""
    durations, usage = list[float](), Usage(0.0, 0.0, 0.0)
    for number in range(count):
        stack = await client.create(f"{name}{number}", wide(1), environment=BREAKPOINTS)
        await client.until_waiting(stack, 1, pause=0.02)
        (hook,) = await client.hooks(f"{name}{number}")
        used, started = server.usage(), time.time()
        await client.answer(hook)
        await client.until_ended(stack, pause=0.02)
        usage += server.usage() - used
        (node,) = (await client.graph(stack))["nodes"]
        durations.append(seconds_of(node["started_at"]) - started)
    return durations, usage


async def answers(
    run: Run, server: Server, client: Client, stacks: list[str], bare: BareServer | None
) -> None:
    """Answers to many hooks: of one stack; of many stacks, one of each in turn."""
    first, *other_hooks = [
        await client.hooks(stack.split("/")[2]) for stack in stacks[: STACKS + 1]
    ]
    in_turn = [hook for row in zip(*other_hooks, strict=True) for hook in row][:ANSWERS]
    for case, selected in (("answer, one stack", first), ("answer, many stacks", in_turn)):
        requests = [client.signal_request(hook) for hook in selected]
        used = server.usage()
        async with polling_stack(server, client, stacks[0]) as latencies:
            result = await exchange(server.url, requests, connections=CLIENTS)
        used = server.usage() - used
        values = result.measures() | used.each(len(selected))
        if bare:
            values["limit"] = (await bare.answer(len(selected), connections=CLIENTS)).rate
        run.add("hook", case, len(selected), **values)
        run.add("hook", f"show during: {case}", len(selected), **percentiles(latencies))


@asynccontextmanager
async def polling_stack(server: Server, client: Client, stack: str) -> AsyncIterator[list[float]]:
    """Seconds of requests for a stack, about ten per second, during the block."""
    durations: list[float] = []
    request = Request("GET", f"{client.root}{stack}")

    async def show() -> None:
        while True:
            started = time.perf_counter()
            await exchange(server.url, [request], connections=1)
            durations.append(time.perf_counter() - started)
            await asyncio.sleep(0.1)

    task = asyncio.create_task(show())
    try:
        yield durations
    finally:
        task.cancel()
        await asyncio.wait([task])
