"""Deadlines in the database follow `engine.hooks.deadline`, and nothing else writes them."""

from datetime import timedelta
from uuid import UUID, uuid4

import pytest

from engine.hooks.deadline import (
    Delivered,
    GivenUp,
    HookClock,
    NoticeReport,
    Pending,
    apply_reports,
    open_clock,
    set_back,
)
from engine.store import clock_correction
from engine.store.database import Database
from engine.store.hook_deadlines import HookKey, clock_of, report_notices
from engine.store.routine_versions import routines
from tests.integration.test_statements import FOUND
from tests.support.events import Scene
from tests.support.program import Program, resource
from tests.support.sql import writes

HOUR = timedelta(hours=1)
CLOCK = {"opened_at", "timeout", "deadline", "notified_at", "undeliverable_at"}
UNDELIVERABLE = "select count(*) from event where type = 'headgate.hook.undeliverable'"

#: Tables that are the channels' own; of others, they fill in positions when they publish, and
#: record the events of their subscriptions.
OF_CHANNELS = {"subscription", "delivery", "publishing", "stream_floor"}
SHARED = {"outbox", "event"}


@pytest.fixture
async def scene(database: Database) -> Scene:
    return Scene(database)


async def _hook(scene: Scene, **changed: str) -> HookKey:
    """A hook of which nothing was reported. changed: columns, as expressions of SQL."""
    stack = await scene.stack()
    key = (stack.id, await scene.hook(stack, seconds=3600.0))
    for column, value in changed.items():
        await scene.value(f"update hook set {column} = {value} where id = '{key[1]}'")
    return key


async def _clock(scene: Scene, key: HookKey) -> HookClock:
    return clock_of(await scene.hook_row(key[1]))


async def test_a_hook_that_the_engine_opens_has_the_clock_of_its_opening(running: Program) -> None:
    rule = {"at": "a", "on": "pre-create", "timeout": "90m"}
    await running.create("s", {"a": resource()}, environment={"hooks": [rule]})
    (hook,) = await running.waiting("s")
    row = await running.database.pool.fetchrow("select * from hook where id = $1", UUID(hook["id"]))
    opened = clock_of(row)
    assert opened == open_clock(opened.opened_at, timedelta(minutes=90))


@pytest.mark.parametrize(
    ("reports", "columns"),
    [
        ([Delivered()], {}),
        ([Delivered()], {"state": "'answered'"}),
        ([Delivered()], {"deadline": "clock_timestamp() - interval '1 second'"}),
        ([Pending(600.0)], {}),
        ([Pending(600.0)], {"notified_at": "clock_timestamp()"}),
        ([Pending(600.0), GivenUp()], {}),
        ([GivenUp()], {}),
        ([GivenUp()], {"undeliverable_at": "opened_at"}),
        ([GivenUp()], {"state": "'expired'"}),
    ],
)
async def test_what_is_reported_moves_the_row_as_the_rules_say(
    scene: Scene, reports: list[NoticeReport], columns: dict[str, str]
) -> None:
    key = await _hook(scene, **columns)
    before = await _clock(scene, key)
    async with scene.database.transaction() as conn:
        earliest = await conn.fetchval("select clock_timestamp()")
        await report_notices(conn, {key: reports})
        latest = await conn.fetchval("select clock_timestamp()")
    after, waiting = await _clock(scene, key), "state" not in columns
    first, last = (apply_reports(before, reports, at, waiting=waiting) for at in (earliest, latest))
    for name in CLOCK:
        low, here, high = (getattr(one, name) for one in (first, after, last))
        assert low == here == high or low <= here <= high, name


async def test_a_hook_is_recorded_as_undeliverable_once(scene: Scene) -> None:
    keys = [await _hook(scene) for _ in range(2)]
    for _ in range(2):
        async with scene.database.transaction() as conn:
            await report_notices(conn, {key: [GivenUp()] for key in keys})
    assert await scene.value(UNDELIVERABLE) == 2


async def test_a_hook_that_is_not_to_be_recorded_is_marked_all_the_same(scene: Scene) -> None:
    key = await _hook(scene)
    async with scene.database.transaction() as conn:
        await report_notices(conn, {key: [GivenUp()]}, record=False)
    assert (await _clock(scene, key)).undeliverable_at is not None
    assert await scene.value(UNDELIVERABLE) == 0


async def test_a_hook_that_has_gone_is_passed_over(scene: Scene) -> None:
    async with scene.database.transaction() as conn:
        await report_notices(conn, {(uuid4(), uuid4()): [Delivered()]})


async def test_a_clock_that_is_set_back_moves_hooks_as_the_rules_say(scene: Scene) -> None:
    key = await _hook(scene, opened_at="opened_at + interval '1 hour'",
                      deadline="deadline + interval '1 hour'")  # fmt: skip
    before = await _clock(scene, key)
    async with scene.database.transaction() as conn:
        now = await conn.fetchval("select statement_timestamp()")
        await conn.execute(clock_correction.HOOKS, [key[0]], HOUR)
    after = await _clock(scene, key)
    assert now <= after.opened_at
    assert after == set_back(before, HOUR, after.opened_at)


def _written() -> dict[str, set[tuple[str, str]]]:
    texts = FOUND | {file.name: file.text for file in routines()}
    return {name: found for name, text in texts.items() if (found := writes(text))}


def test_deadlines_are_written_where_the_rules_are_applied_and_nowhere_else() -> None:
    names = {
        name
        for name, found in _written().items()
        if any(table == "hook" and column in CLOCK for table, column in found)
    }
    assert names == {
        "4_apply_transitions.sql",
        "engine.store.clock_correction.HOOKS",
        "engine.store.hook_deadlines.WRITE_CLOCKS",
    }


def test_channels_write_no_table_of_the_engine() -> None:
    tables = {
        (name, table)
        for name, found in _written().items()
        if name.startswith("channels.")
        for table, _ in found
    }
    assert {table for _, table in tables} >= {"subscription", "delivery"}
    assert {(name, table) for name, table in tables if table not in OF_CHANNELS | SHARED} == set()
    assert {name for name, table in tables if table in SHARED} == {
        "channels.store.subscription_events.RECORD",
        "channels.store.publish.GIVE_POSITIONS",
    }
