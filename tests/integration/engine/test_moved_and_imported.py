"""The sections `moved` and `import`: resources with new names, and physical resources taken over."""

import pytest

from engine.types.contract import Failed
from tests.integration.engine.test_lifecycle_rules import create, headgate, preview, put
from tests.support.changes import (
    expect_error,
    thing,
    until_complete,
    until_deleted,
    until_status,
)
from tests.support.program import Json, Program
from tests.support.scripted_type import World

MOVED = {"moved": [{"from": "a", "to": "b"}]}


@pytest.fixture
def run(things_in_own_project: Program) -> Program:
    return things_in_own_project


def importing(physical_id: str = "real") -> Json:
    return {"import": [{"resource": "a", "id": physical_id}]}


class TestMoved:
    async def test_a_resource_keeps_its_physical_resource(self, run: Program, world: World) -> None:
        await create(run, {"a": thing(1), "c": thing(depends_on="a")})
        old = (await run.resources("s"))["a"]["physical_resource_id"]
        after = {"b": thing(1), "c": thing(depends_on="b")}
        shown = (await preview(run, after, sections=MOVED))["resource_changes"]
        assert [(one["resource_name"], one["moved_from"]) for one in shown["unchanged"]] == [
            ("b", "a"), ("c", None),
        ]  # fmt: skip
        assert not shown["deleted"] and not shown["added"]
        assert "a" in await run.resources("s")
        await put(run, after, sections=MOVED)
        await until_complete(run, "s")
        found = await run.resources("s")
        assert found.keys() == {"b", "c"} and found["b"]["physical_resource_id"] == old
        assert len(world.done) == 2
        await put(run, {"b": thing(2), "c": thing(depends_on="b")}, sections=MOVED)
        await until_complete(run, "s")
        assert world.operations("b") == ["update"]

    async def test_a_partial_update_moves_what_it_does_not_include(
        self, run: Program, world: World
    ) -> None:
        await create(run, {"a": thing(1), "c": thing(1)})
        await put(run, {"b": thing(2), "c": thing(2)}, sections=MOVED, only=["c"])
        await until_complete(run, "s")
        assert (await run.resources("s")).keys() == {"b", "c"}
        assert world.operations("b") == [] and world.operations("c") == ["create", "update"]

    async def test_an_impossible_move_is_refused(self, run: Program, world: World) -> None:
        await create(run, {"a": thing(1), "b": thing(1)})
        body = {"template": headgate({"b": thing(1)}, **MOVED)}
        for rest in ("", "/preview"):
            status, error = await expect_error(run, "PUT", "s", rest, body)
            assert status == 400
            assert 'moved[0].to: the resource "b" already exists' in error["message"]

    async def test_the_plain_name_of_a_resource_with_a_key_is_refused(
        self, run: Program, world: World
    ) -> None:
        before = {"web": thing("${each.key}") | {"for_each": ["a", "b"]}}
        await create(run, before)
        after = {"web": thing("${each.key}") | {"for_each": ["a", "c"]}}
        wrong = {"moved": [{"from": "web-b", "to": 'web["c"]'}]}
        for rest in ("", "/preview"):
            body = {"template": headgate(after, **wrong)}
            status, error = await expect_error(run, "PUT", "s", rest, body)
            assert status == 400
            assert '"web-b" is the name of the resource web["b"]' in error["message"]
        assert len(world.done) == 2
        right = {"moved": [{"from": 'web["b"]', "to": 'web["c"]'}]}
        # The entry for "web-b" can be there for stacks that had a resource of this name.
        await put(
            run, after, sections={"moved": [*right["moved"], {"from": "web-a", "to": 'web["a"]'}]}
        )
        await until_complete(run, "s")
        assert (await run.resources("s")).keys() == {'web["a"]', 'web["c"]'}
        assert "delete" not in [
            one for name in ("a", "b", "c") for one in world.operations(f'web["{name}"]')
        ]

    async def test_a_rollback_restores_the_name(self, run: Program, world: World) -> None:
        await create(run, {"a": thing(1), "c": thing(1)})
        old = (await run.resources("s"))["a"]["physical_resource_id"]
        world.script("update", "c", Failed("no"))
        await put(run, {"b": thing(1), "c": thing(2)}, sections=MOVED, disable_rollback=False)
        await until_status(run, "s", "ROLLBACK_COMPLETE")
        found = await run.resources("s")
        assert found.keys() == {"a", "c"} and found["a"]["physical_resource_id"] == old
        assert "delete" not in world.operations("a") + world.operations("b")


class TestImport:
    async def test_a_new_stack_takes_over_a_physical_resource(
        self, run: Program, world: World
    ) -> None:
        world.things["real"] = 1
        body = {"stack_name": "s", "template": headgate({"a": thing(1)}, **importing())}
        status, shown = await run.call("POST", "/stacks/preview", body)
        assert status == 200
        assert shown["stack"]["resource_changes"]["added"][0]["imported_id"] == "real"
        await create(run, {"a": thing(1)}, sections=importing())
        found = (await run.resources("s"))["a"]
        assert found["physical_resource_id"] == "real"
        assert found["resource_status"] == "ADOPT_COMPLETE"
        await put(run, {"a": thing(2)}, sections=importing())
        await until_complete(run, "s")
        assert world.things == {"real": 2}
        await run.stack_request("DELETE", "s")
        await until_deleted(run, "s")
        assert world.things == {}

    async def test_an_update_imports_only_what_is_new(self, run: Program, world: World) -> None:
        world.things["real"] = 1
        await create(run, {"b": thing(1)})
        await put(run, {"a": thing(1), "b": thing(1)}, sections=importing())
        await until_complete(run, "s")
        assert world.operations("a") == ["check"]
        await put(run, {"a": thing(1, place="there"), "b": thing(1)}, sections=importing())
        await until_complete(run, "s")
        assert world.operations("a") == ["check", "create", "delete"]
        await put(run, {"a": thing(2, place="there"), "b": thing(1)}, sections=importing())
        await until_complete(run, "s")
        assert world.operations("a") == ["check", "create", "delete", "update"]

    async def test_a_physical_resource_that_does_not_exist_fails(
        self, run: Program, world: World
    ) -> None:
        body = {"stack_name": "s", "template": headgate({"a": thing(1)}, **importing("none"))}
        assert (await run.call("POST", "/stacks", body))[0] == 201
        assert await run.until_ended("s") == "CREATE_FAILED"
        assert world.operations("a") == ["check"]

    async def test_a_rollback_deletes_no_imported_resource(
        self, run: Program, world: World
    ) -> None:
        world.things["real"] = 1
        world.script("create", "b", Failed("no"))
        resources = {"a": thing(1), "b": thing(1, depends_on="a")}
        body = {"stack_name": "s", "template": headgate(resources, **importing()),
                "disable_rollback": False}  # fmt: skip
        assert (await run.call("POST", "/stacks", body))[0] == 201
        await until_status(run, "s", "ROLLBACK_COMPLETE")
        assert world.things == {"real": 1} and await run.resources("s") == {}

    async def test_a_nested_stack_is_not_imported(self, run: Program) -> None:
        inside = "{heat_template_version: 2021-04-16, resources: {x: {type: Test::Thing}}}"
        body = {"stack_name": "s", "files": {"x.yaml": inside},
                "template": headgate({"a": {"type": "x.yaml"}}, **importing())}  # fmt: skip
        for path in ("/stacks", "/stacks/preview"):
            status, response = await run.call("POST", path, body)
            assert status == 400 and "cannot be imported" in response["error"]["message"]
