"""The database goes away, or is full, under load: all waits, and goes on when it is back."""

import asyncio
import os
import shutil
import signal
import subprocess
from collections.abc import AsyncIterator, Awaitable, Callable, Iterator
from contextlib import asynccontextmanager, contextmanager
from pathlib import Path

import pytest

from engine.store.embedded import EmbeddedServer
from tests.fault.load import Effects, Stubborn, Tally, a_client, a_folder, check, live
from tests.support.postgres import OPTIONS, TestServer, open_directory
from tests.support.program import PATIENCE, ServerProcess, eventually, resource, template

#: How often the database goes away in each test.
TIMES = 4
CUT = "select pg_terminate_backend(pid) from pg_stat_activity where datname = $1 and pid <> $2"


@asynccontextmanager
async def a_server(
    database_url: str = "",
) -> AsyncIterator[tuple[ServerProcess, Effects, Stubborn, Tally]]:
    with a_folder() as folder:
        effects, tally = Effects(folder), Tally()
        server = ServerProcess(folder, settings=effects.settings, database_url=database_url)
        try:
            await asyncio.to_thread(server.start)
            async with a_client(server.url, tally) as http:
                yield server, effects, http, tally
        finally:
            await asyncio.to_thread(server.stop)


async def under_load(
    http: Stubborn, effects: Effects, tally: Tally, goes_away: Callable[[], Awaitable[None]]
) -> None:
    """Stacks live one after another while the database goes away and comes back."""
    away = asyncio.Event()

    async def trouble() -> None:
        for number in range(TIMES):
            await some_operations(effects, 6 * (number + 1))
            await goes_away()
            tally.kills += 1
        away.set()

    async def lives() -> int:
        count = 0
        while not away.is_set() or count == 0:
            count += 1
            await live(http, effects, f"s{count}")
            check(effects, tally, f"s{count}")
        return count

    async with asyncio.timeout(3 * PATIENCE), asyncio.TaskGroup() as group:
        group.create_task(trouble())
        group.create_task(lives())
    print(tally)
    assert (tally.lost, tally.doubled) == (0, 0), tally.notes


async def some_operations(effects: Effects, count: int) -> None:
    async def look() -> bool:
        return len(effects.file.read_text().splitlines()) >= count

    await eventually(look)


async def test_connections_are_cut(postgres: TestServer) -> None:
    async with postgres.new_database() as url:
        name = url.partition("///")[2].partition("?")[0]

        async def cut() -> None:
            async with postgres.administer() as connection:
                pid = await connection.fetchval("select pg_backend_pid()")
                await connection.execute(CUT, name, pid)

        async with a_server(database_url=url) as (server, effects, http, tally):
            await under_load(http, effects, tally, cut)
            assert server.runs


async def test_postgresql_is_restarted() -> None:
    with open_directory() as directory:
        database = EmbeddedServer(directory / "data", options=OPTIONS)
        url = await database.start()

        async def restart() -> None:
            await database.stop()
            await database.start()

        try:
            async with a_server(database_url=url) as (server, effects, http, tally):
                await under_load(http, effects, tally, restart)
                assert server.runs
        finally:
            await database.stop()


async def test_the_embedded_database_dies() -> None:
    async with a_server() as (server, effects, http, tally):
        pid_file = server.folder / "data" / "postgres" / "postmaster.pid"

        async def die() -> None:
            os.kill(int(pid_file.read_text().split()[0]), signal.SIGKILL)

        await under_load(http, effects, tally, die)
        assert server.runs


@contextmanager
def a_small_volume(folder: Path) -> Iterator[Path]:
    """A file system of its own, so that it can be filled. As root only: tests say so otherwise."""
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
    with a_folder() as folder, a_small_volume(folder) as volume:
        effects, tally = Effects(folder), Tally()
        server = ServerProcess(folder, settings=effects.settings)
        try:
            await asyncio.to_thread(server.start)
            async with a_client(server.url, tally) as http:
                await live(http, effects, "before")
                filler = volume / "filler"
                fill(filler)
                accepted = await refused_at_last(http)
                filler.unlink()
                await live(http, effects, "after")
                for name in accepted:
                    await http.reaches(name, "CREATE_COMPLETE")
                check(effects, tally, "before")
                check(effects, tally, "after")
            assert server.runs
        finally:
            await asyncio.to_thread(server.stop)
    tally.kills = 1
    print(tally)
    assert (tally.lost, tally.doubled) == (0, 0), tally.notes


def fill(filler: Path) -> None:
    """Write until there is no room for one byte more."""
    with filler.open("wb", buffering=0) as file:
        for size in (1 << 20, 1 << 12, 1):
            block = b"x" * size
            try:
                while file.write(block) == size:
                    pass
            except OSError:
                continue


async def refused_at_last(http: Stubborn) -> list[str]:
    """Ask for stacks until one is refused for want of room; names of those that were accepted."""
    accepted: list[str] = []
    large = {f"r{n}": resource("x" * 2000) for n in range(200)}
    for number in range(500):
        name = f"full{number}"
        body = {"stack_name": name, "template": template(large)}
        status, said = await http.call("POST", "/stacks", body)
        if status == 503:
            assert "database" in said["error"]["message"], said
            return accepted
        assert status == 201, said
        accepted.append(name)
    raise AssertionError("the disk was never full")
