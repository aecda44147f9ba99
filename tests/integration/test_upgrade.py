"""Upgrades: a database keeps its data, and hooks that wait can be answered after the upgrade."""

import asyncio
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import pytest
import pytest_asyncio

from engine.store.connection import connect
from engine.store.database import Database
from engine.store.encryption import Scope, SealedDocument, reveal
from engine.store.invariants import breaches
from engine.store.schema_upgrade import migrate, shipped
from tests.support.earlier import catalog, restore
from tests.support.postgres import TestServer
from tests.support.program import Program, program, resource
from tests.support.receiver import Receiver, until

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
    assert (await run.stack("done"))["stack_status"] in ("CREATE_COMPLETE", "SNAPSHOT_COMPLETE")
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


#: The dump has fixed times: nothing in it is too old.
KEPT: dict[str, Any] = {
    f"retention.{name}": "36500d"
    for name in ("events", "deliveries", "hooks", "traversals", "deleted_stacks")
} | {"hooks.max_timeout": "4000d"}
REDIRECT = "update subscription set target = $1"
DUE_NOW = "update delivery set next_at = clock_timestamp() where next_at is not null"
PROPERTIES = """
select r.stack_id, s.project, r.properties from resource r join stack s on s.id = r.stack_id
 where s.name = 'secret' and r.name = $1
"""
SECRET = "geheim-4711"


@pytest_asyncio.fixture
async def schema_24(postgres: TestServer) -> AsyncIterator[str]:
    """A database as the last version with schema 24 left it."""
    async with postgres.new_database(template="template0") as url:
        await restore(url)
        yield url


async def execute(url: str, statement: str, *arguments: object) -> None:
    conn = await connect(url)
    try:
        await conn.execute(statement, *arguments)
    finally:
        await conn.close(timeout=5)


async def test_a_database_of_schema_24_works_with_its_data_after_the_upgrade(
    schema_24: str, receiver: Receiver
) -> None:
    await execute(schema_24, REDIRECT, receiver.url)
    await execute(schema_24, DUE_NOW)
    async with program(schema_24, KEPT) as run:
        async with run.database.connection() as conn:
            assert await breaches(conn) == {}
        await keeps_its_history(run)
        await until(lambda: "headgate.stack.update.completed" in kinds(receiver, "done"))
        await until(lambda: "headgate.hook.waiting" in kinds(receiver, "held"))
        await keeps_its_secrets(run)
        hooks = await run.waiting("outer", 2)
        assert {hook["path"] for hook in hooks} == {"group/0", "group/1"}
        for hook in hooks:
            assert (await run.signal(hook, user="ann"))[0] == 200
        assert await run.until_ended("outer") == "CREATE_COMPLETE"
        await goes_on(run, receiver)
        async with run.database.connection() as conn:
            assert await breaches(conn) == {}


async def keeps_its_history(run: Program) -> None:
    assert (await run.stack("done"))["stack_status"] == "SNAPSHOT_COMPLETE"
    versions = (await run.at("GET", "done", "/versions"))["versions"]
    assert [one["version"] for one in versions] == [2, 1]
    (snapshot,) = (await run.at("GET", "done", "/snapshots"))["snapshots"]
    assert (snapshot["name"], snapshot["status"]) == ("kept", "COMPLETE")
    statuses = [one["resource_status"] for one in await run.events("done")]
    assert "UPDATE_COMPLETE" in statuses
    decisions = (await run.at("GET", "decided", "/decisions"))["decisions"]
    assert [one["by"] for one in decisions] == ["ann", "ann"]
    _, answered = await run.call("GET", "/hooks?state=answered&stack=decided")
    assert [hook["reason"] for hook in answered["hooks"]] == ["looks right"] * 2
    _, gone = await run.call("GET", "/stacks?show_deleted=true")
    assert {one["stack_name"] for one in gone["stacks"]} >= {"gone", "done", "held", "secret"}
    _, configs = await run.call("GET", "/software_configs")
    (config,) = configs["software_configs"]
    _, shown = await run.call("GET", f"/software_configs/{config['id']}")
    assert shown["software_config"]["config"] == "echo hello"


async def keeps_its_secrets(run: Program) -> None:
    """They can be decrypted, are used by what is still to be created, and are masked."""
    (hook,) = await run.waiting("secret")
    assert hook["path"] == "gate" and SECRET not in str(hook)
    assert (await run.signal(hook, user="ann"))[0] == 200
    assert await run.until_ended("secret") == "CREATE_COMPLETE"
    for name in ("keeper", "gate"):
        async with run.database.connection() as conn:
            row = await conn.fetchrow(PROPERTIES, name)
        assert row is not None
        scope = Scope(row["project"], row["stack_id"], "resource.properties")
        assert isinstance(row["properties"], SealedDocument)
        assert reveal(row["properties"], scope)["value"] == SECRET
        assert SECRET not in str(await run.at("GET", "secret", f"/resources/{name}"))


async def test_an_upgraded_schema_is_that_of_a_new_database(
    schema_24: str, database_url: str
) -> None:
    assert await migrate(schema_24) == ["0024_to_0037.sql"]
    assert await migrate(schema_24) == []
    assert await catalog(schema_24) == await catalog(database_url)


async def test_attributes_of_resources_with_secret_properties_are_secret(schema_24: str) -> None:
    await migrate(schema_24)
    conn = await connect(schema_24)
    try:
        marked = await conn.fetch("select secret from resource where shown is not null")
    finally:
        await conn.close(timeout=5)
    assert marked and all(row["secret"] == ["*"] for row in marked)


async def test_the_upgrade_deletes_what_snapshots_of_deleted_stacks_left(schema_24: str) -> None:
    """Earlier versions left it; what deletion_policy: Snapshot saved stays."""
    put = """
    with one as (insert into traversal (stack_id, number, project, action, version, state, reason,
                                        digest, active, requested_by)
                 select id, $1, project, $2, 1, 'complete', '', '', 0, 'me'
                   from stack where name = 'decided' returning stack_id)
    insert into resource_snapshot (stack_id, traversal, resource_id, name, type, data)
    select stack_id, $1, stack_id, $3, 'T', '{}' from one
    """
    conn = await connect(schema_24)
    try:
        await conn.execute(put, 2, "SNAPSHOT", "of a snapshot that is gone")
        await conn.execute(put, 3, "SNAPSHOT", "of a snapshot")
        await conn.execute(put, 4, "DELETE", "kept before it went")
        await conn.execute(
            "insert into snapshot (stack_id, id, name, traversal, version)"
            " select id, id, 'x', 3, 1 from stack where name = 'decided'"
        )
        await migrate(schema_24)
        left = await conn.fetch(
            "select k.name from resource_snapshot k join stack s on s.id = k.stack_id"
            " where s.name = 'decided' order by k.name"
        )
    finally:
        await conn.close(timeout=5)
    assert [row["name"] for row in left] == ["kept before it went", "of a snapshot"]


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
