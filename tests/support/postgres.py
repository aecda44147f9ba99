"""One PostgreSQL server for a test run, and a new database for each test that needs one."""

import asyncio
import atexit
import contextlib
import functools
import itertools
import os
import shutil
import subprocess
import tempfile
from collections.abc import AsyncIterator, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import asynccontextmanager, contextmanager
from dataclasses import dataclass, field
from pathlib import Path

import asyncpg

from engine.store.embedded.server import DATABASE, EmbeddedServer
from engine.store.schema.upgrade import migrate

TEMPLATE = "headgate_template"
#: For the template: the only table that has more than 50 rows in a new database. PostgreSQL
#: analyses such a table after a minute, and tests without statistics would find some.
NOT_ANALYSED = "alter table migration set (autovacuum_enabled = false)"

#: The programs of the oldest supported version, as Debian 12 installs them.
OLDEST_BINARIES = Path("/usr/lib/postgresql/15/bin")
#: Options for speed: no durability after a power failure. All else is as in production.
OPTIONS = {"fsync": "off", "full_page_writes": "off", "max_connections": "100"}


@dataclass(frozen=True, slots=True)
class TestServer:
    """A running server. url: a database on it that tests do not use."""

    __test__ = False

    url: str
    numbers: Iterator[int] = field(default_factory=lambda: itertools.count(1))

    def url_of(self, database: str) -> str:
        return self.url.replace(f"///{DATABASE}?", f"///{database}?")

    @asynccontextmanager
    async def new_database(self, *, template: str = TEMPLATE) -> AsyncIterator[str]:
        """The URL of a new database: migrated, or empty with template1. It is dropped
        at the end.
        """
        name = f"test_{next(self.numbers)}"
        async with self.administer() as connection:
            await connection.execute(
                f"create database {name} template {template} strategy file_copy"
            )
        try:
            yield self.url_of(name)
        finally:
            async with self.administer() as connection:
                await connection.execute(f"drop database {name} with (force)")

    @asynccontextmanager
    async def administer(self, database: str = DATABASE) -> AsyncIterator[asyncpg.Connection]:
        url = self.url_of(database)
        connection = await asyncpg.connect(url, timeout=10, command_timeout=30)
        try:
            yield connection
        finally:
            await connection.close(timeout=5)


@contextmanager
def open_directory() -> Iterator[Path]:
    """A temporary directory with a short path, which the account of the database can enter.

    pytest's ``tmp_path`` is closed to other accounts, and a server that root starts runs as another
    account.
    """
    directory = Path(tempfile.mkdtemp(prefix="headgate-test-"))
    os.chmod(directory, 0o711)
    try:
        yield directory
    finally:
        with contextlib.suppress(FileNotFoundError):
            shutil.rmtree(directory)


def copy_cluster(data_dir: Path) -> None:
    """Copy an initialized cluster to the directory, unless it has one.

    A copy takes a tenth of the time that initialization takes.
    """
    if not (data_dir / "postgres").exists():
        data_dir.mkdir(mode=0o711, parents=True, exist_ok=True)
        subprocess.run(["cp", "-a", _initialized_cluster(), data_dir], check=True)


@functools.cache
def _initialized_cluster() -> Path:
    directory = Path(tempfile.mkdtemp(prefix="headgate-test-"))
    atexit.register(shutil.rmtree, directory, ignore_errors=True)
    os.chmod(directory, 0o711)
    with ThreadPoolExecutor(1) as thread:  # this thread may already run an event loop
        thread.submit(asyncio.run, create_cluster(directory)).result()
    return directory / "postgres"


async def create_cluster(directory: Path) -> None:
    server = EmbeddedServer(directory)
    await server.start()
    await server.stop()


@asynccontextmanager
async def running_server(binaries: Path | None = None) -> AsyncIterator[TestServer]:
    """binaries: directory of the PostgreSQL programs; None: those of the installed wheel."""
    with open_directory() as directory:
        embedded = EmbeddedServer(directory / "data", binaries=binaries, options=OPTIONS)
        server = TestServer(await embedded.start())
        try:
            async with server.administer() as connection:
                await connection.execute(f"create database {TEMPLATE}")
            await migrate(server.url_of(TEMPLATE))
            async with server.administer(TEMPLATE) as connection:
                await connection.execute(NOT_ANALYSED)
            yield server
        finally:
            await embedded.stop()
