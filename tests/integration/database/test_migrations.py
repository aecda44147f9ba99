"""Migrations are atomic, run one at a time, and go forward only."""

import asyncio
from collections.abc import AsyncIterator
from dataclasses import replace
from pathlib import Path

import pytest
import pytest_asyncio

from engine import errors
from engine.store.connection import connect
from engine.store.schema import routine_versions
from engine.store.schema.upgrade import (
    BASELINE,
    UPGRADES,
    Migration,
    MigrationFailed,
    migrate,
    pending_migrations,
    read_migrations,
)
from tests.support.database_dumps import restore
from tests.support.postgres import TestServer


@pytest_asyncio.fixture
async def empty(postgres: TestServer) -> AsyncIterator[str]:
    async with postgres.new_database(template="template0") as url:
        yield url


def write(directory: Path, **files: str) -> Path:
    for name, text in files.items():
        (directory / f"{name}.sql").write_text(text)
    return directory


async def names(url: str, statement: str) -> list[str]:
    connection = await connect(url)
    try:
        return [row[0] for row in await connection.fetch(statement)]
    finally:
        await connection.close()


TABLES = "select tablename from pg_tables where schemaname = 'public' order by 1"


async def test_every_migration_is_applied_once(empty: str) -> None:
    expected = [migration.name for migration in read_migrations()]
    assert expected == sorted(expected)
    assert expected[0] == BASELINE
    assert await migrate(empty) == expected
    assert await migrate(empty) == []
    assert await names(empty, "select name from migration order by name") == expected


async def test_one_of_eight_concurrent_processes_applies_the_migrations(
    empty: str, tmp_path: Path
) -> None:
    write(tmp_path, **{"0001_one": "create table one (); select pg_sleep(0.05)"})
    outputs = await asyncio.gather(*(migrate(empty, tmp_path) for _ in range(8)))
    assert sorted(outputs) == [[]] * 7 + [["0001_one.sql"]]


async def test_the_next_release_applies_new_migrations_only(empty: str, tmp_path: Path) -> None:
    write(tmp_path, **{"0001_one": "create table one (value integer); insert into one values (1)"})
    await migrate(empty, tmp_path)
    write(tmp_path, **{"0002_two": "alter table one add more text not null default 'x'"})
    assert await migrate(empty, tmp_path) == ["0002_two.sql"]
    assert await names(empty, "select more from one where value = 1") == ["x"]


async def test_a_failing_migration_is_named_and_changes_nothing(empty: str, tmp_path: Path) -> None:
    broken = "create table two ();\n\ncreate table three (x nosuchtype);\n"
    write(tmp_path, **{"0001_one": "create table one ()", "0002_two": broken})
    with pytest.raises(MigrationFailed) as failed:
        await migrate(empty, tmp_path)
    assert failed.value.finding.place == "0002_two.sql, line 3"
    assert 'type "nosuchtype" does not exist' in str(failed.value)
    assert await names(empty, TABLES) == []


async def test_a_newer_database_is_refused(empty: str, tmp_path: Path) -> None:
    write(tmp_path, **{"0001_one": "create table one ()", "0002_two": "create table two ()"})
    await migrate(empty, tmp_path)
    (tmp_path / "0002_two.sql").unlink()
    with pytest.raises(errors.Conflict, match=r"newer.*0002_two\.sql") as refused:
        await migrate(empty, tmp_path)
    assert refused.value.code == "DatabaseNewer"
    assert await names(empty, TABLES) == ["migration", "one", "two"]


def test_a_database_that_lacks_an_earlier_migration_is_refused() -> None:
    known = [Migration("0001_one.sql", ""), Migration("0002_two.sql", "")]
    with pytest.raises(errors.Conflict, match=r"not 0001_one\.sql"):
        pending_migrations(known, ["0002_two.sql"])


async def test_a_missing_database_is_unavailable(postgres: TestServer) -> None:
    with pytest.raises(errors.Unavailable, match='database "nowhere" does not exist'):
        await migrate(postgres.url_of("nowhere"))


FUNCTION = """
select distinct 'changed' from pg_proc where proname = 'advance' and prosrc like '%changed by hand%'
"""


async def test_older_routines_are_upgraded_and_newer_ones_stay(
    empty: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A process of version 2 starts; then one of version 1, with the same migrations, uses them."""
    # The routines of the working tree count as released, even if they differ.
    own = routine_versions.routines()
    last = routine_versions.own_version().number
    released = [routine_versions.RoutineVersion(last, True, routine_versions.digest_of(own))]
    monkeypatch.setattr(routine_versions, "released_versions", lambda: released)
    await migrate(empty)
    newer = [
        replace(one, text=one.text.replace("$$;", "-- changed by hand\n$$;"))
        for one in routine_versions.routines()
    ]
    with monkeypatch.context() as patch:
        patch.setattr(routine_versions, "routines", lambda: newer)
        patch.setattr("engine.store.schema.upgrade.routines", lambda: newer)
        raised = routine_versions.own_version().number
        assert await migrate(empty) == []
    assert await names(empty, FUNCTION) == ["changed"]
    assert await names(empty, "select version::text from routines") == [str(raised)]
    assert await migrate(empty) == []
    assert await names(empty, FUNCTION) == ["changed"]
    assert await names(empty, "select version::text from routines") == [str(raised)]


async def test_a_database_without_a_routines_version_gets_the_current_one(empty: str) -> None:
    await restore(empty)
    conn = await connect(empty)
    try:
        there = await routine_versions.database_version(conn)
        assert there is not None and there < routine_versions.own_version()
        await migrate(empty)
        assert await routine_versions.database_version(conn) == routine_versions.own_version()
    finally:
        await conn.close()


@pytest.mark.parametrize("newest", ["0015_deployed.sql", "0023_decisions.sql", "0037_baseline.sql"])
async def test_a_database_between_two_versions_is_refused_unchanged(
    empty: str, newest: str
) -> None:
    conn = await connect(empty)
    try:
        await conn.execute("create table migration (name text primary key)")
        await conn.execute("insert into migration values ('0001_stacks.sql'), ($1)", newest)
    finally:
        await conn.close()
    with pytest.raises(errors.Conflict, match=newest) as refused:
        await migrate(empty)
    assert refused.value.code == "DatabaseUnreleased"
    assert "newest migration is 0024_source.sql;" in refused.value.finding.remedy
    assert await names(empty, TABLES) == ["migration"]


def test_a_process_from_before_the_baseline_refuses_a_database_with_it() -> None:
    known = [Migration("0001_stacks.sql", ""), Migration("0024_source.sql", "")]
    with pytest.raises(errors.Conflict, match=rf"newer.*{BASELINE}"):
        pending_migrations(known, [BASELINE])


def test_migrations_after_the_baseline_follow_an_upgrade() -> None:
    known = [*read_migrations(), Migration("9999_next.sql", "")]
    for newest, first in UPGRADES.items():
        left = [one.name for one in pending_migrations(known, ["0001_stacks.sql", newest])]
        assert left == [first, *[one.name for one in known[1:]]]
