"""Groups: create, batches, hooks, reads and delete."""

import json

import pytest

from tests.integration.nested.test_lifecycle import FILES, child_of, output
from tests.support.program import Json, Program, eventually, resource, template

TEST_RESOURCE = "OS::Heat::TestResource"


@pytest.fixture
def running(in_own_project: Program) -> Program:
    return in_own_project


def group(count: int = 3, value: Json = "v-%index%", *, policy: Json = None, **more: Json) -> Json:
    body = {"type": TEST_RESOURCE, "properties": {"value": value}}
    group_body = {"type": "OS::Heat::ResourceGroup",
            "properties": {"count": count, "resource_def": body, **more}}  # fmt: skip
    return group_body | ({"update_policy": policy} if policy else {})


def result_output(*attribute: Json) -> Json:
    return {"result": {"value": {"get_attr": ["g", *attribute]}}}


async def values(http: Program, name: str = "s") -> dict[str, Json]:
    """The value of each member of the group."""
    child = await child_of(http, name, "g")
    response = await http.stack_request("GET", child, "/resources?with_detail=true")
    return {one["resource_name"]: one["attributes"]["output"] for one in response["resources"]}


async def change(http: Program, resources: Json, status: str = "UPDATE_COMPLETE") -> None:
    await http.update("s", "PUT", template=template(resources))
    assert await http.until_ended("s") == status


async def test_a_resource_group_is_created_resized_and_deleted(running: Program) -> None:
    outputs = {
        name: {"value": {"get_attr": ["g", *path]}}
        for name, path in {
            "refs": ["refs"], "one": ["resource.1.output"], "each": ["output"],
            "by_name": ["attributes", "output"], "removed": ["removed_rsrc_list"],
        }.items()
    }  # fmt: skip
    after = resource({"list_join": [",", {"get_attr": ["g", "output"]}]})
    sent = {"g": group(), "after": after}
    await running.create("s", sent, template=template(sent, outputs=outputs))
    assert await running.until_ended("s") == "CREATE_COMPLETE"
    assert await output(running, "s", "each") == ["v-0", "v-1", "v-2"]
    assert await output(running, "s", "by_name") == {"0": "v-0", "1": "v-1", "2": "v-2"}
    assert await output(running, "s", "one") == "v-1"
    refs = await output(running, "s", "refs")
    assert len(set(refs)) == 3

    removing = group(2, removal_policies=[{"resource_list": [refs[0]]}])
    sent = {"g": removing, "after": after}
    await running.update("s", "PUT", template=template(sent, outputs=outputs))
    assert await running.until_ended("s") == "UPDATE_COMPLETE"
    assert await output(running, "s", "refs") == refs[1:]
    assert await output(running, "s", "removed") == ["0"]
    there = (await running.stack_request("GET", "s", "/resources/after"))["resource"]["attributes"]
    assert there["output"] == "v-1,v-2"
    attributes = (await running.stack_request("GET", "s", "/resources/g"))["resource"]["attributes"]
    assert attributes == {
        "refs": refs[1:], "refs_map": {"1": refs[1], "2": refs[2]}, "removed_rsrc_list": ["0"]
    }  # fmt: skip

    await change(running, {"g": group(4)})
    assert sorted(await values(running)) == ["1", "2", "3", "4"]
    child = await child_of(running, "s", "g")
    stack = await running.stack("s")
    await running.call("DELETE", f"/stacks/s/{stack['id']}")
    assert await running.until_ended(stack["id"]) == "DELETE_COMPLETE"
    assert (await running.stack(child))["stack_status"] == "DELETE_COMPLETE"


async def test_a_hook_opens_before_each_batch_and_its_answer_chooses_the_members(
    running: Program,
) -> None:
    await running.create("s", {"g": group(4, "v")})
    assert await running.until_ended("s") == "CREATE_COMPLETE"
    rolling = group(4, "w", policy={"rolling_update": {"max_batch_size": 2}})
    hooks = {"hooks": [{"at": "g", "on": "pre-batch"}]}
    await running.update("s", "PUT", template=template({"g": rolling}), environment=hooks)
    (hook,) = await running.waiting_hooks("s")
    assert hook["point"] == "pre-batch"
    assert hook["resource"]["seen"] == {
        "members": ["3", "2"], "may_choose": ["3", "2", "1", "0"],
        "changed": ["3", "2"], "created": [], "removed": [],
    }  # fmt: skip
    for data, message in (
        ({"members": ["9"]}, "cannot be chosen"),
        ({"members": ["0", "1", "2"]}, "Name 1 to 2"),
        ({"members": ["0", "0"]}, "twice"),
        ({"members": []}, "Name 1 to 2"),
        ({"members": "0"}, "not a list of names"),
    ):
        status, refused = await running.signal(hook, data=data)
        assert (status, message in str(refused)) == (400, True), refused
    status, _ = await running.signal(hook, data={"members": ["0"]})
    assert status == 200
    (second,) = await running.waiting_hooks("s")
    assert second["id"] != hook["id"]
    assert await values(running) == {"0": "w", "1": "v", "2": "v", "3": "v"}
    assert (await running.signal(second))[0] == 200
    (third,) = await running.waiting_hooks("s")
    assert await values(running) == {"0": "w", "1": "v", "2": "w", "3": "w"}
    assert (await running.signal(third, "reject", reason="not today"))[0] == 200
    assert await running.until_ended("s") == "UPDATE_FAILED"
    reason = (await running.stack("s"))["stack_status_reason"]
    assert "pre-batch rejected by" in reason
    assert "not today" in reason
    await change(running, {"g": rolling})
    assert await values(running) == dict.fromkeys("0123", "w")


async def test_members_that_a_superseded_batch_has_not_changed_wait_for_their_batch(
    running: Program,
) -> None:
    await running.create("s", {"g": group(2, "v")})
    assert await running.until_ended("s") == "CREATE_COMPLETE"
    both = group(2, "w", policy={"rolling_update": {"max_batch_size": 2}})
    at_members = {"hooks": [{"at": f"g/{name}", "on": "pre-update"} for name in "01"]}
    await running.update("s", "PUT", template=template({"g": both}), environment=at_members)
    assert len(await running.waiting_hooks("s", 2)) == 2
    single = group(2, "x", policy={"rolling_update": {}})
    at_group = {"hooks": [{"at": "g", "on": "pre-batch"}]}
    await running.update("s", "PUT", template=template({"g": single}), environment=at_group)
    (first,) = await running.waiting_hooks("s")
    assert (first["point"], first["resource"]["seen"]["members"]) == ("pre-batch", ["1"])
    assert (await running.signal(first))[0] == 200
    (second,) = await running.waiting_hooks("s")
    assert second["resource"]["seen"]["members"] == ["0"]
    assert await values(running) == {"0": "v", "1": "x"}
    assert (await running.signal(second))[0] == 200
    assert await running.until_ended("s") == "UPDATE_COMPLETE"
    assert await values(running) == {"0": "x", "1": "x"}


async def test_an_answer_chooses_the_removed_members(running: Program) -> None:
    await running.create("s", {"g": group(4)})
    assert await running.until_ended("s") == "CREATE_COMPLETE"
    hooks = {"hooks": [{"at": "g", "on": "pre-scale-in"}]}
    await running.update("s", "PUT", template=template({"g": group(2)}), environment=hooks)
    (hook,) = await running.waiting_hooks("s")
    status, refused = await running.signal(hook, data={"victims": ["0"]})
    assert (status, "Name 2" in str(refused)) == (400, True), refused
    assert (await running.signal(hook, data={"victims": ["0", "3"]}))[0] == 200
    assert await running.until_ended("s") == "UPDATE_COMPLETE"
    assert sorted(await values(running)) == ["1", "2"]


async def test_members_can_be_templates_with_breakpoints_at_their_resources(
    running: Program,
) -> None:
    body = {"type": "inner.yaml", "properties": {"value": "%index%"}}
    group_body = {
        "type": "OS::Heat::ResourceGroup",
        "properties": {"count": 2, "resource_def": body},
    }
    outputs = result_output("result") | {
        "deep": {"value": {"get_attr": ["g", "resource.1.result"]}}
    }
    hooks = {"hooks": [{"at": "g/1/two", "on": "pre-create"}]}
    await running.create(
        "s",
        {},
        template=template({"g": group_body}, outputs=outputs),
        files=FILES,
        environment=hooks,
    )
    hook = await only_waiting_hook(running)
    assert (hook["resource_name"], hook["point"]) == ("two", "pre-create")
    assert (await running.signal(hook))[0] == 200
    assert await running.until_ended("s") == "CREATE_COMPLETE"
    assert await output(running, "s") == ["0", "1"]
    assert await output(running, "s", "deep") == "1"


@pytest.mark.parametrize(
    ("file", "value", "first_batch"),
    [
        # Both members get the new text of a file with the first batch.
        ("inner.yaml", "y", {"0": "x-new", "1": "y-new"}),
        ("second.yaml", "x", {"0": "x", "1": "x-new"}),
    ],
)
async def test_batches_apply_to_a_new_template_of_members_under_another_name(
    running: Program, file: str, value: str, first_batch: Json
) -> None:
    def members(file: str, value: str) -> Json:
        body = {"type": file, "properties": {"value": value}}
        properties = {"count": 2, "resource_def": body}
        policy = {"rolling_update": {"max_batch_size": 1}}
        return {
            "type": "OS::Heat::ResourceGroup", "properties": properties, "update_policy": policy,
        }  # fmt: skip

    async def results() -> Json:
        child = await child_of(running, "s", "g")
        return {
            name: await output(running, one["physical_resource_id"])
            for name, one in (await running.resources(child)).items()
        }

    old = FILES["inner.yaml"]
    joined = '{list_join: ["-", [{get_attr: [two, output]}, new]]}'
    new = old.replace("{get_attr: [two, output]}", joined)
    await running.create("s", {"g": members("inner.yaml", "x")}, files={"inner.yaml": old})
    assert await running.until_ended("s") == "CREATE_COMPLETE"
    before = await running.resources(await child_of(running, "s", "g"))
    hooks = {"hooks": [{"at": "g", "on": "pre-batch"}]}
    wanted = template({"g": members(file, value)})
    await running.update("s", "PUT", template=wanted, files={file: new}, environment=hooks)
    (first,) = await running.waiting_hooks("s")
    assert (await running.signal(first))[0] == 200
    (second,) = await running.waiting_hooks("s")
    assert await results() == first_batch
    assert (await running.signal(second))[0] == 200
    assert await running.until_ended("s") == "UPDATE_COMPLETE"
    assert await results() == dict.fromkeys("01", f"{value}-new")
    after = await running.resources(await child_of(running, "s", "g"))
    assert {one["physical_resource_id"] for one in after.values()} == {
        one["physical_resource_id"] for one in before.values()
    }


async def only_waiting_hook(http: Program) -> Json:
    """The only waiting hook, once there is one."""

    async def found() -> Json:
        waiting = (await http.call("GET", "/hooks?state=waiting"))[1]["hooks"]
        return waiting[0] if waiting else None

    return await eventually(found)


async def test_a_chain_creates_its_members_in_order(running: Program) -> None:
    group_body = {
        "type": "OS::Heat::ResourceChain",
        "properties": {"resources": [TEST_RESOURCE, "OS::Heat::RandomString"],
                       "resource_properties": {}},
    }  # fmt: skip
    await running.create(
        "s", {}, template=template({"g": group_body}, outputs=result_output("refs"))
    )
    assert await running.until_ended("s") == "CREATE_COMPLETE"
    child = await child_of(running, "s", "g")
    assert (await running.resources(child))["1"]["required_by"] == []
    assert (await running.resources(child))["0"]["required_by"] == ["1"]
    assert len(await output(running, "s")) == 2


async def test_a_scaling_group_keeps_its_members_through_updates(running: Program) -> None:
    body = {"type": TEST_RESOURCE, "properties": {"value": "v"}}
    properties = {"resource": body, "min_size": 1, "max_size": 4, "desired_capacity": 3}
    group_body = {"type": "OS::Heat::AutoScalingGroup", "properties": properties}
    outputs = result_output("current_size") | {
        "list": {"value": {"get_attr": ["g", "outputs_list", "output"]}},
        "second": {"value": {"get_attr": ["g", "resource.1.output"]}},
    }
    await running.create("s", {}, template=template({"g": group_body}, outputs=outputs))
    assert await running.until_ended("s") == "CREATE_COMPLETE"
    assert await output(running, "s") == 3
    assert await output(running, "s", "list") == ["v", "v", "v"]
    assert await output(running, "s", "second") == "v"
    names = sorted(await values(running))
    changed = properties | {"resource": body | {"properties": {"value": "w"}}}
    await change(running, {"g": group_body | {"properties": changed}})
    assert await values(running) == dict.fromkeys(names, "w")
    await change(running, {"g": group_body | {"properties": changed | {"desired_capacity": 2}}})
    assert {*await values(running)} < {*names}


INVALID_GROUPS: list[tuple[Json, str]] = [
    (group(2, {"a": 1}), "resources.g.properties.resource_def.properties.value: "),
    (
        {"type": "OS::Heat::ResourceGroup",
         "properties": {"resource_def": {"type": "OS::Heat::TestResourze"}}},
        "resources.g.properties.resource_def.type: The Resource Type (OS::Heat::TestResourze)",
    ),
    (
        {"type": "OS::Heat::ResourceChain",
         "properties": {"resources": [TEST_RESOURCE, "Nope"]}},
        "resources.g.properties.resources[1]: The Resource Type (Nope)",
    ),
    (
        {"type": "OS::Heat::ResourceChain",
         "properties": {"resources": [TEST_RESOURCE], "resource_properties": {"valu": 1}}},
        "resources.g.properties.resource_properties: Unknown Property valu",
    ),
    (
        {"type": "OS::Heat::AutoScalingGroup",
         "properties": {"min_size": 0, "max_size": 1,
                        "resource": {"type": TEST_RESOURCE, "proprties": {}}}},
        "resources.g.properties.resource",
    ),
    (group(2_000_000), "The limit is"),
    (group(-1), "resources.g.properties.count: "),
]  # fmt: skip


async def test_invalid_members_are_refused_before_anything_is_stored(
    running: Program,
) -> None:
    for group_body, message in INVALID_GROUPS:
        status, refused = await running.call(
            "POST", "/stacks", {"stack_name": "s", "template": template({"g": group_body})}
        )
        assert status in (400, 403), refused
        findings = [
            f"{one['place']}: {one['reason']}" for one in refused["error"].get("findings", [])
        ]
        assert any(message in one for one in [*findings, str(refused)]), refused
    assert (await running.call("GET", "/stacks"))[1]["stacks"] == []


async def test_unknown_attributes_of_members_are_refused(
    running: Program,
) -> None:
    for attribute in (["outpt"], ["resource.0.outpt"], ["attributes", "outpt"]):
        sent = template({"g": group()}, outputs=result_output(*attribute))
        status, refused = await running.call(
            "POST", "/stacks", {"stack_name": "s", "template": sent}
        )
        assert (status, "is incorrect" in str(refused)) == (400, True), refused


async def test_secret_attributes_of_members_are_masked_in_the_group(running: Program) -> None:
    group_body = {"type": "OS::Heat::ResourceGroup",
            "properties": {"count": 1, "resource_def": {"type": "OS::Heat::RandomString"}}}  # fmt: skip
    reader = resource({"get_attr": ["g", "refs", 0]})
    outputs = {"secret": {"value": {"get_attr": ["g", "resource.0.value"]}}}
    hooks = {"hooks": [{"at": "after", "on": "pre-create"}]}
    await running.create(
        "s",
        {},
        template=template({"g": group_body, "after": reader}, outputs=outputs),
        environment=hooks,
    )
    (hook,) = await running.waiting_hooks("s")
    assert hook["resource"]["properties"]["value"] == "******"
    assert (await running.signal(hook))[0] == 200
    assert await running.until_ended("s") == "CREATE_COMPLETE"
    secret = await output(running, "s", "secret")
    group_attributes = (await running.stack_request("GET", "s", "/resources/g"))["resource"][
        "attributes"
    ]
    assert group_attributes == {
        "removed_rsrc_list": [], "refs": ["******"], "refs_map": {"0": "******"},
    }  # fmt: skip
    assert secret not in str(await running.resources("s"))
    after = (await running.stack_request("GET", "s", "/resources/after"))["resource"]["attributes"]
    assert after["output"] == "******"


async def test_groups_of_groups_and_groups_in_nested_templates(running: Program) -> None:
    inner = group(2, "%index%-%n%", index_var="%n%")
    group_body = {
        "type": "OS::Heat::ResourceGroup", "properties": {"count": 2, "resource_def": inner},
    }  # fmt: skip
    outer = template(
        {"g": group_body}, outputs={"result": {"value": {"get_attr": ["g", "resource.1.output"]}}}
    )
    files = {"outer.yaml": json.dumps(outer)}
    sent = template(
        {"t": {"type": "outer.yaml"}}, outputs={"result": {"value": {"get_attr": ["t", "result"]}}}
    )
    await running.create("s", {}, template=sent, files=files)
    assert await running.until_ended("s") == "CREATE_COMPLETE"
    assert await output(running, "s") == ["1-0", "1-1"]
    deep = group(1)
    for _ in range(8):
        deep = {"type": "OS::Heat::ResourceGroup", "properties": {"resource_def": deep}}
    status, refused = await running.call(
        "POST", "/stacks", {"stack_name": "deep", "template": template({"g": deep})}
    )
    assert (status, "Recursion depth exceeds 7." in str(refused)) == (400, True), refused


async def test_a_rolling_update_moves_the_template_of_its_members(running: Program) -> None:
    def desired(path: str, value: str) -> Json:
        member = {"type": path, "properties": {"value": value}}
        body = group(3, policy={"rolling_update": {"max_batch_size": 1}})
        body["properties"]["resource_def"] = member
        inner = template(
            {"x": resource({"get_param": "value"})},
            parameters={"value": {"type": "string"}},
            outputs={"value": {"value": {"get_attr": ["x", "output"]}}},
        )
        outputs = {"result": {"value": {"get_attr": ["g", "value"]}}}
        return {
            "template": template({"g": body}, outputs=outputs),
            "files": {path: json.dumps(inner)},
        }

    await running.create("s", {}, **desired("file:///opt/a.yaml", "old"))
    assert await running.until_ended("s") == "CREATE_COMPLETE"
    await running.update("s", "PUT", **desired("file:///opt1/a.yaml", "new"))
    assert await running.until_ended("s") == "UPDATE_COMPLETE", await running.stack("s")
    assert await output(running, "s") == ["new"] * 3


MISSING: dict[str, Json] = {
    "resource group": {"type": "OS::Heat::ResourceGroup",
                       "properties": {"count": 2, "resource_def": {"type": TEST_RESOURCE}}},
    "scaling group": {"type": "OS::Heat::AutoScalingGroup",
                      "properties": {"resource": {"type": TEST_RESOURCE}, "min_size": 2,
                                     "max_size": 4}},
}  # fmt: skip


@pytest.mark.parametrize("kind", MISSING)
@pytest.mark.parametrize("path", [["resource.7", "output"], ["resource.7.output"], ["resource.7"]])
async def test_a_member_that_does_not_exist_is_an_error(
    running: Program, kind: str, path: list[str]
) -> None:
    """As in Heat: an output shows the reason, and a resource that reads it fails."""
    value = {"get_attr": ["g", *path]}
    reader = {"type": TEST_RESOURCE, "properties": {"value": {"str_split": [",", value]}}}
    outputs = {"result": {"value": value}}
    body = template({"g": MISSING[kind]}, outputs=outputs)
    await running.create("s", {}, template=body)
    assert await running.until_ended("s") == "CREATE_COMPLETE"
    (shown,) = (await running.stack("s"))["outputs"]
    assert shown["output_value"] is None and "there is no member" in shown["output_error"]
    body["resources"]["reader"] = reader
    await running.update("s", "PUT", template=body)
    assert await running.until_ended("s") == "UPDATE_FAILED"
    reason = (await running.resources("s"))["reader"]["resource_status_reason"]
    assert "there is no member" in reason
