"""Update and delete through the API: from the request to the written end."""

import time
from contextlib import AsyncExitStack
from typing import Any

import orjson

from tests.bench.bare import BareServer, running_bare_server
from tests.bench.client import Client
from tests.bench.create import measure_create
from tests.bench.run import Run
from tests.bench.server import Server
from tests.bench.shapes import wide
from tests.support.program import resource, template

Json = Any


async def change(run: Run) -> None:
    """Updates of one resource and of all, and deletes, of independent resources. The limit of an
    update of one: a server that decodes and stores the template, and does nothing else."""
    async with AsyncExitStack() as stack:
        server, client = await stack.enter_async_context(run.server())
        bare = (
            await stack.enter_async_context(running_bare_server(run.postgres))
            if run.limits
            else None
        )
        for size in (*run.sizes, *([run.largest] if run.largest else [])):
            for number in range(run.rounds_of(size)):
                await measure_life_cycle(run, server, client, f"life{size}-{number}", size, bare)


async def measure_life_cycle(
    run: Run, server: Server, client: Client, name: str, size: int, bare: BareServer | None
) -> None:
    resources = wide(size)
    path, values = await measure_create(server, client, name, resources)
    run.add("change", "create", size, **values, memory=server.memory())
    for turn in range(run.rounds_of(size)):
        resources["r5"] = resource(f"new {turn}")
        used = server.usage()
        duration, accepted = await measure_update(client, path, resources)
        used = server.usage() - used
        values = {"median": duration * 1000, "accept": accepted * 1000}
        if bare:
            body = orjson.dumps({"template": template(resources)})
            values["limit_ms"] = (await bare.store([body], connections=1)).median
        run.add("change", "update one", size, **values, **used.each(1))
    used = server.usage()
    duration, accepted = await measure_update(client, path, wide(size, "changed"))
    used = server.usage() - used
    values = {"rate": size / duration, "accept": accepted * 1000}
    run.add("change", "update all", size, **values, **used.each(size))
    used, started = server.usage(), time.time()
    await client.delete(path)
    accepted = time.time() - started
    await client.until_ended(path)
    used, ended = server.usage() - used, await client.end_time(path)
    values = {"rate": size / (ended - started), "accept": accepted * 1000}
    run.add("change", "delete", size, **values, **used.each(size), memory=server.memory())


async def measure_update(client: Client, stack: str, resources: Json) -> tuple[float, float]:
    """Seconds until the update has ended, and until it was accepted."""
    started = time.time()
    await client.update(stack, resources)
    accepted = time.time() - started
    await client.until_ended(stack)
    return await client.end_time(stack) - started, accepted
