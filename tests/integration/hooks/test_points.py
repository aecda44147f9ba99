"""Every place where a breakpoint can stand, on every path that leads there."""

from collections.abc import Callable

import pytest

from engine.types.contract import Call, Confirm, Done, Failed, Outcome, Replace
from tests.support.changes import ended_again, ended_as, gone, put, thing
from tests.support.program import Json, Program
from tests.support.things import World


def on(*points: str, at: str = "*", **more: Json) -> Json:
    return {"hooks": [{"at": at, "on": list(points), **more}]}


async def pass_all(run: Program, name: str, status: str) -> list[str]:
    """Let every hook go on, in the order in which they come, until the stack is so."""
    passed: list[str] = []
    while True:
        _, said = await run.call("GET", f"/hooks?state=waiting&stack={name}")
        for hook in said["hooks"]:
            passed.append(f"{hook['resource_name']}:{hook['point']}")
            assert (await run.signal(hook))[0] == 200
        found = await run.stack(name)
        if found["stack_status"] == status:
            return passed


async def test_a_replacement_asks_at_all_its_points(run: Program, world: World) -> None:
    await run.create("s", {"a": thing()})
    await run.until_ended("s")
    points = ("pre-update", "pre-replace", "pre-create", "post-create", "post-replace",
              "post-update", "pre-delete", "post-delete")  # fmt: skip
    await put(run, "s", {"a": thing(place="there")}, environment=on(*points))
    assert await pass_all(run, "s", "UPDATE_COMPLETE") == [f"a:{point}" for point in points]
    assert world.operations("a") == ["create", "create", "delete"]


async def test_what_an_update_adds_and_removes_asks_too(run: Program, world: World) -> None:
    await run.create("s", {"a": thing()}, environment=on("pre-delete"))
    await run.until_ended("s")
    await put(run, "s", {"b": thing()}, environment=on("pre-create", at="b"))
    passed = await pass_all(run, "s", "UPDATE_COMPLETE")
    assert sorted(passed) == ["a:pre-delete", "b:pre-create"]


async def test_a_rollback_asks_where_the_environment_it_goes_back_to_says(
    run: Program, world: World
) -> None:
    await run.create("s", {"a": thing()}, environment=on("pre-update"))
    await run.until_ended("s")
    world.will("create", "b", Failed("no"))
    await run.update(
        "s", "PUT", disable_rollback=False,
        template={"heat_template_version": "2018-08-31",
                  "resources": {"a": thing(2), "b": thing(depends_on="a")}},
    )  # fmt: skip
    (hook,) = await run.waiting("s")
    assert (await run.stack("s"))["stack_status"] == "ROLLBACK_IN_PROGRESS"
    assert hook["point"] == "pre-update"
    await run.signal(hook)
    assert await run.until_ended("s") == "ROLLBACK_COMPLETE"


@pytest.mark.parametrize("action", ["check", "suspend", "resume"])
async def test_visits_ask_before_and_after(run: Program, world: World, action: str) -> None:
    points = (f"pre-{action}", f"post-{action}")
    await run.create("s", {"a": thing()}, environment=on(*points))
    await run.until_ended("s")
    if action == "resume":
        await run.act("s", "suspend")
        await ended_as(run, "s", "SUSPEND_COMPLETE")
    await run.act("s", action)
    passed = await pass_all(run, "s", f"{action.upper()}_COMPLETE")
    assert passed == [f"a:{point}" for point in points]


RESIZE = Confirm("resize", {"half": True}, {"was": 1, "is": 2})
Told = Callable[[Call], Outcome]


async def resizing(run: Program, world: World, environment: Json) -> None:
    """An update that asks for a confirmation half way."""
    await run.create("s", {"a": thing()})
    await run.until_ended("s")
    world.will("update", "a", RESIZE)
    await put(run, "s", {"a": thing(2)}, environment=environment)


async def test_an_operation_that_asks_goes_on_with_the_answer(run: Program, world: World) -> None:
    await resizing(run, world, on("confirm-resize", at="a"))
    (hook,) = await run.waiting("s")
    assert (hook["point"], hook["resource"]["seen"]) == ("confirm-resize", {"was": 1, "is": 2})
    assert await run.signal(hook, user="ann", reason="looks well") is not None
    assert await run.until_ended("s") == "UPDATE_COMPLETE"
    last = world.calls[-1]
    assert last.progress == {"half": True} and last.confirmed is not None
    assert (last.confirmed.accepted, last.confirmed.by) == (True, "ann")
    assert world.operations("a") == ["create", "update", "update"]
    reasons = [one["resource_status_reason"] for one in await run.events("s")]
    assert "UPDATE paused until Hook confirm-resize is cleared" in reasons


async def test_an_operation_that_is_refused_is_told_and_undoes_it(
    run: Program, world: World
) -> None:
    await resizing(run, world, on("confirm-resize", at="a"))
    (hook,) = await run.waiting("s")
    world.will("update", "a", Failed("taken back"))
    await run.signal(hook, "reject", user="ann", reason="slower")
    assert await run.until_ended("s") == "UPDATE_FAILED"
    told = world.calls[-1].confirmed
    assert told is not None and (told.accepted, told.reason) == (False, "slower")
    assert "taken back" in (await run.stack("s"))["stack_status_reason"]


async def test_nobody_is_asked_where_no_rule_says_so(run: Program, world: World) -> None:
    await resizing(run, world, {})
    assert await run.until_ended("s") == "UPDATE_COMPLETE"
    told = world.calls[-1].confirmed
    assert told is not None and told.accepted


async def test_a_confirmation_nobody_gives_stops_the_stack(run: Program, world: World) -> None:
    await resizing(run, world, on("confirm-resize", at="a", timeout="1s"))
    assert await run.until_ended("s") == "UPDATE_STOPPED"
    assert (await run.resources("s"))["a"]["resource_status"] == "UPDATE_FAILED"
    await put(run, "s", {"a": thing(2)}, hooks={"clear": ["*"]})
    await ended_again(run, "s")
    assert list(world.things.values()) == [2]


async def test_a_replacement_asks_about_its_own_steps(run: Program, world: World) -> None:
    await run.create("s", {"a": thing()})
    await run.until_ended("s")
    world.will("update", "a", RESIZE, Replace())
    world.will("create", "a", RESIZE)
    await put(run, "s", {"a": thing(2)}, environment=on("confirm-resize", at="a"))
    assert await pass_all(run, "s", "UPDATE_COMPLETE") == ["a:confirm-resize", "a:confirm-resize"]
    assert world.operations("a") == ["create", "update", "update", "create", "create", "delete"]
    assert list(world.things.values()) == [2]


async def test_what_was_to_be_replaced_stays_when_its_replacement_stops(
    run: Program, world: World
) -> None:
    await run.create("s", {"a": thing()})
    await run.until_ended("s")
    world.will("create", "a", RESIZE)
    environment = on("confirm-resize", at="a", mode="stop")
    await put(run, "s", {"a": thing(2, place="there")}, environment=environment)
    assert await run.until_ended("s") == "UPDATE_STOPPED"
    assert list(world.things.values()) == [1]
    # Back to what is there: nothing of it is broken, and nothing is made anew.
    await put(run, "s", {"a": thing()}, hooks={"clear": ["*"]})
    await ended_again(run, "s")
    assert world.operations("a") == ["create", "create"]
    assert (await run.stack("s"))["stack_status"] == "UPDATE_COMPLETE"


async def test_a_newer_update_refuses_the_confirmation_and_waits_for_it(
    run: Program, world: World
) -> None:
    await resizing(run, world, on("confirm-resize", at="a"))
    (hook,) = await run.waiting("s")
    world.will("update", "a", Failed("taken back"))
    await put(run, "s", {"a": thing(3)}, environment={"hooks": []}, hooks={"clear": ["*"]})
    await ended_again(run, "s")
    told = next(call.confirmed for call in world.calls if call.confirmed is not None)
    assert (told.accepted, told.reason) == (False, "superseded")
    assert list(world.things.values()) == [3]
    status, said = await run.signal(hook)
    assert (status, said["error"]["type"]) == (409, "HookSuperseded")


async def test_a_type_asks_only_for_its_own_steps(run: Program, world: World) -> None:
    world.will("create", "a", Confirm("rezise", {}))
    await run.create("s", {"a": thing()})
    assert await run.until_ended("s") == "CREATE_FAILED"
    assert "not one of its steps" in (await run.stack("s"))["stack_status_reason"]


async def test_a_stack_asks_before_and_after_its_action(run: Program, world: World) -> None:
    rules = {"hooks": [{"on": ["pre-stack-create", "post-stack-create", "pre-stack-delete"]}]}
    await run.create("s", {"a": thing(5), "b": thing(depends_on="a")}, environment=rules)
    (hook,) = await run.waiting("s")
    assert (hook["point"], hook["resource_name"], hook["resource"]) == (
        "pre-stack-create", None, None,
    )  # fmt: skip
    plan = {one["name"]: one for one in hook["change"]["plan"]}
    assert plan["a"]["change"] == "added" and plan["a"]["properties"]["size"] == 5
    assert world.done == []
    assert (await run.stack("s"))["stack_status"] == "CREATE_IN_PROGRESS"
    await run.signal(hook)
    (after,) = await run.waiting("s")
    assert after["point"] == "post-stack-create" and len(world.things) == 2
    assert (await run.stack("s"))["stack_status"] == "CREATE_IN_PROGRESS"
    await run.signal(after)
    assert await run.until_ended("s") == "CREATE_COMPLETE"
    await run.at("DELETE", "s")
    (last,) = await run.waiting("s")
    assert last["point"] == "pre-stack-delete"
    assert [one["change"] for one in last["change"]["plan"]] == ["deleted", "deleted"]
    await run.signal(last)
    await gone(run, "s")
    assert not world.things


async def test_a_refused_stack_touches_nothing(run: Program, world: World) -> None:
    rules = {"hooks": [{"on": "pre-stack-create"}]}
    await run.create("s", {"a": thing()}, environment=rules)
    (hook,) = await run.waiting("s")
    await run.signal(hook, "reject", user="ann", reason="not today")
    assert await run.until_ended("s") == "CREATE_FAILED"
    reason = (await run.stack("s"))["stack_status_reason"]
    assert reason == "pre-stack-create rejected by ann: not today"
    assert world.done == []


async def test_a_stack_without_changes_still_asks(run: Program, world: World) -> None:
    await run.create("s", {"a": thing()})
    await run.until_ended("s")
    rules = {"hooks": [{"on": ["pre-stack-update", "post-stack-update"]}]}
    await put(run, "s", {"a": thing()}, environment=rules)
    assert await pass_all(run, "s", "UPDATE_COMPLETE") == [
        "None:pre-stack-update", "None:post-stack-update",
    ]  # fmt: skip
    assert world.operations("a") == ["create"]


async def test_a_type_that_confirms_while_it_is_made(run: Program, world: World) -> None:
    world.will("create", "a", Confirm("resize", {"id": 1}), Done("made-1", {"size": 1}))
    await run.create("s", {"a": thing()}, environment=on("confirm-resize", at="a"))
    (hook,) = await run.waiting("s")
    await run.signal(hook)
    assert await run.until_ended("s") == "CREATE_COMPLETE"
    assert (await run.resources("s"))["a"]["physical_resource_id"] == "made-1"
