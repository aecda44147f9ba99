"""The database as it is looked into without a server."""

import subprocess
import sys
from pathlib import Path
from uuid import UUID

import pytest
from pydantic import SecretStr

from engine.errors import Conflict, Unavailable
from engine.store.database import Database
from engine.store.embedded import EmbeddedServer
from engine.store.schema_upgrade import migrate
from hub.checks.offline_database import open_offline
from hub.settings.settings import DatabaseSettings

COUNT = "select count(*) from stack"


async def test_one_that_is_named_is_used(database_url: str) -> None:
    async with open_offline(DatabaseSettings(url=SecretStr(database_url))) as conn:
        assert await conn.fetchval(COUNT) == 0


async def test_one_at_rest_is_started_for_the_while(data_directory: Path) -> None:
    server = EmbeddedServer(data_directory)
    await migrate(await server.start())
    await server.stop()
    async with open_offline(DatabaseSettings(data_dir=data_directory)) as conn:
        assert await conn.fetchval(COUNT) == 0
    assert not (data_directory / "postgres" / "postmaster.pid").exists()


async def test_one_in_use_is_shared_and_left_running(data_directory: Path) -> None:
    server = EmbeddedServer(data_directory)
    await migrate(await server.start())
    try:
        async with open_offline(DatabaseSettings(data_dir=data_directory)) as conn:
            assert await conn.fetchval(COUNT) == 0
        assert server.pid is not None
    finally:
        await server.stop()


async def test_none_is_made_where_there_is_none(data_directory: Path) -> None:
    with pytest.raises(Unavailable, match=r"there is no database in .*--data-dir"):
        async with open_offline(DatabaseSettings(data_dir=data_directory)):
            pass
    assert not (data_directory / "postgres").exists()


async def test_one_in_use_that_cannot_be_reached_is_refused(data_directory: Path) -> None:
    server = EmbeddedServer(data_directory)
    await server.start()
    try:
        # As it is for another account, which may not look into the cluster.
        (data_directory / "postgres" / "postmaster.pid").rename(data_directory / "away")
        with pytest.raises(Unavailable, match="in use by another headgate, process"):
            async with open_offline(DatabaseSettings(data_dir=data_directory)):
                pass
    finally:
        (data_directory / "away").rename(data_directory / "postgres" / "postmaster.pid")
        await server.stop()


async def test_one_of_an_older_version_is_not_brought_up_to_date(
    database: Database, database_url: str
) -> None:
    async with database.connection() as conn:
        await conn.execute("update migration set name = '0024_source.sql'")
    with pytest.raises(Conflict, match="older than this headgate: it has no 0024_to_0037"):
        async with open_offline(DatabaseSettings(url=SecretStr(database_url))):
            pass


def test_the_command_ends_with_what_it_found(tmp_path: Path) -> None:
    words = ["admin", "verify-audit", str(UUID(int=1)), "--data-dir", str(tmp_path)]
    done = subprocess.run(
        [sys.executable, "-m", "hub.cli.main", *words], capture_output=True, text=True, timeout=60
    )
    assert done.returncode == 1 and "there is no database in" in done.stderr
