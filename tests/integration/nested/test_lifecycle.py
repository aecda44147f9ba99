"""Nested stacks: create, update, no change, rollback and delete."""

from tests.support.program import Json, Program, resource

INNER = """
heat_template_version: 2018-08-31
parameters:
  value: {type: string, default: usual}
  fail: {type: boolean, default: false}
resources:
  one:
    type: OS::Heat::TestResource
    properties: {value: {get_param: value}}
  two:
    type: OS::Heat::TestResource
    properties: {value: {get_attr: [one, output]}, fail: {get_param: fail}}
outputs:
  result: {value: {get_attr: [two, output]}}
"""
OUTER = """
heat_template_version: 2018-08-31
parameters:
  value: {type: string}
resources:
  inner:
    type: inner.yaml
    properties: {value: {get_param: value}}
outputs:
  result: {value: {get_attr: [inner, result]}}
"""
FILES = {"inner.yaml": INNER, "outer.yaml": OUTER}


def nested(value: Json = "x", file: str = "inner.yaml", **more: Json) -> Json:
    return {"type": file, "properties": {"value": value}, **more}


async def output(http: Program, name: str, key: str = "result") -> Json:
    return next(o["output_value"] for o in (await http.stack(name))["outputs"]
                if o["output_key"] == key)  # fmt: skip


async def child_of(http: Program, name: str, resource_name: str) -> str:
    return str((await http.resources(name))[resource_name]["physical_resource_id"])


async def test_a_nested_stack_is_created_updated_and_deleted(running: Program) -> None:
    resources = {
        "web": nested("first"),
        "after": resource({"get_attr": ["web", "result"]}),
    }
    await running.create("s", resources, files=FILES)
    assert await running.until_ended("s") == "CREATE_COMPLETE"
    created = await running.resources("s")
    child = created["web"]["physical_resource_id"]
    assert (await running.stack(child))["stack_status"] == "CREATE_COMPLETE"
    nested_resources = await running.resources(child)
    assert {name: one["resource_status"] for name, one in nested_resources.items()} == {
        "one": "CREATE_COMPLETE", "two": "CREATE_COMPLETE"
    }  # fmt: skip
    assert (await running.stack_request("GET", "s", "/resources/after"))["resource"]["attributes"][
        "output"
    ] == "first"

    resources["web"] = nested("second")
    await running.update("s", "PUT", template={"heat_template_version": "2018-08-31",
                                               "resources": resources}, files=FILES)  # fmt: skip
    assert await running.until_ended("s") == "UPDATE_COMPLETE"
    assert await child_of(running, "s", "web") == child
    assert (await running.stack(child))["stack_status"] == "UPDATE_COMPLETE"
    assert (await running.stack_request("GET", "s", "/resources/after"))["resource"]["attributes"][
        "output"
    ] == "second"

    stack = await running.stack("s")
    status, _ = await running.call("DELETE", f"/stacks/s/{stack['id']}")
    assert status == 204
    assert await running.until_ended(stack["id"]) == "DELETE_COMPLETE"
    assert (await running.stack(child))["stack_status"] == "DELETE_COMPLETE"
