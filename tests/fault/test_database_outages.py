"""The database is unavailable or full under load: work waits, and continues afterwards."""

import asyncio
import os
import shutil
import signal
import subprocess
from collections.abc import AsyncIterator, Awaitable, Callable, Iterator
from contextlib import asynccontextmanager, contextmanager
from pathlib import Path

import pytest

from engine.store.embedded.server import EmbeddedServer
from tests.fault.load import (
    Effects,
    FaultCounts,
    RetryingClient,
    check,
    new_client,
    new_folder,
    run_stack,
)
from tests.support.postgres import OPTIONS, TestServer, open_directory
from tests.support.program import PATIENCE, ServerProcess, eventually, resource, template

#: The number of outages in each test.
TIMES = 4
CUT = "select pg_terminate_backend(pid) from pg_stat_activity where datname = $1 and pid <> $2"


@asynccontextmanager
async def new_server(
    database_url: str = "",
) -> AsyncIterator[tuple[ServerProcess, Effects, RetryingClient, FaultCounts]]:
    with new_folder() as folder:
        effects, counts = Effects(folder), FaultCounts()
        server = ServerProcess(folder, settings=effects.settings, database_url=database_url)
        try:
            await asyncio.to_thread(server.start)
            async with new_client(server.url, counts) as http:
                yield server, effects, http, counts
        finally:
            await asyncio.to_thread(server.stop)


async def under_load(
    http: RetryingClient,
    effects: Effects,
    counts: FaultCounts,
    outage: Callable[[], Awaitable[None]],
) -> None:
    """Stacks are created and deleted while the database has outages."""
    outage_over = asyncio.Event()

    async def cause_outages() -> None:
        for number in range(TIMES):
            await some_operations(effects, 6 * (number + 1))
            await outage()
            counts.kills += 1
        outage_over.set()

    async def run_stacks() -> int:
        count = 0
        while not outage_over.is_set() or count == 0:
            count += 1
            await run_stack(http, effects, f"s{count}")
            check(effects, counts, f"s{count}")
        return count

    async with asyncio.timeout(3 * PATIENCE), asyncio.TaskGroup() as group:
        group.create_task(cause_outages())
        group.create_task(run_stacks())
    print(counts)
    assert (counts.lost, counts.doubled) == (0, 0), counts.notes


async def some_operations(effects: Effects, count: int) -> None:
    async def is_reached() -> bool:
        return len(effects.file.read_text().splitlines()) >= count

    await eventually(is_reached)


async def test_connections_are_terminated(postgres: TestServer) -> None:
    async with postgres.new_database() as url:
        name = url.partition("///")[2].partition("?")[0]

        async def cut_connections() -> None:
            async with postgres.administer() as connection:
                pid = await connection.fetchval("select pg_backend_pid()")
                await connection.execute(CUT, name, pid)

        async with new_server(database_url=url) as (server, effects, http, counts):
            await under_load(http, effects, counts, cut_connections)
            assert server.is_running


async def test_postgresql_is_restarted() -> None:
    with open_directory() as directory:
        database = EmbeddedServer(directory / "data", options=OPTIONS)
        url = await database.start()

        async def restart() -> None:
            await database.stop()
            await database.start()

        try:
            async with new_server(database_url=url) as (server, effects, http, counts):
                await under_load(http, effects, counts, restart)
                assert server.is_running
        finally:
            await database.stop()


async def test_the_embedded_database_dies() -> None:
    async with new_server() as (server, effects, http, counts):
        pid_file = server.folder / "data" / "postgres" / "postmaster.pid"

        async def kill_database() -> None:
            os.kill(int(pid_file.read_text().split()[0]), signal.SIGKILL)

        await under_load(http, effects, counts, kill_database)
        assert server.is_running


@contextmanager
def small_volume(folder: Path) -> Iterator[Path]:
    """A separate file system, which the test can fill. Requires root."""
    place = folder / "data"
    place.mkdir(mode=0o711)
    mount = shutil.which("mount")
    assert mount and os.getuid() == 0, "this test mounts a small volume: run it as root"
    subprocess.run([mount, "-t", "tmpfs", "-o", "size=160m,mode=711", "tmpfs", place], check=True)
    try:
        yield place
    finally:
        subprocess.run(["umount", place], check=True)


@pytest.mark.timeout(180)
async def test_the_disk_is_full() -> None:
    with new_folder() as folder, small_volume(folder) as volume:
        effects, counts = Effects(folder), FaultCounts()
        server = ServerProcess(folder, settings=effects.settings)
        try:
            await asyncio.to_thread(server.start)
            async with new_client(server.url, counts) as http:
                await run_stack(http, effects, "before")
                filler = volume / "filler"
                fill(filler)
                accepted = await create_until_refused(http)
                filler.unlink()
                await run_stack(http, effects, "after")
                for name in accepted:
                    await http.until_status(name, "CREATE_COMPLETE")
                check(effects, counts, "before")
                check(effects, counts, "after")
            assert server.is_running
        finally:
            await asyncio.to_thread(server.stop)
    counts.kills = 1
    print(counts)
    assert (counts.lost, counts.doubled) == (0, 0), counts.notes


def fill(filler: Path) -> None:
    """Write until the file system is full."""
    with filler.open("wb", buffering=0) as file:
        for size in (1 << 20, 1 << 12, 1):
            block = b"x" * size
            try:
                while file.write(block) == size:
                    pass
            except OSError:
                continue


async def create_until_refused(http: RetryingClient) -> list[str]:
    """Create stacks until one is refused for lack of space; return the names of the
    accepted ones.
    """
    accepted: list[str] = []
    large = {f"r{n}": resource("x" * 2000) for n in range(200)}
    for number in range(500):
        name = f"full{number}"
        body = {"stack_name": name, "template": template(large)}
        status, response = await http.call("POST", "/stacks", body)
        if status == 503:
            assert "database" in response["error"]["message"], response
            return accepted
        assert status == 201, response
        accepted.append(name)
    raise AssertionError("the disk was never full")
