"""Cancel, stop and timeout of changes, and retries of operations."""

from datetime import timedelta

import pytest

from engine.types.contract import Failed, Wait
from tests.support.changes import (
    LONG_WAIT,
    expect_error,
    put,
    thing,
    until_started,
    until_status,
)
from tests.support.program import Program, eventually, program
from tests.support.scripted_type import Thing, World


@pytest.fixture
def run(things_in_own_project: Program) -> Program:
    return things_in_own_project


class TestCancel:
    async def test_without_rollback_running_operations_end_and_no_other_starts(
        self, run: Program, world: World
    ) -> None:
        await run.create("s", {"a": thing(1)})
        await run.until_ended("s")
        world.script("update", "a", LONG_WAIT)
        await put(run, "s", {"a": thing(2), "b": thing(1, depends_on="a")})
        await until_started(world, "update", "a")
        await run.act("s", "cancel_without_rollback")
        stack = await run.stack("s")
        assert stack["stack_status"] == "UPDATE_FAILED"
        assert stack["stack_status_reason"] == "Stack UPDATE cancelled"
        assert world.operations("b") == []

    async def test_the_rollback_waits_for_running_operations(
        self, run: Program, world: World
    ) -> None:
        await run.create("s", {"a": thing(1)})
        await run.until_ended("s")
        now = await run.database.pool.fetchval("select now()")
        world.script("update", "a", Wait(now + timedelta(seconds=1), {}))
        await put(run, "s", {"a": thing(2)})
        await until_started(world, "update", "a")
        await run.act("s", "cancel_update")
        await until_status(run, "s", "ROLLBACK_COMPLETE")
        assert list(world.things.values()) == [1]
        assert world.operations("a") == ["create", "update", "update", "update"]

    async def test_a_stack_that_is_not_in_progress_cannot_be_cancelled(self, run: Program) -> None:
        await run.create("s", {"a": thing()})
        await run.until_ended("s")
        for action in ("cancel_update", "cancel_without_rollback", "stop"):
            status, error = await expect_error(run, "POST", "s", "/actions", {action: None})
            assert (status, error["type"]) == (400, "NotSupported")
            assert "when stack is CREATE_COMPLETE is not supported" in error["message"]

    async def test_a_stopped_action_is_resumed_by_an_update(
        self, run: Program, world: World
    ) -> None:
        breakpoints = {"hooks": [{"at": "b", "on": "pre-create"}]}
        await run.create("s", {"a": thing(), "b": thing(depends_on="a")}, environment=breakpoints)
        (hook,) = await run.waiting_hooks("s")
        await run.act("s", "stop")
        assert (await run.stack("s"))["stack_status"] == "CREATE_STOPPED"
        status, response = await run.signal(hook)
        assert status == 409, response
        await run.update("s", hooks={"clear": ["*"]})
        assert await run.until_ended("s") == "UPDATE_COMPLETE"
        assert world.operations("a") == ["create"]


class TestTimeout:
    async def test_the_timeout_counts_working_time_only(self, run: Program, world: World) -> None:
        breakpoints = {"hooks": [{"at": "a", "on": "pre-create"}]}
        await run.create("s", {"a": thing()}, environment=breakpoints, timeout_mins=1)
        (hook,) = await run.waiting_hooks("s")
        pool = run.database.pool
        # An hour at a hook does not count, so the traversal is not due.
        await pool.execute("update traversal set started_at = started_at - interval '1 hour'")
        working = await pool.fetchrow(
            "select working_since, working_time, blocked_nodes, active_nodes from traversal"
        )
        assert (
            working is not None
            and working["working_since"] is None
            and working["blocked_nodes"] == working["active_nodes"] == 1
        )
        world.script("create", "a", LONG_WAIT)
        await run.signal(hook)
        await until_started(world, "create", "a")

        async def worked() -> bool:
            return bool(await pool.fetchval("select working_since is not null from traversal"))

        await eventually(worked)
        await pool.execute(
            "update traversal set working_since = working_since - interval '2 minutes',"
            " wake_at = clock_timestamp()"
        )
        await pool.execute("select pg_notify('headgate_work', '')")
        assert await run.until_ended("s") == "CREATE_FAILED"
        assert (await run.stack("s"))["stack_status_reason"] == "Timed out"


class TestRetries:
    async def test_a_temporary_failure_is_retried_with_the_same_operation_key(
        self, run: Program, world: World
    ) -> None:
        world.script("create", "a", Failed("busy", retry=True))
        await run.create("s", {"a": thing()})
        assert await run.until_ended("s") == "CREATE_COMPLETE"
        assert world.operations("a") == ["create", "create"]
        reasons = [one["resource_status_reason"] for one in await run.events("s")]
        assert "busy" in reasons

    async def test_the_number_of_retries_is_limited(self, database_url: str, world: World) -> None:
        world.script("create", "a", *[Failed("busy", retry=True)] * 3)
        few = {"engine.action_retry_limit": 1, "engine.first_retry": "1s"}
        async with program(database_url, few, types=[Thing(world)]) as run:
            await run.create("s", {"a": thing()})
            assert await run.until_ended("s") == "CREATE_FAILED"
            assert world.operations("a") == ["create", "create"]
            # As in Heat, events from before there is a physical ID have the physical name.
            events = [one for one in await run.events("s") if one["resource_name"] == "a"]
            assert [one["resource_status"] for one in events] == [
                "CREATE_IN_PROGRESS", "CREATE_IN_PROGRESS", "CREATE_FAILED",
            ]  # fmt: skip
            (name,) = {one["physical_resource_id"] for one in events}
            assert name.startswith("s-a-") and len(name) == len("s-a-") + 12

    async def test_a_permanent_failure_is_not_retried(self, run: Program, world: World) -> None:
        world.script("create", "a", Failed("never"))
        await run.create("s", {"a": thing()})
        assert await run.until_ended("s") == "CREATE_FAILED"
        assert world.operations("a") == ["create"]
