"""Credentials of a change in a stack tree: held only where there is work."""

from engine.types.contract import Failed
from tests.integration.hooks.test_credentials import TOKEN, create, given, kept
from tests.integration.nested.test_trouble import nested_id
from tests.support.changes import thing
from tests.support.program import Json, Program
from tests.support.things import World

INNER = """
heat_template_version: 2018-08-31
resources:
  b: {type: Test::Thing}
  c: {type: Test::Thing, depends_on: b}
"""
SECRET = TOKEN["X-Auth-Token"]


def tree(**more: Json) -> Json:
    return {"a": thing(), "in": {"type": "inner.yaml", "depends_on": "a"},
            "d": thing(depends_on="in"), **more}  # fmt: skip


async def test_it_goes_down_with_the_work_and_comes_back_up(run: Program, world: World) -> None:
    await create(run, tree(), files={"inner.yaml": INNER})
    assert await run.until_ended("s") == "CREATE_COMPLETE"
    assert given(world) == [(name, SECRET) for name in "abcd"]
    assert await kept(run) == 0


async def test_a_tree_that_waits_keeps_none_and_goes_on_with_the_answers(
    run: Program, world: World
) -> None:  # fmt: skip
    held = {"hooks": [{"at": "in/c", "on": "pre-create"}]}
    await create(run, tree(), files={"inner.yaml": INNER}, environment=held)
    await run.waiting_count("s", 1)
    inside = await nested_id(run, "s", "in")
    (hook,) = await run.waiting(inside)
    assert await kept(run) == 0, "neither inside nor around"
    path, body = f"/hooks/{hook['id']}/signal", {"decision": "continue"}
    assert (await run.call("POST", path, body, headers={"X-Auth-Token": "another"}))[0] == 200
    assert await run.until_ended("s") == "CREATE_COMPLETE"
    assert given(world) == [("a", SECRET), ("b", SECRET), ("c", "another"), ("d", "another")]
    assert await kept(run) == 0


async def test_what_fails_inside_is_rolled_back_with_it(run: Program, world: World) -> None:
    world.will("create", "c", Failed("no"))
    await create(run, tree(), files={"inner.yaml": INNER}, disable_rollback=False)
    assert await run.until_ended("s") == "ROLLBACK_COMPLETE"
    assert given(world)[-2:] == [("b", SECRET), ("a", SECRET)]
    assert await kept(run) == 0
