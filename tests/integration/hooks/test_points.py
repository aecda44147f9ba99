"""Every point of a breakpoint, on each path that leads to it."""

from collections.abc import Callable

import pytest

from engine.types.contract import Call, Confirm, Done, Failed, Outcome, Replace
from tests.support.changes import put, thing, until_complete, until_deleted, until_status
from tests.support.program import Json, Program
from tests.support.scripted_type import World


@pytest.fixture
def run(things_in_own_project: Program) -> Program:
    return things_in_own_project


def hooks_on(*points: str, at: str = "*", **more: Json) -> Json:
    return {"hooks": [{"at": at, "on": list(points), **more}]}


async def continue_all(run: Program, name: str, status: str) -> list[str]:
    """Continue all hooks, in the order in which they open, until the stack has the status."""
    passed: list[str] = []
    while True:
        _, response = await run.call("GET", f"/hooks?state=waiting&stack={name}")
        for hook in response["hooks"]:
            passed.append(f"{hook['resource_name']}:{hook['point']}")
            assert (await run.signal(hook))[0] == 200
        found = await run.stack(name)
        if found["stack_status"] == status:
            return passed


async def test_a_replacement_opens_hooks_at_all_its_points(run: Program, world: World) -> None:
    await run.create("s", {"a": thing()})
    await run.until_ended("s")
    points = ("pre-update", "pre-replace", "pre-create", "post-create", "post-replace",
              "post-update", "pre-delete", "post-delete")  # fmt: skip
    await put(run, "s", {"a": thing(place="there")}, environment=hooks_on(*points))
    assert await continue_all(run, "s", "UPDATE_COMPLETE") == [f"a:{point}" for point in points]
    assert world.operations("a") == ["create", "create", "delete"]


async def test_hooks_open_for_resources_that_an_update_adds_and_removes(
    run: Program, world: World
) -> None:
    await run.create("s", {"a": thing()}, environment=hooks_on("pre-delete"))
    await run.until_ended("s")
    await put(run, "s", {"b": thing()}, environment=hooks_on("pre-create", at="b"))
    passed = await continue_all(run, "s", "UPDATE_COMPLETE")
    assert sorted(passed) == ["a:pre-delete", "b:pre-create"]


async def test_a_rollback_uses_the_hooks_of_the_environment_it_returns_to(
    run: Program, world: World
) -> None:
    await run.create("s", {"a": thing()}, environment=hooks_on("pre-update"))
    await run.until_ended("s")
    world.script("create", "b", Failed("no"))
    await run.update(
        "s", "PUT", disable_rollback=False,
        template={"heat_template_version": "2018-08-31",
                  "resources": {"a": thing(2), "b": thing(depends_on="a")}},
    )  # fmt: skip
    (hook,) = await run.waiting_hooks("s")
    assert (await run.stack("s"))["stack_status"] == "ROLLBACK_IN_PROGRESS"
    assert hook["point"] == "pre-update"
    await run.signal(hook)
    assert await run.until_ended("s") == "ROLLBACK_COMPLETE"


@pytest.mark.parametrize("action", ["check", "suspend", "resume"])
async def test_in_place_actions_have_hooks_before_and_after(
    run: Program, world: World, action: str
) -> None:
    points = (f"pre-{action}", f"post-{action}")
    await run.create("s", {"a": thing()}, environment=hooks_on(*points))
    await run.until_ended("s")
    if action == "resume":
        await run.act("s", "suspend")
        await until_status(run, "s", "SUSPEND_COMPLETE")
    await run.act("s", action)
    passed = await continue_all(run, "s", f"{action.upper()}_COMPLETE")
    assert passed == [f"a:{point}" for point in points]


RESIZE = Confirm("resize", {"half": True}, {"was": 1, "is": 2})
Operation = Callable[[Call], Outcome]


async def update_with_confirmation(run: Program, world: World, environment: Json) -> None:
    """An update that asks for a confirmation during its operation."""
    await run.create("s", {"a": thing()})
    await run.until_ended("s")
    world.script("update", "a", RESIZE)
    await put(run, "s", {"a": thing(2)}, environment=environment)


async def test_a_confirmed_operation_continues_with_the_answer(run: Program, world: World) -> None:
    await update_with_confirmation(run, world, hooks_on("confirm-resize", at="a"))
    (hook,) = await run.waiting_hooks("s")
    assert (hook["point"], hook["resource"]["seen"]) == ("confirm-resize", {"was": 1, "is": 2})
    assert await run.signal(hook, user="ann", reason="looks well") is not None
    assert await run.until_ended("s") == "UPDATE_COMPLETE"
    last = world.calls[-1]
    assert last.progress == {"half": True} and last.confirmation is not None
    assert (last.confirmation.accepted, last.confirmation.by) == (True, "ann")
    assert world.operations("a") == ["create", "update", "update"]
    reasons = [one["resource_status_reason"] for one in await run.events("s")]
    assert "UPDATE paused until Hook confirm-resize is cleared" in reasons


async def test_a_rejected_confirmation_reaches_the_operation(run: Program, world: World) -> None:
    await update_with_confirmation(run, world, hooks_on("confirm-resize", at="a"))
    (hook,) = await run.waiting_hooks("s")
    world.script("update", "a", Failed("taken back"))
    await run.signal(hook, "reject", user="ann", reason="slower")
    assert await run.until_ended("s") == "UPDATE_FAILED"
    confirmation = world.calls[-1].confirmation
    assert confirmation is not None and (confirmation.accepted, confirmation.reason) == (
        False,
        "slower",
    )
    assert "taken back" in (await run.stack("s"))["stack_status_reason"]


async def test_a_step_without_a_rule_opens_no_hook(run: Program, world: World) -> None:
    await update_with_confirmation(run, world, {})
    assert await run.until_ended("s") == "UPDATE_COMPLETE"
    confirmation = world.calls[-1].confirmation
    assert confirmation is not None and confirmation.accepted


async def test_an_expired_confirmation_stops_the_stack(run: Program, world: World) -> None:
    await update_with_confirmation(run, world, hooks_on("confirm-resize", at="a", timeout="1s"))
    assert await run.until_ended("s") == "UPDATE_STOPPED"
    assert (await run.resources("s"))["a"]["resource_status"] == "UPDATE_FAILED"
    await put(run, "s", {"a": thing(2)}, hooks={"clear": ["*"]})
    await until_complete(run, "s")
    assert list(world.things.values()) == [2]


async def test_a_replacement_can_ask_for_confirmation(run: Program, world: World) -> None:
    await run.create("s", {"a": thing()})
    await run.until_ended("s")
    world.script("update", "a", RESIZE, Replace())
    world.script("create", "a", RESIZE)
    await put(run, "s", {"a": thing(2)}, environment=hooks_on("confirm-resize", at="a"))
    assert await continue_all(run, "s", "UPDATE_COMPLETE") == [
        "a:confirm-resize",
        "a:confirm-resize",
    ]
    assert world.operations("a") == ["create", "update", "update", "create", "create", "delete"]
    assert list(world.things.values()) == [2]


async def test_the_original_stays_when_its_replacement_stops(run: Program, world: World) -> None:
    await run.create("s", {"a": thing()})
    await run.until_ended("s")
    world.script("create", "a", RESIZE)
    environment = hooks_on("confirm-resize", at="a", mode="stop")
    await put(run, "s", {"a": thing(2, place="there")}, environment=environment)
    assert await run.until_ended("s") == "UPDATE_STOPPED"
    assert list(world.things.values()) == [1]
    # Back to the existing resource, which is not tainted; nothing is created.
    await put(run, "s", {"a": thing()}, hooks={"clear": ["*"]})
    await until_complete(run, "s")
    assert world.operations("a") == ["create", "create"]
    assert (await run.stack("s"))["stack_status"] == "UPDATE_COMPLETE"


async def test_an_update_refuses_the_confirmation_and_waits_for_the_operation(
    run: Program, world: World
) -> None:
    await update_with_confirmation(run, world, hooks_on("confirm-resize", at="a"))
    (hook,) = await run.waiting_hooks("s")
    world.script("update", "a", Failed("taken back"))
    await put(run, "s", {"a": thing(3)}, environment={"hooks": []}, hooks={"clear": ["*"]})
    await until_complete(run, "s")
    confirmation = next(call.confirmation for call in world.calls if call.confirmation is not None)
    assert (confirmation.accepted, confirmation.reason) == (False, "superseded")
    assert list(world.things.values()) == [3]
    status, response = await run.signal(hook)
    assert (status, response["error"]["type"]) == (409, "HookSuperseded")


async def test_a_type_opens_hooks_for_its_own_steps_only(run: Program, world: World) -> None:
    world.script("create", "a", Confirm("rezise", {}))
    await run.create("s", {"a": thing()})
    assert await run.until_ended("s") == "CREATE_FAILED"
    assert "not one of its steps" in (await run.stack("s"))["stack_status_reason"]


async def test_a_stack_has_hooks_before_and_after_its_action(run: Program, world: World) -> None:
    rules = {"hooks": [{"on": ["pre-stack-create", "post-stack-create", "pre-stack-delete"]}]}
    await run.create("s", {"a": thing(5), "b": thing(depends_on="a")}, environment=rules)
    (hook,) = await run.waiting_hooks("s")
    assert (hook["point"], hook["resource_name"], hook["resource"]) == (
        "pre-stack-create", None, None,
    )  # fmt: skip
    plan = {one["name"]: one for one in hook["change"]["plan"]}
    assert plan["a"]["change"] == "added" and plan["a"]["properties"]["size"] == 5
    assert world.done == []
    assert (await run.stack("s"))["stack_status"] == "CREATE_IN_PROGRESS"
    await run.signal(hook)
    (after,) = await run.waiting_hooks("s")
    assert after["point"] == "post-stack-create" and len(world.things) == 2
    assert (await run.stack("s"))["stack_status"] == "CREATE_IN_PROGRESS"
    await run.signal(after)
    assert await run.until_ended("s") == "CREATE_COMPLETE"
    await run.stack_request("DELETE", "s")
    (last,) = await run.waiting_hooks("s")
    assert last["point"] == "pre-stack-delete"
    assert [one["change"] for one in last["change"]["plan"]] == ["deleted", "deleted"]
    await run.signal(last)
    await until_deleted(run, "s")
    assert not world.things


async def test_a_rejected_stack_hook_prevents_all_operations(run: Program, world: World) -> None:
    rules = {"hooks": [{"on": "pre-stack-create"}]}
    await run.create("s", {"a": thing()}, environment=rules)
    (hook,) = await run.waiting_hooks("s")
    await run.signal(hook, "reject", user="ann", reason="not today")
    assert await run.until_ended("s") == "CREATE_FAILED"
    reason = (await run.stack("s"))["stack_status_reason"]
    assert reason == "pre-stack-create rejected by ann: not today"
    assert world.done == []


async def test_hooks_of_a_stack_without_changes_open(run: Program, world: World) -> None:
    await run.create("s", {"a": thing()})
    await run.until_ended("s")
    rules = {"hooks": [{"on": ["pre-stack-update", "post-stack-update"]}]}
    await put(run, "s", {"a": thing()}, environment=rules)
    assert await continue_all(run, "s", "UPDATE_COMPLETE") == [
        "None:pre-stack-update", "None:post-stack-update",
    ]  # fmt: skip
    assert world.operations("a") == ["create"]


async def test_a_create_can_ask_for_confirmation(run: Program, world: World) -> None:
    world.script("create", "a", Confirm("resize", {"id": 1}), Done("made-1", {"size": 1}))
    await run.create("s", {"a": thing()}, environment=hooks_on("confirm-resize", at="a"))
    (hook,) = await run.waiting_hooks("s")
    await run.signal(hook)
    assert await run.until_ended("s") == "CREATE_COMPLETE"
    assert (await run.resources("s"))["a"]["physical_resource_id"] == "made-1"


async def test_a_retried_operation_keeps_the_answer_to_its_step(run: Program, world: World) -> None:
    await update_with_confirmation(run, world, hooks_on("confirm-resize", at="a"))
    (hook,) = await run.waiting_hooks("s")
    world.script("update", "a", Failed("busy", retry=True), Failed("undone"))
    await run.signal(hook, "reject", user="ann", reason="slower")
    assert await run.until_ended("s") == "UPDATE_FAILED"
    assert world.operations("a") == ["create", "update", "update", "update"]
    answers = [call.confirmation for call in world.calls[-2:]]
    assert [answer is not None and not answer.accepted for answer in answers] == [True, True]


async def test_an_expired_step_of_a_replacement_keeps_the_original(
    run: Program, world: World
) -> None:
    await run.create("s", {"a": thing()})
    await run.until_ended("s")
    world.script("create", "a", RESIZE)
    environment = hooks_on("confirm-resize", at="a", timeout="1s")
    await put(run, "s", {"a": thing(2, place="there")}, environment=environment)
    assert await run.until_ended("s") == "UPDATE_STOPPED"
    await put(run, "s", {"a": thing()}, hooks={"clear": ["*"]})
    await until_complete(run, "s")
    assert world.operations("a") == ["create", "create"]
    assert list(world.things.values()) == [1]


async def test_a_hook_of_a_replacement_does_not_repeat_its_update(
    run: Program, world: World
) -> None:
    await run.create("s", {"a": thing()})
    await run.until_ended("s")
    world.script("update", "a", Replace())
    await put(run, "s", {"a": thing(2)}, environment=hooks_on("pre-create", at="a"))
    assert await continue_all(run, "s", "UPDATE_COMPLETE") == ["a:pre-create"]
    assert world.operations("a") == ["create", "update", "create", "delete"]
