"""Check, suspend, resume and snapshots."""

import pytest

from engine.types.contract import Failed
from tests.support.changes import (
    LONG_WAIT,
    expect_error,
    put,
    thing,
    until_started,
    until_status,
)
from tests.support.program import Program
from tests.support.scripted_type import World


@pytest.fixture
def run(things_in_own_project: Program) -> Program:
    return things_in_own_project


class TestActions:
    async def test_a_check_finds_a_missing_resource_and_an_update_replaces_it(
        self, run: Program, world: World
    ) -> None:
        await run.create("s", {"a": thing(), "b": thing()})
        await run.until_ended("s")
        await run.act("s", "check")
        assert await run.until_ended("s") == "CHECK_COMPLETE"
        missing = (await run.resources("s"))["a"]["physical_resource_id"]
        del world.things[missing]
        await run.act("s", "check")
        await until_status(run, "s", "CHECK_FAILED")
        found = await run.resources("s")
        assert found["a"]["resource_status"] == "CHECK_FAILED"
        assert found["b"]["resource_status"] == "CHECK_COMPLETE"
        await run.update("s")
        assert await run.until_ended("s") == "UPDATE_COMPLETE"
        assert (await run.resources("s"))["a"]["physical_resource_id"] != missing
        assert len(world.things) == 2

    async def test_a_check_of_failed_and_missing_resources_fails_and_keeps_their_state(
        self, run: Program, world: World
    ) -> None:
        world.script("create", "a", Failed("no room"))
        await run.create("s", {"a": thing(), "b": thing(depends_on="a"), "c": thing()})
        assert await run.until_ended("s") == "CREATE_FAILED"
        await run.act("s", "check")
        await until_status(run, "s", "CHECK_FAILED")
        found = await run.resources("s")
        states = {name: one["resource_status"] for name, one in found.items()}
        assert states == {"a": "CREATE_FAILED", "b": "INIT_COMPLETE", "c": "CHECK_COMPLETE"}
        assert found["a"]["resource_status_reason"] == "no room"
        reason = (await run.stack("s"))["stack_status_reason"]
        assert reason.endswith("(and 1 more)")
        events = (await run.stack_request("GET", "s", "/resources/a/events"))["events"]
        refusal = "a is CREATE_FAILED. Update the stack to repair it."
        assert events[-1]["resource_status_reason"] == refusal
        events = (await run.stack_request("GET", "s", "/resources/b/events"))["events"]
        assert events[-1]["resource_status_reason"] == "Resource b not created yet."
        assert world.operations("a") == ["create"] and world.operations("b") == []
        await run.update("s")
        assert await run.until_ended("s") == "UPDATE_COMPLETE"
        assert len(world.things) == 3

    async def test_dependents_are_suspended_first_and_resumed_last(
        self, run: Program, world: World
    ) -> None:
        await run.create("s", {"a": thing(), "b": thing(depends_on="a")})
        await run.until_ended("s")
        await run.act("s", "suspend")
        assert await run.until_ended("s") == "SUSPEND_COMPLETE"
        await run.act("s", "suspend")
        await run.act("s", "resume")
        await until_status(run, "s", "RESUME_COMPLETE")
        assert world.done[2:] == [("suspend", "b"), ("suspend", "a"), ("resume", "a"),
                                  ("resume", "b")]  # fmt: skip

    @pytest.mark.parametrize("between", ["check", "snapshot"])
    async def test_a_resume_includes_resources_suspended_before_another_action(
        self, run: Program, world: World, between: str
    ) -> None:
        await run.create("s", {"a": thing()})
        await run.until_ended("s")
        await run.act("s", "suspend")
        assert await run.until_ended("s") == "SUSPEND_COMPLETE"
        if between == "check":
            await run.act("s", "check")
        else:
            await run.stack_request("POST", "s", "/snapshots", {"name": "between"})
        await until_status(run, "s", f"{between.upper()}_COMPLETE")
        assert (await run.resources("s"))["a"]["resource_status"] == "SUSPEND_COMPLETE"
        await run.act("s", "resume")
        await until_status(run, "s", "RESUME_COMPLETE")
        assert world.operations("a")[-1] == "resume"

    async def test_an_update_first_resumes_suspended_resources(
        self, run: Program, world: World
    ) -> None:
        await run.create("s", {"a": thing(1), "b": thing(1, depends_on="a")})
        await run.until_ended("s")
        await run.act("s", "suspend")
        await run.until_ended("s")
        await put(run, "s", {"a": thing(2), "b": thing(1, depends_on="a")})
        assert await run.until_ended("s") == "UPDATE_COMPLETE"
        assert world.done[4:] == [("resume", "a"), ("update", "a"), ("resume", "b")]

    async def test_an_in_place_action_is_refused_while_a_change_is_in_progress(
        self, run: Program, world: World
    ) -> None:
        world.script("create", "a", LONG_WAIT)
        await run.create("s", {"a": thing()})
        await until_started(world, "create", "a")
        for action in ("check", "suspend", "resume"):
            status, error = await expect_error(run, "POST", "s", "/actions", {action: None})
            assert (status, error["type"]) == (409, "ActionInProgress")

    async def test_a_hook_before_a_check(self, run: Program, world: World) -> None:
        hook_environment = {"hooks": [{"at": "a", "on": "pre-check"}]}
        await run.create("s", {"a": thing()}, environment=hook_environment)
        await run.until_ended("s")
        await run.act("s", "check")
        (hook,) = await run.waiting_hooks("s")
        assert hook["point"] == "pre-check" and world.operations("a") == ["create"]
        await run.signal(hook)
        await until_status(run, "s", "CHECK_COMPLETE")


class TestSnapshots:
    async def test_a_snapshot_is_restored(self, run: Program, world: World) -> None:
        await run.create("s", {"a": thing(1), "b": thing(1)})
        await run.until_ended("s")
        snapshot = await run.stack_request("POST", "s", "/snapshots", {"name": "before"})
        assert (snapshot["name"], snapshot["status"]) == ("before", "IN_PROGRESS")
        await until_status(run, "s", "SNAPSHOT_COMPLETE")
        await put(run, "s", {"a": thing(9), "c": thing(9)})
        await until_status(run, "s", "UPDATE_COMPLETE")
        (stored,) = (await run.stack_request("GET", "s", "/snapshots"))["snapshots"]
        assert stored["status"] == "COMPLETE" and set(stored["data"]["resources"]) == {"a", "b"}
        await run.stack_request("POST", "s", f"/snapshots/{snapshot['id']}/restore")
        await until_status(run, "s", "RESTORE_COMPLETE")
        assert sorted(world.things.values()) == [1, 1]
        assert set(await run.resources("s")) == {"a", "b"}
        await run.stack_request("DELETE", "s", f"/snapshots/{snapshot['id']}")
        assert (await run.stack_request("GET", "s", "/snapshots"))["snapshots"] == []
        rest = f"/snapshots/{snapshot['id']}/restore"
        status, error = await expect_error(run, "POST", "s", rest)
        assert (status, error["type"]) == (404, "SnapshotNotFound")

    async def test_a_restore_calls_the_type_even_if_no_property_differs(
        self, run: Program, world: World
    ) -> None:
        await run.create("s", {"a": thing(1)})
        await run.until_ended("s")
        snapshot = await run.stack_request("POST", "s", "/snapshots")
        await until_status(run, "s", "SNAPSHOT_COMPLETE")
        (physical,) = world.things
        world.things[physical] = "spoilt"
        await run.stack_request("POST", "s", f"/snapshots/{snapshot['id']}/restore")
        await until_status(run, "s", "RESTORE_COMPLETE")
        assert world.things == {physical: 1}

    async def test_a_snapshot_during_a_change_is_refused_and_a_failed_one_is_shown(
        self, run: Program, world: World
    ) -> None:
        await run.create("s", {"a": thing(1)})
        await run.until_ended("s")
        world.script("snapshot", "a", Failed("no room"))
        snapshot = await run.stack_request("POST", "s", "/snapshots")
        await until_status(run, "s", "SNAPSHOT_FAILED")
        status, error = await expect_error(run, "POST", "s", f"/snapshots/{snapshot['id']}/restore")
        assert status == 400 and "cannot be restored" in error["message"]
        world.script("update", "a", LONG_WAIT)
        await put(run, "s", {"a": thing(2)})
        await until_started(world, "update", "a")
        status, error = await expect_error(run, "POST", "s", "/snapshots")
        assert (status, error["type"]) == (409, "ActionInProgress")
