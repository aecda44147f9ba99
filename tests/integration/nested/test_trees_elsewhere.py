"""Snapshots, exports and adoptions of stacks with nested stacks and groups."""

import json

import pytest

from tests.support.changes import thing, until_deleted, until_status
from tests.support.program import Json, Program, eventually, template
from tests.support.scripted_type import World

INNER = template(
    {"x": thing({"get_param": "size"})}, parameters={"size": {"type": "number", "default": 1}}
)
MIDDLE = template(
    {"in": {"type": "inner.yaml", "properties": {"size": {"get_param": "size"}}}, "y": thing(1)},
    parameters={"size": {"type": "number", "default": 1}},
)
FILES = {"inner.yaml": json.dumps(INNER), "middle.yaml": json.dumps(MIDDLE)}


@pytest.fixture
def run(things_in_own_project: Program) -> Program:
    return things_in_own_project


def tree(size: int = 1, count: int = 2, capacity: int = 2) -> Json:
    return {
        "own": thing(size),
        "m": {"type": "middle.yaml", "properties": {"size": size}},
        "g": {"type": "OS::Heat::ResourceGroup", "properties": {
            "count": count, "resource_def": {"type": "inner.yaml", "properties": {"size": size}}}},
        "s": {"type": "OS::Heat::AutoScalingGroup", "properties": {
            "min_size": 0, "max_size": 5, "desired_capacity": capacity,
            "resource": thing(size)}},
    }  # fmt: skip


async def physical_ids(run: Program, name: str = "s") -> dict[str, str]:
    """The physical IDs of the resources without nested stacks, by path."""
    found = await run.stack_request("GET", name, "/resources?nested_depth=5")
    ids = {}
    for one in found["resources"]:
        if one["resource_type"] == "Test::Thing":
            ids[f"{one.get('parent_resource', '')}/{one['resource_name']}"] = one[
                "physical_resource_id"
            ]
    return ids


async def create(run: Program, **more: Json) -> None:
    await run.create("s", tree(), files=FILES, **more)
    assert await run.until_ended("s") == "CREATE_COMPLETE"


async def test_a_tree_is_abandoned_and_adopted_without_a_change(run: Program, world: World) -> None:
    await create(run)
    before, physical = await physical_ids(run), dict(world.things)
    assert len(before) == 7
    exported = await run.stack_request("DELETE", "s", "/abandon")
    assert world.things == physical
    inner = exported["resources"]["m"]["resources"]["in"]["resources"]["x"]
    assert inner["type"] == "Test::Thing" and inner["resource_id"] in physical
    _, left = await run.call("GET", "/stacks?show_nested=true")
    assert left["stacks"] == []
    calls = len(world.done)
    body = {"stack_name": "s", "adopt_stack_data": json.dumps(exported)}
    status, response = await run.call("POST", "/stacks", body)
    assert status == 201, response
    assert await run.until_ended("s") == "ADOPT_COMPLETE"
    assert await physical_ids(run) == before and world.things == physical
    assert {operation for operation, _ in world.done[calls:]} == {"check"}

    await run.update("s", "PUT", template=template(tree(2, 3)), files=FILES)
    assert await run.until_ended("s") == "UPDATE_COMPLETE"
    after = await physical_ids(run)
    assert before.items() <= after.items() and len(after) == 8
    await run.stack_request("DELETE", "s")
    await until_deleted(run, "s")
    assert world.things == {}


async def test_an_export_changes_nothing(run: Program) -> None:
    await create(run)
    before = await physical_ids(run)
    exported = await run.stack_request("GET", "s", "/export")
    assert exported["resources"]["g"]["resources"].keys() == {"0", "1"}
    assert await physical_ids(run) == before


async def test_the_content_of_a_nested_stack_must_be_in_the_export(run: Program) -> None:
    data = {"template": template({"m": {"type": "middle.yaml"}}), "files": FILES,
            "resources": {"m": {"resource_id": "somewhere"}}}  # fmt: skip
    status, response = await run.call(
        "POST", "/stacks", {"stack_name": "s", "adopt_stack_data": data}
    )
    assert status == 400
    assert "no resources of the nested stack" in response["error"]["message"]
    data["resources"]["m"]["resources"] = {"in": 5}
    status, response = await run.call(
        "POST", "/stacks", {"stack_name": "s", "adopt_stack_data": data}
    )
    assert status == 400
    assert "adopt_stack_data.resources.m.resources.in" in response["error"]["message"]


async def test_a_failed_adoption_of_a_tree_is_rolled_back_without_deleting(
    run: Program, world: World
) -> None:
    await create(run)
    exported = await run.stack_request("DELETE", "s", "/abandon")
    exported["resources"]["m"]["resources"]["y"]["resource_id"] = "not there"
    physical = dict(world.things)
    body = {"stack_name": "s", "adopt_stack_data": exported, "disable_rollback": False}
    assert (await run.call("POST", "/stacks", body))[0] == 201
    await until_status(run, "s", "ROLLBACK_COMPLETE")
    assert world.things == physical
    _, left = await run.call("GET", "/stacks?show_nested=true")
    assert [one["stack_name"] for one in left["stacks"]] == ["s"]


async def snapshot(run: Program) -> str:
    taken = await run.stack_request("POST", "s", "/snapshots", {"name": "n"})
    path = f"/snapshots/{taken['id']}"

    async def ended() -> bool:
        found = await run.stack_request("GET", "s", path)
        return str(found["snapshot"]["status"]) != "IN_PROGRESS"

    await eventually(ended)
    found = await run.stack_request("GET", "s", path)
    assert found["snapshot"]["status"] == "COMPLETE", found
    return path


async def test_a_snapshot_of_a_tree_is_restored(run: Program, world: World) -> None:
    await create(run)
    before = await physical_ids(run)
    path = await snapshot(run)
    await run.update("s", "PUT", template=template(tree(2, 3, 3)), files=FILES)
    assert await run.until_ended("s") == "UPDATE_COMPLETE"
    assert len(await physical_ids(run)) == 9
    await run.stack_request("POST", "s", f"{path}/restore")
    assert await run.until_ended("s") == "RESTORE_COMPLETE"
    assert await physical_ids(run) == before
    assert set(world.things.values()) == {1}
    restored = [call.kept for call in world.calls if call.kept is not None]
    assert {kept["size"] for kept in restored} == {1} and len(restored) == 7


async def test_snapshots_of_nested_stacks_belong_to_that_of_the_root_stack(run: Program) -> None:
    await create(run)
    path = await snapshot(run)
    nested = await nested_stacks(run)
    for one in nested:
        assert (await run.stack_request("GET", one, "/snapshots"))["snapshots"] == []
    query = "select count(*) from snapshot where root_id is not null"
    async with run.database.connection() as conn:
        assert await conn.fetchval(query) == len(nested)
    await run.stack_request("DELETE", "s", path)
    async with run.database.connection() as conn:
        assert await conn.fetchval("select count(*) from snapshot") == 0
        assert await conn.fetchval("select count(*) from resource_snapshot") == 0


async def nested_stacks(run: Program) -> list[str]:
    _, found = await run.call("GET", "/stacks?show_nested=true")
    return [one["stack_name"] for one in found["stacks"] if one["parent"]]


async def test_a_tree_that_heat_exported_is_adopted(run: Program, world: World) -> None:
    """In Heat's form, the entry of a nested stack has no keys of its resource."""
    for name in ("x1", "x2", "y1"):
        world.things[name] = 1

    def stack(name: str, written: Json, resources: Json) -> Json:
        return {"name": name, "id": f"id-of-{name}", "action": "CREATE", "status": "COMPLETE",
                "template": written, "environment": {"parameters": {}}, "files": {},
                "project_id": "p", "stack_user_project_id": "u", "tags": [],
                "resources": resources}  # fmt: skip

    def leaf(name: str, physical_id: str) -> Json:
        return {"name": name, "resource_id": physical_id, "type": "Test::Thing",
                "action": "CREATE", "status": "COMPLETE", "metadata": {},
                "resource_data": {}}  # fmt: skip

    group = template({"0": {"type": "inner.yaml"}})
    exported = stack("s", template({
        "m": {"type": "middle.yaml"},
        "g": {"type": "OS::Heat::ResourceGroup",
              "properties": {"count": 1, "resource_def": {"type": "inner.yaml"}}},
    }), {
        "m": stack("s-m-a", MIDDLE, {
            "in": stack("s-m-in-b", INNER, {"x": leaf("x", "x1")}), "y": leaf("y", "y1")}),
        "g": stack("s-g-c", group, {"0": stack("s-g-0-d", INNER, {"x": leaf("x", "x2")})}),
    }) | {"files": FILES}  # fmt: skip
    body = {"stack_name": "s", "adopt_stack_data": exported}
    status, response = await run.call("POST", "/stacks", body)
    assert status == 201, response
    assert await run.until_ended("s") == "ADOPT_COMPLETE"
    assert await physical_ids(run) == {"in/x": "x1", "m/y": "y1", "0/x": "x2"}
    assert {operation for operation, _ in world.done} == {"check"}
