"""The database's clock is set back: waiting work continues, and the jump is reported.

A test cannot set the clock; instead, it moves all stored times an hour ahead.
"""

from datetime import timedelta
from pathlib import Path

from structlog.testing import capture_logs

from engine.store.database import Database
from engine.types.contract import Wait
from engine.work.clock_watch import ClockWatch
from hub.checks.database import CheckState, check_clock
from tests.support.changes import thing, until_started
from tests.support.program import eventually, program
from tests.support.receiver import Receiver
from tests.support.scripted_type import Thing, World

ONE_HOUR = timedelta(hours=1)
RULE = {"at": "*", "on": "pre-create", "timeout": "3s", "on_timeout": "continue"}
QUICK = {"engine.lease": "2s", "engine.poll": "1s", "channels.webhook.first_retry": "5s"}
#: An operation in a process that died, and one that waits for its timer.
LOSE_WORKER = (
    "update node set state = 'running', worker = 'gone' where name = 'lost' and state = 'parked'"
)
AHEAD = (
    "update node set wake_at = wake_at + $1::interval",
    "update traversal set wake_at = wake_at + $1::interval",
    "update hook set opened_at = opened_at + $1::interval, deadline = deadline + $1::interval",
    "update delivery set next_at = next_at + $1::interval",
    "update process set seen_at = seen_at + $1::interval",
    "update database_clock set seen_at = seen_at + $1::interval",
)
COMPLETED = "headgate.stack.create.completed"


async def test_waiting_work_continues_after_the_clock_is_set_back_by_an_hour(
    database_url: str, database: Database, receiver: Receiver
) -> None:
    world = World()
    receiver.respond_with_statuses(500)
    async with program(database_url, QUICK, types=[Thing(world)]) as run:
        wanted = {"channel": "webhook", "target": receiver.url, "events": ["headgate.stack.*"]}
        assert (await run.call("POST", "/subscriptions", wanted))[0] == 201
        async with database.connection() as conn:
            soon = await conn.fetchval("select clock_timestamp() + interval '10 seconds'")
        for name in ("timed", "lost"):
            world.script("create", name, Wait(soon, {}))
            await run.create(name, {name: thing()})
            await until_started(world, "create", name)
        await run.create("held", {"a": thing()}, environment={"hooks": [RULE]})
        await run.waiting_hooks("held")
        await eventually(lambda: _pending(database))
    receiver.respond_with_statuses(200)
    async with database.transaction() as conn:
        await conn.execute(LOSE_WORKER)
        for statement in AHEAD:
            await conn.execute(statement, ONE_HOUR)
    with capture_logs() as logs:
        async with program(database_url, QUICK, types=[Thing(world)]) as run:
            for name in ("timed", "lost", "held"):
                assert await run.until_ended(name) == "CREATE_COMPLETE"

            async def reported() -> bool:
                types = [one.event["type"] for one in receiver.received]
                return types.count(COMPLETED) >= 3

            await eventually(reported)
            _, metrics = await run.call("GET", "//metrics")
            assert 'headgate_database_clock_jumps_total{direction="back"} 1.0' in metrics
    (line,) = [one for one in logs if one["event"] == "database.clock_set"]
    assert -3600 <= line["seconds"] <= -3500 and line["corrected"]
    async with database.connection() as conn:
        result = await check_clock(conn)
    assert result.state is CheckState.WARNING
    assert "was set back by" in result.reason


async def _pending(database: Database) -> bool:
    async with database.connection() as conn:
        return bool(await conn.fetchval(
            "select count(*) from delivery where state = 'pending' and attempts > 0"))  # fmt: skip


async def test_a_jump_of_the_clock_is_reported_once(database: Database, tmp_path: Path) -> None:
    jumps: list[float] = []
    watch = ClockWatch(database, lease=timedelta(seconds=2), jumped=jumps.append)
    await watch.check()
    await watch.check()
    assert jumps == []
    async with database.connection() as conn:
        assert (await check_clock(conn)).state is CheckState.OK
        await conn.execute("update database_clock set seen_at = seen_at + $1::interval", ONE_HOUR)
        assert "behind an earlier reading" in (await check_clock(conn)).reason
    with capture_logs() as logs:
        await watch.check()
        await watch.check()
    assert [round(one, -2) for one in jumps] == [-3600.0]
    assert [one["event"] for one in logs] == ["database.clock_set"]
