"""Deletion policies, external, restricted, protected and unhealthy resources."""

import pytest

from engine.types.contract import Failed
from tests.support.changes import (
    expect_error,
    put,
    thing,
    until_complete,
    until_deleted,
    until_status,
)
from tests.support.program import Json, Program, template
from tests.support.scripted_type import World


@pytest.fixture
def run(things_in_own_project: Program) -> Program:
    return things_in_own_project


class TestPolicies:
    async def test_a_retained_resource_survives_the_stack(self, run: Program, world: World) -> None:
        await run.create("s", {"a": thing(deletion_policy="Retain"), "b": thing()})
        await run.until_ended("s")
        kept = (await run.resources("s"))["a"]["physical_resource_id"]
        await run.stack_request("DELETE", "s")
        await until_deleted(run, "s")
        assert set(world.things) == {kept} and "delete" not in world.operations("a")

    async def test_a_resource_is_retained_when_it_is_removed_or_replaced(
        self, run: Program, world: World
    ) -> None:
        await run.create("s", {"a": thing(deletion_policy="Retain"), "b": thing()})
        await run.until_ended("s")
        await put(run, "s", {"a": thing(deletion_policy="Retain", place="there"), "b": thing()})
        assert await run.until_ended("s") == "UPDATE_COMPLETE"
        assert len(world.things) == 3
        await put(run, "s", {"b": thing()})
        await until_complete(run, "s")
        assert len(world.things) == 3 and world.operations("a") == ["create", "create"]

    async def test_deletion_policy_snapshot_takes_a_snapshot_before_the_deletion(
        self, run: Program, world: World
    ) -> None:
        await run.create("s", {"a": thing(7, deletion_policy="Snapshot")})
        await run.until_ended("s")
        stack = (await run.stack("s"))["id"]
        await run.stack_request("DELETE", "s")
        await until_deleted(run, "s")
        assert world.operations("a") == ["create", "snapshot", "delete"]
        _, response = await run.call("GET", f"/stacks/s/{stack}/resource_snapshots")
        assert [one["resource_name"] for one in response["resource_snapshots"]] == ["a"]

    @pytest.mark.parametrize("end", ["deleted", "abandoned"])
    async def test_physical_snapshots_of_the_stack_are_deleted_with_it(
        self, run: Program, world: World, end: str
    ) -> None:
        """A snapshot of `deletion_policy: Snapshot` stays, because it must outlive the resource."""
        await run.create("s", {"a": thing(7, deletion_policy="Snapshot"), "b": thing()})
        await run.until_ended("s")
        stack = (await run.stack("s"))["id"]
        await put(run, "s", {"b": thing(8)})  # `a` is deleted, with a snapshot
        await until_complete(run, "s")
        await run.stack_request("POST", "s", "/snapshots", {"name": "whole"})
        await until_status(run, "s", "SNAPSHOT_COMPLETE")
        if end == "deleted":
            await run.stack_request("DELETE", "s")
            await until_deleted(run, "s")
        else:
            await run.stack_request("DELETE", "s", "/abandon")
        _, response = await run.call("GET", f"/stacks/s/{stack}/resource_snapshots")
        assert [one["resource_name"] for one in response["resource_snapshots"]] == ["a"]
        left = "select name from resource_snapshot where stack_id = $1"
        assert [row["name"] for row in await run.database.pool.fetch(left, stack)] == ["a"]

    async def test_a_failed_snapshot_prevents_the_deletion(
        self, run: Program, world: World
    ) -> None:
        await run.create("s", {"a": thing(7, deletion_policy="Snapshot")})
        await run.until_ended("s")
        world.script("snapshot", "a", Failed("no room"))
        await run.stack_request("DELETE", "s")
        await until_status(run, "s", "DELETE_FAILED")
        assert len(world.things) == 1 and "delete" not in world.operations("a")

    async def test_an_external_resource_is_not_created_updated_or_deleted(
        self, run: Program, world: World
    ) -> None:
        world.things["theirs"] = 5
        await run.create("s", {"a": thing(1, external_id="theirs")})
        assert await run.until_ended("s") == "CREATE_COMPLETE"
        found = (await run.resources("s"))["a"]
        assert found["physical_resource_id"] == "theirs"
        assert found["resource_status"] == "CHECK_COMPLETE"
        listed = await run.stack_request("GET", "s", "/resources?action=CHECK&status=COMPLETE")
        assert [one["resource_name"] for one in listed["resources"]] == ["a"]
        path = "/resources/a/events?sort_dir=asc"
        recorded = (await run.stack_request("GET", "s", path))["events"]
        assert [(one["resource_status"], one["physical_resource_id"]) for one in recorded[1:]] == [
            ("ADOPT_COMPLETE", "theirs"),
            ("CHECK_IN_PROGRESS", "theirs"),
            ("CHECK_COMPLETE", "theirs"),
        ]
        assert recorded[0]["resource_status"] == "ADOPT_IN_PROGRESS"
        history = (await run.stack_request("GET", "s", "/history"))["events"]
        checks = [one for one in history if one["type"].startswith("headgate.resource.check.")]
        assert [one["type"].rpartition(".")[2] for one in checks] == ["started", "completed"]
        await put(run, "s", {"a": thing(2, external_id="theirs")})
        assert await run.until_ended("s") == "UPDATE_COMPLETE"
        assert (await run.resources("s"))["a"]["resource_status"] == "CHECK_COMPLETE"
        await put(run, "s", {"a": thing(2, external_id="others")})
        await until_status(run, "s", "UPDATE_FAILED")
        assert "external_id" in (await run.stack("s"))["stack_status_reason"]
        await run.stack_request("DELETE", "s")
        await until_deleted(run, "s")
        assert world.things == {"theirs": 5} and world.operations("a") == ["check"]

    async def test_an_external_resource_may_lack_required_properties_as_in_heat(
        self, run: Program
    ) -> None:
        """Those that are given are checked. Without an ID, it is a resource of the stack."""
        chain = {"type": "OS::Heat::ResourceChain", "external_id": {"get_param": "id"}}
        parameters = {"id": {"type": "string"}}
        sent = {"stack_name": "s", "template": template({"a": chain}, parameters=parameters)}
        for value, missing in (("theirs", False), ("", True)):
            status, response = await run.call(
                "POST", "/stacks/preview", {**sent, "parameters": {"id": value}}
            )
            assert status == (400 if missing else 200), response
            assert ("Property resources not assigned" in str(response)) == missing
        wrong = {**chain, "external_id": "theirs", "properties": {"concurent": True}}
        sent = {"stack_name": "s", "template": template({"a": wrong})}
        status, response = await run.call("POST", "/stacks/preview", sent)
        assert status == 400 and "Unknown Property concurent" in str(response)
        properties = {"type": {"get_attr": ["b", "value"]}}
        external: Json = {"type": "OS::Heat::Value", "external_id": "theirs"}
        read = {**external, "properties": properties}
        body = {"type": "OS::Heat::Value", "properties": {"value": "string"}}
        await run.create("s", {"a": read, "b": body})
        assert await run.until_ended("s") == "CREATE_COMPLETE"
        assert (await run.resources("s"))["a"]["physical_resource_id"] == "theirs"

    @pytest.mark.parametrize(
        ("what", "change"), [("update", {"size": 2}), ("replace", {"place": "x"})]
    )
    async def test_restricted_actions_fail_and_leave_the_state(
        self, run: Program, world: World, what: str, change: Json
    ) -> None:
        environment = {"resource_registry": {"resources": {"a*": {"restricted_actions": what}}}}
        await run.create("s", {"a": thing()}, environment=environment)
        await run.until_ended("s")
        properties = {"type": "Test::Thing", "properties": change}
        await put(run, "s", {"a": properties}, environment=environment)
        assert await run.until_ended("s") == "UPDATE_FAILED"
        reason = (await run.stack("s"))["stack_status_reason"]
        assert f"{what} is restricted for resource." in reason
        assert (await run.resources("s"))["a"]["resource_status"] == "CREATE_COMPLETE"
        assert world.operations("a") == ["create"]
        await put(run, "s", {"a": properties})
        await until_status(run, "s", "UPDATE_COMPLETE")

    async def test_a_protected_resource_is_not_deleted_or_replaced(
        self, run: Program, world: World
    ) -> None:
        await run.create("s", {"a": thing(), "b": thing()})
        await run.until_ended("s")
        await run.stack_request("PATCH", "s", "/resources/a", {"protect": True})
        assert (await run.stack_request("GET", "s", "/resources/a"))["resource"][
            "protected"
        ] is True
        status, error = await expect_error(run, "DELETE", "s", "")
        assert status == 400 and '"a" is protected' in error["message"]
        body = {"template": template({"b": thing()})}
        status, error = await expect_error(run, "PUT", "s", "", body)
        assert status == 400 and "unprotect" in error["message"]
        await put(run, "s", {"a": thing(place="there"), "b": thing()})
        assert await run.until_ended("s") == "UPDATE_FAILED"
        assert "is protected" in (await run.stack("s"))["stack_status_reason"]
        await put(run, "s", {"a": thing(2), "b": thing()})
        await until_status(run, "s", "UPDATE_COMPLETE")
        await run.stack_request("PATCH", "s", "/resources/a", {"protect": False})
        await run.stack_request("DELETE", "s")
        await until_deleted(run, "s")
        assert world.things == {}

    async def test_an_unhealthy_resource_is_replaced(self, run: Program, world: World) -> None:
        await run.create("s", {"a": thing()})
        await run.until_ended("s")
        old = (await run.resources("s"))["a"]["physical_resource_id"]
        body = {"mark_unhealthy": True, "resource_status_reason": "it smells"}
        await run.stack_request("PATCH", "s", f"/resources/{old}", body)
        found = (await run.resources("s"))["a"]
        assert (found["resource_status"], found["resource_status_reason"]) == (
            "CHECK_FAILED", "it smells",
        )  # fmt: skip
        await run.stack_request("PATCH", "s", "/resources/a", {"mark_unhealthy": False})
        await run.update("s")
        assert await run.until_ended("s") == "UPDATE_COMPLETE"
        assert world.operations("a") == ["create"]
        await run.stack_request("PATCH", "s", "/resources/a", body)
        await run.update("s")
        await until_complete(run, "s")
        assert (await run.resources("s"))["a"]["physical_resource_id"] != old
