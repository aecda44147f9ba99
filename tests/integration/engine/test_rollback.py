"""Failed changes go back: to the version that was reached last, or to nothing."""

from typing import Any

from engine.types.contract import Failed
from tests.support.changes import (
    ended_as,
    put,
    thing,
)
from tests.support.program import Program, eventually
from tests.support.things import World


class TestRollback:
    async def test_a_failed_update_goes_back_to_what_was_reached_last(
        self, run: Program, world: World
    ) -> None:
        await run.create("s", {"a": thing(1), "b": thing(1)}, disable_rollback=False)
        assert await run.until_ended("s") == "CREATE_COMPLETE"
        before = await run.resources("s")
        world.will("update", "b", Failed("no"))
        await put(run, "s", {"a": thing(2), "b": thing(2), "c": thing(3)})
        assert await run.until_ended("s") in ("ROLLBACK_COMPLETE", "UPDATE_FAILED")
        await ended_as(run, "s", "ROLLBACK_COMPLETE")
        after = await run.resources("s")
        assert set(after) == {"a", "b"}
        assert after["a"]["physical_resource_id"] == before["a"]["physical_resource_id"]
        assert sorted(world.things.values()) == [1, 1]
        said = await run.at("GET", "s", "/template")
        assert set(said["resources"]) == {"a", "b"}
        events = [one["resource_status"] for one in await run.events("s")
                  if one["resource_name"] == "s"]  # fmt: skip
        assert events[-4:] == [
            "UPDATE_IN_PROGRESS", "UPDATE_FAILED", "ROLLBACK_IN_PROGRESS", "ROLLBACK_COMPLETE",
        ]  # fmt: skip

    async def test_two_failures_in_a_row_go_back_to_the_last_that_was_whole(
        self, run: Program, world: World
    ) -> None:
        await run.create("s", {"a": thing(1)})
        await run.until_ended("s")
        world.will("update", "a", Failed("no"))
        await put(run, "s", {"a": thing(2)})
        assert await run.until_ended("s") == "UPDATE_FAILED"
        world.will("create", "a", Failed("no"))
        await put(run, "s", {"a": thing(3)}, disable_rollback=False)
        await ended_as(run, "s", "ROLLBACK_COMPLETE")
        assert list(world.things.values()) == [1]

    async def test_a_failed_create_goes_back_to_nothing(self, run: Program, world: World) -> None:
        world.will("create", "b", Failed("no"))
        await run.create("s", {"a": thing(), "b": thing()}, disable_rollback=False)
        await ended_as(run, "s", "ROLLBACK_COMPLETE")
        assert await run.resources("s") == {} and world.things == {}
        await put(run, "s", {"a": thing(), "b": thing()})
        assert await run.until_ended("s") == "UPDATE_COMPLETE"
        assert len(world.things) == 2

    async def test_hooks_hold_a_rollback_too(self, run: Program, world: World) -> None:
        held = {"hooks": [{"at": "b", "on": "pre-update"}]}
        await run.create("s", {"a": thing(1), "b": thing(1)}, environment=held,
                         disable_rollback=False)  # fmt: skip
        await run.until_ended("s")
        world.will("update", "a", Failed("no"))
        await put(run, "s", {"a": thing(2), "b": thing(2)}, environment=held)
        (hook,) = await run.waiting("s")
        await run.signal(hook)

        async def again() -> Any:
            hooks = await run.waiting("s")
            return hooks[0] if hooks[0]["id"] != hook["id"] else None

        second = await eventually(again)
        assert (await run.stack("s"))["stack_status"] == "ROLLBACK_IN_PROGRESS"
        await run.signal(second)
        await ended_as(run, "s", "ROLLBACK_COMPLETE")
        assert sorted(world.things.values()) == [1, 1]
