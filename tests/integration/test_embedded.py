"""The embedded server: made, started, stopped, taken over, refused."""

import asyncio
import os
import pwd
import signal
import subprocess
import sys
import tempfile
from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager, contextmanager
from pathlib import Path
from typing import Any

import asyncpg
import pytest
import uvloop

from engine import errors
from engine.store import binaries
from engine.store.binaries import SHARED, Account, blocked_at, find_account, find_binaries
from engine.store.data_directory import LOCK_NAME, SOCKET_DIRECTORY_LIMIT, socket_directory
from engine.store.embedded import EmbeddedServer
from engine.store.postmaster import Postmaster

#: Another headgate: starts a server, says its URL, and stays until it is killed.
PARENT = """
import asyncio, sys
from pathlib import Path
from engine.store.embedded import EmbeddedServer

async def main():
    server = EmbeddedServer(Path(sys.argv[1]))
    print(await server.start(), server.pid, flush=True)
    await asyncio.Event().wait()

asyncio.run(main())
"""

ROOT = Path(__file__).parents[2]


@asynccontextmanager
async def started(data_dir: Path, **options: Any) -> AsyncIterator[tuple[EmbeddedServer, str]]:
    server = EmbeddedServer(data_dir, **options)
    url = await server.start()
    try:
        yield server, url
    finally:
        await server.stop()


async def ask(url: str, statement: str) -> Any:
    connection = await asyncpg.connect(url, timeout=10)
    try:
        return await connection.fetchval(statement)
    finally:
        await connection.close(timeout=5)


@contextmanager
def other_headgate(data_dir: Path) -> Iterator[tuple[subprocess.Popen[str], str, int]]:
    with subprocess.Popen(
        [sys.executable, "-c", PARENT, str(data_dir)], stdout=subprocess.PIPE, text=True, cwd=ROOT
    ) as parent:
        try:
            assert parent.stdout is not None
            url, pid = parent.stdout.readline().split()
            yield parent, url, int(pid)
        finally:
            parent.kill()


def servers_of(data_dir: Path) -> list[int]:
    """The postmasters that run on a data directory, however they came to be."""
    found = []
    for entry in Path("/proc").iterdir():
        if entry.name.isdigit():
            try:
                command = (entry / "cmdline").read_bytes().split(b"\0")
                inside = os.path.samefile(entry / "cwd", data_dir / "postgres")
            except OSError:
                continue
            if inside and command[0].endswith(b"/bin/postgres"):
                found.append(int(entry.name))
    return found


async def test_what_was_written_is_there_after_a_restart(data_directory: Path) -> None:
    async with started(data_directory) as (_, url):
        await ask(url, "create table kept as select 42 as value")
    assert servers_of(data_directory) == []
    async with started(data_directory) as (_, url):
        assert await ask(url, "select value from kept") == 42


async def test_the_server_keeps_what_it_says_it_keeps(data_directory: Path) -> None:
    async with started(data_directory) as (server, url):
        for setting, value in [
            ("fsync", "on"),
            ("synchronous_commit", "on"),
            ("listen_addresses", ""),
            ("jit", "off"),
            ("full_page_writes", "on"),
        ]:
            assert await ask(url, f"select current_setting('{setting}')") == value
        assert (await ask(url, "select version()")).startswith("PostgreSQL 18")
        assert server.pid is not None
        assert Path(f"/proc/{server.pid}").stat().st_uid != 0


async def test_the_data_is_closed_to_others(data_directory: Path) -> None:
    async with started(data_directory):
        found = (data_directory / "postgres").stat()
        assert found.st_mode & 0o777 == 0o700
        assert found.st_uid != 0


async def test_a_second_one_on_the_same_directory_is_refused(laid_directory: Path) -> None:
    async with started(laid_directory) as (first, url):
        second = EmbeddedServer(laid_directory)
        with pytest.raises(errors.Unavailable) as refused:
            await second.start()
        assert str(laid_directory) in str(refused.value)
        assert f"process {os.getpid()}" in str(refused.value)
        assert refused.value.finding.remedy
        await second.stop()
        assert await ask(url, "select 1") == 1
        assert servers_of(laid_directory) == [first.pid]


async def test_a_second_process_on_the_same_directory_is_refused(data_directory: Path) -> None:
    with other_headgate(data_directory) as (parent, url, _):
        with pytest.raises(errors.Unavailable, match=f"another headgate, process {parent.pid}"):
            await EmbeddedServer(data_directory).start()
        assert await ask(url, "select 1") == 1


async def test_a_killed_parent_takes_its_server_along(laid_directory: Path) -> None:
    with other_headgate(laid_directory) as (parent, _, _):
        parent.kill()
        parent.wait(10)
        async with asyncio.timeout(20):
            while servers_of(laid_directory):
                await asyncio.sleep(0.02)


@pytest.mark.parametrize("times", [1, 2])
async def test_after_a_killed_parent_there_is_one_server_with_its_data(
    laid_directory: Path, times: int
) -> None:
    with other_headgate(laid_directory) as (parent, url, _):
        await ask(url, f"create table kept as select {times} as value")
        parent.kill()
        parent.wait(10)
        async with started(laid_directory) as (server, url):
            assert servers_of(laid_directory) == [server.pid]
            assert await ask(url, "select value from kept") == times


async def test_a_server_left_behind_is_taken_over_not_doubled(laid_directory: Path) -> None:
    """Also where the system does not end it with its parent: here nobody's child at all."""
    with other_headgate(laid_directory) as (parent, url, left):
        await ask(url, "create table kept as select 7 as value")
        os.kill(parent.pid, signal.SIGSTOP)
        (laid_directory / LOCK_NAME).unlink()  # as if its holder were gone
        async with started(laid_directory) as (server, url):
            assert server.pid != left
            assert servers_of(laid_directory) == [server.pid]
            assert await ask(url, "select value from kept") == 7


async def test_a_killed_server_is_started_again(laid_directory: Path) -> None:
    async with started(laid_directory) as (server, url), asyncio.TaskGroup() as group:
        await ask(url, "create table kept as select 1 as value")
        keeping = group.create_task(server.supervise())
        killed = server.pid
        assert killed is not None
        os.kill(killed, signal.SIGKILL)
        async with asyncio.timeout(20):
            while server.pid in (None, killed) or not await answers(url):
                await asyncio.sleep(0.02)
        assert await ask(url, "select value from kept") == 1
        keeping.cancel()


async def test_a_killed_servers_last_statement_delays_the_next_server(laid_directory: Path) -> None:
    """A backend that is busy outlives its server, and keeps the cluster until it is done."""
    busy = "select count(*) from generate_series(1, 10000000) /* busy */"
    seen = "select count(*) from pg_stat_activity where query like '%generate_series%busy */'"
    async with started(laid_directory) as (server, url), asyncio.TaskGroup() as group:
        working = asyncio.create_task(ask(url, busy))  # it may be told that its server is gone
        async with asyncio.timeout(20):
            while not await ask(url, seen):
                await asyncio.sleep(0)
        killed = server.pid
        assert killed is not None
        os.kill(killed, signal.SIGKILL)
        keeping = group.create_task(server.supervise())
        async with asyncio.timeout(30):
            while server.pid in (None, killed) or not await answers(url):
                await asyncio.sleep(0.02)
        assert servers_of(laid_directory) == [server.pid]
        assert "is still in use" in (laid_directory / "postgres.log").read_text()
        keeping.cancel()
        await asyncio.wait([working])
        working.exception()


async def answers(url: str) -> bool:
    try:
        return bool(await ask(url, "select true"))
    except (OSError, asyncpg.CannotConnectNowError):
        return False


async def test_a_stale_pid_file_of_a_living_stranger_is_no_server(laid_directory: Path) -> None:
    async with started(laid_directory):
        pass
    cluster = laid_directory / "postgres"
    lines = [str(os.getpid()), str(cluster), "0", "5432", str(cluster), "", "", "ready"]
    (cluster / "postmaster.pid").write_text("\n".join(lines) + "\n")
    found = Postmaster.read(cluster)
    assert found is not None
    assert found.pid == os.getpid()
    assert not found.runs(cluster)
    async with started(laid_directory) as (_, url):  # and we were not ended
        assert await ask(url, "select 1") == 1


async def test_a_deep_data_directory_gets_a_short_socket(data_directory: Path) -> None:
    deep = data_directory.joinpath(*["a-rather-long-name-for-a-folder"] * 4)
    async with started(deep) as (_, url):
        assert await ask(url, "select 1") == 1
        sockets = Path(await ask(url, "select current_setting('unix_socket_directories')"))
        assert sockets.stat().st_mode & 0o777 == 0o700
        assert len(str(sockets)) < SOCKET_DIRECTORY_LIMIT
    async with started(deep) as (_, url):
        assert await ask(url, "select current_setting('unix_socket_directories')") == str(sockets)
    sockets.rmdir()


async def test_a_socket_directory_somebody_else_made_is_refused(data_directory: Path) -> None:
    deep = data_directory.joinpath(*["a-rather-long-name-for-a-folder"] * 4)
    deep.mkdir(parents=True)
    account = find_account(deep / "postgres")
    made = socket_directory(deep / "postgres", account)
    made.chmod(0o777)
    try:
        with pytest.raises(errors.Unavailable, match="belongs to another account"):
            await EmbeddedServer(deep).start()
    finally:
        made.rmdir()


@pytest.mark.parametrize(
    "name", ["a,b", "a b", 'a "b"', "it's", "100%", "a=b&c#d", "\u00fc", "a\\b", ",", '"']
)
async def test_a_data_directory_of_any_name(data_directory: Path, name: str) -> None:
    async with started(data_directory / name) as (server, url):
        assert await ask(url, "select 1") == 1
        assert server.url_in_use() == url
    async with started(data_directory / name) as (_, url):
        assert await ask(url, "select 1") == 1


@pytest.mark.skipif(os.geteuid() != 0, reason="only root hands a cluster to another account")
@pytest.mark.parametrize("name", ['a "b"', '"', "$HOME", "`id`", "a\\\\b"])
async def test_a_data_directory_of_any_name_with_the_programs_in_it(
    data_directory: Path, name: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Where the server's account cannot enter the directory that the programs are installed in."""
    installed = find_binaries(None)

    def blocked(path: Path, account: Account) -> Path | None:
        return installed if path.is_relative_to(installed) else blocked_at(path, account)

    monkeypatch.setattr(binaries, "blocked_at", blocked)
    async with started(data_directory / name) as (server, url):
        assert await ask(url, "select 1") == 1
        program = Path(f"/proc/{server.pid}/exe").readlink()
        assert program.is_relative_to((data_directory / name / "programs").resolve())
    assert not list(Path(tempfile.gettempdir()).glob("headgate-initdb-*"))


async def test_a_line_break_in_its_name_is_refused(data_directory: Path) -> None:
    with pytest.raises(errors.Unavailable, match="a line break"):
        await EmbeddedServer(data_directory / "a\nb").start()


async def test_its_log_is_its_owners_alone(data_directory: Path) -> None:
    """Also one that an earlier version has made, and one that is put aside."""
    data_directory.mkdir(mode=0o711)
    log, old = data_directory / "postgres.log", data_directory / "postgres.log.1"
    for size in (10, 11 * 1024 * 1024):
        log.write_bytes(b"x" * size)
        log.chmod(0o644)
        async with started(data_directory):
            assert log.stat().st_mode & 0o777 == 0o600
    assert old.stat().st_mode & 0o777 == 0o600


#: As an account without rights would try it: the socket may be known, or open by mistake.
INTRUDE = """
import asyncio, asyncpg, os, sys
os.setgid(65534); os.setgroups([]); os.setuid(65534)
async def main():
    try:
        await asyncpg.connect(sys.argv[1], timeout=10)
    except (OSError, asyncpg.PostgresError) as error:
        print(type(error).__name__)
    else:
        print("entered")
asyncio.run(main())
"""


@pytest.mark.skipif(os.geteuid() != 0, reason="only root becomes another account")
@pytest.mark.parametrize("earlier", [False, True])
async def test_no_other_account_gets_in(data_directory: Path, earlier: bool) -> None:
    """Even where the directory of the socket is open. Earlier clusters let everybody in."""
    async with started(data_directory) as (_, url):
        await ask(url, "create table kept as select 42 as value")
    cluster = data_directory / "postgres"
    if earlier:
        (cluster / "pg_hba.conf").write_text("local all all trust\nhost all all all trust\n")
        (cluster / "pg_ident.conf").unlink()
    async with started(data_directory) as (_, url):
        assert await ask(url, "select value from kept") == 42
        cluster.chmod(0o711)
        done = await asyncio.create_subprocess_exec(
            sys.executable, "-c", INTRUDE, url, stdout=subprocess.PIPE
        )
        said, _err = await done.communicate()
        assert said.decode().strip() == "InvalidAuthorizationSpecificationError"
        for file in ("pg_hba.conf", "pg_ident.conf"):
            found = (cluster / file).stat()
            assert (found.st_mode & 0o777, found.st_uid) == (0o600, cluster.stat().st_uid)
        assert "trust" not in (cluster / "pg_hba.conf").read_text()


@pytest.mark.skipif(os.geteuid() != 0, reason="only root hands a cluster to another account")
async def test_a_cluster_of_an_account_that_others_share_gets_its_own(data_directory: Path) -> None:
    async with started(data_directory) as (_, url):
        await ask(url, "create table kept as select 42 as value")
    cluster = data_directory / "postgres"
    own, shared = cluster.stat().st_uid, pwd.getpwnam("nobody")
    assert pwd.getpwuid(own).pw_name not in SHARED
    (data_directory / "others").write_text("")
    (cluster / "link").symlink_to(data_directory / "others")
    subprocess.run(["chown", "-Rh", f"{shared.pw_uid}:{shared.pw_gid}", cluster], check=True)
    async with started(data_directory) as (server, url):
        assert await ask(url, "select value from kept") == 42
        assert Path(f"/proc/{server.pid}").stat().st_uid == own
        assert {path.lstat().st_uid for path in cluster.rglob("*")} == {own}
        assert (data_directory / "others").stat().st_uid == 0
    named = EmbeddedServer(data_directory, account="no-such-account")
    with pytest.raises(errors.Unavailable, match="no account no-such-account") as refused:
        await named.start()
    assert refused.value.finding.place == "[database] account" and refused.value.finding.remedy


async def test_a_cluster_that_was_cut_off_half_way_is_made_anew(data_directory: Path) -> None:
    partial = data_directory / "postgres.new"
    partial.mkdir(parents=True)
    (partial / "PG_VERSION").write_text("18\n")
    data_directory.chmod(0o711)
    async with started(data_directory) as (_, url):
        assert await ask(url, "select 1") == 1


async def test_a_server_that_does_not_start_says_why(data_directory: Path) -> None:
    server = EmbeddedServer(data_directory, options={"max_connections": "many"})
    with pytest.raises(errors.Unavailable) as failed:
        await server.start()
    assert 'invalid value for parameter "max_connections": "many"' in str(failed.value)
    assert str(data_directory / "postgres.log") in str(failed.value)
    async with started(data_directory) as (_, url):  # and the directory is free again
        assert await ask(url, "select 1") == 1


async def test_a_directory_the_account_cannot_reach_is_named(
    data_directory: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    stranger = Account("nobody-at-all", 54321, 54321)
    monkeypatch.setattr("engine.store.embedded.find_account", lambda *_: stranger)
    data_directory.mkdir(mode=0o700)
    with pytest.raises(errors.Unavailable, match=f"may not enter {data_directory}") as refused:
        await EmbeddedServer(data_directory).start()
    assert f"chmod o+x {data_directory}" in refused.value.finding.remedy


async def test_binaries_that_are_not_there_are_named(data_directory: Path) -> None:
    server = EmbeddedServer(data_directory, binaries=Path("/nowhere/bin"))
    with pytest.raises(errors.Unavailable, match="/nowhere/bin/postgres") as refused:
        await server.start()
    assert refused.value.finding.place == "[database] binaries"


def test_it_runs_on_uvloop(data_directory: Path) -> None:
    async def start_and_ask() -> Any:
        async with started(data_directory) as (_, url):
            return await ask(url, "select 1")

    assert uvloop.run(start_and_ask()) == 1
