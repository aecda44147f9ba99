"""Previews of changes and hooks in a stack tree."""

import json

from tests.integration.nested.test_rules import DB, DISK, FILES, web
from tests.support.changes import refused
from tests.support.program import Json, Program, resource, template

RULES = {"hooks": [
    {"at": "web", "on": ["pre-create", "post-create", "pre-update"]},
    {"at": DISK, "on": ["pre-create", "pre-update"]},
    {"at": "web/server", "on": "pre-delete"},
]}  # fmt: skip


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


async def looked_at(run: Program, body: Json, query: str = "?show_nested=True") -> Json:
    return await run.at("PUT", "s", f"/preview{query}", {"files": FILES, **body})


async def test_nobody_knows_the_id_of_a_stack_before_it_is_made(running: Program) -> None:
    """Nor the name of one inside; and whoever looked at the plan may have it carried out."""
    who = {"list_join": ["", [{"get_param": "OS::stack_name"}, {"get_param": "OS::stack_id"}]]}
    inside = template({"x": resource({"get_param": "OS::stack_name"})})
    body = {
        "stack_name": "s", "files": {"in.yaml": json.dumps(inside)},
        "template": template(
            {"a": resource(who), "b": resource({"get_param": "OS::stack_name"}),
             "c": {"type": "in.yaml"}},
            outputs={"id": {"value": {"get_param": "OS::stack_id"}}, "known": {"value": {"a": None}},
                     "late": {"value": ["x", {"get_attr": ["a", "output"]}]}},
        ),
    }  # fmt: skip
    status, said = await running.call("POST", "/stacks/preview", body)
    assert status == 200, said
    by_path = {one["path"]: one for one in said["stack"]["resource_changes"]["added"]}
    assert by_path["a"]["unknown"] == by_path["c/x"]["unknown"] == ["value"]
    assert by_path["b"]["changes"]["value"] == {"to": "s"}
    assert said["stack"]["parameters"]["OS::stack_id"] == "None"
    assert [(one["output_key"], one["output_value"], one["unknown"])
            for one in said["stack"]["outputs"]] == [
        ("id", None, True), ("known", {"a": None}, False), ("late", None, True),
    ]  # fmt: skip
    digest = said["stack"]["plan_digest"]
    assert (await running.call("POST", "/stacks", body | {"plan_digest": digest}))[0] == 201


async def test_nor_that_of_one_in_the_older_form(running: Program) -> None:
    called = "AWS::StackId"
    a = {"Type": "OS::Heat::TestResource", "Properties": {"value": {"Ref": called}}}
    sent = {"HeatTemplateFormatVersion": "2012-12-12", "Resources": {"a": a}}
    status, said = await running.call(
        "POST", "/stacks/preview", {"stack_name": "s", "template": sent}
    )
    assert status == 200, said
    (one,) = said["stack"]["resource_changes"]["added"]
    assert one["unknown"] == ["value"] and said["stack"]["parameters"][called] == "None"


async def test_a_create(running: Program) -> None:
    late: Json = {"type": "db.yaml", "properties": {"size": {"get_attr": ["a", "output"]}}}
    files = FILES | {"late.yaml": DB.replace("resources:", "resources:\n  more:\n"
        "    type: OS::Heat::TestResource\n    properties: {value: known}")}  # fmt: skip
    body = {
        "stack_name": "s", "files": files, "environment": RULES,
        "template": template(web() | {"a": resource(), "late": late | {"type": "late.yaml"}}),
    }  # fmt: skip
    status, said = await running.call("POST", "/stacks/preview", body)
    assert status == 200, said
    stack = said["stack"]
    assert kinds(stack) == dict.fromkeys(
        ["a", "late", "late/disk", "late/more", "web", "web/db", DISK, "web/server"], "added"
    )
    assert stops(stack) == [
        "web:pre-create", f"{DISK}:pre-create", "web:post-create",
    ]  # fmt: skip
    by_path = {one["path"]: one for one in stack["resource_changes"]["added"]}
    assert by_path[DISK]["changes"]["value"] == {"to": "small"}
    assert by_path["late/more"]["changes"]["value"] == {"to": "known"}
    # What it is given is not known before `a` is made.
    assert by_path["late/disk"]["unknown"] == ["value"]
    assert by_path[DISK]["parent_resource"] == "db"
    assert by_path[DISK]["stack_name"].startswith("s-web-")
    # As Heat: a list in the place of what has a stack inside.
    assert names(stack["resources"]) == ["a", ["disk", "more"], [["disk"], "server"]]
    assert (await running.call("GET", "/stacks/s"))[0] == 404


async def test_an_update_and_a_delete(running: Program) -> None:
    resources = web() | {"x": resource()}
    await running.create("s", resources, files=FILES)
    assert await running.until_ended("s") == "CREATE_COMPLETE"
    body: Json = {"template": template(resources | web("large")), "environment": RULES}
    found = await looked_at(running, body)
    assert kinds(found) == {
        "web": "updated", "web/db": "updated", DISK: "updated", "web/server": "unchanged",
        "x": "unchanged",
    }  # fmt: skip
    assert stops(found) == ["web:pre-update", f"{DISK}:pre-update"]
    (disk,) = [one for one in found["resource_changes"]["updated"] if one["path"] == DISK]
    assert disk["changes"]["value"] == {"from": "small", "to": "large"}
    assert disk["stack_identity"]["stack_id"] != "None" and disk["physical_resource_id"]
    assert set(kinds(await looked_at(running, body, ""))) == {"web", "x"}

    less = FILES | {"web.yaml": FILES["web.yaml"].partition("  server:")[0]}
    found = await looked_at(running, body | {"files": less, "template": template(resources)})
    assert kinds(found)["web/server"] == "deleted" and kinds(found)[DISK] == "unchanged"

    await running.at("POST", "s", "/breakpoints", {"breakpoints": ["web/server:pre-delete"]})
    found = await looked_at(running, {"template": template({"x": resource()})})
    assert kinds(found) == dict.fromkeys(["web", "web/db", DISK, "web/server"], "deleted") | {
        "x": "unchanged"
    }
    assert stops(found) == ["web/server:pre-delete"]


async def test_a_plan_that_was_looked_at_is_refused_when_the_inside_has_moved(
    running: Program,
) -> None:
    await running.create("s", web(), files=FILES)
    assert await running.until_ended("s") == "CREATE_COMPLETE"
    body: Json = {"template": template(web("large")), "files": FILES}
    seen = (await looked_at(running, body))["plan_digest"]
    assert seen == (await looked_at(running, body, ""))["plan_digest"]
    await running.at("POST", "s", "/breakpoints", {"breakpoints": [f"{DISK}:pre-update"]})
    status, error = await refused(running, "PUT", "s", "", body | {"plan_digest": seen})
    assert (status, error["type"]) == (409, "PlanChanged")
    seen = (await looked_at(running, body))["plan_digest"]
    await running.at("PUT", "s", "", body | {"plan_digest": seen})
    (hook,) = await running.waiting("s")
    assert hook["path"] == DISK
