"""Resuming a stopped stack: PUT or PATCH, the same or another template, with changed hooks."""

import pytest

from tests.support.changes import expire_hook, put, thing, until_complete
from tests.support.program import Json, Program
from tests.support.scripted_type import World

CHAIN = {"a": thing(), "b": thing(depends_on="a"), "c": thing(depends_on="b")}
AT_B = {"hooks": [{"at": "b", "on": "pre-create", "timeout": "1h"}]}


@pytest.fixture
def run(things_in_own_project: Program) -> Program:
    return things_in_own_project


async def stopped(run: Program) -> None:
    """A chain of resources that stopped before the second one."""
    await run.create("s", CHAIN, environment=AT_B)
    await expire_hook(run)
    assert await run.until_ended("s") == "CREATE_STOPPED"


@pytest.mark.parametrize("cleared", ["*", "b", "b:pre-create", "?:pre-*"])
async def test_a_patch_that_clears_the_hook_resumes_without_repeating_operations(
    run: Program, world: World, cleared: str
) -> None:
    await stopped(run)
    await run.update("s", hooks={"clear": [cleared]})
    await until_complete(run, "s")
    assert world.done == [("create", name) for name in "abc"]


async def test_a_patch_that_keeps_the_breakpoint_opens_a_new_hook(
    run: Program, world: World
) -> None:
    await stopped(run)
    await run.update("s")
    (hook,) = await run.waiting_hooks("s")
    assert hook["resource_name"] == "b"
    await run.signal(hook)
    assert await run.until_ended("s") == "UPDATE_COMPLETE"


async def test_a_patch_can_clear_one_breakpoint_and_add_another(run: Program, world: World) -> None:
    await stopped(run)
    await run.update("s", hooks={"clear": ["b:pre-create"], "add": ["c:pre-create"]})
    (hook,) = await run.waiting_hooks("s")
    assert hook["resource_name"] == "c" and world.operations("b") == ["create"]
    await run.signal(hook)
    assert await run.until_ended("s") == "UPDATE_COMPLETE"


async def test_a_put_resumes_toward_another_template(run: Program, world: World) -> None:
    await stopped(run)
    await put(run, "s", {"a": thing(), "d": thing(depends_on="a")}, environment={})
    await until_complete(run, "s")
    assert world.done == [("create", "a"), ("create", "d")]
    assert sorted(await run.resources("s")) == ["a", "d"]


async def test_the_reason_names_the_stopped_resource_and_how_to_resume(run: Program) -> None:
    await stopped(run)
    stack = await run.stack("s")
    assert stack["stack_status_reason"] == (
        "Stopped: b (no answer at pre-create before its deadline); update the stack to continue"
    )
    last = (await run.events("s"))[-1]
    assert (last["resource_status"], last["resource_status_reason"][:8]) == (
        "CREATE_FAILED", "Stopped:",
    )  # fmt: skip
    _, listed = await run.call("GET", "/hooks?state=expired")
    status, response = await run.signal(listed["hooks"][0])
    assert (status, response["error"]["type"]) == (409, "StackStopped")
    assert (
        response["error"]["remedy"] == "The stack stopped there; its reason says how to continue."
    )


@pytest.mark.parametrize(
    ("hooks", "message"),
    [
        ({"clear": "b"}, "must be a list of strings"),
        ({"add": ["x:pre-create"]}, "matches no resource"),
        ({"add": ["b:pre-craete"]}, 'Did you mean "pre-create"?'),
        ({"add": [{"at": "b", "on": "pre-create", "approvals": 3, "answer_by": ["user:a"]}]},
         "only 1 may answer"),
        ({"remove": ["b"]}, "is not a known key"),
    ],
)  # fmt: skip
async def test_invalid_hooks_of_an_update_change_nothing(
    run: Program, hooks: Json, message: str
) -> None:
    await stopped(run)
    stack = await run.stack("s")
    status, response = await run.call("PATCH", f"/stacks/s/{stack['id']}", {"hooks": hooks})
    assert status == 400 and message in str(response).replace("\\'", "'"), response
    assert (await run.stack("s"))["stack_status"] == "CREATE_STOPPED"
