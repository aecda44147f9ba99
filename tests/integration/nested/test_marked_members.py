"""A resource with a nested stack, or in one, that is marked as unhealthy: the next update replaces
it."""

import json

import pytest

from engine.types.contract import Failed
from tests.integration.nested.test_lifecycle import FILES, child_of, nested
from tests.support.changes import thing
from tests.support.program import Json, Program, template
from tests.support.scripted_type import World

SCALING, RESOURCES = "OS::Heat::AutoScalingGroup", "OS::Heat::ResourceGroup"
LEAF = {"type": "OS::Heat::TestResource", "properties": {"value": "v"}}
GROUPS = {"scaling": SCALING, "resources": RESOURCES}


@pytest.fixture
def running(in_own_project: Program) -> Program:
    return in_own_project


def group(type_: str, member: Json) -> Json:
    if type_ == RESOURCES:
        return {"type": type_, "properties": {"count": 2, "resource_def": member}}
    sizes = {"min_size": 1, "max_size": 3, "desired_capacity": 2}
    return {"type": type_, "properties": {**sizes, "resource": member}}


async def create(http: Program, resources: Json) -> None:
    await http.create("s", resources, template=template(resources), files=FILES)
    assert await http.until_ended("s") == "CREATE_COMPLETE"


async def mark(http: Program, stack: str, name: str, *, unhealthy: bool = True) -> None:
    await http.stack_request("PATCH", stack, f"/resources/{name}", {"mark_unhealthy": unhealthy})


async def update(http: Program) -> None:
    await http.update("s")
    assert await http.until_ended("s") == "UPDATE_COMPLETE"


async def ids(http: Program, stack: str) -> dict[str, str]:
    found = await http.resources(stack)
    return {name: str(one["physical_resource_id"]) for name, one in found.items()}


async def test_a_marked_template_resource_gets_a_new_nested_stack(running: Program) -> None:
    await create(running, {"web": nested("x"), "other": nested("y")})
    before = await ids(running, "s")
    inside = await ids(running, before["web"])
    await mark(running, "s", "web")
    await update(running)
    after = await ids(running, "s")
    assert after["web"] != before["web"] and after["other"] == before["other"]
    assert not set((await ids(running, after["web"])).values()) & set(inside.values())
    assert (await running.stack(before["web"]))["stack_status"] == "DELETE_COMPLETE"
    await update(running)
    assert await ids(running, "s") == after


async def test_a_mark_that_is_removed_replaces_nothing(running: Program) -> None:
    await create(running, {"web": nested("x")})
    before = await ids(running, "s")
    await mark(running, "s", "web")
    await mark(running, "s", "web", unhealthy=False)
    await update(running)
    assert await ids(running, "s") == before


async def test_a_preview_shows_the_replacement_of_a_marked_nested_stack(running: Program) -> None:
    await create(running, {"web": nested("x")})
    await mark(running, "s", "web")
    body = {"template": template({"web": nested("x")}), "files": FILES}
    found = await running.stack_request("PUT", "s", "/preview", body)
    changes = found["resource_changes"]
    assert [one["resource_name"] for one in changes["replaced"]] == ["web"]


async def test_a_marked_nested_stack_in_a_nested_stack_is_replaced(running: Program) -> None:
    await create(running, {"web": nested("x", "outer.yaml")})
    outer = await child_of(running, "s", "web")
    inner = await child_of(running, outer, "inner")
    await mark(running, outer, "inner")
    await update(running)
    assert await child_of(running, "s", "web") == outer
    assert await child_of(running, outer, "inner") != inner


@pytest.mark.parametrize("healed", ["by a check", "by a user"])
async def test_after_a_failed_check_an_update_keeps_the_nested_stack(
    things_in_own_project: Program, world: World, healed: str
) -> None:
    """It replaces what failed inside. A check that succeeds removes the mark, like a user."""
    run = things_in_own_project
    files = {"web.yaml": json.dumps(template({"a": thing(), "b": thing()}))}
    resources = {"web": {"type": "web.yaml"}}
    await run.create("s", resources, template=template(resources), files=files)
    assert await run.until_ended("s") == "CREATE_COMPLETE"
    before = await ids(run, "s")
    inside = await ids(run, before["web"])
    await mark(run, "s", "web")
    if healed == "by a user":
        await mark(run, "s", "web", unhealthy=False)
    else:
        await run.act("s", "check")
        assert await run.until_ended("s") == "CHECK_COMPLETE"
    world.script("check", "a", Failed("gone"))
    await run.act("s", "check")
    assert await run.until_ended("s") == "CHECK_FAILED"
    assert (await run.resources("s"))["web"]["resource_status"] == "CHECK_FAILED"
    await update(run)
    assert await ids(run, "s") == before
    after = await ids(run, before["web"])
    assert after["a"] != inside["a"] and after["b"] == inside["b"]


@pytest.mark.parametrize("type_", GROUPS.values(), ids=GROUPS)
@pytest.mark.parametrize("member", [LEAF, nested("v")], ids=["resource", "template"])
async def test_a_marked_member_of_a_group_is_replaced(
    running: Program, type_: str, member: Json
) -> None:
    await create(running, {"g": group(type_, member)})
    stack = await child_of(running, "s", "g")
    before = await ids(running, stack)
    marked, kept = sorted(before)
    await mark(running, stack, marked)
    await update(running)
    assert await child_of(running, "s", "g") == stack
    after = await ids(running, stack)
    assert len(after) == 2 and after[kept] == before[kept]
    assert before[marked] not in after.values()


@pytest.mark.parametrize("type_", GROUPS.values(), ids=GROUPS)
async def test_a_resource_in_a_member_is_replaced_alone(running: Program, type_: str) -> None:
    await create(running, {"g": group(type_, nested("v"))})
    stack = await child_of(running, "s", "g")
    members = await ids(running, stack)
    name, member = sorted(members.items())[0]
    before = await ids(running, member)
    await mark(running, member, "one")
    await update(running)
    assert await ids(running, stack) == members
    after = await ids(running, members[name])
    assert after["one"] != before["one"]


@pytest.mark.parametrize("type_", GROUPS.values(), ids=GROUPS)
async def test_a_marked_group_is_replaced_with_its_members(running: Program, type_: str) -> None:
    await create(running, {"g": group(type_, LEAF)})
    stack = await child_of(running, "s", "g")
    before = await ids(running, stack)
    await mark(running, "s", "g")
    await update(running)
    new = await child_of(running, "s", "g")
    after = await ids(running, new)
    assert new != stack and len(after) == 2
    assert not set(after.values()) & set(before.values())
    assert (await running.stack(stack))["stack_status"] == "DELETE_COMPLETE"
