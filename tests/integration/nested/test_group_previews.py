"""Dry runs of groups: each member, as far as it is known."""

import json

import pytest

from tests.integration.nested.test_dry_run import kinds, names
from tests.support.program import Json, Program, resource, template

MEMBER: Json = {"type": "OS::Heat::TestResource", "properties": {"value": "m-%index%"}}


@pytest.fixture
def running(in_own_project: Program) -> Program:
    return in_own_project


def numbered(count: Json, member: Json = MEMBER, **more: Json) -> Json:
    properties = {"count": count, "resource_def": member, **more}
    return {"type": "OS::Heat::ResourceGroup", "properties": properties}


def scaled(size: int, value: Json, **more: Json) -> Json:
    properties = {
        "min_size": 0,
        "max_size": 9,
        "desired_capacity": size,
        "resource": resource(value),
    }
    return {"type": "OS::Heat::AutoScalingGroup", "properties": properties | more}


async def preview_create(run: Program, resources: Json, **body: Json) -> Json:
    sent = {"stack_name": "s", "template": template(resources), **body}
    status, response = await run.call("POST", "/stacks/preview", sent)
    assert status == 200, response
    return response["stack"]


async def preview_update(run: Program, resources: Json, **body: Json) -> Json:
    sent = {"template": template(resources), **body}
    return await run.stack_request("PUT", "s", "/preview?show_nested=True", sent)


def by_path(preview: Json) -> dict[str, Json]:
    return {one["path"]: one for found in preview["resource_changes"].values() for one in found}


async def test_the_members_of_new_groups_are_listed(running: Program) -> None:
    late = {"get_attr": ["a", "output"]}
    chain: Json = {"type": "OS::Heat::ResourceChain", "properties": {
        "resources": ["OS::Heat::TestResource", "OS::Heat::RandomString"],
        "resource_properties": {"get_attr": ["a", "output"]},
    }}  # fmt: skip
    mixed = {"type": "OS::Heat::TestResource",
             "properties": {"value": late, "client_name": "c%index%"}}  # fmt: skip
    found = await preview_create(running, {
        "a": resource(), "g": numbered(2, mixed), "s": scaled(2, "x"), "c": chain,
        "late": numbered(late),
    })  # fmt: skip
    assert kinds(found) == dict.fromkeys(
        ["a", "c", "c/0", "c/1", "g", "g/0", "g/1", "late", "s", "s/new-1", "s/new-2"], "added"
    )
    member = by_path(found)["g/1"]
    assert member["unknown"] == ["value"] and member["changes"]["client_name"] == {"to": "c1"}
    assert member["stack_name"] == "s-g" and member["parent_resource"] == "g"
    assert names(found["resources"]) == ["a", ["0", "1"], ["0", "1"], "late", ["new-1", "new-2"]]
    status, _ = await running.call("POST", "/stacks", {
        "stack_name": "s", "plan_digest": found["plan_digest"],
        "template": template({
            "a": resource(), "g": numbered(2, mixed), "s": scaled(2, "x"), "c": chain,
            "late": numbered(late),
        }),
    })  # fmt: skip
    assert status == 201


async def test_two_previews_of_the_same_change_are_equal(running: Program) -> None:
    files = {"in.yaml": json.dumps(template({"x": resource()}))}
    resources = {"t": {"type": "in.yaml"}, "s": scaled(1, "x")}
    first = await preview_create(running, resources, files=files)
    assert first == await preview_create(running, resources, files=files)
    assert by_path(first)["t/x"]["stack_name"] == "s-t"


async def test_attributes_and_types_are_as_in_heat(running: Program) -> None:
    environment = {"resource_registry": {"My::Type": "OS::Heat::TestResource"}}
    found = await preview_create(running, {"a": {"type": "My::Type"}}, environment=environment)
    (one,) = found["resources"]
    assert one["attributes"] == {"output": None}
    assert one["resource_type"] == "My::Type"
    assert one["headgate_resolved_type"] == "OS::Heat::TestResource"


async def test_members_of_changed_groups(running: Program) -> None:
    await running.create("s", {"g": numbered(3), "s": scaled(2, "x"), "same": numbered(1)})
    assert await running.until_ended("s") == "CREATE_COMPLETE"
    changed = {"type": "OS::Heat::TestResource", "properties": {"value": "n-%index%"}}
    removed = [{"resource_list": ["1"]}]
    found = await preview_update(running, {
        "g": numbered(3, changed, removal_policies=removed), "s": scaled(3, "x"),
        "same": numbered(1),
    })  # fmt: skip
    shown = kinds(found)
    assert {path: kind for path, kind in shown.items() if path.startswith("g")} == {
        "g": "updated", "g/0": "updated", "g/1": "deleted", "g/2": "updated", "g/3": "added",
    }  # fmt: skip
    assert by_path(found)["g/0"]["changes"]["value"] == {"from": "m-0", "to": "n-0"}
    assert shown["s/new-1"] == "added" and shown["same/0"] == "unchanged"
    assert sorted(kind for path, kind in shown.items() if path.startswith("s/")) == [
        "added", "unchanged", "unchanged",
    ]  # fmt: skip


async def test_a_rolling_update_that_grows_temporarily_ends_with_other_members(
    running: Program,
) -> None:
    rolling = {"rolling_updates": {"min_in_service": 3, "max_batch_size": 1}}
    await running.create("s", {"s": scaled(3, "x", **rolling)})
    assert await running.until_ended("s") == "CREATE_COMPLETE"
    wanted = {"s": scaled(3, "y", **rolling)}
    found = kinds(await preview_update(running, wanted))
    assert sorted(found.values()) == ["added", "deleted", "updated", "updated", "updated"]
    deleted = next(path for path, kind in found.items() if kind == "deleted")
    await running.update("s", template=template(wanted))
    assert await running.until_ended("s") == "UPDATE_COMPLETE"
    rows = await running.stack_request("GET", "s", "/resources?nested_depth=1")
    left = {one["resource_name"] for one in rows["resources"]}
    assert deleted.removeprefix("s/") not in left and len(left) == 4


async def test_the_secrets_of_members_are_masked(running: Program) -> None:
    body: Json = {"parameters": {"secret": {"type": "string", "hidden": True, "default": "s3cret"}}}
    member = {"type": "OS::Heat::TestResource", "properties": {
        "value": {"get_param": "secret"}, "client_name": {"get_attr": ["a", "output"]},
    }}  # fmt: skip
    found = await preview_create(
        running, {}, template=template({"a": resource(), "g": numbered(1, member)}, **body)
    )
    assert by_path(found)["g/0"]["changes"]["value"] == {"to": "******"}
    assert by_path(found)["g/0"]["unknown"] == ["client_name"]
    assert "s3cret" not in json.dumps(found)


async def test_the_instances_of_a_group_are_listed(running: Program) -> None:
    group = {"type": "OS::Heat::InstanceGroup", "properties": {
        "AvailabilityZones": ["nova"], "Size": 2,
        "LaunchConfigurationName": {"get_resource": "conf"},
    }}  # fmt: skip
    conf = {"type": "AWS::AutoScaling::LaunchConfiguration",
            "properties": {"ImageId": "i", "InstanceType": "t"}}  # fmt: skip
    environment = {"resource_registry": {"AWS::EC2::Instance": "instance.yaml"}}
    instance = template(
        {"x": resource({"get_param": "ImageId"})},
        parameters={"ImageId": {"type": "string"}, "InstanceType": {"type": "string"}},
    )
    files = {"instance.yaml": json.dumps(instance)}
    found = await preview_create(
        running, {"conf": conf, "g": group}, environment=environment, files=files
    )
    assert by_path(found)["g/new-1/x"]["changes"]["value"] == {"to": "i"}
    assert by_path(found)["g/new-2"]["resource_type"] == "AWS::EC2::Instance"


async def test_a_replacement_that_the_type_decides_is_previewed(running: Program) -> None:
    await running.create("s", {"a": resource("x")})
    assert await running.until_ended("s") == "CREATE_COMPLETE"
    wanted = {"a": resource("y")}
    assert kinds(await preview_update(running, wanted)) == {"a": "updated"}
    wanted["a"]["properties"]["update_replace"] = True
    assert kinds(await preview_update(running, wanted)) == {"a": "replaced"}
    wanted["a"]["properties"]["value"] = {"get_resource": "b"}
    found = await preview_update(running, wanted | {"b": resource()})
    assert kinds(found)["a"] == "updated" and not by_path(found)["a"]["certain"]


async def test_the_old_nested_stack_of_a_replaced_resource_is_listed(running: Program) -> None:
    files = {"in.yaml": json.dumps(template({"x": resource()}))}
    await running.create("s", {"t": {"type": "in.yaml"}}, files=files)
    assert await running.until_ended("s") == "CREATE_COMPLETE"
    found = await preview_update(running, {"t": numbered(1)}, files=files)
    assert kinds(found) == {"t": "replaced", "t/0": "added", "t/x": "deleted"}


async def test_a_group_with_too_many_members_is_one_resource(running: Program) -> None:
    group = {"type": "OS::Heat::InstanceGroup", "properties": {
        "AvailabilityZones": ["nova"], "Size": 999_999_999,
        "LaunchConfigurationName": {"get_resource": "conf"},
    }}  # fmt: skip
    conf = {"type": "AWS::AutoScaling::LaunchConfiguration", "properties": {"ImageId": "i"}}
    environment = {"resource_registry": {"AWS::EC2::Instance": "OS::Heat::None"}}
    found = await preview_create(running, {"conf": conf, "g": group}, environment=environment)
    assert kinds(found) == {"conf": "added", "g": "added"}


async def test_values_that_only_the_preview_knows_are_checked_and_converted(
    running: Program,
) -> None:
    """They come from attributes, which an update reads from the recorded state."""
    known: Json = {"get_attr": ["a", "output"]}
    groups = {
        "count": numbered(known),
        "policies": numbered(1, removal_policies=known),
        "smallest": scaled(2, "x", min_size=known),
        "batches": scaled(1, "x", rolling_updates=known),
        "chain": {"type": "OS::Heat::ResourceChain", "properties": {"resources": known}},
    }
    listed: dict[str, list[str]] = {}
    for value in ("3", "x"):
        first = {"a": resource(value)}
        name = f"s-{value}"
        await running.create(name, first)
        assert await running.until_ended(name) == "CREATE_COMPLETE"
        sent = {"template": template({**first, **groups})}
        preview = await running.stack_request("PUT", name, "/preview?show_nested=True", sent)
        paths = by_path(preview)
        assert paths.keys() >= groups.keys()
        listed[value] = sorted(path for path in paths if path.startswith(("count/", "smallest/")))
    # As text, the number is converted as the operation does; other values make it fail.
    assert [path.partition("/")[0] for path in listed["3"]] == ["count"] * 3 + ["smallest"] * 3
    assert listed["x"] == []
