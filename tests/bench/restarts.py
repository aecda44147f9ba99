"""What restarts cost: a create while both engines are restarted, and the crash of an engine."""

import asyncio
import time
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

from tests.bench.client import Client
from tests.bench.run import Run
from tests.bench.server import BenchPostgres, Server, Settings
from tests.bench.shapes import layered
from tests.fault.load import Effects, new_folder

Json = Any
COUNT, LAYERS = 5_000, 100
#: Seconds each operation takes, so that the create lasts longer than the restarts.
PAUSE = 0.05
#: Seconds.
LEASE = 1
ENGINE = {"lease": f"{LEASE}s", "operations": 8, "poll": "1s", "drain": "5s"}


class Fleet:
    """A process of the API and any number of engines, on one database."""

    def __init__(self, postgres: BenchPostgres, url: str, source: Path, settings: Settings) -> None:
        self._start = (postgres, url, source, settings)
        self.api = self._server("api", "dispatch")
        self.engines: list[Server] = []

    def _server(self, *roles: str) -> Server:
        postgres, url, source, settings = self._start
        return Server(postgres, url, source=source, settings=settings, roles=roles)

    async def engine(self) -> Server:
        server = self._server("engine")
        await asyncio.to_thread(server.start)
        self.engines.append(server)
        return server

    async def stop(self) -> None:
        for server in (*self.engines, self.api):
            await asyncio.to_thread(server.stop)


@asynccontextmanager
async def fleet(run: Run, settings: Settings) -> AsyncIterator[tuple[Fleet, Client]]:
    async with run.postgres.new_database() as url:
        servers = Fleet(run.postgres, url, run.source, settings)
        try:
            await asyncio.to_thread(servers.api.start)
            async with Client.open(servers.api.url) as client:
                yield servers, client
        finally:
            await servers.stop()


async def restarts(run: Run) -> None:
    for _ in range(min(run.rounds, 3)):
        await rolling_restart(run)
        await recovery(run)


async def rolling_restart(run: Run) -> None:
    async with fleet(run, {"engine": ENGINE}) as (servers, client):
        engines = [await servers.engine(), await servers.engine()]
        started = time.time()
        undisturbed = await client.create("undisturbed", slow_resources())
        await client.until_ended(undisturbed, pause=0.1)
        run.add("restart", "create", COUNT, seconds=await client.end_time(undisturbed) - started)
        started = time.time()
        stack = await client.create("restarted", slow_resources())
        for old in engines:
            await asyncio.to_thread(old.stop)
            await servers.engine()
        await client.until_ended(stack, pause=0.1)
        seconds = await client.end_time(stack) - started
        run.add("restart", "create, both engines restarted", COUNT, seconds=seconds)


def slow_resources() -> Json:
    resources = layered(COUNT, LAYERS)
    for spec in resources.values():
        spec["properties"]["wait_secs"] = PAUSE
    return resources


async def recovery(run: Run) -> None:
    """From the crash of the engine that runs an operation to the next call of the operation."""
    with new_folder() as folder:
        effects = Effects(folder)
        program = {"path": str(effects.script), "projects": ["*"], "arguments": ["**"]}
        command = {"enabled": True, "run_as": "server", "programs": [program]}
        settings: Settings = {"engine": ENGINE, "resource_types.command": command}
        async with fleet(run, settings) as (servers, client):
            for _ in range(2):
                await servers.engine()
            release = folder / "go"
            stack = await client.create("s", {"a": effects.resource(until=str(release))})
            crashed = await calling_engine(servers)
            crashed.kill()
            started = time.perf_counter()
            await calling_engine(servers)
            seconds = time.perf_counter() - started
            release.touch()
            await client.until_ended(stack)
    run.add("restart", f"call after a crash, lease {LEASE} s", 1, seconds=seconds)


async def calling_engine(fleet: Fleet) -> Server:
    """The engine that has an operation's process as its child."""
    async with asyncio.timeout(60):
        while True:
            for engine in fleet.engines:
                if (
                    engine.is_running
                    and Path(f"/proc/{engine.pid}/task/{engine.pid}/children").read_text()
                ):
                    return engine
            await asyncio.sleep(0.005)
