"""The section `data`: things that a stack reads and does not own."""

import pytest

from engine.types.contract import Failed
from tests.support.changes import (
    expect_error,
    thing,
    until_complete,
    until_deleted,
    until_status,
)
from tests.support.program import Json, Program
from tests.support.scripted_type import World

SIZE = {"get_attr": ["data.net", "size"]}


@pytest.fixture
def run(things_in_own_project: Program) -> Program:
    return things_in_own_project


def headgate(resources: Json, data: Json = None, **more: Json) -> Json:
    given = {"net": {"type": "Test::Thing", "id": "n-1"}} if data is None else data
    return {"heat_template_version": "headgate", "data": given, "resources": resources, **more}


async def create(run: Program, template: Json, status: str = "CREATE_COMPLETE") -> None:
    code, response = await run.call("POST", "/stacks", {"stack_name": "s", "template": template})
    assert code == 201, response
    assert await run.until_ended("s") == status


async def update(run: Program, template: Json, **more: Json) -> None:
    await run.update("s", "PUT", template=template, **more)
    await until_complete(run, "s")


async def test_it_is_read_before_its_dependents_and_never_changed(
    run: Program, world: World
) -> None:
    world.things["n-1"] = 5
    template = headgate({"a": thing(SIZE)}, outputs={"size": {"value": SIZE}})
    await create(run, template)
    assert world.operations("a") == ["create"]
    assert sorted(world.things.values()) == [5, 5]
    (output,) = (await run.stack("s"))["outputs"]
    assert output["output_value"] == 5
    found = (await run.resources("s"))["data.net"]
    assert found["physical_resource_id"] == "n-1"
    for action in ("suspend", "resume"):
        await run.act("s", action)
        await until_status(run, "s", f"{action.upper()}_COMPLETE")
    assert not {"suspend", "resume"} & {*world.operations("data.net")}
    await run.stack_request("DELETE", "s", "")
    await until_deleted(run, "s")
    assert world.things == {"n-1": 5}


async def test_every_update_reads_it_again(run: Program, world: World) -> None:
    world.things["n-1"] = 5
    template = headgate({"a": thing(SIZE), "b": thing(1)})
    await create(run, template)
    world.things["n-1"] = 6
    await update(run, template)
    assert world.operations("a") == ["create", "update"]
    assert world.operations("b") == ["create"]
    await update(run, template)
    assert world.operations("a") == ["create", "update"]


async def preview(run: Program, template: Json, **more: Json) -> Json:
    body = {"template": template, **more}
    shown = await run.stack_request("PUT", "s", "/preview", body)
    return {
        kind: [one["resource_name"] for one in found]
        for kind, found in shown["resource_changes"].items()
    }


async def test_previews_show_what_was_read_last(run: Program, world: World) -> None:
    world.things |= {"n-1": 5, "n-2": 7}
    template = headgate({"a": thing(SIZE), "b": thing(1)})
    status, shown = await run.call(
        "POST", "/stacks/preview", {"stack_name": "s", "template": template}
    )
    assert status == 200
    unknown = {one["resource_name"]: one["unknown"] for one in shown["stack"]["resources"]}
    assert unknown == {"a": ["size"], "b": [], "data.net": []}
    await create(run, template)
    changes = await preview(run, template)
    assert sorted(changes.pop("unchanged")) == ["a", "b", "data.net"]
    assert changes == {"added": [], "updated": [], "replaced": [], "deleted": []}
    other = headgate(template["resources"], {"net": {"type": "Test::Thing", "id": "n-2"}})
    changes = await preview(run, other)
    assert (sorted(changes["updated"]), changes["unchanged"]) == (["a", "data.net"], ["b"])
    await update(run, other)
    assert (await run.resources("s"))["data.net"]["physical_resource_id"] == "n-2"
    a = (await run.resources("s"))["a"]["physical_resource_id"]
    assert world.things["n-1"] == 5 and world.things[a] == 7


async def test_what_does_not_exist_fails_until_it_does(run: Program, world: World) -> None:
    template = headgate({"a": thing(SIZE)})
    await create(run, template, "CREATE_FAILED")
    found = (await run.resources("s"))["data.net"]
    assert "it is gone" in found["resource_status_reason"]
    assert world.operations("a") == []
    world.things["n-1"] = 5
    await update(run, template)
    assert world.operations("a") == ["create"]
    del world.things["n-1"]
    await run.update("s", "PUT", template=template)
    await until_status(run, "s", "UPDATE_FAILED")
    world.things["n-1"] = 5
    await update(run, template)
    assert world.operations("a") == ["create"]


async def test_a_partial_update_reads_what_it_needs(run: Program, world: World) -> None:
    world.things |= {"n-1": 5, "n-2": 7}
    data = {
        "net": {"type": "Test::Thing", "id": "n-1"},
        "far": {"type": "Test::Thing", "id": "n-2"},
    }
    template = headgate({"a": thing(SIZE), "b": thing(1), "c": thing(SIZE)}, data)
    await create(run, template)
    world.things["n-1"] = 6
    del world.things["n-2"]  # it is not read
    changed = headgate(template["resources"] | {"b": thing(2)}, data)
    await update(run, changed, only=["b"])
    assert world.operations("data.net") == ["check"] == world.operations("data.far")
    assert world.operations("a") == ["create"]
    await update(run, changed, only=["data.net", "a"])
    assert world.operations("a") == ["create", "update"]
    assert world.operations("c") == ["create"]
    place = headgate(changed["resources"] | {"c": thing(SIZE, place="there")}, data)
    shown = await run.stack_request("PUT", "s", "/preview", {"template": place, "only": ["c"]})
    assert shown["out_of_date"] == []
    await update(run, place, only=["c"])
    assert world.operations("data.net") == ["check"] * 3


async def test_data_and_resources_do_not_become_each_other(run: Program, world: World) -> None:
    world.things["n-1"] = 5
    template = headgate({"data.own": thing(1), "a": thing(SIZE)})
    await create(run, template)
    own = {"type": "Test::Thing", "id": "n-1"}
    kind = {"type": "OS::Heat::Value", "id": "n-1"}
    for data, name in (({"net": own, "own": own}, "data.own"), ({"net": kind}, "data.net")):
        resources = {"a": thing(1)}
        status, error = await expect_error(
            run, "PUT", "s", "", {"template": headgate(resources, data)}
        )
        assert status == 400 and f"{name}: " in error["message"]
        assert "Choose another name for the data." in error["message"]
    await update(run, headgate({"data.own": thing(1), "a": thing(1)}, {}))
    assert world.things["n-1"] == 5 and "data.net" not in await run.resources("s")


async def test_nested_stacks_and_loops_read_data(run: Program, world: World) -> None:
    world.things |= {"n-1": 5, "n-2": 7}
    inner = """
heat_template_version: headgate
parameters: {ids: {type: json}}
data: {each: {type: "Test::Thing", for_each: {get_param: ids}, id: "${each.value}"}}
resources: {}
outputs: {sizes: {value: {get_attr: [data.each, size]}}}
"""
    nested = {"type": "inner.yaml", "properties": {"ids": {"x": "n-1", "y": "n-2"}}}
    template = headgate({"n": nested}, {}, outputs={"o": {"value": {"get_attr": ["n", "sizes"]}}})
    files = {"inner.yaml": inner}
    body = {"stack_name": "s", "template": template, "files": files}
    assert (await run.call("POST", "/stacks", body))[0] == 201
    assert await run.until_ended("s") == "CREATE_COMPLETE"
    changes = await preview(run, template, files=files)
    assert {kind: found for kind, found in changes.items() if found} == {"unchanged": ["n"]}
    world.things["n-2"] = 8
    await update(run, template, files=files)
    (output,) = (await run.stack("s"))["outputs"]
    assert output["output_value"] == {"x": 5, "y": 8}
    await run.stack_request("DELETE", "s", "")
    await until_deleted(run, "s")
    assert world.things == {"n-1": 5, "n-2": 8}


async def test_snapshots_rollbacks_and_adoptions_leave_it_alone(run: Program, world: World) -> None:
    world.things["n-1"] = 5
    template = headgate({"a": thing(SIZE)})
    await create(run, template)
    kept = await run.stack_request("POST", "s", "/snapshots", {"name": "kept"})
    await until_status(run, "s", "SNAPSHOT_COMPLETE")
    assert "snapshot" not in world.operations("data.net")
    await run.stack_request("POST", "s", f"/snapshots/{kept['id']}/restore", {})
    await until_status(run, "s", "RESTORE_COMPLETE")
    world.script("create", "bad", Failed("no"))
    broken = headgate(
        {"a": thing(SIZE), "bad": thing()},
        {"net": {"type": "Test::Thing", "id": "n-1"}, "new": {"type": "Test::Thing", "id": "n-1"}},
    )
    await run.update("s", "PUT", template=broken, disable_rollback=False)
    await until_status(run, "s", "ROLLBACK_COMPLETE")
    assert sorted(await run.resources("s")) == ["a", "data.net"]
    export = await run.stack_request("DELETE", "s", "/abandon")
    things = dict(world.things)
    body = {"stack_name": "t", "template": template, "adopt_stack_data": export}
    assert (await run.call("POST", "/stacks", body))[0] == 201
    assert await run.until_ended("t") == "ADOPT_COMPLETE"
    assert world.things == things
    await run.act("t", "check")
    await until_status(run, "t", "CHECK_COMPLETE")
    assert {*world.operations("data.net")} == {"check"}
