"""A process that starts during an outage of its database waits; errors that waiting cannot fix end
it at once.
"""

import asyncio
from collections.abc import AsyncIterator
from contextlib import AsyncExitStack, asynccontextmanager
from pathlib import Path

import aiohttp
import pytest
from structlog.testing import capture_logs

from engine.errors import Unavailable
from hub.program.app import ROLES, RunningProcess, running
from hub.program.database_startup import StartupStopped
from hub.settings.settings import Settings, load_settings
from tests.integration.conftest import DatabaseOutage
from tests.support.changes import thing
from tests.support.keys import key_file
from tests.support.ports import free_port
from tests.support.postgres import TestServer
from tests.support.program import Http, Json, ServerProcess, eventually
from tests.support.receiver import until
from tests.support.scripted_type import Thing, World


def settings_for(url: str) -> Settings:
    values = {
        "server.listen": f"127.0.0.1:{free_port()}",
        "database.url": url,
        "credentials.key_file": str(key_file()),
    }
    return load_settings(None, values, environment={})


@pytest.fixture(autouse=True)
def _quick(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("hub.program.database_startup.RETRY_INTERVAL", 0.1)


@asynccontextmanager
async def start_program(
    settings: Settings, stop: asyncio.Event, roles: frozenset[str] = ROLES
) -> AsyncIterator[asyncio.Future[RunningProcess]]:
    """A program that starts in the background; its result is available when it is ready."""
    ready: asyncio.Future[RunningProcess] = asyncio.get_running_loop().create_future()

    async def run() -> None:
        async with running(settings, roles, stop, types=[Thing(World())]) as opened:
            ready.set_result(opened)
            await stop.wait()

    task = asyncio.create_task(run())
    try:
        yield ready
    finally:
        stop.set()
        await asyncio.gather(task, return_exceptions=True)


async def test_a_process_waits_for_an_unavailable_database(
    database_url: str, database_outage: DatabaseOutage
) -> None:
    settings = settings_for(database_url)
    with capture_logs() as logs:
        async with AsyncExitStack() as stack:
            session = await stack.enter_async_context(aiohttp.ClientSession())
            http = Http(session, settings.server.base_url())
            async with database_outage():
                ready = await stack.enter_async_context(start_program(settings, asyncio.Event()))
                await until(lambda: waits_logged(logs) >= 2)
                assert await http.call("GET", "//healthz") == (200, {"alive": True})
                status, response = await http.call("GET", "//readyz")
                assert (status, response["ready"]) == (503, False)
                assert "not currently accepting connections" in response["missing"][0]
                status, refused = await http.call("GET", "/stacks")
                assert (status, refused["error"]["type"]) == (503, "Unavailable")
                assert not ready.done()
            async with asyncio.timeout(30):
                await ready
            await http.create("s", {"a": thing()})
            assert await http.until_ended("s") == "CREATE_COMPLETE"


async def test_a_process_without_the_api_answers_health_checks_while_it_waits(
    database_url: str, database_outage: DatabaseOutage
) -> None:
    address = f"127.0.0.1:{free_port()}"
    values = {
        "database.url": database_url,
        "credentials.key_file": str(key_file()),
        "metrics.address": address,
    }
    settings = load_settings(None, values, environment={})
    with capture_logs() as logs:
        async with AsyncExitStack() as stack:
            session = await stack.enter_async_context(aiohttp.ClientSession())
            http = Http(session, f"http://{address}")
            async with database_outage():
                starting = start_program(settings, asyncio.Event(), frozenset({"engine"}))
                ready = await stack.enter_async_context(starting)
                await until(lambda: waits_logged(logs) >= 1)
                assert await http.call("GET", "//healthz") == (200, {"alive": True})
                status, response = await http.call("GET", "//readyz")
                assert (status, response["ready"]) == (503, False)
                assert "not currently accepting connections" in response["missing"][0]
                assert (await http.call("GET", "//metrics"))[0] == 503
            async with asyncio.timeout(30):
                await ready
            assert await http.call("GET", "//readyz") == (200, {"ready": True, "missing": []})
            async with database_outage():

                async def is_unready() -> bool:
                    status, response = await http.call("GET", "//readyz")
                    return status == 503 and bool(response["missing"])

                await eventually(is_unready)
                assert await http.call("GET", "//healthz") == (200, {"alive": True})


def waits_logged(logs: list[Json]) -> int:
    return sum(one["event"] == "database.waiting" for one in logs)


async def test_a_process_waits_for_a_read_only_database(
    database_url: str, postgres: TestServer
) -> None:
    name = database_url.partition("///")[2].partition("?")[0]
    async with postgres.administer() as conn:
        await conn.execute(f"alter database {name} set default_transaction_read_only = on")
        with capture_logs() as logs:
            async with start_program(settings_for(database_url), asyncio.Event()) as ready:
                await until(lambda: waits_logged(logs) >= 1)
                await conn.execute(f"alter database {name} reset default_transaction_read_only")
                async with asyncio.timeout(30):
                    await ready


async def test_a_waiting_process_can_be_stopped(
    database_url: str, database_outage: DatabaseOutage
) -> None:
    stop = asyncio.Event()
    with capture_logs() as logs:
        async with database_outage():
            task = asyncio.create_task(run_entered(settings_for(database_url), stop))
            await until(lambda: waits_logged(logs) >= 1)
            stop.set()
            async with asyncio.timeout(10):
                with pytest.raises(StartupStopped):
                    await task


async def run_entered(settings: Settings, stop: asyncio.Event) -> None:
    async with running(settings, ROLES, stop):
        pass


@pytest.mark.parametrize(
    ("before", "after", "reason"),
    [("test_", "missing_", "does not exist"), ("user=headgate", "user=nobody_here", "nobody_here")],
)
async def test_invalid_settings_end_the_process_at_once(
    database_url: str, before: str, after: str, reason: str
) -> None:
    with capture_logs() as logs, pytest.raises(Unavailable, match=reason):
        await run_entered(settings_for(database_url.replace(before, after)), asyncio.Event())
    assert waits_logged(logs) == 0


async def test_sigterm_ends_a_waiting_process(
    database_url: str, database_outage: DatabaseOutage, tmp_path: Path
) -> None:
    server = ServerProcess(tmp_path, database_url=database_url)
    async with database_outage():
        starts = asyncio.create_task(asyncio.to_thread(server.start))

        async def waits() -> bool:
            return server.log.exists() and "database.waiting" in server.log.read_text()

        await eventually(waits)
        assert await asyncio.to_thread(server.stop) == 0
        await asyncio.gather(starts, return_exceptions=True)
