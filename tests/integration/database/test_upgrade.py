"""Upgrades keep the data of a database, and waiting hooks can be answered afterwards."""

import asyncio
from collections.abc import AsyncIterator, Mapping
from pathlib import Path
from typing import Any

import pytest
import pytest_asyncio

from engine.store.connection import connect
from engine.store.database import Database
from engine.store.encryption.secret_values import EncryptedDocument, Scope, decrypt
from engine.store.maintenance.invariants import find_violations
from engine.store.schema.upgrade import Migration, migrate, read_migrations
from tests.support.database_dumps import catalog, restore
from tests.support.postgres import TestServer
from tests.support.program import Program, program, resource
from tests.support.programs import ADDITIONS
from tests.support.receiver import Receiver, until

CHAIN = {"a": resource(), "b": resource(depends_on="a"), "c": resource(depends_on="b")}
HOOKS = {"hooks": [{"at": "b", "on": ["pre-create", "post-create"]}]}


async def create_stacks(run: Program, receiver: Receiver) -> None:
    """A completed stack, a waiting one, and a subscription that got their events."""
    body = {"channel": "webhook", "target": receiver.url}
    assert (await run.call("POST", "/subscriptions", body))[0] == 201
    await run.create("done", {"a": resource()})
    await run.until_ended("done")
    await run.create("held", CHAIN, environment=HOOKS)
    await run.waiting_hooks("held")
    await until(lambda: kinds(receiver, "held").count("headgate.hook.waiting") == 1)


def kinds(receiver: Receiver, name: str) -> list[str]:
    mine = [one for one in receiver.events if one["data"].get("stack", {}).get("name") == name]
    return [event["type"] for event in mine]


async def check_running(run: Program, receiver: Receiver) -> None:
    """The waiting hook is answered, the next one opens, and the stack completes; a new stack
    completes, too.
    """
    assert (await run.stack("done"))["stack_status"] in ("CREATE_COMPLETE", "SNAPSHOT_COMPLETE")
    for point in ("pre-create", "post-create"):
        (hook,) = await run.waiting_hooks("held")
        assert hook["point"] == point
        status, response = await run.signal(hook, user="ann")
        assert status == 200, response
    assert await run.until_ended("held") == "CREATE_COMPLETE"
    await run.update("held", tags="new")
    assert await run.until_ended("held") == "UPDATE_COMPLETE"
    await run.stack_request("DELETE", "done")
    await run.create("new", CHAIN)
    assert await run.until_ended("new") == "CREATE_COMPLETE"
    await until(lambda: "headgate.stack.create.completed" in kinds(receiver, "new"))
    await until(lambda: "headgate.stack.update.completed" in kinds(receiver, "held"))


#: The dump has fixed times, so nothing in it may be too old.
RETENTION: dict[str, Any] = {
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
REWRITING = "0065_node_columns.sql"


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
    async with program(schema_24, RETENTION) as run:
        async with run.database.connection() as conn:
            assert await find_violations(conn) == {}
        await check_history(run)
        await until(lambda: "headgate.stack.update.completed" in kinds(receiver, "done"))
        await until(lambda: "headgate.hook.waiting" in kinds(receiver, "held"))
        await check_secrets(run)
        hooks = await run.waiting_hooks("outer", 2)
        assert {hook["path"] for hook in hooks} == {"group/0", "group/1"}
        for hook in hooks:
            assert (await run.signal(hook, user="ann"))[0] == 200
        assert await run.until_ended("outer") == "CREATE_COMPLETE"
        await check_running(run, receiver)
        async with run.database.connection() as conn:
            assert await find_violations(conn) == {}


async def check_history(run: Program) -> None:
    assert (await run.stack("done"))["stack_status"] == "SNAPSHOT_COMPLETE"
    versions = (await run.stack_request("GET", "done", "/versions"))["versions"]
    assert [one["version"] for one in versions] == [2, 1]
    (snapshot,) = (await run.stack_request("GET", "done", "/snapshots"))["snapshots"]
    assert (snapshot["name"], snapshot["status"]) == ("kept", "COMPLETE")
    statuses = [one["resource_status"] for one in await run.events("done")]
    assert "UPDATE_COMPLETE" in statuses
    decisions = (await run.stack_request("GET", "decided", "/decisions"))["decisions"]
    assert [one["by"] for one in decisions] == ["ann", "ann"]
    _, answered = await run.call("GET", "/hooks?state=answered&stack=decided")
    assert [hook["reason"] for hook in answered["hooks"]] == ["looks right"] * 2
    _, response = await run.call("GET", "/stacks?show_deleted=true")
    assert {one["stack_name"] for one in response["stacks"]} >= {"gone", "done", "held", "secret"}
    _, configs = await run.call("GET", "/software_configs")
    (config,) = configs["software_configs"]
    _, document = await run.call("GET", f"/software_configs/{config['id']}")
    assert document["software_config"]["config"] == "echo hello"


async def check_secrets(run: Program) -> None:
    """They can be decrypted, are used by later operations, and are masked."""
    (hook,) = await run.waiting_hooks("secret")
    assert hook["path"] == "gate" and SECRET not in str(hook)
    assert (await run.signal(hook, user="ann"))[0] == 200
    assert await run.until_ended("secret") == "CREATE_COMPLETE"
    for name in ("keeper", "gate"):
        async with run.database.connection() as conn:
            row = await conn.fetchrow(PROPERTIES, name)
        assert row is not None
        scope = Scope(row["project"], row["stack_id"], "resource.properties")
        assert isinstance(row["properties"], EncryptedDocument)
        assert decrypt(row["properties"], scope)["value"] == SECRET
        assert SECRET not in str(await run.stack_request("GET", "secret", f"/resources/{name}"))


async def test_an_upgraded_schema_equals_that_of_a_new_database(
    schema_24: str, postgres: TestServer
) -> None:
    assert await migrate(schema_24) == [
        "0024_to_0040.sql",
        "0041_rules_of_changes.sql",
        "0042_archive_queue.sql",
        "0043_lifecycle.sql",
        "0044_cancelled_operations.sql",
        "0045_nested_snapshots.sql",
        "0046_key_order.sql",
        "0047_listed_stacks.sql",
        "0048_observations.sql",
        "0049_convergence.sql",
        "0050_stack_outputs.sql",
        "0051_drift_reports.sql",
        "0052_early_observations.sql",
        "0053_reported_changes.sql",
        "0054_completions.sql",
        "0055_usage.sql",
        "0056_drift_hooks.sql",
        "0057_repairs_of_projects.sql",
        "0058_adopted_values.sql",
        "0059_request_budgets.sql",
        "0060_watched_hooks.sql",
        "0061_failovers.sql",
        "0062_rolling_upgrades.sql",
        "0063_trusts.sql",
        "0064_drift_source.sql",
        "0065_node_columns.sql",
        "0066_event_ids.sql",
        "0067_dependents.sql",
        "0068_failed_deliveries.sql",
        "0069_stacks_by_tag.sql",
        "0070_running_operations.sql",
        "0071_labels.sql",
        "0072_sign_in_subjects.sql",
        "0075_quiet_hours.sql",
        "0076_observation_credentials.sql",
        "0077_events_by_resource.sql",
        "0078_slack_requests.sql",
        "0079_digests.sql",
        "0079_repair_credentials.sql",
        "0080_cells.sql",
        "0081_waiting_for_earlier_operations.sql",
        "0082_pending_deliveries.sql",
        "0083_tags_of_stacks.sql",
        "0088_converge_requests.sql",
        "0089_project_moves.sql",
        "0090_moved_projects.sql",
        "0091_past_drift.sql",
        "0092_requests_by_endpoint.sql",
        "0093_marked_drift.sql",
        "0094_moving_schemas.sql",
        "0095_lasting_marks.sql",
        "0096_position_shifts.sql",
        "0097_tokens_of_moved_projects.sql",
        "0098_region_of_stacks.sql",
        "0099_last_known_drift.sql",
        "0100_drift_digests.sql",
        "0102_failed_requests.sql",
        "0103_entries_of_hooks.sql",
        "0104_waiting_repairs.sql",
        "0106_move_ids.sql",
    ]
    assert await migrate(schema_24) == []
    async with postgres.new_database(template="template0") as new:
        await migrate(new)
        assert await catalog(schema_24) == await catalog(new)


async def test_attributes_of_resources_with_secret_properties_are_secret(schema_24: str) -> None:
    await migrate(schema_24)
    conn = await connect(schema_24)
    try:
        marked = await conn.fetch(
            "select secret_attributes from resource where masked_properties is not null"
        )
    finally:
        await conn.close(timeout=5)
    assert marked and all(row["secret_attributes"] == ["*"] for row in marked)


async def test_the_upgrade_deletes_leftovers_of_snapshots_of_deleted_stacks(schema_24: str) -> None:
    """Earlier versions left them; snapshots of `deletion_policy: Snapshot` are kept."""
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


async def test_a_process_continues_during_the_migration_to_the_next_version(
    running: Program, database_url: str, receiver: Receiver, tmp_path: Path
) -> None:
    await create_stacks(running, receiver)
    for one in read_migrations():
        (tmp_path / one.name).write_text(one.text)
    (tmp_path / "9999_next.sql").write_text(ADDITIONS)
    assert await migrate(database_url, tmp_path) == ["9999_next.sql"]
    await check_running(running, receiver)


async def test_a_process_continues_while_the_table_of_nodes_is_written_again(
    running: Program, database_url: str, receiver: Receiver, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The migration drops the table with its views; they are created again."""
    await create_stacks(running, receiver)
    before = await catalog(database_url)
    known = read_migrations()
    texts = {one.name: one.text for one in known}
    text = texts[REWRITING] + texts["0070_running_operations.sql"] + labels_of_nodes(texts)
    again = [*known, Migration("9999_again.sql", text)]
    monkeypatch.setattr("engine.store.schema.upgrade.read_migrations", lambda _: again)
    assert await migrate(database_url) == ["9999_again.sql"]
    assert await catalog(database_url) == before
    async with running.database.connection() as conn:
        assert await find_violations(conn) == {}
    await check_running(running, receiver)


SUCCEEDED = "0081_waiting_for_earlier_operations.sql"


def labels_of_nodes(texts: Mapping[str, str]) -> str:
    """What later migrations add to the table of nodes."""
    text = texts["0071_labels.sql"]
    column = "alter table node add column label text;\n"
    assert column in text
    return column + text[text.index("create index node_labelled") :] + texts[SUCCEEDED]


async def test_a_migration_that_writes_tables_again_waits_for_a_step_before_it_takes_a_lock(
    database: Database, database_url: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A step locks its stack, then nodes and resources: in another order, the two would deadlock,
    and the migration would start again."""
    texts = {one.name: one.text for one in read_migrations()}
    tags = texts["0069_stacks_by_tag.sql"]
    indexes = (
        "drop index resource_by_requirement, stack_by_tag;"
        + texts["0067_dependents.sql"]
        + tags[tags.index("create index") :]
    )
    again = [
        *read_migrations(),
        Migration("9999_again.sql", texts[REWRITING] + indexes + labels_of_nodes(texts)),
    ]
    monkeypatch.setattr("engine.store.schema.upgrade.read_migrations", lambda _: again)
    monkeypatch.setattr("engine.store.schema.upgrade.TRIES", 1)
    waiting = (
        "select count(*) from pg_stat_activity"
        " where wait_event_type = 'Lock' and datname = current_database()"
    )
    async with database.connection() as step, step.transaction():
        await step.execute("update stack set tags = tags")
        migrating = asyncio.create_task(migrate(database_url))
        await until(lambda: database.pool.fetchval(waiting))
        await step.execute("update node set reason = reason")
        await step.execute("update resource set name = name")
    assert await migrating == ["9999_again.sql"]


async def test_a_migration_yields_its_locks_and_restarts(
    database: Database, database_url: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(
        "engine.store.schema.upgrade.SET_LOCK_TIMEOUT", "set local lock_timeout = '20ms'"
    )
    monkeypatch.setattr("engine.store.schema.upgrade.PAUSE", 0.01)
    monkeypatch.setattr("engine.store.schema.upgrade.TRIES", 1000)
    for one in read_migrations():
        (tmp_path / one.name).write_text(one.text)
    (tmp_path / "9999_next.sql").write_text(ADDITIONS)
    async with database.connection() as other:
        async with other.transaction():
            await other.execute("lock table stack in share mode")
            migrating = asyncio.create_task(migrate(database_url, tmp_path))
            given_way = "select count(*) from pg_stat_database where datname = current_database() and xact_rollback > 3"
            await until(lambda: database.pool.fetchval(given_way))
            # later transactions did not wait for the migration
            assert await database.pool.fetchval("select count(*) from stack") == 0
            assert not migrating.done()
        assert await migrating == ["9999_next.sql"]


async def test_a_process_continues_while_another_one_recreates_functions_and_views(
    running: Program, database_url: str, receiver: Receiver
) -> None:
    await create_stacks(running, receiver)
    async with running.database.connection() as conn:
        await conn.execute("update routines set digest = 'of another version'")
    async with program(database_url) as other:
        assert (await other.stack("held"))["stack_status"] == "CREATE_IN_PROGRESS"
        await check_running(running, receiver)
