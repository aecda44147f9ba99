"""Deadlines in the database follow `engine.hooks.deadline`, and no other code writes them."""

import re
from datetime import UTC, datetime, timedelta
from itertools import product
from uuid import UUID, uuid4

import pytest

from engine.hooks.deadline import (
    HookClock,
    NotificationDelivered,
    NotificationPending,
    NotificationReport,
    NotificationUndeliverable,
    apply_reports,
    has_expired,
    set_back,
)
from engine.hooks.reminders import first_wait
from engine.hooks.rule import Rule, encode_rule
from engine.principal import internal
from engine.store.database import Database
from engine.store.hooks import deadlines
from engine.store.hooks.deadlines import HookKey, clock_of, report_notifications
from engine.store.hooks.drift_hooks import open_drift_hooks
from engine.store.maintenance import clock_correction
from engine.store.schema.routine_versions import routines
from engine.words import DRIFT
from tests.integration.database.test_statements import FOUND
from tests.support.engine_rows import EngineRows
from tests.support.program import Program, resource
from tests.support.sql import writes

NOW = datetime(2026, 1, 1, tzinfo=UTC)
HOUR = timedelta(hours=1)
CLOCK = {"opened_at", "timeout", "deadline", "notified_at", "undeliverable_at"}
UNDELIVERABLE = "select count(*) from event where type = 'headgate.hook.undeliverable'"

#: Tables of the channels.
CHANNEL_TABLES = {"subscription", "delivery", "slack_request"}
#: Only this routine of the engine numbers what is published.
PUBLISHING = "3_publish_outbox.sql"
#: Other routines that only the channels call.
ROUTINES = {"4_claim_deliveries.sql", "4_release_deliveries.sql"}


@pytest.fixture
async def engine_rows(database: Database) -> EngineRows:
    return EngineRows(database)


async def _hook(engine_rows: EngineRows, **changed: str) -> HookKey:
    """A hook without reports. changed: values of columns, as SQL expressions."""
    stack = await engine_rows.stack()
    key = (stack.id, await engine_rows.hook(stack, seconds=3600.0))
    for column, value in changed.items():
        await engine_rows.value(f"update hook set {column} = {value} where id = '{key[1]}'")
    return key


async def _clock(engine_rows: EngineRows, key: HookKey) -> HookClock:
    return clock_of(await engine_rows.hook_row(key[1]))


async def test_the_clock_of_a_hook_starts_when_it_opens(running: Program) -> None:
    rule = {"at": "a", "on": "pre-create", "timeout": "90m", "remind": "20m"}
    await running.create("s", {"a": resource()}, environment={"hooks": [rule]})
    (hook,) = await running.waiting_hooks("s")
    row = await running.database.pool.fetchrow("select * from hook where id = $1", UUID(hook["id"]))
    assert row is not None
    opened = clock_of(row)
    timeout = timedelta(minutes=90)
    assert opened == HookClock(opened.opened_at, timeout, opened.opened_at + timeout)
    assert row["wake_at"] == opened.opened_at + timedelta(minutes=20)


async def test_the_clock_of_a_hook_about_drift_starts_when_it_opens(
    engine_rows: EngineRows,
) -> None:
    stack, hook_id = await engine_rows.stack(), uuid4()
    remind, timeout = timedelta(minutes=20), timedelta(minutes=90)
    rule = Rule(DRIFT, remind=remind)
    wait = first_wait(rule)
    assert wait == remind
    hook = {
        "id": hook_id, "resource_id": uuid4(), "resource_name": "db", "point": DRIFT,
        "mode": rule.mode, "state": "waiting", "on_timeout": "reject", "rule": encode_rule(rule),
        "notification": {}, "digest": "d", "wake_after": wait.total_seconds(), "found": "missing",
        "differences": [], "recorded_at": NOW,
    }  # fmt: skip
    async with engine_rows.database.transaction() as conn:
        await open_drift_hooks(conn, stack.id, [hook], timeout, internal("observer"))
    opened = await _clock(engine_rows, (stack.id, hook_id))
    assert opened == HookClock(opened.opened_at, timeout, opened.opened_at + timeout)
    assert (await engine_rows.hook_row(hook_id))["wake_at"] == opened.opened_at + wait


@pytest.mark.parametrize(
    ("reports", "columns"),
    [
        ([NotificationDelivered()], {}),
        ([NotificationDelivered()], {"state": "'answered'"}),
        ([NotificationDelivered()], {"deadline": "clock_timestamp() - interval '1 second'"}),
        ([NotificationPending(600.0)], {}),
        ([NotificationPending(600.0)], {"notified_at": "clock_timestamp()"}),
        ([NotificationPending(600.0), NotificationUndeliverable()], {}),
        ([NotificationUndeliverable()], {}),
        ([NotificationUndeliverable()], {"undeliverable_at": "opened_at"}),
        ([NotificationUndeliverable()], {"state": "'expired'"}),
    ],
)
async def test_reports_of_channels_change_the_row_as_the_rules_do(
    engine_rows: EngineRows, reports: list[NotificationReport], columns: dict[str, str]
) -> None:
    key = await _hook(engine_rows, **columns)
    before = await _clock(engine_rows, key)
    async with engine_rows.database.transaction() as conn:
        earliest = await conn.fetchval("select clock_timestamp()")
        await report_notifications(conn, {key: reports})
        latest = await conn.fetchval("select clock_timestamp()")
    after, waiting = await _clock(engine_rows, key), "state" not in columns
    first, last = (apply_reports(before, reports, at, waiting=waiting) for at in (earliest, latest))
    for name in CLOCK:
        low, here, high = (getattr(one, name) for one in (first, after, last))
        assert low == here == high or low <= here <= high, name


INSTANTS = [
    datetime(2026, 3, 29, hour, tzinfo=UTC) + timedelta(microseconds=moved)
    for hour in range(4)  # the night in which European clocks are set forward
    for moved in (-1, 0, 1)
]


async def test_functions_in_sql_repeat_the_rules(database: Database) -> None:
    cases = list(product(INSTANTS, INSTANTS))
    timeouts = [deadline - INSTANTS[0] for deadline, _ in cases]
    async with database.transaction() as conn:
        await conn.execute("set local timezone = 'Europe/Berlin'")
        rows = await conn.fetch(
            "select hook_has_expired(deadline, now) as expired, first_deadline(timeout, now) as first"
            "  from unnest($1::timestamptz[], $2::timestamptz[], $3::interval[]) with ordinality"
            "       c (deadline, now, timeout, n) order by n",
            [deadline for deadline, _ in cases],
            [now for _, now in cases],
            timeouts,
        )
    for row, (deadline, now), timeout in zip(rows, cases, timeouts, strict=True):
        assert row["first"] == now + timeout
        assert row["expired"] is has_expired(HookClock(now, timeout, deadline), now)


async def test_a_hook_is_recorded_as_undeliverable_once(engine_rows: EngineRows) -> None:
    keys = [await _hook(engine_rows) for _ in range(2)]
    for _ in range(2):
        async with engine_rows.database.transaction() as conn:
            await report_notifications(conn, {key: [NotificationUndeliverable()] for key in keys})
    assert await engine_rows.value(UNDELIVERABLE) == 2


async def test_a_hook_without_an_undeliverable_event_is_still_marked(
    engine_rows: EngineRows,
) -> None:
    key = await _hook(engine_rows)
    async with engine_rows.database.transaction() as conn:
        await report_notifications(conn, {key: [NotificationUndeliverable()]}, record=False)
    assert (await _clock(engine_rows, key)).undeliverable_at is not None
    assert await engine_rows.value(UNDELIVERABLE) == 0


async def test_a_deleted_hook_is_skipped(engine_rows: EngineRows) -> None:
    async with engine_rows.database.transaction() as conn:
        await report_notifications(conn, {(uuid4(), uuid4()): [NotificationDelivered()]})


async def test_a_clock_that_is_set_back_changes_hooks_as_the_rules_do(
    engine_rows: EngineRows,
) -> None:
    key = await _hook(engine_rows, opened_at="opened_at + interval '1 hour'",
                      deadline="deadline + interval '1 hour'")  # fmt: skip
    before = await _clock(engine_rows, key)
    earlier = await _hook(engine_rows)
    unchanged = await _clock(engine_rows, earlier)
    async with engine_rows.database.transaction() as conn:
        now = await conn.fetchval("select statement_timestamp()")
        await clock_correction._correct_hooks(conn, [key[0], earlier[0]], HOUR)
    after = await _clock(engine_rows, key)
    assert now <= after.opened_at
    assert after == set_back(before, HOUR, after.opened_at)
    assert await _clock(engine_rows, earlier) == unchanged


def _written() -> dict[str, set[tuple[str, str]]]:
    texts = FOUND | {file.name: file.text for file in routines()}
    return {name: found for name, text in texts.items() if (found := writes(text))}


def test_only_the_statements_of_the_rules_write_deadlines() -> None:
    names = {
        name
        for name, found in _written().items()
        if any(table == "hook" and column in CLOCK for table, column in found)
    }
    assert names == {
        "4_apply_transitions.sql",
        "engine.store.maintenance.clock_correction.WRITE_HOOKS",
        "engine.store.hooks.drift_hooks.OPEN",
        "engine.store.hooks.deadlines.WRITE_CLOCKS",
        "engine.store.hooks.watched_hooks.REPLACE",
    }


#: A comparison of a deadline with another time, or its computation from a timeout.
OWN_RULE = re.compile(
    r"\bdeadline\s*(?:<=?|>=?)(?!\s*\w+\.deadline)|(?:<=?|>=?)\s*(?:\w+\.)?deadline\b"
    r"|\+\s*(?:\w+\.)?timeout\b"
)


def test_only_the_functions_compute_or_compare_deadlines() -> None:
    texts = FOUND | {file.name: file.text for file in routines()}
    repeated = {name for name, text in texts.items() if OWN_RULE.search(text)}
    assert repeated == set()
    for text in ("where h.deadline <= now()", "where now() > h.deadline", "now() + h.timeout"):
        assert OWN_RULE.search(text)
    opening = {name for name, text in texts.items() if re.search(r"\bfirst_deadline\(", text)}
    assert opening == {
        "1_hook_deadline.sql",
        "4_apply_transitions.sql",
        "engine.store.hooks.drift_hooks.OPEN",
        "engine.store.hooks.watched_hooks.REPLACE",
    }


def test_channels_write_no_table_of_the_engine() -> None:
    tables = {
        (name, table)
        for name, found in _written().items()
        if name.startswith("channels.") or name in ROUTINES
        for table, _ in found
    }
    assert {table for _, table in tables} == CHANNEL_TABLES, tables


def test_two_routines_record_events() -> None:
    names = {
        name
        for name, found in _written().items()
        if {table for table, _ in found} & {"outbox", "event"}
    }
    purge = "engine.store.maintenance.retention.PURGE_EVENTS"
    copied = "engine.store.maintenance.project_moves.INSERT_OUTBOX"  # events of another cell
    recording = {"2_record_events.sql", "2_record_numbered_events.sql"}
    assert names == {*recording, PUBLISHING, purge, copied}


@pytest.mark.parametrize("statement", [deadlines.DUE_HOOKS, deadlines.DUE_HOOKS_IN_TURN])
async def test_due_hooks_are_found_by_an_index_on_the_deadline(
    database: Database, statement: str
) -> None:
    """PostgreSQL replaces a call of the function by its body, so that an index is used."""
    async with database.transaction() as conn:
        await conn.execute("set local enable_seqscan = off")
        rows = await conn.fetch(f"explain {statement.replace('$1', '10')}")
    plan = "\n".join(row[0] for row in rows)
    assert re.search(r"Index Cond: .*deadline <= statement_timestamp\(\)", plan), plan
