"""Changes cut short: cancelled, stopped, timed out; and operations tried again."""

from datetime import timedelta

from engine.types.contract import Failed, Wait
from tests.support.changes import (
    FAR,
    begun,
    ended_as,
    put,
    refused,
    thing,
)
from tests.support.program import Program, eventually, program
from tests.support.things import Thing, World


class TestCancel:
    async def test_without_rollback_what_runs_ends_and_nothing_else_begins(
        self, run: Program, world: World
    ) -> None:
        await run.create("s", {"a": thing(1)})
        await run.until_ended("s")
        world.will("update", "a", FAR)
        await put(run, "s", {"a": thing(2), "b": thing(1, depends_on="a")})
        await begun(world, "update", "a")
        await run.act("s", "cancel_without_rollback")
        stack = await run.stack("s")
        assert stack["stack_status"] == "UPDATE_FAILED"
        assert stack["stack_status_reason"] == "Stack UPDATE cancelled"
        assert world.operations("b") == []

    async def test_with_rollback_the_way_back_waits_for_what_runs(
        self, run: Program, world: World
    ) -> None:
        await run.create("s", {"a": thing(1)})
        await run.until_ended("s")
        now = await run.database.pool.fetchval("select now()")
        world.will("update", "a", Wait(now + timedelta(seconds=1), {}))
        await put(run, "s", {"a": thing(2)})
        await begun(world, "update", "a")
        await run.act("s", "cancel_update")
        await ended_as(run, "s", "ROLLBACK_COMPLETE")
        assert list(world.things.values()) == [1]
        assert world.operations("a") == ["create", "update", "update", "update"]

    async def test_what_is_not_in_progress_cannot_be_cancelled(self, run: Program) -> None:
        await run.create("s", {"a": thing()})
        await run.until_ended("s")
        for action in ("cancel_update", "cancel_without_rollback", "stop"):
            status, error = await refused(run, "POST", "s", "/actions", {action: None})
            assert (status, error["type"]) == (400, "NotSupported")
            assert "when stack is CREATE_COMPLETE is not supported" in error["message"]

    async def test_a_stop_ends_as_stopped_and_an_update_goes_on(
        self, run: Program, world: World
    ) -> None:
        held = {"hooks": [{"at": "b", "on": "pre-create"}]}
        await run.create("s", {"a": thing(), "b": thing(depends_on="a")}, environment=held)
        (hook,) = await run.waiting("s")
        await run.act("s", "stop")
        assert (await run.stack("s"))["stack_status"] == "CREATE_STOPPED"
        status, said = await run.signal(hook)
        assert status == 409, said
        await run.update("s", hooks={"clear": ["*"]})
        assert await run.until_ended("s") == "UPDATE_COMPLETE"
        assert world.operations("a") == ["create"]


class TestTimeout:
    async def test_only_time_that_works_counts(self, run: Program, world: World) -> None:
        held = {"hooks": [{"at": "a", "on": "pre-create"}]}
        await run.create("s", {"a": thing()}, environment=held, timeout_mins=1)
        (hook,) = await run.waiting("s")
        pool = run.database.pool
        # An hour in a hook does not count; so the traversal is not due.
        await pool.execute("update traversal set started_at = started_at - interval '1 hour'")
        working = await pool.fetchrow("select working_since, worked, held, active from traversal")
        assert (
            working is not None
            and working["working_since"] is None
            and working["held"] == working["active"] == 1
        )
        world.will("create", "a", FAR)
        await run.signal(hook)
        await begun(world, "create", "a")

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
    async def test_what_helps_is_tried_again_with_the_same_key(
        self, run: Program, world: World
    ) -> None:
        world.will("create", "a", Failed("busy", retry=True))
        await run.create("s", {"a": thing()})
        assert await run.until_ended("s") == "CREATE_COMPLETE"
        assert world.operations("a") == ["create", "create"]
        said = [one["resource_status_reason"] for one in await run.events("s")]
        assert "busy" in said

    async def test_the_limit_ends_it(self, database_url: str, world: World) -> None:
        world.will("create", "a", *[Failed("busy", retry=True)] * 3)
        few = {"engine.action_retry_limit": 1, "engine.first_retry": "1s"}
        async with program(database_url, few, types=[Thing(world)]) as run:
            await run.create("s", {"a": thing()})
            assert await run.until_ended("s") == "CREATE_FAILED"
            assert world.operations("a") == ["create", "create"]

    async def test_what_does_not_help_is_not(self, run: Program, world: World) -> None:
        world.will("create", "a", Failed("never"))
        await run.create("s", {"a": thing()})
        assert await run.until_ended("s") == "CREATE_FAILED"
        assert world.operations("a") == ["create"]
