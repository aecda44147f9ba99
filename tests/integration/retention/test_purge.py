"""Old records are purged completely; records that are needed are kept at any age."""

import asyncio
from collections import Counter
from datetime import timedelta
from uuid import uuid4

import pytest
from structlog.testing import capture_logs

from channels.store.publish import publish
from engine.principal import Principal
from engine.store.connection import try_lock
from engine.store.database import Database
from engine.store.maintenance.retention import KINDS, LOCK_KEY
from engine.store.observer import observation_credentials
from engine.work.archive import archive_graphs
from engine.work.purge import PurgeLoop, count_purgeable, purge_old
from tests.support.changes import put, thing, until_deleted
from tests.support.engine_rows import EngineRows, resource_event
from tests.support.full_stack import (
    count_mentions,
    create_and_delete_full_stack,
    only_waiting_hook,
    tables,
    until_delivered,
)
from tests.support.program import Program, program
from tests.support.purging import hold_purge_lock, purge_now
from tests.support.receiver import Receiver, until
from tests.support.scripted_type import Thing, World

#: Every record is old, and audit logs are purged, too.
AT_ONCE = dict.fromkeys(KINDS, timedelta(0))
ORPHANS = """
select count(*) from {} t
 where t.stack_id is not null
   and not exists (select from stack s where s.id = t.stack_id)
   and not exists (select from subscription u where u.id = t.stack_id)
"""


async def purge(run: Program, **ages: timedelta) -> Counter[str]:
    return await purge_now(run.database, ages or AT_ONCE)


async def test_a_deleted_stack_is_purged_from_every_table_and_its_audit_log_if_configured(
    run: Program, world: World, receiver: Receiver
) -> None:
    ids, seen = await create_and_delete_full_stack(run, world, receiver)
    # A new table with a stack ID must be covered by the full stack.
    assert seen >= set(await tables(run.database, of_stack=True))
    async with hold_purge_lock(run.database) as conn:
        purgeable = +await count_purgeable(conn, AT_ONCE)
    assert set(await count_mentions(run.database, ids)) >= {"stack", "event", "hook", "decision"}
    without_trails = {kind: age for kind, age in AT_ONCE.items() if kind != "audit_logs"}
    assert await purge(run, **without_trails) == Counter(
        purgeable - Counter(audit_logs=purgeable["audit_logs"])
    )
    audit_tables = {"decision", "audit_head", "audit_checkpoint"}
    assert set(await count_mentions(run.database, ids)) == audit_tables
    assert await purge(run) == Counter(audit_logs=purgeable["audit_logs"])
    # Signed checkpoints stay, because later ones build on them: IDs and hashes.
    assert set(await count_mentions(run.database, ids)) == {"audit_checkpoint"}
    async with run.database.connection() as conn:
        for table in await tables(run.database, of_stack=True):
            assert await conn.fetchval(ORPHANS.format(table)) == 0, table


async def test_a_pinned_stack_is_not_purged_until_it_is_unpinned(run: Program) -> None:
    stack_id = await run.create("s", {"a": thing()})
    await run.until_ended("s")
    path = f"/stacks/s/{stack_id}"
    status, response = await run.call(
        "PUT", f"{path}/pin", {"reason": "an audit"}, headers={"X-Auth-User": "ann"}
    )
    assert status == 200 and (response["pinned"]["by"], response["pinned"]["reason"]) == (
        "ann",
        "an audit",
    )
    assert (await run.stack("s"))["pinned"] == response["pinned"]
    await run.stack_request("DELETE", "s")
    await until_deleted(run, "s")
    await until_delivered(run)
    await archive_graphs(run.database)
    before = await count_mentions(run.database, {stack_id})
    assert await purge(run) == Counter()
    assert await count_mentions(run.database, {stack_id}) == before
    status, response = await run.call("DELETE", f"{path}/pin")
    assert (status, response) == (200, {"pinned": None})
    assert (await purge(run))["deleted_stacks"] == 1
    assert await count_mentions(run.database, {stack_id}) == Counter()
    assert (await run.call("PUT", f"{path}/pin"))[0] == 404


async def test_a_deleted_stack_with_purged_events_can_be_pinned(run: Program) -> None:
    stack_id = await run.create("s", {"a": thing()})
    await run.until_ended("s")
    await run.stack_request("DELETE", "s")
    await until_deleted(run, "s")
    await until_delivered(run)
    assert (await purge(run, events=timedelta(0)))["events"] > 0
    assert (await run.call("PUT", f"/stacks/s/{stack_id}/pin"))[0] == 200
    assert await purge(run) == Counter()
    assert (await run.call("GET", f"/stacks/s/{stack_id}"))[0] == 200


async def test_records_younger_than_their_retention_are_kept(run: Program) -> None:
    stack_id = await run.create("s", {"a": thing()})
    await run.until_ended("s")
    await run.stack_request("DELETE", "s")
    await until_deleted(run, "s")
    await until_delivered(run)
    assert await purge(run, **dict.fromkeys(KINDS, timedelta(hours=1))) == Counter()
    assert "stack" in await count_mentions(run.database, {stack_id})


async def test_the_newest_event_of_an_existing_stack_is_kept(run: Program) -> None:
    await run.create("s", {"a": thing()})
    await run.until_ended("s")
    await put(run, "s", {"a": thing(2)})
    await run.until_ended("s")
    await until_delivered(run)
    assert set(await purge(run)) == {"events"}
    (remaining,) = await run.events("s")
    assert remaining["resource_status"] == "UPDATE_COMPLETE"
    await put(run, "s", {"a": thing(3)})
    assert await run.until_ended("s") == "UPDATE_COMPLETE"


async def test_the_change_of_a_waiting_hook_is_kept(run: Program, receiver: Receiver) -> None:
    await run.call("POST", "/subscriptions", {"channel": "webhook", "target": receiver.url})
    await run.create(
        "s", {"a": thing(), "b": thing()}, environment={"hooks": [{"at": "b", "on": "pre-create"}]}
    )
    hook = await only_waiting_hook(run, "s")
    await until_delivered(run)
    events = await run.events("s")
    deleted = await purge(run)
    assert "events" not in deleted or len(await run.events("s")) == len(events)
    _, response = await run.call("GET", f"/hooks/{hook['id']}")
    assert len(response["told"]) == 1
    await run.signal(hook)
    assert await run.until_ended("s") == "CREATE_COMPLETE"


async def test_answered_hooks_are_purged_with_their_change_after_their_events(
    run: Program,
) -> None:
    hooks = {"hooks": [{"at": "a", "on": ["pre-create", "pre-update"]}]}
    await run.create("s", {"a": thing()}, environment=hooks)
    await run.signal(await only_waiting_hook(run, "s"))
    await run.until_ended("s")
    await put(run, "s", {"a": thing(2)}, environment=hooks)
    await run.signal(await only_waiting_hook(run, "s"))
    await run.until_ended("s")
    await until_delivered(run)
    older = {kind: AT_ONCE[kind] for kind in ("hooks", "traversals")}
    assert await purge(run, **older) == Counter()
    assert (await purge(run, events=timedelta(0)))["events"] > 0
    # The second hook belongs to the change that led to the current state.
    assert await purge(run, **older) == Counter(hooks=1)
    assert [one["state"] for one in (await run.call("GET", "/hooks"))[1]["hooks"]] == ["answered"]
    versions = (await run.stack_request("GET", "s", "/versions"))["versions"]
    assert [one["reached"] for one in versions] == [True, True]


async def test_traversals_are_purged_when_no_version_needs_them(
    database_url: str, world: World
) -> None:
    async with program(database_url, {"retention.versions": 1}, types=[Thing(world)]) as run:
        await run.create("s", {"a": thing()})
        await run.until_ended("s")
        for size in (2, 3):
            await put(run, "s", {"a": thing(size)})
            assert await run.until_ended("s") == "UPDATE_COMPLETE"
        await until_delivered(run)
        assert (await purge(run))["traversals"] == 1
        remaining = (await run.stack_request("GET", "s", "/versions"))["traversals"]
        assert [one["number"] for one in remaining] == [3, 2]
        await put(run, "s", {"a": thing(4)})
        assert await run.until_ended("s") == "UPDATE_COMPLETE"


async def test_events_with_pending_deliveries_are_kept(database: Database) -> None:
    engine_rows = EngineRows(database)
    await engine_rows.subscription("https://example.org/slow")
    stack = await engine_rows.stack()
    await engine_rows.record(stack, resource_event("a"))
    await engine_rows.record(stack, resource_event("b"))
    await publish_all(database)
    async with database.connection() as conn:
        assert +await purge_old(conn, AT_ONCE) == Counter()
        await conn.execute("update delivery set state = 'dead', next_at = null, ended_at = now()")
        # The newest event of a stack stays, without its deliveries.
        assert +await purge_old(conn, AT_ONCE) == Counter(events=1, deliveries=1)


async def test_a_deleted_stack_with_pending_deliveries_is_kept(
    database: Database,
) -> None:
    engine_rows = EngineRows(database)
    await engine_rows.subscription("https://example.org/slow")
    stack = await engine_rows.stack()
    await engine_rows.record(stack, resource_event("a"))
    await publish_all(database)
    async with database.connection() as conn:
        await conn.execute("update stack set deleted_at = now()")
        assert +await purge_old(conn, AT_ONCE) == Counter()
        await conn.execute("update delivery set state = 'dead', next_at = null, ended_at = now()")
        assert +await purge_old(conn, AT_ONCE) == Counter(events=1, deleted_stacks=1)


async def publish_all(database: Database) -> None:
    assert await publish(database, horizon=lambda _: 0.0, limit=100)


async def test_unpublished_events_are_kept(database: Database) -> None:
    engine_rows = EngineRows(database)
    stack = await engine_rows.stack()
    await engine_rows.record(stack, resource_event("a"))
    await engine_rows.record(stack, resource_event("b"))
    async with database.connection() as conn:
        assert +await purge_old(conn, AT_ONCE) == Counter()
    await publish_all(database)
    async with database.connection() as conn:
        assert +await purge_old(conn, AT_ONCE) == Counter(events=1)


async def test_events_about_a_subscription_are_purged_and_the_last_one_after_its_deletion(
    run: Program, receiver: Receiver
) -> None:
    _, response = await run.call(
        "POST", "/subscriptions", {"channel": "webhook", "target": receiver.url, "stacks": ["none"]}
    )
    path = f"/subscriptions/{response['id']}"
    await run.call("PATCH", path, {"stacks": ["other"]})
    await until_delivered(run)
    assert await purge(run) == Counter(events=1)
    await run.call("DELETE", path)
    await until_delivered(run)
    assert await purge(run) == Counter(events=2)
    assert set(await count_mentions(run.database, {response["id"]})) == set()


async def test_expired_and_revoked_tokens_are_purged(database: Database) -> None:
    insert_tokens = """
    insert into token (id, project, name, roles, kind, hash, created_by, expires_at, revoked_at)
    select gen_random_uuid(), 'p', name, '{}', 'token', name, 'me',
           case name when 'expired' then now() when 'lasts' then now() + interval '1 h' end,
           case name when 'revoked' then now() end
      from unnest('{expired,lasts,revoked,for good}'::text[]) name
    """
    async with database.connection() as conn:
        await conn.execute(insert_tokens)
        assert +await purge_old(conn, dict.fromkeys(KINDS, timedelta(hours=1))) == Counter()
        assert +await purge_old(conn, AT_ONCE) == Counter(tokens=2)
        remaining = await conn.fetchval("select array_agg(name order by name) from token")
    assert remaining == ["for good", "lasts"]


async def test_the_audit_log_of_an_observation_credential_is_kept_until_its_deletion(
    database: Database,
) -> None:
    owner = Principal("keystone:ann", "ann")
    new = observation_credentials.NewCredential(
        uuid4(), "p", "a" * 32, "reader", "u" * 32, "ann", ["reader"], False, None, b"encrypted"
    )
    async with database.connection() as conn:
        async with conn.transaction():
            await observation_credentials.store(conn, new, owner)
        assert (await purge_old(conn, AT_ONCE))["audit_logs"] == 0
        async with conn.transaction():
            assert await observation_credentials.delete(conn, "p", owner)
        assert (await purge_old(conn, AT_ONCE))["audit_logs"] == 2


async def test_batches_continue_after_rows_that_are_kept(database: Database) -> None:
    """One row per batch, in every kind; rows that must stay are skipped."""
    engine_rows = EngineRows(database)
    stacks = [await engine_rows.stack() for _ in range(3)]
    for stack in stacks * 2:
        await engine_rows.record(stack, resource_event("a"))
    await publish_all(database)
    async with database.connection() as conn:
        await conn.execute(
            "insert into idempotency (project, key, request_digest, stack_id) select 'p', g::text, '', $1 from generate_series(1, 5) g",
            stacks[0].id,
        )
        await conn.execute(
            "update idempotency set created_at = created_at - make_interval(secs => key::int)"
        )
        deleted = +await purge_old(conn, AT_ONCE, batch=1)
    assert deleted == Counter(events=3, idempotency_keys=5)


async def test_one_process_purges_at_a_time(database: Database) -> None:
    engine_rows = EngineRows(database)
    stack = await engine_rows.stack()
    await engine_rows.record(stack, resource_event("a"))
    await engine_rows.record(stack, resource_event("b"))
    await publish_all(database)
    async with database.transaction() as first, database.connection() as second:
        assert await try_lock(first, LOCK_KEY)
        assert +await purge_old(second, AT_ONCE) == Counter()
    async with database.connection() as conn:
        assert +await purge_old(conn, AT_ONCE) == Counter(events=1)


async def test_the_loop_purges_and_records_counts(database: Database) -> None:
    engine_rows, deleted, stop = EngineRows(database), Counter[str](), asyncio.Event()
    stack = await engine_rows.stack()
    await engine_rows.record(stack, resource_event("a"))
    await engine_rows.record(stack, resource_event("b"))
    await publish_all(database)

    def count_deleted(kind: str, count: int) -> None:
        deleted[kind] += count

    loop = PurgeLoop(database, AT_ONCE, every=timedelta(milliseconds=20), record=count_deleted)
    async with asyncio.TaskGroup() as group:
        group.create_task(loop.run(stop))
        await until(lambda: deleted["events"] == 1)
        await engine_rows.record(stack, resource_event("c"))
        await publish_all(database)
        await until(lambda: deleted["events"] == 2)
        stop.set()


@pytest.mark.parametrize("kind", sorted(KINDS))
async def test_an_empty_database_has_nothing_to_purge(database: Database, kind: str) -> None:
    async with database.connection() as conn:
        assert +await purge_old(conn, {kind: timedelta(0)}) == Counter()


async def test_a_row_that_cannot_be_purged_is_skipped(database: Database) -> None:
    """PostgreSQL refuses to delete the row; other rows and kinds are deleted."""
    async with database.connection() as conn:
        await conn.execute(
            "create function refuse() returns trigger language plpgsql as"
            " $$ begin raise 'planted'; end $$"
        )
        await conn.execute(
            "create trigger refuses before delete on idempotency for each row"
            " when (old.key = '7') execute function refuse()"
        )
        await conn.execute(
            "insert into idempotency (project, key, request_digest, stack_id, created_at)"
            " select 'p', g::text, '', gen_random_uuid(),"
            "        clock_timestamp() - make_interval(mins => 60 - g) from generate_series(1, 20) g"
        )
        await conn.execute(
            "insert into token (id, project, name, roles, kind, hash, created_by, revoked_at)"
            " values (gen_random_uuid(), 'p', 'old', '{}', 'token', 'h', 'me',"
            "         clock_timestamp() - interval '1 hour')"
        )
    with capture_logs() as logs:
        await PurgeLoop(database, AT_ONCE, every=timedelta(hours=1), record=lambda *_: None).purge()
    async with database.connection() as conn:
        remaining = [row["key"] for row in await conn.fetch("select key from idempotency")]
        assert remaining == ["7"]
        assert await conn.fetchval("select count(*) from token") == 0
    (line,) = [one for one in logs if one["event"] == "purge.failed"]
    assert (line["kind"], line["sqlstate"]) == ("idempotency_keys", "P0001")
