"""From a version to the next: what waits goes on waiting, and can be answered after."""

import asyncio
from pathlib import Path

import pytest

from engine.store.database import Database
from engine.store.invariants import breaches
from engine.store.schema_upgrade import migrate, shipped
from tests.support.earlier import Rows, become_earlier, rows_of
from tests.support.events import Scene
from tests.support.postgres import TestServer
from tests.support.program import Program, program, resource
from tests.support.receiver import Receiver, until

#: The first version in which hooks could wait and somebody could be told of it.
FIRST = 3
CHAIN = {"a": resource(), "b": resource(depends_on="a"), "c": resource(depends_on="b")}
HOOKS = {"hooks": [{"at": "b", "on": ["pre-create", "post-create"]}]}
#: What the version after this one might bring.
NEXT = """
do $$
declare
    one text;
begin
    for one in select c.relname from pg_class c
                where c.relnamespace = 'public'::regnamespace and c.relkind = 'r'
                  and c.relname not in ('migration', 'routines')
    loop
        execute format('alter table %I add column next_text text, '
                       'add column next_number integer not null default 7', one);
    end loop;
end $$;
create table next (stack_id uuid not null);
create index next_index on node (resource_id);
"""


async def left_behind(run: Program, receiver: Receiver) -> None:
    """One stack that is done, one that is held, and somebody who has heard of both."""
    said = {"channel": "webhook", "target": receiver.url}
    assert (await run.call("POST", "/subscriptions", said))[0] == 201
    await run.create("done", {"a": resource()})
    await run.until_ended("done")
    await run.create("held", CHAIN, environment=HOOKS)
    await run.waiting("held")
    await until(lambda: kinds(receiver, "held").count("headgate.hook.waiting") == 1)


def kinds(receiver: Receiver, name: str) -> list[str]:
    mine = [one for one in receiver.events if one["data"].get("stack", {}).get("name") == name]
    return [event["type"] for event in mine]


async def goes_on(run: Program, receiver: Receiver) -> None:
    """What waits is there, is answered, asks again where it should, and ends; so does what is new."""
    assert (await run.stack("done"))["stack_status"] == "CREATE_COMPLETE"
    for point in ("pre-create", "post-create"):
        (hook,) = await run.waiting("held")
        assert hook["point"] == point
        status, said = await run.signal(hook, user="ann")
        assert status == 200, said
    assert await run.until_ended("held") == "CREATE_COMPLETE"
    await run.update("held", tags="new")
    assert await run.until_ended("held") == "UPDATE_COMPLETE"
    await run.at("DELETE", "done")
    await run.create("new", CHAIN)
    assert await run.until_ended("new") == "CREATE_COMPLETE"
    await until(lambda: "headgate.stack.create.completed" in kinds(receiver, "new"))
    await until(lambda: "headgate.stack.update.completed" in kinds(receiver, "held"))


#: Schemas by how many migrations they have, as many in one test as share what was left behind.
SCHEMAS = tuple(range(FIRST, len(shipped())))
SOME = 6


@pytest.mark.parametrize("first", SCHEMAS[::SOME])
async def test_from_each_earlier_schema_what_waits_is_answered_under_the_new_program(
    postgres: TestServer, receiver: Receiver, tmp_path: Path, first: int
) -> None:
    async with postgres.new_database() as url:
        async with program(url) as run:
            await left_behind(run, receiver)
        rows: Rows = await rows_of(url)
    for migrations in [one for one in SCHEMAS if first <= one < first + SOME]:
        receiver.received.clear()
        async with postgres.new_database(template="template1") as url:
            await become_earlier(url, tmp_path / str(migrations), migrations, rows)
            async with program(url) as run:
                await run.waiting("held")
                async with run.database.connection() as conn:
                    assert await breaches(conn) == {}, migrations
                await goes_on(run, receiver)


async def test_a_process_goes_on_while_the_next_version_migrates_under_it(
    running: Program, database_url: str, receiver: Receiver, tmp_path: Path
) -> None:
    await left_behind(running, receiver)
    for one in shipped():
        (tmp_path / one.name).write_text(one.text)
    (tmp_path / "9999_next.sql").write_text(NEXT)
    assert await migrate(database_url, tmp_path) == ["9999_next.sql"]
    await goes_on(running, receiver)


async def test_a_migration_gives_way_and_begins_anew(
    database: Database, database_url: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("engine.store.schema_upgrade.PATIENCE", "set local lock_timeout = '20ms'")
    monkeypatch.setattr("engine.store.schema_upgrade.PAUSE", 0.01)
    monkeypatch.setattr("engine.store.schema_upgrade.TRIES", 1000)
    for one in shipped():
        (tmp_path / one.name).write_text(one.text)
    (tmp_path / "9999_next.sql").write_text(NEXT)
    async with database.connection() as other:
        async with other.transaction():
            await other.execute("lock table stack in share mode")
            migrating = asyncio.create_task(migrate(database_url, tmp_path))
            given_way = "select count(*) from pg_stat_database where datname = current_database() and xact_rollback > 3"
            await until(lambda: database.pool.fetchval(given_way))
            # Nobody who came later has had to wait behind it.
            assert await database.pool.fetchval("select count(*) from stack") == 0
            assert not migrating.done()
        assert await migrating == ["9999_next.sql"]


async def test_a_process_goes_on_while_another_one_remakes_functions_and_views(
    running: Program, database_url: str, receiver: Receiver
) -> None:
    await left_behind(running, receiver)
    async with running.database.connection() as conn:
        await conn.execute("update routines set digest = 'of another version'")
    async with program(database_url) as other:
        assert (await other.stack("held"))["stack_status"] == "CREATE_IN_PROGRESS"
        await goes_on(running, receiver)


async def test_what_snapshots_of_deleted_stacks_left_is_cleared_away(database: Database) -> None:
    """Earlier versions left it; what deletion_policy: Snapshot kept stays."""
    put = """
    with one as (insert into traversal (stack_id, number, project, action, version, state, reason,
                                        digest, active, requested_by)
                 values ($1, $2, 'demo', $3, 1, 'complete', '', '', 0, 'me') returning stack_id)
    insert into resource_snapshot (stack_id, traversal, resource_id, name, type, data)
    select stack_id, $2, stack_id, $4, 'T', '{}' from one
    """
    stack = (await Scene(database).stack()).id
    async with database.connection() as conn:
        await conn.execute(put, stack, 2, "SNAPSHOT", "of a snapshot that is gone")
        await conn.execute(put, stack, 3, "SNAPSHOT", "of a snapshot")
        await conn.execute(put, stack, 4, "DELETE", "kept before it went")
        await conn.execute(
            "insert into snapshot (stack_id, id, name, traversal, version) values ($1, $1, 'x', 3, 1)",
            stack,
        )
        (migration,) = (one for one in shipped() if one.name.startswith("0032"))
        cleaning = migration.text[migration.text.index("delete from resource_snapshot") :]
        await conn.execute(cleaning)
        left = await conn.fetch("select name from resource_snapshot order by name")
    assert [row["name"] for row in left] == ["kept before it went", "of a snapshot"]
