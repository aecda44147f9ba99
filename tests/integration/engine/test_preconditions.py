"""Preconditions and postconditions of resources and outputs."""

import pytest

from tests.integration.engine.test_lifecycle_rules import create, headgate, preview, put
from tests.support.changes import expect_error, thing, until_complete, until_status
from tests.support.program import Json, Program
from tests.support.scripted_type import World


@pytest.fixture
def run(things_in_own_project: Program) -> Program:
    return things_in_own_project


def one(condition: Json, message: Json = "choose another size") -> list[Json]:
    return [{"assert": condition, "message": message}]


SIZE = {"get_attr": ["b", "size"]}
FITS = one({"equals": [SIZE, 1]})
OWN = one({"equals": [{"get_attr": ["a", "size"]}, 1]})


async def start(run: Program, resources: Json, **more: Json) -> None:
    body = {"stack_name": "s", "template": headgate(resources, **more)}
    status, response = await run.call("POST", "/stacks", body)
    assert status == 201, response


class TestPreconditions:
    async def test_an_operation_does_not_begin_if_one_fails(
        self, run: Program, world: World
    ) -> None:
        await start(run, {"a": thing(preconditions=FITS), "b": thing(2)})
        assert await run.until_ended("s") == "CREATE_FAILED"
        found = (await run.resources("s"))["a"]
        assert found["resource_status"] == "CREATE_FAILED"
        assert found["resource_status_reason"] == "precondition failed: choose another size"
        assert "precondition failed" in (await run.stack("s"))["stack_status_reason"]
        assert world.operations("a") == []
        await put(run, {"a": thing(preconditions=FITS), "b": thing(1)})
        await until_status(run, "s", "UPDATE_COMPLETE")
        assert world.operations("a") == ["create"]  # not a replacement: nothing was created

    async def test_an_update_does_not_begin_if_one_fails(self, run: Program, world: World) -> None:
        await create(run, {"a": thing(1, preconditions=FITS), "b": thing(1)})
        await put(run, {"a": thing(5, preconditions=FITS), "b": thing(2)})
        await until_status(run, "s", "UPDATE_FAILED")
        assert world.operations("a") == ["create"]
        await put(run, {"a": thing(5, preconditions=FITS), "b": thing(1)})
        await until_complete(run, "s")
        assert world.operations("a") == ["create", "update"]

    async def test_an_unchanged_resource_is_not_checked(self, run: Program, world: World) -> None:
        await create(run, {"a": thing(1, preconditions=FITS), "b": thing(1)})
        await put(run, {"a": thing(1, preconditions=FITS), "b": thing(2)})
        await until_complete(run, "s")
        assert world.operations("a") == ["create"]

    async def test_one_that_is_known_is_refused_by_requests_and_previews(
        self, run: Program, world: World
    ) -> None:
        sections = {"parameters": {"size": {"type": "number", "default": 1}}}
        small = {"a": thing(preconditions=one({"equals": [{"get_param": "size"}, 1]}))}
        await create(run, small, sections=sections)
        body = {"template": headgate(small, **sections), "parameters": {"size": 2}}
        for rest in ("", "/preview"):
            status, error = await expect_error(run, "PUT", "s", rest, body)
            assert status == 400
            assert "resources.a.preconditions[0]: precondition failed" in error["message"]

    async def test_a_preview_shows_one_that_fails_with_stored_values(
        self, run: Program, world: World
    ) -> None:
        await create(run, {"a": thing(1), "b": thing(2)})
        shown = await preview(run, {"a": thing(5, preconditions=FITS), "b": thing(2)})
        (updated,) = shown["resource_changes"]["updated"]
        assert updated["denied"] == "precondition failed: choose another size"
        later = await preview(run, {"a": thing(5, preconditions=FITS), "b": thing(1)})
        denied = {
            one["resource_name"]: one["denied"] for one in later["resource_changes"]["updated"]
        }
        assert denied == {"a": None, "b": None}

    async def test_a_hook_waits_before_it_is_checked_again(
        self, run: Program, world: World
    ) -> None:
        hooks = {"hooks": [{"at": "a", "on": "pre-create"}]}
        await start(run, {"a": thing(preconditions=FITS), "b": thing(1)}, **hooks)
        (hook,) = await run.waiting_hooks("s")
        assert (await run.signal(hook, user="ann"))[0] == 200
        assert await run.until_ended("s") == "CREATE_COMPLETE"

    async def test_a_resource_that_was_never_created_is_created_at_last(
        self, run: Program, world: World
    ) -> None:
        """However often its create was refused before it began."""
        await start(run, {"a": thing(preconditions=FITS), "b": thing(2)})
        assert await run.until_ended("s") == "CREATE_FAILED"
        for _ in range(2):
            await put(run, {"a": thing(preconditions=FITS), "b": thing(2)})
            assert await run.until_ended("s") == "UPDATE_FAILED"
            found = (await run.resources("s"))["a"]
            assert (found["resource_status"], found["physical_resource_id"]) == (
                "CREATE_FAILED", "",
            )  # fmt: skip
        good = {"a": thing(3, preconditions=FITS), "b": thing(1)}
        shown = await preview(run, good)
        assert [one["path"] for one in shown["resource_changes"]["added"]] == ["a"]
        await put(run, good)
        await until_complete(run, "s")
        assert world.operations("a") == ["create"]

    async def test_such_a_resource_of_an_earlier_release_is_created(
        self, run: Program, world: World
    ) -> None:
        """They recorded a failed update."""
        await start(run, {"a": thing(preconditions=FITS), "b": thing(2)})
        assert await run.until_ended("s") == "CREATE_FAILED"
        await run.database.pool.execute("update resource set action = 'UPDATE' where name = 'a'")
        await put(run, {"a": thing(3, preconditions=FITS), "b": thing(1)})
        await until_complete(run, "s")
        assert world.operations("a") == ["create"]


class TestPostconditions:
    async def test_a_resource_whose_postcondition_fails_is_failed_and_replaced_later(
        self, run: Program, world: World
    ) -> None:
        await start(run, {"a": thing(2, postconditions=OWN)})
        assert await run.until_ended("s") == "CREATE_FAILED"
        found = (await run.resources("s"))["a"]
        assert found["resource_status_reason"] == "postcondition failed: choose another size"
        assert found["physical_resource_id"] in world.things
        await put(run, {"a": thing(1, postconditions=OWN)})
        await until_status(run, "s", "UPDATE_COMPLETE")
        assert world.operations("a") == ["create", "create", "delete"]
        assert len(world.things) == 1

    async def test_a_replacement_whose_postcondition_fails_leaves_the_old_resource(
        self, run: Program, world: World
    ) -> None:
        await create(run, {"a": thing(1, postconditions=OWN)})
        old = (await run.resources("s"))["a"]["physical_resource_id"]
        await put(run, {"a": thing(2, place="there", postconditions=OWN)})
        await until_status(run, "s", "UPDATE_FAILED")
        assert (await run.resources("s"))["a"]["physical_resource_id"] == old
        await put(run, {"a": thing(1, postconditions=OWN)})
        await until_status(run, "s", "UPDATE_COMPLETE")
        assert [*world.things] == [old]

    async def test_dependents_wait_for_it(self, run: Program, world: World) -> None:
        await start(run, {"a": thing(2, postconditions=OWN), "b": thing(depends_on="a")})
        assert await run.until_ended("s") == "CREATE_FAILED"
        assert world.operations("b") == []

    async def test_types_that_only_compute_are_checked(self, run: Program) -> None:
        def value(name: str, of: Json, wanted: Json) -> Json:
            condition = {"equals": [{"get_attr": [name, "value"]}, wanted]}
            return {"type": "OS::Heat::Value", "properties": {"value": of},
                    "postconditions": one(condition)}  # fmt: skip

        chain = {"a": value("a", "x", "x"), "b": value("b", {"get_attr": ["a", "value"]}, "y")}
        await start(run, chain)
        assert await run.until_ended("s") == "CREATE_FAILED"
        found = await run.resources("s")
        assert found["a"]["resource_status"] == "CREATE_COMPLETE"
        assert found["b"]["resource_status_reason"].startswith("postcondition failed")


async def test_an_output_shows_its_failed_precondition(run: Program, world: World) -> None:
    outputs = {"o": {"value": SIZE, "preconditions": FITS}}
    await create(run, {"b": thing(2)}, sections={"outputs": outputs})
    (shown,) = (await run.stack("s"))["outputs"]
    assert shown["output_value"] is None
    assert shown["output_error"] == "precondition failed: choose another size"
    await put(run, {"b": thing(1)}, sections={"outputs": outputs})
    await until_complete(run, "s")
    (shown,) = (await run.stack("s"))["outputs"]
    assert shown["output_value"] == 1 and not shown.get("output_error")
