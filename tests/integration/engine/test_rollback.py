"""Rollbacks of failed changes, to the last completed version or to nothing."""

from typing import Any

import pytest

from engine.types.contract import Failed
from tests.support.changes import (
    put,
    thing,
    until_status,
)
from tests.support.program import Program, eventually
from tests.support.scripted_type import World


@pytest.fixture
def run(things_in_own_project: Program) -> Program:
    return things_in_own_project


class TestRollback:
    async def test_a_failed_update_rolls_back_to_the_last_completed_version(
        self, run: Program, world: World
    ) -> None:
        await run.create("s", {"a": thing(1), "b": thing(1)}, disable_rollback=False)
        assert await run.until_ended("s") == "CREATE_COMPLETE"
        before = await run.resources("s")
        world.script("update", "b", Failed("no"))
        await put(run, "s", {"a": thing(2), "b": thing(2), "c": thing(3)})
        assert await run.until_ended("s") in ("ROLLBACK_COMPLETE", "UPDATE_FAILED")
        await until_status(run, "s", "ROLLBACK_COMPLETE")
        after = await run.resources("s")
        assert set(after) == {"a", "b"}
        assert after["a"]["physical_resource_id"] == before["a"]["physical_resource_id"]
        assert sorted(world.things.values()) == [1, 1]
        restored = await run.stack_request("GET", "s", "/template")
        assert set(restored["resources"]) == {"a", "b"}
        events = [one["resource_status"] for one in await run.events("s")
                  if one["resource_name"] == "s"]  # fmt: skip
        assert events[-4:] == [
            "UPDATE_IN_PROGRESS", "UPDATE_FAILED", "ROLLBACK_IN_PROGRESS", "ROLLBACK_COMPLETE",
        ]  # fmt: skip

    async def test_two_failures_roll_back_to_the_last_completed_version(
        self, run: Program, world: World
    ) -> None:
        await run.create("s", {"a": thing(1)})
        await run.until_ended("s")
        world.script("update", "a", Failed("no"))
        await put(run, "s", {"a": thing(2)})
        assert await run.until_ended("s") == "UPDATE_FAILED"
        world.script("create", "a", Failed("no"))
        await put(run, "s", {"a": thing(3)}, disable_rollback=False)
        await until_status(run, "s", "ROLLBACK_COMPLETE")
        assert list(world.things.values()) == [1]

    async def test_a_failed_create_rolls_back_to_an_empty_stack(
        self, run: Program, world: World
    ) -> None:
        world.script("create", "b", Failed("no"))
        await run.create("s", {"a": thing(), "b": thing()}, disable_rollback=False)
        await until_status(run, "s", "ROLLBACK_COMPLETE")
        assert await run.resources("s") == {} and world.things == {}
        await put(run, "s", {"a": thing(), "b": thing()})
        assert await run.until_ended("s") == "UPDATE_COMPLETE"
        assert len(world.things) == 2

    async def test_hooks_block_a_rollback(self, run: Program, world: World) -> None:
        breakpoints = {"hooks": [{"at": "b", "on": "pre-update"}]}
        await run.create("s", {"a": thing(1), "b": thing(1)}, environment=breakpoints,
                         disable_rollback=False)  # fmt: skip
        await run.until_ended("s")
        world.script("update", "a", Failed("no"))
        await put(run, "s", {"a": thing(2), "b": thing(2)}, environment=breakpoints)
        (hook,) = await run.waiting_hooks("s")
        await run.signal(hook)

        async def rolled_back() -> Any:
            hooks = await run.waiting_hooks("s")
            return hooks[0] if hooks[0]["id"] != hook["id"] else None

        second = await eventually(rolled_back)
        assert (await run.stack("s"))["stack_status"] == "ROLLBACK_IN_PROGRESS"
        await run.signal(second)
        await until_status(run, "s", "ROLLBACK_COMPLETE")
        assert sorted(world.things.values()) == [1, 1]
