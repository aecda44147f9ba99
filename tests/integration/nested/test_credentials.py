"""Credentials of a change in a stack tree: held only where there is work."""

import pytest

from engine.types.contract import Failed
from tests.integration.hooks.test_credentials import (
    TOKEN,
    create,
    stored_credentials,
    used_credentials,
)
from tests.integration.nested.test_failures import nested_id
from tests.support.changes import thing
from tests.support.program import Json, Program
from tests.support.scripted_type import World

INNER = """
heat_template_version: 2018-08-31
resources:
  b: {type: Test::Thing}
  c: {type: Test::Thing, depends_on: b}
"""
SECRET = TOKEN["X-Auth-Token"]


@pytest.fixture
def run(things_in_own_project: Program) -> Program:
    return things_in_own_project


def tree(**more: Json) -> Json:
    return {"a": thing(), "in": {"type": "inner.yaml", "depends_on": "a"},
            "d": thing(depends_on="in"), **more}  # fmt: skip


async def test_the_credential_moves_to_nested_stacks_and_back(run: Program, world: World) -> None:
    await create(run, tree(), files={"inner.yaml": INNER})
    assert await run.until_ended("s") == "CREATE_COMPLETE"
    assert used_credentials(world) == [(name, SECRET) for name in "abcd"]
    assert await stored_credentials(run) == 0


async def test_a_waiting_tree_stores_no_credential_and_continues_with_that_of_the_answer(
    run: Program, world: World
) -> None:  # fmt: skip
    hooks = {"hooks": [{"at": "in/c", "on": "pre-create"}]}
    await create(run, tree(), files={"inner.yaml": INNER}, environment=hooks)
    await run.until_parked("s", 1)
    child_id = await nested_id(run, "s", "in")
    (hook,) = await run.waiting_hooks(child_id)
    assert await stored_credentials(run) == 0, "neither in the nested stack nor in its parent"
    path, body = f"/hooks/{hook['id']}/signal", {"decision": "continue"}
    assert (await run.call("POST", path, body, headers={"X-Auth-Token": "another"}))[0] == 200
    assert await run.until_ended("s") == "CREATE_COMPLETE"
    assert used_credentials(world) == [
        ("a", SECRET),
        ("b", SECRET),
        ("c", "another"),
        ("d", "another"),
    ]
    assert await stored_credentials(run) == 0


async def test_a_rollback_of_a_nested_stack_uses_the_credential(run: Program, world: World) -> None:
    world.script("create", "c", Failed("no"))
    await create(run, tree(), files={"inner.yaml": INNER}, disable_rollback=False)
    assert await run.until_ended("s") == "ROLLBACK_COMPLETE"
    assert used_credentials(world)[-2:] == [("b", SECRET), ("a", SECRET)]
    assert await stored_credentials(run) == 0
