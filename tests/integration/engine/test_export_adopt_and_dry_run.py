"""Export, abandon and adopt; versions; dry runs."""

import json

import pytest

from engine.errors import NotFound
from tests.support.changes import (
    expect_error,
    put,
    thing,
    until_complete,
    until_deleted,
    until_status,
)
from tests.support.program import Program, program, template
from tests.support.scripted_type import Thing, World


@pytest.fixture
def run(things_in_own_project: Program) -> Program:
    return things_in_own_project


class TestExports:
    async def test_snapshots_of_an_abandoned_stack_are_not_found(self, run: Program) -> None:
        await run.create("s", {"a": thing()})
        await run.until_ended("s")
        stack = await run.engine.reads.find_stack(run.project, "s")
        assert await run.engine.snapshots.read_all(stack) == []
        await run.stack_request("DELETE", "s", "/abandon")
        with pytest.raises(NotFound, match="could not be found"):
            await run.engine.snapshots.read_all(stack)

    async def test_abandon_and_adopt_do_not_change_physical_resources(
        self, run: Program, world: World
    ) -> None:
        await run.create("s", {"a": thing(1), "b": thing(1, depends_on="a")})
        await run.until_ended("s")
        physical = dict(world.things)
        assert (await run.stack_request("GET", "s", "/export"))["resources"].keys() == {"a", "b"}
        exported = await run.stack_request("DELETE", "s", "/abandon")
        assert (await run.call("GET", "/stacks/s"))[0] == 404 and world.things == physical
        body = {"stack_name": "again", "adopt_stack_data": json.dumps(exported)}
        status, response = await run.call("POST", "/stacks", body)
        assert status == 201, response
        assert await run.until_ended("again") == "ADOPT_COMPLETE"
        found = await run.resources("again")
        assert {one["physical_resource_id"] for one in found.values()} == set(physical)
        assert {one["resource_status"] for one in found.values()} == {"ADOPT_COMPLETE"}
        await put(run, "again", {"a": thing(2), "b": thing(1, depends_on="a")})
        await until_status(run, "again", "UPDATE_COMPLETE")
        assert world.operations("a") == ["create", "check", "update"]
        await run.stack_request("DELETE", "again")
        await until_deleted(run, "again")
        assert world.things == {}

    async def test_a_failed_adoption_is_rolled_back_without_deleting(
        self, run: Program, world: World
    ) -> None:
        world.things["real"] = 1
        data = {
            "template": template({"a": thing(), "b": thing()}),
            "resources": {"a": {"resource_id": "real"}, "b": {"resource_id": "not there"}},
        }
        body = {"stack_name": "s", "adopt_stack_data": data, "disable_rollback": False}
        assert (await run.call("POST", "/stacks", body))[0] == 201
        await until_status(run, "s", "ROLLBACK_COMPLETE")
        assert world.things == {"real": 1} and await run.resources("s") == {}

    async def test_parameters_and_credential_of_the_request_apply_to_an_adoption(
        self, run: Program, world: World
    ) -> None:
        world.things["real"] = 1
        data = {
            "template": template(
                {"a": thing({"get_param": "size"})}, parameters={"size": {"type": "number"}}
            ),
            "environment": {"parameters": {"size": 1}},
            "resources": {"a": {"resource_id": "real"}},
        }
        body = {"stack_name": "s", "adopt_stack_data": data, "environment_files": ["e"],
                "files": {"e": "parameters: {size: 2}"}, "hooks": {"add": ["a:post-create"]}}  # fmt: skip
        headers = {"X-Auth-Token": "for the cloud"}
        status, response = await run.call("POST", "/stacks", body, headers=headers)
        assert status == 201, response
        await run.until_ended("s")
        assert (await run.stack("s"))["parameters"]["size"] == "2"
        assert [call.credential for call in world.calls] == ["for the cloud"]

    async def test_a_resource_without_an_id_cannot_be_adopted(self, run: Program) -> None:
        data = {"template": template({"a": thing()}), "resources": {}}
        status, response = await run.call(
            "POST", "/stacks", {"stack_name": "s", "adopt_stack_data": data}
        )
        assert status == 400 and "Resource ID was not provided." in response["error"]["message"]
        status, response = await run.call(
            "POST", "/stacks", {"stack_name": "s", "adopt_stack_data": "5"}
        )
        assert status == 400


class TestVersions:
    async def test_versions_are_listed_and_old_ones_purged(
        self, database_url: str, world: World
    ) -> None:
        few = {"retention.versions": 2}
        async with program(database_url, few, types=[Thing(world)]) as run:
            await run.create("s", {"a": thing(1)})
            await run.until_ended("s")
            for size in (2, 3, 4):
                await put(run, "s", {"a": thing(size)})
                await until_complete(run, "s")
            response = await run.stack_request("GET", "s", "/versions")
            assert [one["version"] for one in response["versions"]] == [4, 3]
            assert response["versions"][0]["current"] and response["versions"][1]["reached"]
            assert [one["number"] for one in response["traversals"]] == [4, 3, 2, 1]
            one = await run.stack_request("GET", "s", "/versions/3")
            assert one["template"]["resources"]["a"]["properties"]["size"] == 3
            assert (await expect_error(run, "GET", "s", "/versions/1"))[0] == 404


class TestDryRuns:
    async def test_a_dry_run_lists_changes_and_breakpoints(self, run: Program) -> None:
        resources = {
            "a": thing(1), "b": thing(1), "same": thing(1), "old": thing(1),
            "user": {"type": "Test::Thing", "properties": {"size": {"get_resource": "b"}}},
        }  # fmt: skip
        await run.create("s", resources)
        await run.until_ended("s")
        wanted = resources | {"a": thing(2), "b": thing(1, place="there"), "new": thing(1)}
        del wanted["old"]
        rules = {"hooks": [{"at": "*", "on": ["pre-update", "post-create", "pre-delete"]}]}
        preview = await run.stack_request(
            "PUT", "s", "/preview", {"template": template(wanted), "environment": rules}
        )
        changes = {kind: [one["resource_name"] for one in found]
                   for kind, found in preview["resource_changes"].items()}  # fmt: skip
        assert changes == {
            "updated": ["a", "user"], "replaced": ["b"], "added": ["new"], "deleted": ["old"],
            "unchanged": ["same"],
        }  # fmt: skip
        (user,) = [one for one in preview["resource_changes"]["updated"]
                   if one["resource_name"] == "user"]  # fmt: skip
        assert user["unknown"] == ["size"] and "to" not in user["changes"]["size"]
        (a,) = [
            one for one in preview["resource_changes"]["updated"] if one["resource_name"] == "a"
        ]
        assert a["changes"] == {"size": {"from": 1, "to": 2}} and a["certain"]
        stops = [(one["resource_name"], one["point"]) for one in preview["stops"]]
        assert ("b", "pre-update") in stops and ("old", "pre-delete") in stops
        assert stops.index(("b", "post-create")) < stops.index(("user", "pre-update"))
        assert stops.index(("user", "pre-update")) < stops.index(("b", "pre-delete"))
        assert preview["stops"][0]["answer_by"] == ["anyone in the project"]
        assert (await run.stack("s"))["stack_status"] == "CREATE_COMPLETE"

    async def test_a_plan_with_another_digest_is_refused(self, run: Program) -> None:
        await run.create("s", {"a": thing(1)})
        await run.until_ended("s")
        body = {"template": template({"a": thing(2)})}
        digest = (await run.stack_request("PUT", "s", "/preview", body))["plan_digest"]
        await put(run, "s", {"a": thing(3)})
        await until_complete(run, "s")
        status, error = await expect_error(run, "PUT", "s", "", body | {"plan_digest": digest})
        assert (status, error["type"]) == (409, "PlanChanged")
        new_digest = (await run.stack_request("PUT", "s", "/preview", body))["plan_digest"]
        await run.stack_request("PUT", "s", "", body | {"plan_digest": new_digest})
        await until_complete(run, "s")

    async def test_a_dry_run_of_a_new_stack_stores_nothing(self, run: Program) -> None:
        body = {"stack_name": "new", "template": template({"a": thing(1)})}
        status, response = await run.call("POST", "/stacks/preview", body)
        assert status == 200, response
        assert [one["resource_name"] for one in response["stack"]["resources"]] == ["a"]
        assert "stack_status" not in response["stack"]
        assert (await run.call("GET", "/stacks/new"))[0] == 404

    async def test_a_dry_run_shows_refused_operations(self, run: Program) -> None:
        await run.create("s", {"a": thing(), "b": thing()})
        await run.until_ended("s")
        await run.stack_request("PATCH", "s", "/resources/a", {"protect": True})
        environment = {"resource_registry": {"resources": {"b": {"restricted_actions": "update"}}}}
        wanted = {"a": thing(place="there"), "b": thing(2)}
        body = {"template": template(wanted), "environment": environment}
        response = (await run.stack_request("PUT", "s", "/preview", body))["resource_changes"]
        (a,), (b,) = response["replaced"], response["updated"]
        assert '"a" is protected' in a["denied"]
        assert b["denied"] == "update is restricted for resource."

    async def test_a_dry_run_refuses_what_a_create_refuses(self, run: Program) -> None:
        body = {"stack_name": "s", "template": template({"a": thing(1)})}
        await run.create("s", {"a": thing(1)})
        status, response = await run.call("POST", "/stacks/preview", body)
        assert (status, response["error"]["type"]) == (409, "StackExists")
        status, response = await run.call("POST", "/stacks/preview", body | {"stack_name": "1"})
        assert status == 400 and "Invalid stack name 1" in response["error"]["message"]
        body = body | {"stack_name": "new", "plan_digest": "f" * 64}
        status, response = await run.call("POST", "/stacks/preview", body)
        assert (status, response["error"]["type"]) == (409, "PlanChanged")
