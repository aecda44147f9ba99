"""Partial updates and moves."""

import pytest

from tests.support.changes import (
    expect_error,
    put,
    thing,
    until_complete,
)
from tests.support.program import Json, Program, template
from tests.support.scripted_type import World


@pytest.fixture
def run(things_in_own_project: Program) -> Program:
    return things_in_own_project


class TestPartial:
    async def test_excluded_resources_stay_out_of_date_until_a_later_update(
        self, run: Program, world: World
    ) -> None:
        await run.create("s", {"a": thing(1), "b": thing(1), "old": thing(1)})
        await run.until_ended("s")
        wanted = {"a": thing(2), "b": thing(2), "c": thing(2)}
        await put(run, "s", wanted, only=["a"])
        assert await run.until_ended("s") == "UPDATE_COMPLETE"
        graph = await run.stack_request("GET", "s", "/graph")
        assert graph["traversal"]["out_of_date"] == ["b", "c", "old"]
        assert world.operations("b") == ["create"] and world.operations("c") == []
        body = {"except": ["c"]}
        await run.stack_request("PATCH", "s", "", body)
        await until_complete(run, "s")
        assert world.operations("b") == ["create", "update"]
        assert world.operations("old") == ["create", "delete"]
        await run.update("s")
        await until_complete(run, "s")
        assert sorted(world.things.values()) == [2, 2, 2]

    async def test_a_resource_that_an_out_of_date_dependent_uses_is_not_deleted(
        self, run: Program, world: World
    ) -> None:
        def resources(place: str) -> Json:
            user = {"type": "Test::Thing", "properties": {"size": {"get_resource": "a"}}}
            return {"a": thing(place=place), "user": user}

        await run.create("s", resources("here"))
        await run.until_ended("s")
        await put(run, "s", resources("there"), only=["a"])
        assert await run.until_ended("s") == "UPDATE_COMPLETE"
        assert len(world.things) == 3 and world.operations("a") == ["create", "create"]
        await run.update("s")
        await until_complete(run, "s")
        assert len(world.things) == 2
        new = (await run.resources("s"))["a"]["physical_resource_id"]
        assert new in world.things and new in world.things.values()

    async def test_a_pattern_that_matches_nothing_is_refused(self, run: Program) -> None:
        await run.create("s", {"alpha": thing()})
        await run.until_ended("s")
        status, error = await expect_error(run, "PATCH", "s", "", {"only": ["alpa"]})
        assert status == 400 and 'Did you mean "alpha"?' in error["message"]

    async def test_dependencies_of_a_selected_resource_must_be_selected(self, run: Program) -> None:
        await run.create("s", {"a": thing()})
        await run.until_ended("s")
        body = {"template": template({"a": thing(), "b": thing(), "c": thing(depends_on="b")}),
                "only": ["c"]}  # fmt: skip
        status, error = await expect_error(run, "PUT", "s", "", body)
        assert status == 400 and '"c" requires "b", which does not exist' in error["message"]


class TestMoves:
    async def test_a_renamed_resource_is_not_changed(self, run: Program, world: World) -> None:
        await run.create("s", {"a": thing(1), "user": thing(1, depends_on="a")})
        await run.until_ended("s")
        old = (await run.resources("s"))["a"]["physical_resource_id"]
        await put(run, "s", {"b": thing(1), "user": thing(1, depends_on="b")},
                  moved=[{"from": "a", "to": "b"}])  # fmt: skip
        assert await run.until_ended("s") == "UPDATE_COMPLETE"
        found = await run.resources("s")
        assert found["b"]["physical_resource_id"] == old and set(found) == {"b", "user"}
        assert world.done == [("create", "a"), ("create", "user")]

    async def test_a_resource_moved_to_another_stack_is_not_changed(
        self, run: Program, world: World
    ) -> None:
        await run.create("one", {"a": thing(1), "rest": thing(1)})
        await run.create("two", {"x": thing(1)})
        await run.until_ended("one")
        await run.until_ended("two")
        old = (await run.resources("one"))["a"]["physical_resource_id"]
        await put(run, "two", {"x": thing(1), "b": thing(1)},
                  moved=[{"from": {"stack": "one", "resource": "a"}, "to": "b"}])  # fmt: skip
        await until_complete(run, "two")
        await until_complete(run, "one")
        assert (await run.resources("two"))["b"]["physical_resource_id"] == old
        assert set(await run.resources("one")) == {"rest"}
        assert set((await run.stack_request("GET", "one", "/template"))["resources"]) == {"rest"}
        await run.update("one")
        await until_complete(run, "one")
        assert len(world.done) == 3 and len(world.things) == 3

    async def test_invalid_moves_are_refused_and_change_nothing(
        self, run: Program, world: World
    ) -> None:
        await run.create("s", {"a": thing(), "user": thing(depends_on="a")})
        await run.create("other", {"x": {"type": "OS::Heat::None"}})
        await run.until_ended("s")
        await run.until_ended("other")
        cases = [
            ({"from": "nope", "to": "b"}, 'there is no resource "nope"'),
            ({"from": "a", "to": "nope"}, '"nope" is not in the template'),
            ({"from": "user", "to": "b"}, '"user" is still in the template'),
            ({"from": {"stack": "none", "resource": "x"}, "to": "b"}, 'no stack "none"'),
            (
                {"from": {"stack": "other", "resource": "x"}, "to": "b"},
                "is declared as a Test::Thing",
            ),
        ]
        wanted = template({"b": thing(), "user": thing()})
        for move, message in cases:
            status, error = await expect_error(
                run, "PUT", "s", "", {"template": wanted, "moved": [move]}
            )
            assert status == 400 and message in error["message"], error
        body = {"template": template({"x": {"type": "OS::Heat::None"}, "b": thing()}),
                "moved": [{"from": {"stack": "s", "resource": "a"}, "to": "b"}]}  # fmt: skip
        status, error = await expect_error(run, "PUT", "other", "", body)
        assert status == 400 and "Update that stack first" in error["message"]
        assert set(await run.resources("s")) == {"a", "user"} and len(world.done) == 2
