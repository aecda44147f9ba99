"""The embedded server: creation, start, stop, takeover and refusals."""

import asyncio
import os
import pwd
import signal
import subprocess
import sys
import tempfile
import threading
from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager, contextmanager
from pathlib import Path
from typing import Any

import asyncpg
import pytest
import uvloop

from engine import errors
from engine.store.embedded import binaries
from engine.store.embedded.binaries import (
    DEFAULT_ACCOUNT,
    SHARED_ACCOUNTS,
    Account,
    blocked_at,
    find_account,
    find_binaries,
)
from engine.store.embedded.data_directory import (
    LOCK_NAME,
    MAX_SOCKET_DIRECTORY_BYTES,
    socket_directory,
)
from engine.store.embedded.postmaster import Postmaster
from engine.store.embedded.server import EmbeddedServer

#: Another headgate process: starts a server, prints its URL, and waits until it is killed.
PARENT = """
import asyncio, sys
from pathlib import Path
from engine.store.embedded.server import EmbeddedServer

async def main():
    server = EmbeddedServer(Path(sys.argv[1]))
    print(await server.start(), server.pid, flush=True)
    await asyncio.Event().wait()

asyncio.run(main())
"""

ROOT = Path(__file__).parents[3]


@asynccontextmanager
async def running_embedded(
    data_dir: Path, **options: Any
) -> AsyncIterator[tuple[EmbeddedServer, str]]:
    server = EmbeddedServer(data_dir, **options)
    url = await server.start()
    try:
        yield server, url
    finally:
        await server.stop()


async def query(url: str, statement: str) -> Any:
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
    """The postmasters that run on a data directory, in any process tree."""
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


async def test_data_survives_a_restart(data_directory: Path) -> None:
    async with running_embedded(data_directory) as (_, url):
        await query(url, "create table kept as select 42 as value")
    assert servers_of(data_directory) == []
    async with running_embedded(data_directory) as (_, url):
        assert await query(url, "select value from kept") == 42


async def test_the_server_is_durable(data_directory: Path) -> None:
    async with running_embedded(data_directory) as (server, url):
        for setting, value in [
            ("fsync", "on"),
            ("synchronous_commit", "on"),
            ("listen_addresses", ""),
            ("jit", "off"),
            ("full_page_writes", "on"),
        ]:
            assert await query(url, f"select current_setting('{setting}')") == value
        assert (await query(url, "select version()")).startswith("PostgreSQL 18")
        assert server.pid is not None
        assert Path(f"/proc/{server.pid}").stat().st_uid != 0


async def test_other_accounts_cannot_read_the_data(data_directory: Path) -> None:
    async with running_embedded(data_directory):
        found = (data_directory / "postgres").stat()
        assert found.st_mode & 0o777 == 0o700
        assert found.st_uid != 0


async def test_a_second_server_on_the_same_directory_is_refused(
    initialized_directory: Path,
) -> None:
    async with running_embedded(initialized_directory) as (first, url):
        second = EmbeddedServer(initialized_directory)
        with pytest.raises(errors.Unavailable) as refused:
            await second.start()
        assert str(initialized_directory) in str(refused.value)
        assert f"process {os.getpid()}" in str(refused.value)
        assert refused.value.finding.remedy
        await second.stop()
        assert await query(url, "select 1") == 1
        assert servers_of(initialized_directory) == [first.pid]


async def test_a_second_process_on_the_same_directory_is_refused(data_directory: Path) -> None:
    with other_headgate(data_directory) as (parent, url, _):
        with pytest.raises(errors.Unavailable, match=f"another headgate, process {parent.pid}"):
            await EmbeddedServer(data_directory).start()
        assert await query(url, "select 1") == 1


async def test_the_server_ends_with_its_killed_parent(initialized_directory: Path) -> None:
    with other_headgate(initialized_directory) as (parent, _, _):
        parent.kill()
        parent.wait(10)
        async with asyncio.timeout(20):
            while servers_of(initialized_directory):
                await asyncio.sleep(0.02)


@pytest.mark.parametrize("times", [1, 2])
async def test_after_a_killed_parent_one_server_has_the_data(
    initialized_directory: Path, times: int
) -> None:
    with other_headgate(initialized_directory) as (parent, url, _):
        await query(url, f"create table kept as select {times} as value")
        parent.kill()
        parent.wait(10)
        async with running_embedded(initialized_directory) as (server, url):
            assert servers_of(initialized_directory) == [server.pid]
            assert await query(url, "select value from kept") == times


async def test_an_orphaned_server_is_taken_over(initialized_directory: Path) -> None:
    """Also if the system does not end it with its parent: here it has another parent."""
    with other_headgate(initialized_directory) as (parent, url, left):
        await query(url, "create table kept as select 7 as value")
        os.kill(parent.pid, signal.SIGSTOP)
        (initialized_directory / LOCK_NAME).unlink()  # as if its parent had died
        async with running_embedded(initialized_directory) as (server, url):
            assert server.pid != left
            assert servers_of(initialized_directory) == [server.pid]
            assert await query(url, "select value from kept") == 7


async def test_a_killed_server_is_restarted(initialized_directory: Path) -> None:
    async with (
        running_embedded(initialized_directory) as (server, url),
        asyncio.TaskGroup() as group,
    ):
        await query(url, "create table kept as select 1 as value")
        keeping = group.create_task(server.supervise())
        killed = server.pid
        assert killed is not None
        os.kill(killed, signal.SIGKILL)
        async with asyncio.timeout(20):
            while server.pid in (None, killed) or not await answers(url):
                await asyncio.sleep(0.02)
        assert await query(url, "select value from kept") == 1
        keeping.cancel()


async def test_a_killed_servers_last_statement_delays_the_next_server(
    initialized_directory: Path,
) -> None:
    """A busy backend outlives its server, and locks the cluster until it ends."""
    busy = "select count(*) from generate_series(1, 10000000) /* busy */"
    seen = "select count(*) from pg_stat_activity where query like '%generate_series%busy */'"
    async with (
        running_embedded(initialized_directory) as (server, url),
        asyncio.TaskGroup() as group,
    ):
        working = asyncio.create_task(
            query(url, busy)
        )  # the client may learn that its server has died
        async with asyncio.timeout(20):
            while not await query(url, seen):
                await asyncio.sleep(0)
        killed = server.pid
        assert killed is not None
        os.kill(killed, signal.SIGKILL)
        keeping = group.create_task(server.supervise())
        async with asyncio.timeout(30):
            while server.pid in (None, killed) or not await answers(url):
                await asyncio.sleep(0.02)
        assert servers_of(initialized_directory) == [server.pid]
        assert "is still in use" in (initialized_directory / "postgres.log").read_text()
        keeping.cancel()
        await asyncio.wait([working])
        working.exception()


async def answers(url: str) -> bool:
    try:
        return bool(await query(url, "select true"))
    except (OSError, asyncpg.CannotConnectNowError):
        return False


async def test_a_stale_pid_file_with_the_pid_of_another_program_is_ignored(
    initialized_directory: Path,
) -> None:
    async with running_embedded(initialized_directory):
        pass
    cluster = initialized_directory / "postgres"
    lines = [str(os.getpid()), str(cluster), "0", "5432", str(cluster), "", "", "ready"]
    (cluster / "postmaster.pid").write_text("\n".join(lines) + "\n")
    found = Postmaster.read(cluster)
    assert found is not None
    assert found.pid == os.getpid()
    assert not found.is_running(cluster)
    async with running_embedded(initialized_directory) as (_, url):  # this process was not killed
        assert await query(url, "select 1") == 1


async def test_a_deep_data_directory_gets_a_short_socket_path(data_directory: Path) -> None:
    deep = data_directory.joinpath(*["a-rather-long-name-for-a-folder"] * 4)
    async with running_embedded(deep) as (_, url):
        assert await query(url, "select 1") == 1
        sockets = Path(await query(url, "select current_setting('unix_socket_directories')"))
        assert sockets.stat().st_mode & 0o777 == 0o700
        assert len(str(sockets)) < MAX_SOCKET_DIRECTORY_BYTES
    async with running_embedded(deep) as (_, url):
        assert await query(url, "select current_setting('unix_socket_directories')") == str(sockets)
    sockets.rmdir()


async def test_a_socket_directory_of_another_account_is_refused(data_directory: Path) -> None:
    deep = data_directory.joinpath(*["a-rather-long-name-for-a-folder"] * 4)
    deep.mkdir(parents=True)
    account = find_account(deep / "postgres")
    created = socket_directory(deep / "postgres", account)
    created.chmod(0o777)
    try:
        with pytest.raises(errors.Unavailable, match="belongs to another account"):
            await EmbeddedServer(deep).start()
    finally:
        created.rmdir()


@pytest.mark.parametrize(
    "name", ["a,b", "a b", 'a "b"', "it's", "100%", "a=b&c#d", "\u00fc", "a\\b", ",", '"']
)
async def test_a_data_directory_with_special_characters(data_directory: Path, name: str) -> None:
    async with running_embedded(data_directory / name) as (server, url):
        assert await query(url, "select 1") == 1
        assert server.url_in_use() == url
    async with running_embedded(data_directory / name) as (_, url):
        assert await query(url, "select 1") == 1


@pytest.mark.skipif(os.geteuid() != 0, reason="only root hands a cluster to another account")
@pytest.mark.parametrize("name", ['a "b"', '"', "$HOME", "`id`", "a\\\\b"])
async def test_a_data_directory_with_special_characters_that_contains_the_programs(
    data_directory: Path, name: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """If the server's account cannot enter the directory of the programs."""
    installed = find_binaries(None)

    def blocked(path: Path, account: Account) -> Path | None:
        return installed if path.is_relative_to(installed) else blocked_at(path, account)

    monkeypatch.setattr(binaries, "blocked_at", blocked)
    async with running_embedded(data_directory / name) as (server, url):
        assert await query(url, "select 1") == 1
        program = Path(f"/proc/{server.pid}/exe").readlink()
        assert program.is_relative_to((data_directory / name / "programs").resolve())
    assert not list(Path(tempfile.gettempdir()).glob("headgate-initdb-*"))


async def test_a_data_directory_with_a_line_break_is_refused(data_directory: Path) -> None:
    with pytest.raises(errors.Unavailable, match="a line break"):
        await EmbeddedServer(data_directory / "a\nb").start()


async def test_other_accounts_cannot_read_the_log(data_directory: Path) -> None:
    """Also a log of an earlier version, and a rotated one."""
    data_directory.mkdir(mode=0o711)
    log, old = data_directory / "postgres.log", data_directory / "postgres.log.1"
    for size in (10, 11 * 1024 * 1024):
        log.write_bytes(b"x" * size)
        log.chmod(0o644)
        async with running_embedded(data_directory):
            assert log.stat().st_mode & 0o777 == 0o600
    assert old.stat().st_mode & 0o777 == 0o600


#: As an account without rights would try it: the socket may be known, or open by mistake.
CONNECT_AS_OTHER = """
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
async def test_other_accounts_cannot_connect(data_directory: Path, earlier: bool) -> None:
    """Also if the directory of the socket is open. Earlier clusters accepted all accounts."""
    async with running_embedded(data_directory) as (_, url):
        await query(url, "create table kept as select 42 as value")
    cluster = data_directory / "postgres"
    if earlier:
        (cluster / "pg_hba.conf").write_text("local all all trust\nhost all all all trust\n")
        (cluster / "pg_ident.conf").unlink()
    async with running_embedded(data_directory) as (_, url):
        assert await query(url, "select value from kept") == 42
        cluster.chmod(0o711)
        done = await asyncio.create_subprocess_exec(
            sys.executable, "-c", CONNECT_AS_OTHER, url, stdout=subprocess.PIPE
        )
        output, _err = await done.communicate()
        assert output.decode().strip() == "InvalidAuthorizationSpecificationError"
        for file in ("pg_hba.conf", "pg_ident.conf"):
            found = (cluster / file).stat()
            assert (found.st_mode & 0o777, found.st_uid) == (0o600, cluster.stat().st_uid)
        assert "trust" not in (cluster / "pg_hba.conf").read_text()


@pytest.mark.skipif(os.geteuid() != 0, reason="only root hands a cluster to another account")
async def test_a_cluster_of_a_shared_account_gets_its_own_account(data_directory: Path) -> None:
    async with running_embedded(data_directory) as (_, url):
        await query(url, "create table kept as select 42 as value")
    cluster = data_directory / "postgres"
    own, shared = cluster.stat().st_uid, pwd.getpwnam("nobody")
    assert pwd.getpwuid(own).pw_name not in SHARED_ACCOUNTS
    (data_directory / "others").write_text("")
    (cluster / "link").symlink_to(data_directory / "others")
    subprocess.run(["chown", "-Rh", f"{shared.pw_uid}:{shared.pw_gid}", cluster], check=True)
    async with running_embedded(data_directory) as (server, url):
        assert await query(url, "select value from kept") == 42
        assert Path(f"/proc/{server.pid}").stat().st_uid == own
        assert {path.lstat().st_uid for path in cluster.rglob("*")} == {own}
        assert (data_directory / "others").stat().st_uid == 0
    named = EmbeddedServer(data_directory, account="no-such-account")
    with pytest.raises(errors.Unavailable, match="no account no-such-account") as refused:
        await named.start()
    assert refused.value.finding.place == "[database] account" and refused.value.finding.remedy


@pytest.fixture
def other_accounts(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Accounts of another system, in which `useradd` creates the account: its file of accounts."""
    folder = tmp_path / "etc"
    folder.mkdir()
    contents = {
        "passwd": "root:x:0:0::/:/bin/sh\n", "group": "root:x:0:\n",
        "shadow": "root:*:1::::::\n", "gshadow": "root:*::\n",
    }  # fmt: skip
    for name, text in contents.items():
        (folder / name).write_text(text)
    program, *options = binaries.CREATE_ACCOUNT
    monkeypatch.setattr(binaries, "CREATE_ACCOUNT", (program, "--prefix", str(tmp_path), *options))
    monkeypatch.setattr(binaries, "ACCOUNT_LOCK", tmp_path / "lock")
    return folder / "passwd"


def test_processes_that_start_at_the_same_time_create_one_account(other_accounts: Path) -> None:
    """A second account would have another ID than the one that the first process uses."""
    together, found = threading.Barrier(4), set[str]()

    def create() -> None:
        together.wait()
        binaries._create_account()
        lines = other_accounts.read_text().splitlines()
        found.add(next(line for line in lines if line.startswith(f"{DEFAULT_ACCOUNT}:")))

    threads = [threading.Thread(target=create) for _ in range(4)]
    for one in threads:
        one.start()
    for one in threads:
        one.join()
    assert len(found) == 1, found


def test_an_account_is_created_where_no_lock_is_possible(
    other_accounts: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """For example on a read-only file system; here, a link and a missing directory."""
    link = other_accounts.with_name("link")
    link.symlink_to("elsewhere")
    for path in (link, link / "missing"):
        monkeypatch.setattr(binaries, "ACCOUNT_LOCK", path)
        binaries._create_account()
    assert f"{DEFAULT_ACCOUNT}:" in other_accounts.read_text()
    assert not other_accounts.with_name("elsewhere").exists()


async def test_an_incomplete_cluster_is_created_again(data_directory: Path) -> None:
    partial = data_directory / "postgres.new"
    partial.mkdir(parents=True)
    (partial / "PG_VERSION").write_text("18\n")
    data_directory.chmod(0o711)
    async with running_embedded(data_directory) as (_, url):
        assert await query(url, "select 1") == 1


async def test_a_server_that_does_not_start_is_reported_with_its_log(data_directory: Path) -> None:
    server = EmbeddedServer(data_directory, options={"max_connections": "many"})
    with pytest.raises(errors.Unavailable) as failed:
        await server.start()
    assert 'invalid value for parameter "max_connections": "many"' in str(failed.value)
    assert str(data_directory / "postgres.log") in str(failed.value)
    async with running_embedded(data_directory) as (_, url):  # the directory is free again
        assert await query(url, "select 1") == 1


async def test_a_directory_that_the_account_cannot_reach_is_named(
    data_directory: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    stranger = Account("nobody-at-all", 54321, 54321)
    monkeypatch.setattr("engine.store.embedded.server.find_account", lambda *_: stranger)
    data_directory.mkdir(mode=0o700)
    with pytest.raises(errors.Unavailable, match=f"has no access to {data_directory}") as refused:
        await EmbeddedServer(data_directory).start()
    assert f"chmod o+x {data_directory}" in refused.value.finding.remedy


async def test_missing_programs_are_named(data_directory: Path) -> None:
    server = EmbeddedServer(data_directory, binaries=Path("/nowhere/bin"))
    with pytest.raises(errors.Unavailable, match="/nowhere/bin/postgres") as refused:
        await server.start()
    assert refused.value.finding.place == "[database] binaries"


def test_the_embedded_server_runs_on_uvloop(data_directory: Path) -> None:
    async def start_and_ask() -> Any:
        async with running_embedded(data_directory) as (_, url):
            return await query(url, "select 1")

    assert uvloop.run(start_and_ask()) == 1
