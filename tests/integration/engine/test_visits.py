"""Check, suspend, resume and snapshots: what exists is visited, not changed."""

from engine.types.contract import Failed
from tests.support.changes import (
    FAR,
    begun,
    ended_as,
    put,
    refused,
    thing,
)
from tests.support.program import Program
from tests.support.things import World


class TestVisits:
    async def test_a_check_finds_what_is_gone_and_an_update_replaces_it(
        self, run: Program, world: World
    ) -> None:
        await run.create("s", {"a": thing(), "b": thing()})
        await run.until_ended("s")
        await run.act("s", "check")
        assert await run.until_ended("s") == "CHECK_COMPLETE"
        gone = (await run.resources("s"))["a"]["physical_resource_id"]
        del world.things[gone]
        await run.act("s", "check")
        await ended_as(run, "s", "CHECK_FAILED")
        found = await run.resources("s")
        assert found["a"]["resource_status"] == "CHECK_FAILED"
        assert found["b"]["resource_status"] == "CHECK_COMPLETE"
        await run.update("s")
        assert await run.until_ended("s") == "UPDATE_COMPLETE"
        assert (await run.resources("s"))["a"]["physical_resource_id"] != gone
        assert len(world.things) == 2

    async def test_users_rest_first_and_wake_last(self, run: Program, world: World) -> None:
        await run.create("s", {"a": thing(), "b": thing(depends_on="a")})
        await run.until_ended("s")
        await run.act("s", "suspend")
        assert await run.until_ended("s") == "SUSPEND_COMPLETE"
        await run.act("s", "suspend")
        await run.act("s", "resume")
        await ended_as(run, "s", "RESUME_COMPLETE")
        assert world.done[2:] == [("suspend", "b"), ("suspend", "a"), ("resume", "a"),
                                  ("resume", "b")]  # fmt: skip

    async def test_an_update_resumes_what_is_suspended_first(
        self, run: Program, world: World
    ) -> None:
        await run.create("s", {"a": thing(1), "b": thing(1, depends_on="a")})
        await run.until_ended("s")
        await run.act("s", "suspend")
        await run.until_ended("s")
        await put(run, "s", {"a": thing(2), "b": thing(1, depends_on="a")})
        assert await run.until_ended("s") == "UPDATE_COMPLETE"
        assert world.done[4:] == [("resume", "a"), ("update", "a"), ("resume", "b")]

    async def test_a_visit_waits_for_nobody_and_refuses_a_busy_stack(
        self, run: Program, world: World
    ) -> None:
        world.will("create", "a", FAR)
        await run.create("s", {"a": thing()})
        await begun(world, "create", "a")
        for action in ("check", "suspend", "resume"):
            status, error = await refused(run, "POST", "s", "/actions", {action: None})
            assert (status, error["type"]) == (409, "ActionInProgress")

    async def test_hooks_before_a_check(self, run: Program, world: World) -> None:
        held = {"hooks": [{"at": "a", "on": "pre-check"}]}
        await run.create("s", {"a": thing()}, environment=held)
        await run.until_ended("s")
        await run.act("s", "check")
        (hook,) = await run.waiting("s")
        assert hook["point"] == "pre-check" and world.operations("a") == ["create"]
        await run.signal(hook)
        await ended_as(run, "s", "CHECK_COMPLETE")


class TestSnapshots:
    async def test_a_snapshot_is_restored(self, run: Program, world: World) -> None:
        await run.create("s", {"a": thing(1), "b": thing(1)})
        await run.until_ended("s")
        made = await run.at("POST", "s", "/snapshots", {"name": "before"})
        assert (made["name"], made["status"]) == ("before", "IN_PROGRESS")
        await ended_as(run, "s", "SNAPSHOT_COMPLETE")
        await put(run, "s", {"a": thing(9), "c": thing(9)})
        await ended_as(run, "s", "UPDATE_COMPLETE")
        (only,) = (await run.at("GET", "s", "/snapshots"))["snapshots"]
        assert only["status"] == "COMPLETE" and set(only["data"]["resources"]) == {"a", "b"}
        await run.at("POST", "s", f"/snapshots/{made['id']}/restore")
        await ended_as(run, "s", "RESTORE_COMPLETE")
        assert sorted(world.things.values()) == [1, 1]
        assert set(await run.resources("s")) == {"a", "b"}
        await run.at("DELETE", "s", f"/snapshots/{made['id']}")
        assert (await run.at("GET", "s", "/snapshots"))["snapshots"] == []
        rest = f"/snapshots/{made['id']}/restore"
        status, error = await refused(run, "POST", "s", rest)
        assert (status, error["type"]) == (404, "SnapshotNotFound")

    async def test_a_thing_goes_back_even_if_no_property_differs(
        self, run: Program, world: World
    ) -> None:
        await run.create("s", {"a": thing(1)})
        await run.until_ended("s")
        made = await run.at("POST", "s", "/snapshots")
        await ended_as(run, "s", "SNAPSHOT_COMPLETE")
        (physical,) = world.things
        world.things[physical] = "spoilt"
        await run.at("POST", "s", f"/snapshots/{made['id']}/restore")
        await ended_as(run, "s", "RESTORE_COMPLETE")
        assert world.things == {physical: 1}

    async def test_a_busy_stack_and_a_failed_snapshot(self, run: Program, world: World) -> None:
        await run.create("s", {"a": thing(1)})
        await run.until_ended("s")
        world.will("snapshot", "a", Failed("no room"))
        made = await run.at("POST", "s", "/snapshots")
        await ended_as(run, "s", "SNAPSHOT_FAILED")
        status, error = await refused(run, "POST", "s", f"/snapshots/{made['id']}/restore")
        assert status == 400 and "cannot be restored" in error["message"]
        world.will("update", "a", FAR)
        await put(run, "s", {"a": thing(2)})
        await begun(world, "update", "a")
        status, error = await refused(run, "POST", "s", "/snapshots")
        assert (status, error["type"]) == (409, "ActionInProgress")
