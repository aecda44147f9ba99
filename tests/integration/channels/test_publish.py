"""The outbox is published in few statements, by one publisher at a time, and found by key."""

import asyncio
from collections.abc import Iterator
from typing import Any
from uuid import UUID

import pytest

from channels.selection import EVERY_PROJECT, Selection, Traits, is_for
from channels.store.publish import PUBLISH, PublishResult, publish
from engine.store.connection import Connection
from engine.store.database import Database, open_database
from tests.integration.channels.conftest import RunDispatcher
from tests.support.engine_rows import EngineRows, resource_event, stack_event
from tests.support.keys import KEYRING
from tests.support.postgres import TestServer
from tests.support.receiver import until
from tests.support.rows_read import rows_read_so_far, without_statistics
from tests.support.statement_log import StatementLog, statement_log

POSITIONS = "select array_agg(position order by id) from outbox"
LAST = "select position from outbox_cursor"
#: The statement that locks the row waits for the lock of the test, with the snapshot that it has taken.
SLOW_LOCK = """
create function hold() returns boolean language plpgsql as
    'begin perform pg_advisory_xact_lock(93); return true; end';
alter table outbox_cursor rename to outbox_cursor_row;
create view outbox_cursor as select only_one, position from outbox_cursor_row where hold()
"""
HOLD = "select pg_advisory_xact_lock(93)"
WAITING = "select exists (select from pg_locks where locktype = 'advisory' and not granted)"
#: Published commits with one event each, and as many events of another stack.
FILL = """
with k as (
    insert into stack (id, project, name, owner, version, traversal)
    select gen_random_uuid(), 'demo', 'old' || n, 'o', 1, 1 from generate_series(1, 2) n
    returning id, name
), e as (
    insert into event (stack_id, sequence, id, type, time, reason, data)
    select k.id, n, gen_random_uuid(), 'headgate.stack.update.started', now(), '',
           '{"version": 1}'
      from k, generate_series(1, $1) n
), p as (
    update outbox_cursor set position = $1
)
insert into outbox (stack_id, project, first, last, position)
select k.id, 'demo', n, n, n from k, generate_series(1, $1) n where k.name = 'old1'
"""


@pytest.fixture
def log(monkeypatch: pytest.MonkeyPatch) -> Iterator[StatementLog]:
    with statement_log(monkeypatch) as statements:
        yield statements


async def _publish(engine_rows: EngineRows, *, quick: bool = True) -> PublishResult | None:
    return await publish(engine_rows.database, horizon=lambda _: 1.0, limit=10, quick=quick)


async def _sent(database_url: str, log: StatementLog, *, quick: bool) -> list[str]:
    """The statements of one publication, on a connection that has published before."""
    database = await open_database(database_url, size=1, keyring=KEYRING)
    try:
        engine_rows = EngineRows(database)
        stack = await engine_rows.stack()
        for _ in range(2):
            await engine_rows.record(stack, resource_event("a"))
            log.entries.clear()
            done = await _publish(engine_rows, quick=quick)
            assert done is not None and done.rows == 1
        return [text for _, text in log.entries]
    finally:
        await database.close()


async def test_without_subscriptions_it_is_one_statement(
    database_url: str, log: StatementLog
) -> None:
    (only,) = await _sent(database_url, log, quick=True)
    assert "publish_outbox" in only


async def test_with_subscriptions(
    database_url: str, engine_rows: EngineRows, log: StatementLog
) -> None:
    await engine_rows.subscription("http://127.0.0.1:1/")
    sent = await _sent(database_url, log, quick=False)
    # The transaction, the rows, started changes, subscriptions, events; locks, deliveries, release,
    # a notification.
    assert len(sent) == 2 + 4 + 4, sent


async def test_the_quick_way_publishes_nothing_for_subscriptions(engine_rows: EngineRows) -> None:
    stack, other = await engine_rows.stack(), await engine_rows.stack(project="other")
    await engine_rows.subscription("http://127.0.0.1:1/")
    await engine_rows.record(other, resource_event("a"))
    assert await _publish(engine_rows) == PublishResult(1, 0)
    await engine_rows.record(stack, resource_event("a"))
    async with engine_rows.database.connection() as conn:
        row = await conn.fetchrow(PUBLISH, 10, True)
        assert row is not None and row["locked"] and row["subscribed"]
    assert await engine_rows.value(LAST) == 1
    assert await _publish(engine_rows) == PublishResult(1, 1, subscribed=True)
    assert await engine_rows.value(POSITIONS) == [1, 2]


@pytest.mark.parametrize("sinks", [None, [{"type": "webhook", "target": "http://127.0.0.1:1/"}]])
async def test_an_environment_with_event_sinks(engine_rows: EngineRows, sinks: object) -> None:
    stack = await engine_rows.stack()
    environment = {"event_sinks": sinks} if sinks else {}
    await engine_rows.value(
        "insert into template (stack_id, version, description, template, environment, files,"
        " parameters, masked_parameters, hidden_parameters, outputs, requested_by)"
        " values ($1, 1, '', '{}', $2, '{}', '{}', '{}', '{}', '[]', 'o')",
        stack.id,
        environment,
    )
    await engine_rows.record(stack, stack_event("create", "started", "IN_PROGRESS"))
    assert await _publish(engine_rows) == PublishResult(1, len(sinks or ()), subscribed=bool(sinks))  # type: ignore[arg-type]


async def test_an_error_at_an_event_affects_no_other_project_of_the_batch(
    engine_rows: EngineRows, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Neither a subscription of another project nor that project's part of an operator's one."""
    failing, other = await engine_rows.stack(project="failing"), await engine_rows.stack()
    mine = await engine_rows.subscription("http://127.0.0.1:1/")
    every = await engine_rows.subscription("http://127.0.0.1:1/", project=EVERY_PROJECT)
    await engine_rows.subscription("http://127.0.0.1:1/", project="failing")

    def fail(subscription_id: UUID, project: str, selection: Selection, traits: Traits) -> bool:
        if traits.project == "failing":
            raise RuntimeError("planted")
        return is_for(subscription_id, project, selection, traits)

    monkeypatch.setattr("channels.store.publish.is_for", fail)
    for stack in (failing, other, failing, other):
        await engine_rows.record(stack, resource_event("a"))
    errors: list[dict[str, Any]] = []
    done = await publish(
        engine_rows.database, horizon=lambda _: 1.0, limit=10,
        report=lambda _, **unit: errors.append(unit),
    )  # fmt: skip
    assert done == PublishResult(4, 4, subscribed=True)
    rows = await engine_rows.deliveries()
    assert [row["stack_id"] for row in rows] == [other.id] * 4
    assert {row["subscription_id"] for row in rows} == {mine.id, every.id}
    assert len(errors) == 2  # once for each subscription that can select the project's events


@pytest.mark.parametrize("quick", [True, False])
async def test_a_publisher_sees_what_the_one_before_has_committed(
    engine_rows: EngineRows, database: Database, quick: bool
) -> None:
    """Also if its first statement began before that commit: no row gets a second position."""
    stack = await engine_rows.stack()
    await engine_rows.record(stack, resource_event("a"))
    async with database.connection() as conn:
        await conn.execute(SLOW_LOCK)
    async with database.transaction() as conn:
        await conn.execute(HOLD)
        late = asyncio.create_task(_publish(engine_rows, quick=quick))
        await until(lambda: engine_rows.value(WAITING))
        await conn.fetch(PUBLISH, 10, quick)
    assert await late == PublishResult(0, 0, subscribed=not quick)
    assert await engine_rows.value(POSITIONS) == [1]
    assert await engine_rows.value("select position from outbox_cursor_row") == 1


async def test_concurrent_publishers_give_each_position_once(
    engine_rows: EngineRows, database: Database
) -> None:
    stacks = [await engine_rows.stack() for _ in range(3)]
    left = 3

    async def write(index: int) -> None:
        nonlocal left
        for number in range(40):
            await engine_rows.record(stacks[index], resource_event(f"r{number}"))
        left -= 1

    async def keep_publishing(quick: bool) -> None:
        while left:
            await publish(database, horizon=lambda _: 1.0, limit=3, quick=quick)

    async with asyncio.timeout(30), asyncio.TaskGroup() as group:
        for job in (*map(write, range(3)), keep_publishing(True), keep_publishing(False)):
            group.create_task(job)
    while (done := await _publish(engine_rows)) is not None and done.rows:
        pass
    positions = await engine_rows.value("select array_agg(position order by position) from outbox")
    assert positions == list(range(1, 121))
    assert await engine_rows.value(LAST) == 120


async def test_a_busy_publisher_gathers_events(
    engine_rows: EngineRows, run_dispatcher: RunDispatcher, monkeypatch: pytest.MonkeyPatch
) -> None:
    counts: list[int] = []
    go = asyncio.Event()

    async def counted(*args: Any, **named: Any) -> PublishResult | None:
        done = await publish(*args, **named)
        counts.append(done.rows if done else 0)
        return done

    monkeypatch.setattr("channels.dispatcher.publish", counted)
    monkeypatch.setattr("channels.dispatcher._gather", go.wait)
    stack = await engine_rows.stack()
    async with run_dispatcher():
        await until(lambda: counts)
        for number in range(3):
            await engine_rows.record(stack, resource_event(f"r{number}"))
        go.set()
        await until(lambda: sum(counts) == 3)
    assert [count for count in counts if count] == [3]


async def rows_read(postgres: TestServer, published: int, *, quick: bool, analysed: bool) -> int:
    """By five publications of one commit each."""
    async with postgres.new_database() as url:
        database = await open_database(url, keyring=KEYRING)
        try:
            engine_rows = EngineRows(database)
            async with database.connection() as conn:
                await without_statistics(conn)
                await conn.execute(FILL, published)
                if analysed:
                    await conn.execute("analyze")
            stack = await engine_rows.stack()
            before = await _rows_read(database)
            for _ in range(5):
                await engine_rows.record(stack, resource_event("a"))
                done = await _publish(engine_rows, quick=quick)
                assert done is not None and done.rows == 1
            return await _rows_read(database) - before
        finally:
            await database.close()


async def _rows_read(database: Database) -> int:
    async with database.connection() as conn:
        await _flush(conn)
    async with database.connection() as conn:
        return (await rows_read_so_far(conn)).total()


async def _flush(conn: Connection) -> None:
    await conn.execute("select pg_stat_force_next_flush()")


@pytest.mark.parametrize("analysed", [False, True], ids=["never analysed", "analysed"])
@pytest.mark.parametrize("quick", [True, False], ids=["quick", "whole"])
async def test_publishing_does_not_read_what_was_published_before(
    postgres: TestServer, quick: bool, analysed: bool
) -> None:
    few = await rows_read(postgres, 10, quick=quick, analysed=analysed)
    many = await rows_read(postgres, 10_000, quick=quick, analysed=analysed)
    assert many <= few + 50, (few, many)
