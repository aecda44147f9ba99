"""What is old goes, whole; what is needed stays, however old it is."""

import asyncio
from collections import Counter
from datetime import timedelta

import pytest
from structlog.testing import capture_logs

from channels.store.publish import publish
from engine.store.database import Database
from engine.store.retention import OLD, take_turn
from engine.work.purge import Purging, count_purgeable, purge_old
from tests.support.changes import gone, put, thing
from tests.support.events import Scene, resource_event
from tests.support.program import Program, program
from tests.support.purging import purge_now, purge_turn
from tests.support.receiver import Receiver, until
from tests.support.things import Thing, World
from tests.support.whole_life import lived, rows_naming, settled, tables, waiting_only

#: Everything is old, and nothing is kept for good.
NOW = dict.fromkeys(OLD, timedelta(0))
ORPHANS = """
select count(*) from {} t
 where t.stack_id is not null
   and not exists (select from stack s where s.id = t.stack_id)
   and not exists (select from subscription u where u.id = t.stack_id)
"""


async def purged(run: Program, **ages: timedelta) -> Counter[str]:
    return await purge_now(run.database, ages or NOW)


async def test_a_deleted_stack_goes_from_every_table_there_is_and_its_trail_when_it_is_said(
    run: Program, world: World, receiver: Receiver
) -> None:
    ids, seen = await lived(run, world, receiver)
    # A table that comes to be later has to be in a stack's life, too.
    assert seen >= set(await tables(run.database, of_stack=True))
    async with purge_turn(run.database) as conn:
        would = +await count_purgeable(conn, NOW)
    assert set(await rows_naming(run.database, ids)) >= {"stack", "event", "hook", "decision"}
    for_good = {kind: age for kind, age in NOW.items() if kind != "trails"}
    assert await purged(run, **for_good) == Counter(would - Counter(trails=would["trails"]))
    kept = {"decision", "audit_head", "audit_checkpoint"}
    assert set(await rows_naming(run.database, ids)) == kept
    assert await purged(run) == Counter(trails=would["trails"])
    # What was signed stays: ids and hashes, without which later checkpoints prove nothing.
    assert set(await rows_naming(run.database, ids)) == {"audit_checkpoint"}
    async with run.database.connection() as conn:
        for table in await tables(run.database, of_stack=True):
            assert await conn.fetchval(ORPHANS.format(table)) == 0, table


async def test_what_is_pinned_stays_whole_until_it_is_let_go(run: Program) -> None:
    made = await run.create("s", {"a": thing()})
    await run.until_ended("s")
    path = f"/stacks/s/{made}"
    status, said = await run.call(
        "PUT", f"{path}/pin", {"reason": "an audit"}, headers={"X-Auth-User": "ann"}
    )
    assert status == 200 and (said["pinned"]["by"], said["pinned"]["reason"]) == ("ann", "an audit")
    assert (await run.stack("s"))["pinned"] == said["pinned"]
    await run.at("DELETE", "s")
    await gone(run, "s")
    await settled(run)
    before = await rows_naming(run.database, {made})
    assert await purged(run) == Counter()
    assert await rows_naming(run.database, {made}) == before
    status, said = await run.call("DELETE", f"{path}/pin")
    assert (status, said) == (200, {"pinned": None})
    assert (await purged(run))["deleted_stacks"] == 1
    assert await rows_naming(run.database, {made}) == Counter()
    assert (await run.call("PUT", f"{path}/pin"))[0] == 404


async def test_a_deleted_stack_whose_events_are_gone_can_be_pinned(run: Program) -> None:
    made = await run.create("s", {"a": thing()})
    await run.until_ended("s")
    await run.at("DELETE", "s")
    await gone(run, "s")
    await settled(run)
    assert (await purged(run, events=timedelta(0)))["events"] > 0
    assert (await run.call("PUT", f"/stacks/s/{made}/pin"))[0] == 200
    assert await purged(run) == Counter()
    assert (await run.call("GET", f"/stacks/s/{made}"))[0] == 200


async def test_what_is_not_old_stays(run: Program) -> None:
    made = await run.create("s", {"a": thing()})
    await run.until_ended("s")
    await run.at("DELETE", "s")
    await gone(run, "s")
    await settled(run)
    assert await purged(run, **dict.fromkeys(OLD, timedelta(hours=1))) == Counter()
    assert "stack" in await rows_naming(run.database, {made})


async def test_of_a_stack_that_is_there_the_newest_event_stays(run: Program) -> None:
    await run.create("s", {"a": thing()})
    await run.until_ended("s")
    await put(run, "s", {"a": thing(2)})
    await run.until_ended("s")
    await settled(run)
    assert set(await purged(run)) == {"events"}
    (left,) = await run.events("s")
    assert left["resource_status"] == "UPDATE_COMPLETE"
    await put(run, "s", {"a": thing(3)})
    assert await run.until_ended("s") == "UPDATE_COMPLETE"


async def test_while_a_hook_waits_its_change_stays_and_can_be_answered(
    run: Program, receiver: Receiver
) -> None:
    await run.call("POST", "/subscriptions", {"channel": "webhook", "target": receiver.url})
    await run.create(
        "s", {"a": thing(), "b": thing()}, environment={"hooks": [{"at": "b", "on": "pre-create"}]}
    )
    hook = await waiting_only(run, "s")
    await settled(run)
    events = await run.events("s")
    gone = await purged(run)
    assert "events" not in gone or len(await run.events("s")) == len(events)
    _, said = await run.call("GET", f"/hooks/{hook['id']}")
    assert len(said["told"]) == 1
    await run.signal(hook)
    assert await run.until_ended("s") == "CREATE_COMPLETE"


async def test_answered_hooks_go_with_their_changes_and_not_before_their_events(
    run: Program,
) -> None:
    hooks = {"hooks": [{"at": "a", "on": ["pre-create", "pre-update"]}]}
    await run.create("s", {"a": thing()}, environment=hooks)
    await run.signal(await waiting_only(run, "s"))
    await run.until_ended("s")
    await put(run, "s", {"a": thing(2)}, environment=hooks)
    await run.signal(await waiting_only(run, "s"))
    await run.until_ended("s")
    await settled(run)
    older = {kind: NOW[kind] for kind in ("hooks", "traversals")}
    assert await purged(run, **older) == Counter()
    assert (await purged(run, events=timedelta(0)))["events"] > 0
    # The second one is of the change that made the stack what it is.
    assert await purged(run, **older) == Counter(hooks=1)
    assert [one["state"] for one in (await run.call("GET", "/hooks"))[1]["hooks"]] == ["answered"]
    versions = (await run.at("GET", "s", "/versions"))["versions"]
    assert [one["reached"] for one in versions] == [True, True]


async def test_earlier_traversals_go_when_no_version_needs_them(
    database_url: str, world: World
) -> None:
    async with program(database_url, {"retention.versions": 1}, types=[Thing(world)]) as run:
        await run.create("s", {"a": thing()})
        await run.until_ended("s")
        for size in (2, 3):
            await put(run, "s", {"a": thing(size)})
            assert await run.until_ended("s") == "UPDATE_COMPLETE"
        await settled(run)
        assert (await purged(run))["traversals"] == 1
        left = (await run.at("GET", "s", "/versions"))["traversals"]
        assert [one["number"] for one in left] == [3, 2]
        await put(run, "s", {"a": thing(4)})
        assert await run.until_ended("s") == "UPDATE_COMPLETE"


async def test_what_somebody_is_still_to_get_stays(database: Database) -> None:
    scene = Scene(database)
    await scene.subscription("https://example.org/slow")
    stack = await scene.stack()
    await scene.record(stack, resource_event("a"))
    await scene.record(stack, resource_event("b"))
    await published(database)
    async with database.connection() as conn:
        assert +await purge_old(conn, NOW) == Counter()
        await conn.execute("update delivery set state = 'dead', next_at = null, settled_at = now()")
        # The newest event of a stack stays; what came of its delivery does not.
        assert +await purge_old(conn, NOW) == Counter(events=1, deliveries=1)


async def test_a_deleted_stack_stays_while_somebody_is_still_to_hear_of_it(
    database: Database,
) -> None:
    scene = Scene(database)
    await scene.subscription("https://example.org/slow")
    stack = await scene.stack()
    await scene.record(stack, resource_event("a"))
    await published(database)
    async with database.connection() as conn:
        await conn.execute("update stack set deleted_at = now()")
        assert +await purge_old(conn, NOW) == Counter()
        await conn.execute("update delivery set state = 'dead', next_at = null, settled_at = now()")
        assert +await purge_old(conn, NOW) == Counter(events=1, deleted_stacks=1)


async def published(database: Database) -> None:
    assert await publish(database, horizon=lambda _: 0.0, limit=100)


async def test_what_is_not_published_stays(database: Database) -> None:
    scene = Scene(database)
    stack = await scene.stack()
    await scene.record(stack, resource_event("a"))
    await scene.record(stack, resource_event("b"))
    async with database.connection() as conn:
        assert +await purge_old(conn, NOW) == Counter()
    await published(database)
    async with database.connection() as conn:
        assert +await purge_old(conn, NOW) == Counter(events=1)


async def test_news_of_a_subscription_go_and_the_last_when_it_is_gone(
    run: Program, receiver: Receiver
) -> None:
    _, made = await run.call(
        "POST", "/subscriptions", {"channel": "webhook", "target": receiver.url, "stacks": ["none"]}
    )
    path = f"/subscriptions/{made['id']}"
    await run.call("PATCH", path, {"stacks": ["other"]})
    await settled(run)
    assert await purged(run) == Counter(events=1)
    await run.call("DELETE", path)
    await settled(run)
    assert await purged(run) == Counter(events=2)
    assert set(await rows_naming(run.database, {made["id"]})) == set()


async def test_tokens_that_let_nobody_in_go(database: Database) -> None:
    make = """
    insert into token (id, project, name, roles, kind, hash, created_by, expires_at, revoked_at)
    select gen_random_uuid(), 'p', said, '{}', 'token', said, 'me',
           case said when 'expired' then now() when 'lasts' then now() + interval '1 h' end,
           case said when 'revoked' then now() end
      from unnest('{expired,lasts,revoked,for good}'::text[]) said
    """
    async with database.connection() as conn:
        await conn.execute(make)
        assert +await purge_old(conn, dict.fromkeys(OLD, timedelta(hours=1))) == Counter()
        assert +await purge_old(conn, NOW) == Counter(tokens=2)
        left = await conn.fetchval("select array_agg(name order by name) from token")
    assert left == ["for good", "lasts"]


async def test_batches_go_on_behind_what_stays(database: Database) -> None:
    """One row at a time, in every kind; those that stay are passed by."""
    scene = Scene(database)
    stacks = [await scene.stack() for _ in range(3)]
    for stack in stacks * 2:
        await scene.record(stack, resource_event("a"))
    await published(database)
    async with database.connection() as conn:
        await conn.execute(
            "insert into idempotency (project, key, request_digest, stack_id) select 'p', g::text, '', $1 from generate_series(1, 5) g",
            stacks[0].id,
        )
        await conn.execute(
            "update idempotency set created_at = created_at - make_interval(secs => key::int)"
        )
        gone = +await purge_old(conn, NOW, batch=1)
    assert gone == Counter(events=3, idempotency_keys=5)


async def test_one_process_purges_at_a_time(database: Database) -> None:
    scene = Scene(database)
    stack = await scene.stack()
    await scene.record(stack, resource_event("a"))
    await scene.record(stack, resource_event("b"))
    await published(database)
    async with database.transaction() as first, database.connection() as second:
        assert await take_turn(first)
        assert +await purge_old(second, NOW) == Counter()
    async with database.connection() as conn:
        assert +await purge_old(conn, NOW) == Counter(events=1)


async def test_the_loop_purges_by_itself_and_tells(database: Database) -> None:
    scene, told, stop = Scene(database), Counter[str](), asyncio.Event()
    stack = await scene.stack()
    await scene.record(stack, resource_event("a"))
    await scene.record(stack, resource_event("b"))
    await published(database)

    def tell(kind: str, count: int) -> None:
        told[kind] += count

    loop = Purging(database, NOW, every=timedelta(milliseconds=20), record=tell)
    async with asyncio.TaskGroup() as group:
        group.create_task(loop.run(stop))
        await until(lambda: told["events"] == 1)
        await scene.record(stack, resource_event("c"))
        await published(database)
        await until(lambda: told["events"] == 2)
        stop.set()


@pytest.mark.parametrize("kind", sorted(OLD))
async def test_an_empty_database_has_nothing_to_purge(database: Database, kind: str) -> None:
    async with database.connection() as conn:
        assert +await purge_old(conn, {kind: timedelta(0)}) == Counter()


async def test_a_row_that_cannot_be_purged_is_passed_over(database: Database) -> None:
    """PostgreSQL refuses to delete it; the rows around it and other kinds go."""
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
        await Purging(database, NOW, every=timedelta(hours=1)).look()
    async with database.connection() as conn:
        left = [row["key"] for row in await conn.fetch("select key from idempotency")]
        assert left == ["7"]
        assert await conn.fetchval("select count(*) from token") == 0
    (line,) = [one for one in logs if one["event"] == "purging.failed"]
    assert (line["kind"], line["sqlstate"]) == ("idempotency_keys", "P0001")
