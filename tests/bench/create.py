"""Creation of stacks through the API: from the request to the written end."""

import time
from collections.abc import Callable, Mapping
from contextlib import AsyncExitStack
from typing import Any

from tests.bench.client import CONNECTIONS, Client, exchange
from tests.bench.limit import LimitStore
from tests.bench.run import Run
from tests.bench.server import Server
from tests.bench.shapes import chain, layered, value_chain, wide

SHAPES: Mapping[str, Callable[[int], Any]] = {
    "wide": wide, "layered": layered, "chain": chain, "values": value_chain,
}  # fmt: skip
#: Stacks that are requested at once, and resources of each.
STACKS, SIZE = 400, 50


async def create(run: Run) -> None:
    """Stacks of each shape and size, each beside the limit."""
    async with AsyncExitStack() as stack:
        server, client = await stack.enter_async_context(run.server())
        store = (
            await stack.enter_async_context(LimitStore.open(run.postgres)) if run.limits else None
        )
        for shape, build in SHAPES.items():
            for size in run.sizes:
                for number in range(run.rounds_of(size)):
                    resources = build(size)
                    name = f"{shape}{size}-{number}"
                    _, values = await measure_create(server, client, name, resources)
                    if store:
                        limit = await store.run(resources)
                        values |= {"limit": limit.rate, "limit_cpu": limit.cpu / size * 1e6}
                    run.add("create", shape, size, **values)
        for number in range(run.rounds):
            await small_stacks(run, server, client, number, store)


async def measure_create(
    server: Server, client: Client, name: str, resources: Any
) -> tuple[str, dict[str, float]]:
    """The path of a new stack, and its measures. It is rarely requested meanwhile."""
    used, started = server.usage(), time.time()
    stack = await client.create(name, resources)
    accepted = time.time() - started
    await client.until_ended(stack)
    used, ended = server.usage() - used, await client.end_time(stack)
    rate = len(resources) / (ended - started)
    return stack, {"rate": rate, "accept": accepted * 1000} | used.each(len(resources))


async def small_stacks(
    run: Run, server: Server, client: Client, number: int, store: LimitStore | None
) -> None:
    """Many stacks at once."""
    for size, count in ((SIZE, STACKS), (1, 5 * STACKS)):
        resources = layered(size) if size > 1 else wide(size)
        requests = [client.creation(f"s{size}-{number}-{n}", resources) for n in range(count)]
        used, started = server.usage(), time.perf_counter()
        accepted = await exchange(server.url, requests)
        await client.until_idle()
        elapsed, used = time.perf_counter() - started, server.usage() - used
        total = size * count
        limit = {"limit": await store.run_many(resources, count, CONNECTIONS)} if store else {}
        run.add(
            "create", f"{count} stacks at once", size, rate=total / elapsed, accept=accepted.median,
            p99=accepted.p99, **limit, **used.each(total)
        )  # fmt: skip
