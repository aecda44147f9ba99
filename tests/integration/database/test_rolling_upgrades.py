"""Programs of two releases on one database: which may start, and which ends."""

import asyncio
from collections.abc import Mapping
from dataclasses import replace
from datetime import timedelta
from pathlib import Path
from uuid import UUID

import pytest

from engine import errors
from engine.store.connection import connect
from engine.store.database import Database, savepoint
from engine.store.maintenance.processes import Process, list_processes, register, remove, report
from engine.store.schema.compatibility import (
    PREVIOUS_RELEASE,
    OldestProgram,
    ProgramVersion,
    read_oldest,
    record_oldest,
)
from engine.store.schema.upgrade import LOCK_KEY, migrate, own_program, read_migrations
from engine.work.presence import Presence
from tests.support.admin_command import CommandOutput, run_admin
from tests.support.postgres import TestServer
from tests.support.program import eventually, program

OWN = own_program("1.1.0")
OLDER = ProgramVersion("1.0.0", "0061_failovers.sql", 15)
PERIOD = timedelta(seconds=60)
NEXT = OldestProgram("9998_next.sql", "1.2.0")
#: As processes that do not report their program write it.
REPORT_BEFORE = """
insert into process (id, host, roles, report_interval, key_ids)
values ('00000000-0000-0000-0000-000000000007', 'old', '{engine}', '60 s', '{}')
"""


def process(number: int, program: ProgramVersion = OWN) -> Process:
    return Process(UUID(int=number), f"h{number}", ["engine"], PERIOD, program)


def next_migrations(directory: Path, **files: str) -> Path:
    """The migrations of this program, and more."""
    for one in read_migrations():
        (directory / one.name).write_text(one.text)
    for name, text in files.items():
        (directory / f"{name}.sql").write_text(text)
    return directory


def migrations_to(directory: Path, newest: str) -> Path:
    """The migrations of an earlier program."""
    for one in read_migrations():
        if one.name <= newest:
            (directory / one.name).write_text(one.text)
    return directory


def results(output: CommandOutput) -> Mapping[str, tuple[str, str]]:
    return {one["check"]: (one["state"], one["reason"]) for one in output.document}


async def test_a_process_reports_its_program(database: Database) -> None:
    async with database.connection() as conn:
        await register(conn, process(1))
        await report(conn, process(1))
        (listed,) = await list_processes(conn)
    shown = ProgramVersion(listed.version, listed.migration, listed.routines)
    assert shown == OWN and listed.up


async def test_the_oldest_program_is_recorded_and_never_lowered(database: Database) -> None:
    async with database.connection() as conn:
        oldest = await read_oldest(conn)
        assert oldest is not None and oldest.migration == PREVIOUS_RELEASE
        await record_oldest(conn, NEXT)
        await record_oldest(conn, OldestProgram("9997_earlier.sql", "1.1.0"))
        assert await read_oldest(conn) == NEXT


async def test_a_process_that_is_too_old_is_not_registered(
    database: Database, database_url: str
) -> None:
    async with database.connection() as conn:
        await record_oldest(conn, NEXT)
        with pytest.raises(errors.Conflict, match=r"headgate 1\.2\.0 has upgraded") as refused:
            await register(conn, process(1))
        assert await list_processes(conn) == []
    assert refused.value.code == "DatabaseNewer"
    with pytest.raises(errors.Conflict, match=r"know 9998_next\.sql"):
        await migrate(database_url, version="1.1.0")
    with pytest.raises(errors.Conflict, match=r"know 9998_next\.sql"):
        async with program(database_url):
            raise AssertionError("it has started")


async def test_a_contract_is_refused_while_older_processes_run(
    database: Database, database_url: str, tmp_path: Path
) -> None:
    files = next_migrations(
        tmp_path,
        **{
            "9998_next": "create table next ();",
            "9999_contract": "-- contract: 9998_next.sql\nalter table stack drop column pinned_by cascade;",
        },
    )
    async with database.connection() as conn:
        await register(conn, process(1))
    with pytest.raises(errors.Conflict, match=r"h1 runs headgate 1\.1\.0") as refused:
        await migrate(database_url, files, version="1.3.0")
    assert refused.value.code == "OlderProcesses"
    assert await database.pool.fetchval("select to_regclass('next') is null")
    async with database.connection() as conn:
        await remove(conn, process(1).id)
        await register(conn, process(2, replace(OWN, migration="9998_next.sql")))
    applied = await migrate(database_url, files, version="1.3.0")
    assert applied == ["9998_next.sql", "9999_contract.sql"]
    async with database.connection() as conn:
        assert await read_oldest(conn) == OldestProgram("9998_next.sql", "1.3.0")


async def test_a_process_that_does_not_report_its_program_is_too_old(
    postgres: TestServer, tmp_path: Path
) -> None:
    async with postgres.new_database(template="template0") as url:
        await migrate(url, migrations_to(tmp_path, OLDER.migration), version="1.0.0")
        conn = await connect(url)
        try:
            await conn.execute(REPORT_BEFORE)
            with pytest.raises(errors.Conflict, match="on old runs an earlier headgate") as refused:
                await migrate(url, version="1.1.0")
            assert refused.value.code == "OlderProcesses"
            output = await run_admin("upgrade-check", "--json", url=url)
            assert (
                output.code == 1
                and results(output)["processes"][1] == "running: an earlier headgate (old)"
            )
            assert results(output)["start"][0] == "error"
            await conn.execute("update process set seen_at = seen_at - interval '121 s'")
            output = await run_admin("upgrade-check", "--json", url=url)
            assert output.code == 0 and results(output)["start"][0] == "ok"
            await migrate(url, version="1.1.0")
        finally:
            await conn.close()


async def test_registration_and_migration_wait_for_each_other(
    database: Database, database_url: str
) -> None:
    """Otherwise a migration could miss a process that starts, which could miss the migration."""
    async with database.connection() as conn, database.connection() as other:
        async with conn.transaction():
            await conn.execute("select pg_advisory_xact_lock($1)", LOCK_KEY)
            registering = asyncio.create_task(register(other, process(1)))
            waits = "select count(*) from pg_locks where locktype = 'advisory' and not granted"
            await eventually(lambda: conn.fetchval(waits))
            await record_oldest(conn, NEXT)
        with pytest.raises(errors.Conflict, match=r"know 9998_next\.sql"):
            await registering
        assert await list_processes(conn) == []


async def test_a_process_ends_when_it_finds_that_it_is_too_old(database: Database) -> None:
    """Its reports stopped for a while, so it did not count as running."""
    stop, often = asyncio.Event(), replace(process(1), report_interval=timedelta(milliseconds=20))
    async with database.connection() as conn:
        await register(conn, often)
        presence = asyncio.create_task(Presence(database, often).run(stop))
        await record_oldest(conn, NEXT)
    async with asyncio.timeout(30):
        await stop.wait()
        await presence
    async with database.connection() as conn:
        assert await list_processes(conn) == []


async def test_the_check_names_running_programs_and_changes_nothing(
    database: Database, database_url: str, postgres: TestServer
) -> None:
    async with database.connection() as conn:
        await register(conn, process(1))
    output = await run_admin("upgrade-check", "--json", url=database_url)
    assert output.code == 0
    shown = results(output)
    assert list(shown) == ["program", "schema", "routines", "processes", "start"]
    assert "headgate 1.1.0" in shown["processes"][1] and "(h1)" in shown["processes"][1]
    assert "may start beside the running processes" in shown["start"][1]
    async with database.connection() as conn:
        await record_oldest(conn, NEXT)
    output = await run_admin("upgrade-check", url=database_url)
    assert output.code == 1
    assert "Start headgate 1.2.0, or another one that knows this migration" in output.out
    async with postgres.new_database(template="template0") as empty:
        output = await run_admin("upgrade-check", "--json", url=empty)
        assert output.code == 0 and "0040_baseline.sql" in results(output)["schema"][1]
        conn = await connect(empty)
        try:
            assert await conn.fetchval("select count(*) from pg_class where relname = 'stack'") == 0
        finally:
            await conn.close()


async def test_a_statement_whose_result_a_migration_has_changed_is_repeated(
    database: Database,
) -> None:
    """Inside of a transaction, asyncpg does not prepare it again."""
    read = "select * from software_config"
    async with database.connection() as conn, database.connection() as other:
        await conn.fetch(read)
        await other.execute("alter table software_config add column more text")
        with pytest.raises(errors.Unavailable):
            async with savepoint(conn):
                await conn.fetch(read)
        async with savepoint(conn):
            await conn.fetch(read)


@pytest.mark.parametrize(
    ("message", "sqlstate"),
    [
        ("cache lookup failed for function 17", "XX000"),
        ("could not open relation with OID 17", "XX000"),  # of a type of rows
        ("type with OID 17 does not exist", "42704"),
    ],
)
async def test_a_routine_that_a_migration_has_removed_is_called_again(
    database: Database, message: str, sqlstate: str
) -> None:
    raised = f"do $$ begin raise exception '{message}' using errcode = '{sqlstate}'; end $$"
    async with database.connection() as conn:
        with pytest.raises(errors.Unavailable):
            async with savepoint(conn):
                await conn.execute(raised)
