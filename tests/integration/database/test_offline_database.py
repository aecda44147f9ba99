"""Commands that use the database without a server."""

import subprocess
import sys
from pathlib import Path
from uuid import UUID

import pytest
from pydantic import SecretStr

from engine.errors import Conflict, Unavailable
from engine.store.database import Database
from engine.store.embedded.server import EmbeddedServer
from engine.store.schema.upgrade import migrate
from hub.checks.offline_database import open_offline
from hub.settings.settings import DatabaseSettings

COUNT = "select count(*) from stack"


async def test_a_configured_database_is_used(database_url: str) -> None:
    async with open_offline(DatabaseSettings(url=SecretStr(database_url))) as conn:
        assert await conn.fetchval(COUNT) == 0


async def test_a_stopped_embedded_server_is_started_temporarily(data_directory: Path) -> None:
    server = EmbeddedServer(data_directory)
    await migrate(await server.start())
    await server.stop()
    async with open_offline(DatabaseSettings(data_dir=data_directory)) as conn:
        assert await conn.fetchval(COUNT) == 0
    assert not (data_directory / "postgres" / "postmaster.pid").exists()


async def test_a_running_embedded_server_is_shared_and_not_stopped(data_directory: Path) -> None:
    server = EmbeddedServer(data_directory)
    await migrate(await server.start())
    try:
        async with open_offline(DatabaseSettings(data_dir=data_directory)) as conn:
            assert await conn.fetchval(COUNT) == 0
        assert server.pid is not None
    finally:
        await server.stop()


async def test_a_missing_database_is_not_created(data_directory: Path) -> None:
    with pytest.raises(Unavailable, match=r"there is no database in .*--data-dir"):
        async with open_offline(DatabaseSettings(data_dir=data_directory)):
            pass
    assert not (data_directory / "postgres").exists()


async def test_a_running_server_that_cannot_be_reached_is_refused(data_directory: Path) -> None:
    server = EmbeddedServer(data_directory)
    await server.start()
    try:
        # As for another account, which cannot read the cluster.
        (data_directory / "postgres" / "postmaster.pid").rename(data_directory / "moved")
        with pytest.raises(
            Unavailable, match=r"another headgate, process .*, uses the data directory"
        ):
            async with open_offline(DatabaseSettings(data_dir=data_directory)):
                pass
    finally:
        (data_directory / "moved").rename(data_directory / "postgres" / "postmaster.pid")
        await server.stop()


async def test_an_older_database_is_refused_and_not_migrated(
    database: Database, database_url: str
) -> None:
    async with database.connection() as conn:
        await conn.execute("truncate migration")
        await conn.execute("insert into migration (name) values ('0024_source.sql')")
    with pytest.raises(Conflict, match="older than this headgate: it lacks 0024_to_0040"):
        async with open_offline(DatabaseSettings(url=SecretStr(database_url))):
            pass


def test_a_command_without_a_database_fails(tmp_path: Path) -> None:
    arguments = ["admin", "verify-audit", str(UUID(int=1)), "--data-dir", str(tmp_path)]
    done = subprocess.run(
        [sys.executable, "-m", "hub.cli.main", *arguments],
        capture_output=True,
        text=True,
        timeout=60,
    )
    assert done.returncode == 1 and "there is no database in" in done.stderr
