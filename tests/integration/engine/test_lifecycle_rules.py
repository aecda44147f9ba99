"""The lifecycle of resources: prevent_destroy, ignore_changes and replace_when."""

import pytest

from engine.plan.lifecycle import trigger_digest
from tests.support.changes import (
    expect_error,
    thing,
    until_complete,
    until_deleted,
    until_status,
)
from tests.support.program import Json, Program
from tests.support.scripted_type import World


@pytest.fixture
def run(things_in_own_project: Program) -> Program:
    return things_in_own_project


def headgate(resources: Json, **more: Json) -> Json:
    return {"heat_template_version": "2026-12-01", "resources": resources, **more}


async def create(run: Program, resources: Json, **more: Json) -> None:
    body = {"stack_name": "s", "template": headgate(resources, **more.pop("sections", {})), **more}
    status, response = await run.call("POST", "/stacks", body)
    assert status == 201, response
    assert await run.until_ended("s") == "CREATE_COMPLETE"


async def put(run: Program, resources: Json, **more: Json) -> None:
    sections = more.pop("sections", {})
    await run.update("s", "PUT", template=headgate(resources, **sections), **more)


async def preview(run: Program, resources: Json, **more: Json) -> Json:
    body = {"template": headgate(resources, **more.pop("sections", {})), **more}
    return await run.stack_request("PUT", "s", "/preview", body)


KEPT = {"prevent_destroy": True}


class TestPreventDestroy:
    async def test_a_resource_is_neither_deleted_nor_replaced(
        self, run: Program, world: World
    ) -> None:
        await create(run, {"a": thing(lifecycle=KEPT), "b": thing()})
        status, error = await expect_error(run, "DELETE", "s", "")
        assert status == 400 and '"a" has prevent_destroy: delete refused' in error["message"]
        assert "prevent_destroy: false" in error["message"]
        body = {"template": headgate({"b": thing()})}
        for rest in ("", "/preview"):
            status, error = await expect_error(run, "PUT", "s", rest, body)
            assert status == 400 and "resources.a: " in error["message"]
        moved = {"a": thing(place="there", lifecycle=KEPT), "b": thing()}
        status, error = await expect_error(run, "PUT", "s", "", {"template": headgate(moved)})
        (found,) = error["findings"]
        assert (status, found["place"]) == (400, "resources.a.lifecycle.prevent_destroy")
        assert found["reason"] == '"a" has prevent_destroy: replace refused (place changed)'
        remedy = "Undo the change that replaces it, or set prevent_destroy: false."
        assert found["remedy"] == remedy and error["message"].count(remedy) == 1
        shown = (await preview(run, moved))["resource_changes"]["replaced"]
        assert [one["resource_name"] for one in shown] == ["a"] and shown[0]["denied"]
        assert world.operations("a") == ["create"]

    async def test_an_update_lifts_it(self, run: Program, world: World) -> None:
        await create(run, {"a": thing(lifecycle=KEPT)})
        await put(run, {"a": thing(place="there", lifecycle={"prevent_destroy": False})})
        await until_status(run, "s", "UPDATE_COMPLETE")
        assert world.operations("a") == ["create", "create", "delete"]
        await run.stack_request("DELETE", "s")
        await until_deleted(run, "s")
        assert world.things == {}

    async def test_a_replacement_that_depends_on_another_resource_fails_when_it_executes(
        self, run: Program, world: World
    ) -> None:
        reads = {"get_attr": ["b", "size"]}
        await create(run, {"a": thing(place=reads, lifecycle=KEPT), "b": thing(1)})
        await put(run, {"a": thing(place=reads, lifecycle=KEPT), "b": thing(2)})
        await until_status(run, "s", "UPDATE_FAILED")
        assert "replace refused" in (await run.stack("s"))["stack_status_reason"]
        assert (await run.resources("s"))["a"]["resource_status"] == "CREATE_COMPLETE"
        assert world.operations("a") == ["create"]

    async def test_it_comes_from_a_parameter_and_may_be_added_later(
        self, run: Program, world: World
    ) -> None:
        sections = {"parameters": {"keep": {"type": "boolean", "default": False}}}
        one = {"a": thing(lifecycle={"prevent_destroy": {"get_param": "keep"}})}
        await create(run, one, sections=sections)
        await put(run, one, sections=sections, parameters={"keep": True})
        await until_status(run, "s", "UPDATE_COMPLETE")
        assert world.operations("a") == ["create"]
        assert (await expect_error(run, "DELETE", "s", ""))[0] == 400

    async def test_a_retained_or_abandoned_resource_may_leave_the_stack(
        self, run: Program, world: World
    ) -> None:
        kept = thing(lifecycle=KEPT, deletion_policy="Retain")
        await create(run, {"a": kept, "b": thing(lifecycle=KEPT)})
        await put(run, {"b": thing(lifecycle=KEPT)})
        await until_status(run, "s", "UPDATE_COMPLETE")
        await run.stack_request("DELETE", "s", "/abandon")
        assert len(world.things) == 2


class TestIgnoreChanges:
    async def test_differences_of_ignored_properties_cause_no_operation(
        self, run: Program, world: World
    ) -> None:
        rules = {"ignore_changes": ["place"]}
        await create(run, {"a": thing(1, place="here", lifecycle=rules)})
        changed = {"a": thing(1, place="there", lifecycle=rules)}
        shown = (await preview(run, changed))["resource_changes"]
        assert [one["resource_name"] for one in shown["unchanged"]] == ["a"]
        await put(run, changed)
        await until_complete(run, "s")
        assert world.operations("a") == ["create"]
        await put(run, {"a": thing(2, place="elsewhere", lifecycle=rules)})
        await until_complete(run, "s")
        assert world.operations("a") == ["create", "update"]
        assert world.calls[-1].properties["place"] == "here"
        assert world.calls[-1].changed == {"size"}
        await put(run, {"a": thing(2, place="elsewhere")})
        await until_complete(run, "s")
        assert world.operations("a") == ["create", "update", "create", "delete"]

    async def test_all_ignores_every_property_but_not_the_type_or_a_repair(
        self, run: Program, world: World
    ) -> None:
        rules = {"ignore_changes": "all"}
        await create(run, {"a": thing(1, lifecycle=rules)})
        await put(run, {"a": thing(2, place="there", lifecycle=rules)})
        await until_complete(run, "s")
        assert world.operations("a") == ["create"]
        body = {"mark_unhealthy": True, "resource_status_reason": "broken"}
        await run.stack_request("PATCH", "s", "/resources/a", body)
        await put(run, {"a": thing(3, place="there", lifecycle=rules)})
        await until_complete(run, "s")
        assert world.operations("a") == ["create", "create", "delete"]
        created = next(one for one in reversed(world.calls) if one.previous is None)
        assert (created.properties["size"], created.properties["place"]) == (3, "there")

    async def test_an_ignored_secret_stays_masked(self, run: Program, world: World) -> None:
        rules = {"ignore_changes": ["place"]}
        sections = {"parameters": {"key": {"type": "string", "hidden": True}}}
        secret = {"a": thing(1, place={"get_param": "key"}, lifecycle=rules)}
        await create(run, secret, sections=sections, parameters={"key": "very secret"})
        await put(run, {"a": thing(2, place="public", lifecycle=rules)})
        await until_complete(run, "s")
        assert world.calls[-1].properties["place"] == "very secret"
        row = await run.database.pool.fetchrow(
            "select r.masked_properties::text as masked, r.properties::text as stored"
            " from resource r join stack s on s.id = r.stack_id where s.project = $1", run.project,
        )  # fmt: skip
        assert row is not None
        assert "very secret" not in row["masked"] and "******" in row["masked"]
        assert "very secret" not in row["stored"]


class TestReplaceWhen:
    async def test_a_changed_expression_replaces_with_the_reason_in_the_dry_run(
        self, run: Program, world: World
    ) -> None:
        sections = {"parameters": {"revision": {"type": "string", "default": "1"}}}
        one = {"a": thing(lifecycle={"replace_when": [{"get_param": "revision"}]})}
        await create(run, one, sections=sections)
        again = (await preview(run, one, sections=sections))["resource_changes"]
        assert len(again["unchanged"]) == 1
        shown = (await preview(run, one, sections=sections, parameters={"revision": "2"}))[
            "resource_changes"
        ]["replaced"]
        assert shown[0]["replace_reason"] == 'replace_when: {"get_param": "revision"} changed'
        assert shown[0]["certain"]
        await put(run, one, sections=sections, parameters={"revision": "2"})
        await until_complete(run, "s")
        assert world.operations("a") == ["create", "create", "delete"]
        await put(run, one, sections=sections, parameters={"revision": "2"})
        await until_complete(run, "s")
        assert world.operations("a") == ["create", "create", "delete"]

    async def test_a_property_replaces_instead_of_an_update(
        self, run: Program, world: World
    ) -> None:
        rules = {"replace_when": ["size"]}
        await create(run, {"a": thing(1, lifecycle=rules)})
        await put(run, {"a": thing(2, lifecycle=rules)})
        await until_complete(run, "s")
        assert world.operations("a") == ["create", "create", "delete"]

    async def test_the_replacement_of_another_resource_replaces_this_one(
        self, run: Program, world: World
    ) -> None:
        def both(size: int, place: str) -> Json:
            return {"a": thing(lifecycle={"replace_when": ["b"]}), "b": thing(size, place=place)}

        await create(run, both(1, "here"))
        await put(run, both(2, "here"))
        await until_complete(run, "s")
        assert world.operations("a") == ["create"]
        shown = (await preview(run, both(2, "there")))["resource_changes"]
        assert {one["resource_name"]: one["certain"] for one in shown["replaced"]} == {"b": True}
        assert [one["certain"] for one in shown["unchanged"]] == [False]
        await put(run, both(2, "there"))
        await until_complete(run, "s")
        assert world.operations("a") == ["create", "create", "delete"]

    async def test_a_cause_that_is_added_later_replaces_nothing(
        self, run: Program, world: World
    ) -> None:
        await create(run, {"a": thing()})
        for value in (["1"], ["2"]):  # another expression is not another value
            await put(run, {"a": thing(lifecycle={"replace_when": [value]})})
            await until_complete(run, "s")
        assert world.operations("a") == ["create"]

    async def test_digests_are_encrypted(self, run: Program, world: World) -> None:
        await create(run, {"a": thing(lifecycle={"replace_when": [["x"]]})})
        row = await run.database.pool.fetchval(
            "select r.lifecycle::text from resource r join stack s on s.id = r.stack_id"
            " where s.project = $1", run.project,
        )  # fmt: skip
        digest = trigger_digest(["x"])
        assert "replace_when" in row and digest not in row
