"""PostgreSQL servers on loopback, one a primary and the others its streaming replicas."""

import asyncio
import os
import signal
import subprocess
from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import asyncpg

from engine.store.embedded.binaries import find_account
from tests.support.ports import free_port
from tests.support.postgres import OLDEST_BINARIES, open_directory
from tests.support.program import PATIENCE
from tests.support.relay import Relay, running_relay

USER = "headgate"
OPTIONS = {
    "listen_addresses": "127.0.0.1", "fsync": "off", "full_page_writes": "off",
    "max_connections": "100", "wal_level": "replica", "hot_standby": "on", "wal_keep_size": "64MB",
    "shared_buffers": "32MB", "unix_socket_directories": "",
}  # fmt: skip


class PostgresNode:
    """A server with a directory and a port of its own. relay: between its clients and it."""

    def __init__(self, folder: Path, name: str) -> None:
        self.name = name
        self.data = folder / name
        self.port = free_port()
        self.relay: Relay
        self._log = folder / f"{name}.log"
        self._process: subprocess.Popen[bytes] | None = None
        account = find_account(self.data)
        self._user: dict[str, Any] = {}
        if account:
            self._user = {"user": account.uid, "group": account.gid, "extra_groups": []}
        if account:
            os.chown(folder, account.uid, account.gid)

    async def _run(self, program: str, *arguments: str) -> None:
        process = await asyncio.create_subprocess_exec(
            str(OLDEST_BINARIES / program), *arguments, cwd="/", stdout=asyncio.subprocess.PIPE,
            stderr=asyncio.subprocess.STDOUT, **self._user,
        )  # fmt: skip
        output, _ = await process.communicate()
        assert process.returncode == 0, output.decode()

    async def initialize(self) -> None:
        await self._run(
            "initdb", "--pgdata", str(self.data), "--username", USER, "--auth=trust",
            "--locale=C", "--encoding=UTF8", "--no-sync", "--no-instructions",
        )  # fmt: skip

    async def copy(self, primary_port: int) -> None:
        """Make it a replica of a running server."""
        source = f"host=127.0.0.1 port={primary_port} user={USER} application_name={self.name}"
        await self._run(
            "pg_basebackup", "--pgdata", str(self.data), "--dbname", source,
            "--write-recovery-conf", "--checkpoint=fast", "--wal-method=stream", "--no-sync",
        )  # fmt: skip

    async def start(self, **options: str) -> None:
        """options: settings in addition to OPTIONS."""
        command = [str(OLDEST_BINARIES / "postgres"), "-D", str(self.data), "-p", str(self.port)]
        for name, value in {**OPTIONS, **options}.items():
            command += ["-c", f"{name}={value}"]
        with self._log.open("ab") as log:
            self._process = subprocess.Popen(
                command, cwd="/", stdout=log, stderr=log,
                **self._user,
            )  # fmt: skip
        async with asyncio.timeout(PATIENCE):
            while True:
                try:
                    await self.execute("select 1")
                    return
                except (OSError, asyncpg.PostgresError):
                    assert self._process.poll() is None, self._log.read_text()
                    await asyncio.sleep(0.02)

    async def execute(
        self, statement: str, *arguments: object, database: str = "postgres"
    ) -> object:
        """The first value of the first row."""
        connection = await asyncpg.connect(
            host="127.0.0.1", port=self.port, user=USER, database=database, timeout=10
        )
        try:
            return await connection.fetchval(statement, *arguments)
        finally:
            await connection.close(timeout=5)

    async def promote(self) -> None:
        """Make a replica the primary."""
        await self.execute("select pg_promote()")

    def kill(self) -> None:
        """End it at once, as a machine that loses power."""
        if self._process is not None and self._process.poll() is None:
            self._process.send_signal(signal.SIGQUIT)
            self._process.wait(PATIENCE)

    def url(self, database: str = "headgate") -> str:
        return f"postgresql://{USER}@127.0.0.1:{self.relay.port}/{database}"


class ReplicatedPair:
    """link: between the primary and its replica."""

    def __init__(self, first: PostgresNode, second: PostgresNode, link: Relay) -> None:
        self.first, self.second, self.link = first, second, link

    @property
    def url(self) -> str:
        return url_of([self.first, self.second])


def url_of(nodes: Sequence[PostgresNode]) -> str:
    """The URL with all nodes, each behind its relay."""
    hosts = ",".join(f"127.0.0.1:{one.relay.port}" for one in nodes)
    return f"postgresql://{USER}@{hosts}/headgate?target_session_attrs=read-write"


@asynccontextmanager
async def running_pair(*, synchronous: bool) -> AsyncIterator[ReplicatedPair]:
    """A primary and a replica; synchronous: the replica has each commit before it is confirmed."""
    with open_directory() as folder:
        first, second = PostgresNode(folder, "first"), PostgresNode(folder, "second")
        try:
            await first.initialize()
            async with (
                running_relay(f"tcp://127.0.0.1:{first.port}") as first.relay,
                running_relay(f"tcp://127.0.0.1:{second.port}") as second.relay,
                running_relay(f"tcp://127.0.0.1:{first.port}") as link,
            ):
                await first.start()
                await first.execute("create database headgate")
                await second.copy(link.port)
                await second.start()
                if synchronous:
                    await first.execute("alter system set synchronous_standby_names = 'second'")
                    await first.execute("select pg_reload_conf()")
                yield ReplicatedPair(first, second, link)
        finally:
            first.kill()
            second.kill()
