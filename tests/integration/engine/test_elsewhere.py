"""Stacks exported, abandoned and adopted; versions; previews."""

import json

from tests.support.changes import (
    ended_again,
    ended_as,
    gone,
    put,
    refused,
    thing,
)
from tests.support.program import Program, program, template
from tests.support.things import Thing, World


class TestExports:
    async def test_abandon_and_adopt_touch_nothing(self, run: Program, world: World) -> None:
        await run.create("s", {"a": thing(1), "b": thing(1, depends_on="a")})
        await run.until_ended("s")
        things = dict(world.things)
        assert (await run.at("GET", "s", "/export"))["resources"].keys() == {"a", "b"}
        exported = await run.at("DELETE", "s", "/abandon")
        assert (await run.call("GET", "/stacks/s"))[0] == 404 and world.things == things
        body = {"stack_name": "again", "adopt_stack_data": json.dumps(exported)}
        status, said = await run.call("POST", "/stacks", body)
        assert status == 201, said
        assert await run.until_ended("again") == "ADOPT_COMPLETE"
        found = await run.resources("again")
        assert {one["physical_resource_id"] for one in found.values()} == set(things)
        assert {one["resource_status"] for one in found.values()} == {"ADOPT_COMPLETE"}
        await put(run, "again", {"a": thing(2), "b": thing(1, depends_on="a")})
        await ended_as(run, "again", "UPDATE_COMPLETE")
        assert world.operations("a") == ["create", "check", "update"]
        await run.at("DELETE", "again")
        await gone(run, "again")
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
        await ended_as(run, "s", "ROLLBACK_COMPLETE")
        assert world.things == {"real": 1} and await run.resources("s") == {}

    async def test_what_the_request_itself_says_holds_in_an_adoption(
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
        status, said = await run.call("POST", "/stacks", body, headers=headers)
        assert status == 201, said
        await run.until_ended("s")
        assert (await run.stack("s"))["parameters"]["size"] == "2"
        assert [call.credential for call in world.calls] == ["for the cloud"]

    async def test_what_has_no_id_cannot_be_adopted(self, run: Program) -> None:
        data = {"template": template({"a": thing()}), "resources": {}}
        status, said = await run.call(
            "POST", "/stacks", {"stack_name": "s", "adopt_stack_data": data}
        )
        assert status == 400 and "Resource ID was not provided." in said["error"]["message"]
        status, said = await run.call(
            "POST", "/stacks", {"stack_name": "s", "adopt_stack_data": "5"}
        )
        assert status == 400


class TestVersions:
    async def test_versions_are_listed_and_old_ones_forgotten(
        self, database_url: str, world: World
    ) -> None:
        few = {"retention.versions": 2}
        async with program(database_url, few, types=[Thing(world)]) as run:
            await run.create("s", {"a": thing(1)})
            await run.until_ended("s")
            for size in (2, 3, 4):
                await put(run, "s", {"a": thing(size)})
                await ended_again(run, "s")
            said = await run.at("GET", "s", "/versions")
            assert [one["version"] for one in said["versions"]] == [4, 3]
            assert said["versions"][0]["current"] and said["versions"][1]["reached"]
            assert [one["number"] for one in said["traversals"]] == [4, 3, 2, 1]
            one = await run.at("GET", "s", "/versions/3")
            assert one["template"]["resources"]["a"]["properties"]["size"] == 3
            assert (await refused(run, "GET", "s", "/versions/1"))[0] == 404


class TestPreviews:
    async def test_what_would_happen_and_where_it_would_stop(self, run: Program) -> None:
        resources = {
            "a": thing(1), "b": thing(1), "same": thing(1), "old": thing(1),
            "user": {"type": "Test::Thing", "properties": {"size": {"get_resource": "b"}}},
        }  # fmt: skip
        await run.create("s", resources)
        await run.until_ended("s")
        wanted = resources | {"a": thing(2), "b": thing(1, place="there"), "new": thing(1)}
        del wanted["old"]
        rules = {"hooks": [{"at": "*", "on": ["pre-update", "post-create", "pre-delete"]}]}
        said = await run.at(
            "PUT", "s", "/preview", {"template": template(wanted), "environment": rules}
        )
        changes = {kind: [one["resource_name"] for one in found]
                   for kind, found in said["resource_changes"].items()}  # fmt: skip
        assert changes == {
            "updated": ["a", "user"], "replaced": ["b"], "added": ["new"], "deleted": ["old"],
            "unchanged": ["same"],
        }  # fmt: skip
        (user,) = [one for one in said["resource_changes"]["updated"]
                   if one["resource_name"] == "user"]  # fmt: skip
        assert user["unknown"] == ["size"] and "to" not in user["changes"]["size"]
        (a,) = [one for one in said["resource_changes"]["updated"] if one["resource_name"] == "a"]
        assert a["changes"] == {"size": {"from": 1, "to": 2}} and a["certain"]
        stops = [(one["resource_name"], one["point"]) for one in said["stops"]]
        assert ("b", "pre-update") in stops and ("old", "pre-delete") in stops
        assert stops.index(("b", "post-create")) < stops.index(("user", "pre-update"))
        assert stops.index(("user", "pre-update")) < stops.index(("b", "pre-delete"))
        assert said["stops"][0]["answer_by"] == ["anyone in the project"]
        assert (await run.stack("s"))["stack_status"] == "CREATE_COMPLETE"

    async def test_a_plan_that_is_not_the_one_looked_at_is_refused(self, run: Program) -> None:
        await run.create("s", {"a": thing(1)})
        await run.until_ended("s")
        body = {"template": template({"a": thing(2)})}
        looked = (await run.at("PUT", "s", "/preview", body))["plan_digest"]
        await put(run, "s", {"a": thing(3)})
        await ended_again(run, "s")
        status, error = await refused(run, "PUT", "s", "", body | {"plan_digest": looked})
        assert (status, error["type"]) == (409, "PlanChanged")
        fresh = (await run.at("PUT", "s", "/preview", body))["plan_digest"]
        await run.at("PUT", "s", "", body | {"plan_digest": fresh})
        await ended_again(run, "s")

    async def test_a_stack_that_is_not_there_is_previewed(self, run: Program) -> None:
        body = {"stack_name": "new", "template": template({"a": thing(1)})}
        status, said = await run.call("POST", "/stacks/preview", body)
        assert status == 200, said
        assert [one["resource_name"] for one in said["stack"]["resources"]] == ["a"]
        assert "stack_status" not in said["stack"]
        assert (await run.call("GET", "/stacks/new"))[0] == 404

    async def test_what_will_be_refused_is_said_before(self, run: Program) -> None:
        await run.create("s", {"a": thing(), "b": thing()})
        await run.until_ended("s")
        await run.at("PATCH", "s", "/resources/a", {"protect": True})
        said = {"resource_registry": {"resources": {"b": {"restricted_actions": "update"}}}}
        wanted = {"a": thing(place="there"), "b": thing(2)}
        body = {"template": template(wanted), "environment": said}
        found = (await run.at("PUT", "s", "/preview", body))["resource_changes"]
        (a,), (b,) = found["replaced"], found["updated"]
        assert "a is protected" in a["denied"]
        assert b["denied"] == "update is restricted for resource."

    async def test_a_preview_refuses_what_the_create_would(self, run: Program) -> None:
        body = {"stack_name": "s", "template": template({"a": thing(1)})}
        await run.create("s", {"a": thing(1)})
        status, said = await run.call("POST", "/stacks/preview", body)
        assert (status, said["error"]["type"]) == (409, "StackExists")
        status, said = await run.call("POST", "/stacks/preview", body | {"stack_name": "1"})
        assert status == 400 and "Invalid stack name 1" in said["error"]["message"]
        body = body | {"stack_name": "new", "plan_digest": "f" * 64}
        status, said = await run.call("POST", "/stacks/preview", body)
        assert (status, said["error"]["type"]) == (409, "PlanChanged")
