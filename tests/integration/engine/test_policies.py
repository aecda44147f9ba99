"""What may become of a resource: retained, kept, external, restricted, protected, unwell."""

import pytest

from engine.types.contract import Failed
from tests.support.changes import (
    ended_again,
    ended_as,
    gone,
    put,
    refused,
    thing,
)
from tests.support.program import Json, Program, template
from tests.support.things import World


class TestPolicies:
    async def test_what_is_retained_stays(self, run: Program, world: World) -> None:
        await run.create("s", {"a": thing(deletion_policy="Retain"), "b": thing()})
        await run.until_ended("s")
        kept = (await run.resources("s"))["a"]["physical_resource_id"]
        await run.at("DELETE", "s")
        await gone(run, "s")
        assert set(world.things) == {kept} and "delete" not in world.operations("a")

    async def test_it_is_retained_when_it_leaves_the_template_or_is_replaced(
        self, run: Program, world: World
    ) -> None:
        await run.create("s", {"a": thing(deletion_policy="Retain"), "b": thing()})
        await run.until_ended("s")
        await put(run, "s", {"a": thing(deletion_policy="Retain", place="there"), "b": thing()})
        assert await run.until_ended("s") == "UPDATE_COMPLETE"
        assert len(world.things) == 3
        await put(run, "s", {"b": thing()})
        await ended_again(run, "s")
        assert len(world.things) == 3 and world.operations("a") == ["create", "create"]

    async def test_a_snapshot_is_kept_before_it_goes(self, run: Program, world: World) -> None:
        await run.create("s", {"a": thing(7, deletion_policy="Snapshot")})
        await run.until_ended("s")
        stack = (await run.stack("s"))["id"]
        await run.at("DELETE", "s")
        await gone(run, "s")
        assert world.operations("a") == ["create", "snapshot", "delete"]
        _, said = await run.call("GET", f"/stacks/s/{stack}/resource_snapshots")
        assert [one["resource_name"] for one in said["resource_snapshots"]] == ["a"]

    @pytest.mark.parametrize("end", ["deleted", "abandoned"])
    async def test_what_snapshots_of_the_stack_held_goes_with_it(
        self, run: Program, world: World, end: str
    ) -> None:
        """What deletion_policy: Snapshot kept stays: it was asked for to outlive the resource."""
        await run.create("s", {"a": thing(7, deletion_policy="Snapshot"), "b": thing()})
        await run.until_ended("s")
        stack = (await run.stack("s"))["id"]
        await put(run, "s", {"b": thing(8)})  # `a` is deleted, and kept
        await ended_again(run, "s")
        await run.at("POST", "s", "/snapshots", {"name": "whole"})
        await ended_as(run, "s", "SNAPSHOT_COMPLETE")
        if end == "deleted":
            await run.at("DELETE", "s")
            await gone(run, "s")
        else:
            await run.at("DELETE", "s", "/abandon")
        _, said = await run.call("GET", f"/stacks/s/{stack}/resource_snapshots")
        assert [one["resource_name"] for one in said["resource_snapshots"]] == ["a"]
        left = "select name from resource_snapshot"
        assert [row["name"] for row in await run.database.pool.fetch(left)] == ["a"]

    async def test_without_its_snapshot_nothing_is_deleted(
        self, run: Program, world: World
    ) -> None:
        await run.create("s", {"a": thing(7, deletion_policy="Snapshot")})
        await run.until_ended("s")
        world.will("snapshot", "a", Failed("no room"))
        await run.at("DELETE", "s")
        await ended_as(run, "s", "DELETE_FAILED")
        assert len(world.things) == 1 and "delete" not in world.operations("a")

    async def test_an_external_thing_is_neither_made_nor_changed_nor_deleted(
        self, run: Program, world: World
    ) -> None:
        world.things["theirs"] = 5
        await run.create("s", {"a": thing(1, external_id="theirs")})
        assert await run.until_ended("s") == "CREATE_COMPLETE"
        found = (await run.resources("s"))["a"]
        assert found["physical_resource_id"] == "theirs"
        assert found["resource_status"] == "ADOPT_COMPLETE"
        await put(run, "s", {"a": thing(2, external_id="theirs")})
        assert await run.until_ended("s") == "UPDATE_COMPLETE"
        await put(run, "s", {"a": thing(2, external_id="others")})
        await ended_as(run, "s", "UPDATE_FAILED")
        assert "external_id" in (await run.stack("s"))["stack_status_reason"]
        await run.at("DELETE", "s")
        await gone(run, "s")
        assert world.things == {"theirs": 5} and world.operations("a") == ["check"]

    @pytest.mark.parametrize(
        ("what", "change"), [("update", {"size": 2}), ("replace", {"place": "x"})]
    )
    async def test_restricted_actions_fail_and_leave_the_state(
        self, run: Program, world: World, what: str, change: Json
    ) -> None:
        said = {"resource_registry": {"resources": {"a*": {"restricted_actions": what}}}}
        await run.create("s", {"a": thing()}, environment=said)
        await run.until_ended("s")
        properties = {"type": "Test::Thing", "properties": change}
        await put(run, "s", {"a": properties}, environment=said)
        assert await run.until_ended("s") == "UPDATE_FAILED"
        reason = (await run.stack("s"))["stack_status_reason"]
        assert f"{what} is restricted for resource." in reason
        assert (await run.resources("s"))["a"]["resource_status"] == "CREATE_COMPLETE"
        assert world.operations("a") == ["create"]
        await put(run, "s", {"a": properties})
        await ended_as(run, "s", "UPDATE_COMPLETE")

    async def test_what_is_protected_is_neither_deleted_nor_replaced(
        self, run: Program, world: World
    ) -> None:
        await run.create("s", {"a": thing(), "b": thing()})
        await run.until_ended("s")
        await run.at("PATCH", "s", "/resources/a", {"protect": True})
        assert (await run.at("GET", "s", "/resources/a"))["resource"]["protected"] is True
        status, error = await refused(run, "DELETE", "s", "")
        assert status == 400 and '"a" is protected' in error["message"]
        body = {"template": template({"b": thing()})}
        status, error = await refused(run, "PUT", "s", "", body)
        assert status == 400 and "unprotect" in error["message"]
        await put(run, "s", {"a": thing(place="there"), "b": thing()})
        assert await run.until_ended("s") == "UPDATE_FAILED"
        assert "is protected" in (await run.stack("s"))["stack_status_reason"]
        await put(run, "s", {"a": thing(2), "b": thing()})
        await ended_as(run, "s", "UPDATE_COMPLETE")
        await run.at("PATCH", "s", "/resources/a", {"protect": False})
        await run.at("DELETE", "s")
        await gone(run, "s")
        assert world.things == {}

    async def test_what_is_marked_unhealthy_is_replaced(self, run: Program, world: World) -> None:
        await run.create("s", {"a": thing()})
        await run.until_ended("s")
        old = (await run.resources("s"))["a"]["physical_resource_id"]
        said = {"mark_unhealthy": True, "resource_status_reason": "it smells"}
        await run.at("PATCH", "s", f"/resources/{old}", said)
        found = (await run.resources("s"))["a"]
        assert (found["resource_status"], found["resource_status_reason"]) == (
            "CHECK_FAILED", "it smells",
        )  # fmt: skip
        await run.at("PATCH", "s", "/resources/a", {"mark_unhealthy": False})
        await run.update("s")
        assert await run.until_ended("s") == "UPDATE_COMPLETE"
        assert world.operations("a") == ["create"]
        await run.at("PATCH", "s", "/resources/a", said)
        await run.update("s")
        await ended_again(run, "s")
        assert (await run.resources("s"))["a"]["physical_resource_id"] != old
