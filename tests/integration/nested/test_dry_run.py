"""Dry runs of changes in a stack tree, with the breakpoints where they would stop."""

import json

import pytest

from tests.integration.nested.test_breakpoints import DB, DISK, FILES, web
from tests.support.changes import expect_error
from tests.support.program import Json, Program, resource, template

RULES = {"hooks": [
    {"at": "web", "on": ["pre-create", "post-create", "pre-update"]},
    {"at": DISK, "on": ["pre-create", "pre-update"]},
    {"at": "web/server", "on": "pre-delete"},
]}  # fmt: skip


@pytest.fixture
def running(in_own_project: Program) -> Program:
    return in_own_project


def kinds(preview: Json) -> dict[str, str]:
    return {
        one["path"]: kind
        for kind, found in preview["resource_changes"].items()
        for one in found
    }  # fmt: skip


def names(found: Json) -> Json:
    return [names(one) if isinstance(one, list) else one["resource_name"] for one in found]


def stops(preview: Json) -> list[str]:
    return [f"{one['path']}:{one['point']}" for one in preview["stops"]]


async def preview(run: Program, body: Json, query: str = "?show_nested=True") -> Json:
    return await run.stack_request("PUT", "s", f"/preview{query}", {"files": FILES, **body})


async def test_the_id_of_a_new_stack_is_unknown_in_a_dry_run(running: Program) -> None:
    """Neither is the name of a nested stack. A digest of such a plan is accepted."""
    name_and_id = {
        "list_join": ["", [{"get_param": "OS::stack_name"}, {"get_param": "OS::stack_id"}]]
    }
    nested_template = template({"x": resource({"get_param": "OS::stack_name"})})
    body = {
        "stack_name": "s", "files": {"in.yaml": json.dumps(nested_template)},
        "template": template(
            {"a": resource(name_and_id), "b": resource({"get_param": "OS::stack_name"}),
             "c": {"type": "in.yaml"}},
            outputs={"id": {"value": {"get_param": "OS::stack_id"}}, "known": {"value": {"a": None}},
                     "late": {"value": ["x", {"get_attr": ["a", "output"]}]}},
        ),
    }  # fmt: skip
    status, response = await running.call("POST", "/stacks/preview", body)
    assert status == 200, response
    by_path = {one["path"]: one for one in response["stack"]["resource_changes"]["added"]}
    assert by_path["a"]["unknown"] == by_path["c/x"]["unknown"] == ["value"]
    assert by_path["b"]["changes"]["value"] == {"to": "s"}
    assert response["stack"]["parameters"]["OS::stack_id"] == "None"
    assert [(one["output_key"], one["output_value"], one["unknown"])
            for one in response["stack"]["outputs"]] == [
        ("id", None, True), ("known", {"a": None}, False), ("late", None, True),
    ]  # fmt: skip
    digest = response["stack"]["plan_digest"]
    assert (await running.call("POST", "/stacks", body | {"plan_digest": digest}))[0] == 201


async def test_the_stack_id_is_unknown_in_a_dry_run_of_a_cloudformation_template(
    running: Program,
) -> None:
    stack_id = "AWS::StackId"
    a = {"Type": "OS::Heat::TestResource", "Properties": {"value": {"Ref": stack_id}}}
    sent = {"HeatTemplateFormatVersion": "2012-12-12", "Resources": {"a": a}}
    status, response = await running.call(
        "POST", "/stacks/preview", {"stack_name": "s", "template": sent}
    )
    assert status == 200, response
    (one,) = response["stack"]["resource_changes"]["added"]
    assert one["unknown"] == ["value"] and response["stack"]["parameters"][stack_id] == "None"


async def test_a_dry_run_of_a_create(running: Program) -> None:
    unknown_size: Json = {"type": "db.yaml", "properties": {"size": {"get_attr": ["a", "output"]}}}
    files = FILES | {"late.yaml": DB.replace("resources:", "resources:\n  more:\n"
        "    type: OS::Heat::TestResource\n    properties: {value: known}")}  # fmt: skip
    body = {
        "stack_name": "s", "files": files, "environment": RULES,
        "template": template(web() | {"a": resource(), "late": unknown_size | {"type": "late.yaml"}}),
    }  # fmt: skip
    status, response = await running.call("POST", "/stacks/preview", body)
    assert status == 200, response
    stack = response["stack"]
    assert kinds(stack) == dict.fromkeys(
        ["a", "late", "late/disk", "late/more", "web", "web/db", DISK, "web/server"], "added"
    )
    assert stops(stack) == [
        "web:pre-create", f"{DISK}:pre-create", "web:post-create",
    ]  # fmt: skip
    by_path = {one["path"]: one for one in stack["resource_changes"]["added"]}
    assert by_path[DISK]["changes"]["value"] == {"to": "small"}
    assert by_path["late/more"]["changes"]["value"] == {"to": "known"}
    # The value is unknown before `a` is created.
    assert by_path["late/disk"]["unknown"] == ["value"]
    assert by_path[DISK]["parent_resource"] == "db"
    assert by_path[DISK]["stack_name"].startswith("s-web-")
    # As in Heat: a list for a resource with a nested stack.
    assert names(stack["resources"]) == ["a", ["disk", "more"], [["disk"], "server"]]
    assert (await running.call("GET", "/stacks/s"))[0] == 404


async def test_dry_runs_of_updates_and_deletes(running: Program) -> None:
    resources = web() | {"x": resource()}
    await running.create("s", resources, files=FILES)
    assert await running.until_ended("s") == "CREATE_COMPLETE"
    body: Json = {"template": template(resources | web("large")), "environment": RULES}
    found = await preview(running, body)
    assert kinds(found) == {
        "web": "updated", "web/db": "updated", DISK: "updated", "web/server": "unchanged",
        "x": "unchanged",
    }  # fmt: skip
    assert stops(found) == ["web:pre-update", f"{DISK}:pre-update"]
    (disk,) = [one for one in found["resource_changes"]["updated"] if one["path"] == DISK]
    assert disk["changes"]["value"] == {"from": "small", "to": "large"}
    assert disk["stack_identity"]["stack_id"] != "None" and disk["physical_resource_id"]
    assert set(kinds(await preview(running, body, ""))) == {"web", "x"}

    reduced_files = FILES | {"web.yaml": FILES["web.yaml"].partition("  server:")[0]}
    found = await preview(running, body | {"files": reduced_files, "template": template(resources)})
    assert kinds(found)["web/server"] == "deleted" and kinds(found)[DISK] == "unchanged"

    await running.stack_request(
        "POST", "s", "/breakpoints", {"breakpoints": ["web/server:pre-delete"]}
    )
    found = await preview(running, {"template": template({"x": resource()})})
    assert kinds(found) == dict.fromkeys(["web", "web/db", DISK, "web/server"], "deleted") | {
        "x": "unchanged"
    }
    assert stops(found) == ["web/server:pre-delete"]


async def test_a_digest_is_refused_after_a_change_in_a_nested_stack(
    running: Program,
) -> None:
    await running.create("s", web(), files=FILES)
    assert await running.until_ended("s") == "CREATE_COMPLETE"
    body: Json = {"template": template(web("large")), "files": FILES}
    digest = (await preview(running, body))["plan_digest"]
    assert digest == (await preview(running, body, ""))["plan_digest"]
    await running.stack_request(
        "POST", "s", "/breakpoints", {"breakpoints": [f"{DISK}:pre-update"]}
    )
    status, error = await expect_error(running, "PUT", "s", "", body | {"plan_digest": digest})
    assert (status, error["type"]) == (409, "PlanChanged")
    digest = (await preview(running, body))["plan_digest"]
    await running.stack_request("PUT", "s", "", body | {"plan_digest": digest})
    (hook,) = await running.waiting_hooks("s")
    assert hook["path"] == DISK


async def test_a_resource_that_an_earlier_change_has_replaced_is_listed(running: Program) -> None:
    """The update that replaced it failed before it deleted it."""

    def resources(value: str, fail: bool) -> Json:
        other = resource("x", depends_on="a")
        other["properties"]["fail"] = fail
        one = resource()
        one["properties"]["update_replace_value"] = value
        return {"a": one, "b": other}

    await running.create("s", resources("1", False))
    await running.until_ended("s")
    old = (await running.resources("s"))["a"]["physical_resource_id"]
    await running.update("s", "PUT", template=template(resources("2", True)))
    assert await running.until_ended("s") == "UPDATE_FAILED"
    shown = await preview(running, {"template": template(resources("2", False))})
    found = shown["resource_changes"]
    assert [(one["path"], one["physical_resource_id"]) for one in found["deleted"]] == [("a", old)]
    assert [one["path"] for one in found["unchanged"]] == ["a"]


async def test_changes_in_a_nested_stack_that_may_not_change_are_uncertain(
    running: Program,
) -> None:
    """The value that its group reads may be the same after a replacement."""
    member = {"type": "in.yaml", "properties": {"value": {"get_attr": ["a", "output"]}}}
    inner = template(
        {"x": resource({"get_param": "value"})}, parameters={"value": {"type": "string"}}
    )
    files = {"in.yaml": json.dumps(inner)}
    group = {"type": "OS::Heat::ResourceGroup", "properties": {"count": 1, "resource_def": member}}

    def resources(value: str) -> Json:
        one = resource()
        one["properties"]["update_replace_value"] = value
        return {"a": one, "g": group}

    await running.create("s", resources("1"), files=files)
    await running.until_ended("s")
    shown = await preview(running, {"template": template(resources("2")), "files": files})
    changes = {
        one["path"]: (kind, one["certain"])
        for kind, found in shown["resource_changes"].items()
        for one in found
    }
    assert changes == {"a": ("replaced", True), "g": ("updated", True),
                       "g/0": ("updated", False), "g/0/x": ("updated", False)}  # fmt: skip


async def test_readers_of_a_resource_that_may_be_replaced_are_uncertain(running: Program) -> None:
    def resources(value: str) -> Json:
        lifecycle = {"replace_when": [{"get_attr": ["a", "output"]}]}
        return {
            "a": resource(value),
            "b": resource("x", lifecycle=lifecycle),
            "c": resource({"get_resource": "b"}),
        }

    def body(value: str) -> Json:
        return {"template": template(resources(value), heat_template_version="headgate")}

    await running.call("POST", "/stacks", {"stack_name": "s", **body("1")})
    await running.until_ended("s")
    shown = await preview(running, body("2"))
    changes = {
        one["path"]: one["certain"] for found in shown["resource_changes"].values() for one in found
    }
    assert changes == {"a": True, "b": False, "c": False}


async def test_what_is_in_a_nested_stack_that_may_be_replaced_is_uncertain(
    running: Program,
) -> None:
    files = {"in.yaml": json.dumps(template({"x": resource()}))}

    def body(value: str) -> Json:
        lifecycle = {"replace_when": [{"get_attr": ["a", "output"]}]}
        resources = {"a": resource(value), "n": {"type": "in.yaml", "lifecycle": lifecycle}}
        return {"template": template(resources, heat_template_version="headgate"), "files": files}

    await running.call("POST", "/stacks", {"stack_name": "s", **body("1")})
    await running.until_ended("s")
    shown = await preview(running, body("2"))
    changes = {
        one["path"]: one["certain"] for found in shown["resource_changes"].values() for one in found
    }
    assert changes == {"a": True, "n": False, "n/x": False}


async def test_a_dry_run_of_an_update_that_resumes_nested_stacks_has_their_parameters(
    running: Program,
) -> None:
    """Nothing differs, so that the update only resumes them."""
    parameters = {"needed": {"type": "string"}, "value": {"type": "string", "default": "x"}}
    inside = template({"x": resource({"get_param": "value"})}, parameters=parameters)
    files = {"in.yaml": json.dumps(inside)}
    nested = {"type": "in.yaml", "properties": {"needed": "n", "value": "y"}}
    chain = {"type": "OS::Heat::ResourceChain", "properties": {
        "resources": ["in.yaml"], "resource_properties": {"needed": "n", "value": "y"},
    }}  # fmt: skip
    body = {"template": template({"n": nested, "chain": chain}), "files": files}
    await running.create("s", {"n": nested, "chain": chain}, files=files)
    assert await running.until_ended("s") == "CREATE_COMPLETE"
    await running.act("s", "suspend")
    assert await running.until_ended("s") == "SUSPEND_COMPLETE"
    found = await preview(running, body)
    updated = {one["path"]: one["changes"] for one in found["resource_changes"]["updated"]}
    assert {*updated} == {"chain", "chain/0", "chain/0/x", "n", "n/x"}
    assert not any(updated.values())
    assert set(kinds(found).values()) == {"updated"}
    await running.update("s", "PUT", **body)
    assert await running.until_ended("s") == "UPDATE_COMPLETE"


async def test_a_resumed_resource_is_updated_although_it_ignores_what_has_changed(
    running: Program,
) -> None:
    ignoring = resource({"get_attr": ["a", "output"]}) | {"lifecycle": {"ignore_changes": "all"}}
    whole = {"a": resource("x"), "b": ignoring, "c": resource("x")}
    version = {"heat_template_version": "headgate"}
    await running.create("s", {}, template=version | {"resources": whole})
    assert await running.until_ended("s") == "CREATE_COMPLETE"
    await running.act("s", "suspend")
    assert await running.until_ended("s") == "SUSPEND_COMPLETE"
    wanted = version | {"resources": whole | {"a": resource("y")}}
    found = await preview(running, {"template": wanted})
    assert kinds(found) == dict.fromkeys("abc", "updated")
    await running.update("s", template=wanted)
    assert await running.until_ended("s") == "UPDATE_COMPLETE"
    events = await running.events("s")
    resumed = [
        one["resource_name"] for one in events if one["resource_status"] == "RESUME_COMPLETE"
    ]
    assert {*resumed} >= {"a", "b", "c"}
