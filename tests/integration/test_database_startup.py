"""A process that starts while its database is away waits for it; what waiting does not mend ends
it at once."""

import asyncio
from collections.abc import AsyncIterator
from contextlib import AsyncExitStack, asynccontextmanager
from pathlib import Path

import aiohttp
import pytest
from structlog.testing import capture_logs

from engine.errors import Unavailable
from hub.program.app import ROLES, Running, running
from hub.program.database_startup import Stopped
from hub.settings.settings import Settings, load_settings
from tests.integration.conftest import Away
from tests.support.changes import thing
from tests.support.keys import key_file
from tests.support.postgres import TestServer
from tests.support.program import Http, Json, ServerProcess, eventually, free_port
from tests.support.receiver import until
from tests.support.things import Thing, World


def settings_for(url: str) -> Settings:
    said = {
        "server.listen": f"127.0.0.1:{free_port()}",
        "database.url": url,
        "credentials.key_file": str(key_file()),
    }
    return load_settings(None, said, environment={})


@pytest.fixture(autouse=True)
def _quick(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("hub.program.database_startup.RETRY_INTERVAL", 0.1)


@asynccontextmanager
async def starting(
    settings: Settings, stop: asyncio.Event
) -> AsyncIterator[asyncio.Future[Running]]:
    """A program that starts meanwhile; it gives what it is once it is ready."""
    ready: asyncio.Future[Running] = asyncio.get_running_loop().create_future()

    async def run() -> None:
        async with running(settings, ROLES, stop, types=[Thing(World())]) as made:
            ready.set_result(made)
            await stop.wait()

    task = asyncio.create_task(run())
    try:
        yield ready
    finally:
        stop.set()
        await asyncio.gather(task, return_exceptions=True)


async def test_a_database_that_is_away_is_waited_for(database_url: str, away: Away) -> None:
    settings = settings_for(database_url)
    with capture_logs() as logs:
        async with AsyncExitStack() as stack:
            session = await stack.enter_async_context(aiohttp.ClientSession())
            http = Http(session, settings.server.base_url())
            async with away():
                ready = await stack.enter_async_context(starting(settings, asyncio.Event()))
                await until(lambda: waiting(logs) >= 2)
                assert await http.call("GET", "//healthz") == (200, {"alive": True})
                status, said = await http.call("GET", "//readyz")
                assert (status, said["ready"]) == (503, False)
                assert "not currently accepting connections" in said["missing"][0]
                status, refused = await http.call("GET", "/stacks")
                assert (status, refused["error"]["type"]) == (503, "Unavailable")
                assert not ready.done()
            async with asyncio.timeout(30):
                await ready
            await http.create("s", {"a": thing()})
            assert await http.until_ended("s") == "CREATE_COMPLETE"


def waiting(logs: list[Json]) -> int:
    return sum(one["event"] == "database.waiting" for one in logs)


async def test_a_database_that_takes_no_changes_is_waited_for(
    database_url: str, postgres: TestServer
) -> None:
    name = database_url.partition("///")[2].partition("?")[0]
    async with postgres.administer() as conn:
        await conn.execute(f"alter database {name} set default_transaction_read_only = on")
        with capture_logs() as logs:
            async with starting(settings_for(database_url), asyncio.Event()) as ready:
                await until(lambda: waiting(logs) >= 1)
                await conn.execute(f"alter database {name} reset default_transaction_read_only")
                async with asyncio.timeout(30):
                    await ready


async def test_a_process_that_waits_stops_when_it_is_told_to(database_url: str, away: Away) -> None:
    stop = asyncio.Event()
    with capture_logs() as logs:
        async with away():
            task = asyncio.create_task(entered(settings_for(database_url), stop))
            await until(lambda: waiting(logs) >= 1)
            stop.set()
            async with asyncio.timeout(10):
                with pytest.raises(Stopped):
                    await task


async def entered(settings: Settings, stop: asyncio.Event) -> None:
    async with running(settings, ROLES, stop):
        pass


@pytest.mark.parametrize(
    ("before", "after", "reason"),
    [("test_", "missing_", "does not exist"), ("user=headgate", "user=nobody_here", "nobody_here")],
)
async def test_settings_that_are_wrong_end_it_at_once(
    database_url: str, before: str, after: str, reason: str
) -> None:
    with capture_logs() as logs, pytest.raises(Unavailable, match=reason):
        await entered(settings_for(database_url.replace(before, after)), asyncio.Event())
    assert waiting(logs) == 0


async def test_sigterm_ends_a_process_that_waits(
    database_url: str, away: Away, tmp_path: Path
) -> None:
    server = ServerProcess(tmp_path, database_url=database_url)
    async with away():
        starts = asyncio.create_task(asyncio.to_thread(server.start))

        async def waits() -> bool:
            return server.log.exists() and "database.waiting" in server.log.read_text()

        await eventually(waits)
        assert await asyncio.to_thread(server.stop) == 0
        await asyncio.gather(starts, return_exceptions=True)
