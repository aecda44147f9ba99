"""The programs that are measured: PostgreSQL with durable commits, and `headgate serve`, each in
processes of their own."""

import asyncio
import contextlib
import itertools
import json
import os
import signal
import statistics
import subprocess
import sys
import tempfile
import time
import urllib.error
import urllib.request
from collections.abc import AsyncIterator, Iterator, Mapping, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from pathlib import Path

import asyncpg

from engine.store.embedded.postmaster import Postmaster
from engine.store.embedded.server import DATABASE, EmbeddedServer
from tests.bench import machine
from tests.bench.machine import Usage, children, process_tree_cpu, process_tree_memory
from tests.support.keys import key_file
from tests.support.ports import free_port

ROOT = Path(__file__).parents[2]
#: Seconds until a server must be ready, or must have ended.
TIMEOUT = 90.0
#: Connections of PostgreSQL: those of `headgate serve` with a process for each core, of the servers
#: and clients that measure limits, and of several engines.
MAX_CONNECTIONS = 200
#: Commits of the probe.
PROBES = 100
#: Sections and their settings.
Settings = Mapping[str, Mapping[str, object]]
#: For stacks of 100,000 resources, and many of them.
RAISED_QUOTAS: Settings = {
    "server": {"max_body": 60_000_000},
    "quotas": {
        "stacks_per_project": 2_000_000,
        "resources_per_stack": 2_000_000,
        "waiting_hooks_per_project": 0,
        "template_bytes": 60_000_000,
    },
}


@dataclass(frozen=True, slots=True)
class BenchPostgres:
    """A running server with the settings of an embedded one and more connections. url: of its first
    database."""

    url: str
    pid: int
    folder: Path
    numbers: Iterator[int] = field(default_factory=lambda: itertools.count(1))

    @asynccontextmanager
    async def new_database(self) -> AsyncIterator[str]:
        """The URL of an empty database, which is dropped at the end."""
        name = f"bench_{next(self.numbers)}"
        async with self.connection() as conn:
            await conn.execute(f"create database {name}")
        try:
            yield self.url.replace(f"///{DATABASE}?", f"///{name}?")
        finally:
            async with self.connection() as conn:
                await conn.execute(f"drop database {name} with (force)")

    @asynccontextmanager
    async def connection(self, url: str = "") -> AsyncIterator[asyncpg.Connection]:
        conn = await asyncpg.connect(url or self.url, timeout=10, command_timeout=600)
        try:
            yield conn
        finally:
            await conn.close(timeout=5)

    async def size_of(self, url: str) -> int:
        """Bytes of a database, without deleted rows at the ends of its tables."""
        async with self.connection(url) as conn:
            await conn.execute("vacuum")
            size: int = await conn.fetchval("select pg_database_size(current_database())")
            return size

    async def commit_ms(self) -> float:
        """The median duration of a transaction that inserts one row."""
        durations = []
        async with self.new_database() as url, self.connection(url) as conn:
            await conn.execute("create table probe (number integer)")
            for number in range(PROBES):
                started = time.perf_counter()
                await conn.execute("insert into probe values ($1)", number)
                durations.append(time.perf_counter() - started)
        return statistics.median(durations) * 1000


@asynccontextmanager
async def running_postgres() -> AsyncIterator[BenchPostgres]:
    """Raises AssertionError if its commits are not durable."""
    with tempfile.TemporaryDirectory(prefix="headgate-bench-") as name:
        folder = Path(name)
        folder.chmod(0o711)  # as root, the database runs as another account
        options = {"max_connections": str(MAX_CONNECTIONS)}
        embedded = EmbeddedServer(folder / "data", options=options)
        url = await embedded.start()
        try:
            postmaster = Postmaster.read(folder / "data" / "postgres")
            assert postmaster
            server = BenchPostgres(url, postmaster.pid, folder)
            async with server.connection() as conn:
                for setting in ("fsync", "synchronous_commit", "full_page_writes"):
                    value = await conn.fetchval(f"show {setting}")
                    assert value == "on", f"commits are not durable: {setting} = {value}"
            yield server
        finally:
            await embedded.stop()


class Server:
    """`headgate serve` of a source tree, on a database.

    source: a checkout with its own .venv, if it is not this one. roles: only these.
    """

    def __init__(
        self,
        postgres: BenchPostgres,
        url: str,
        *,
        source: Path = ROOT,
        settings: Settings | None = None,
        roles: Sequence[str] = (),
    ) -> None:
        self._postgres = postgres
        self.database_url = url
        self._source = source
        self.port = free_port()
        self.url = f"http://127.0.0.1:{self.port}"
        self.roles = roles
        name = f"{Path(url.partition('?')[0]).name}-{self.port}"
        self._config = postgres.folder / f"{name}.toml"
        self._log = postgres.folder / f"{name}.log"
        defaults: Settings = {
            "server": {"listen": f"127.0.0.1:{self.port}"},
            "database": {"url": url, "data_dir": str(postgres.folder / name)},
            "credentials": {"key_file": str(key_file())},
            "channels.webhook": {"allow": ["127.0.0.0/8"]},
        }
        self._config.write_text(as_toml(merge(defaults, RAISED_QUOTAS, settings or {})))
        self._process: subprocess.Popen[bytes] | None = None

    @property
    def pid(self) -> int:
        assert self._process is not None
        return self._process.pid

    def usage(self) -> Usage:
        return Usage(
            process_tree_cpu(self.pid), process_tree_cpu(self._postgres.pid), time.process_time()
        )

    def memory(self) -> float:
        return process_tree_memory(self.pid)

    async def stable_memory(self) -> float:
        """The lowest of several samples: garbage of the last requests does not count."""
        return await machine.lowest_sample(self.memory)

    def start(self) -> None:
        """Start it and wait until it is ready."""
        python = sys.executable if self._source == ROOT else self._source / ".venv/bin/python"
        command = [python, "-m", "hub.cli.main", "serve", "--config", str(self._config)]
        for role in self.roles:
            command += ["--role", role]
        with self._log.open("ab") as log:
            self._process = subprocess.Popen(
                command,
                cwd=self._source,
                env=os.environ | {"PYTHONPATH": str(self._source)},
                stdout=log,
                stderr=log,
            )
        ends = time.monotonic() + TIMEOUT
        while not self._is_ready():
            assert self._process.poll() is None, self._log.read_text()[-3000:]
            assert time.monotonic() < ends, self._log.read_text()[-3000:]
            time.sleep(0.02)

    def _is_ready(self) -> bool:
        if self.roles and "api" not in self.roles:
            return b"headgate.ready" in self._log.read_bytes()
        try:
            with urllib.request.urlopen(f"{self.url}/readyz", timeout=5) as answer:
                return bool(answer.status == 200)
        except (urllib.error.URLError, OSError):
            return False

    @property
    def is_running(self) -> bool:
        return self._process is not None and self._process.poll() is None

    def kill(self) -> None:
        """End it at once, as a crash does."""
        assert self._process is not None
        started = children(self.pid)
        self._process.kill()
        self._process.wait()
        for child in started:
            with contextlib.suppress(ProcessLookupError):
                os.kill(child, signal.SIGKILL)

    def stop(self) -> None:
        if self._process is None:
            return
        if self._process.poll() is None:
            self._process.terminate()
        try:
            self._process.wait(TIMEOUT)
        except subprocess.TimeoutExpired:
            self._process.kill()
            self._process.wait()


def merge(*settings: Settings) -> Settings:
    """Later ones take precedence."""
    result: dict[str, dict[str, object]] = {}
    for layer in settings:
        for section, values in layer.items():
            result[section] = {**result.get(section, {}), **values}
    return result


def as_toml(settings: Settings) -> str:
    lines = []
    for section, values in settings.items():
        lines += [
            f"[{section}]",
            *(f"{name} = {toml_value(setting)}" for name, setting in values.items()),
        ]
    return "\n".join(lines) + "\n"


def toml_value(value: object) -> str:
    """Strings, numbers and truth values are written as in JSON."""
    if isinstance(value, Mapping):
        return (
            "{"
            + ", ".join(f"{name} = {toml_value(setting)}" for name, setting in value.items())
            + "}"
        )
    if isinstance(value, list | tuple):
        return f"[{', '.join(map(toml_value, value))}]"
    return json.dumps(value)


@asynccontextmanager
async def running_server(
    postgres: BenchPostgres,
    *,
    source: Path = ROOT,
    settings: Settings | None = None,
    roles: Sequence[str] = (),
) -> AsyncIterator[Server]:
    """A server on a new database."""
    async with postgres.new_database() as url:
        server = Server(postgres, url, source=source, settings=settings, roles=roles)
        try:
            await asyncio.to_thread(server.start)
            yield server
        finally:
            await asyncio.to_thread(server.stop)
