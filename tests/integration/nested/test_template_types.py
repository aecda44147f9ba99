"""Templates as resource types: parameters, outputs, facade and mappings."""

import json

import pytest
import yaml

from tests.integration.nested.test_lifecycle import FILES, INNER, child_of, nested, output
from tests.support.program import Json, Program, resource, template

ALL_PARAMETER_TYPES = """
heat_template_version: 2018-08-31
parameters:
  text: {type: string, default: none}
  number: {type: number, default: 1}
  list: {type: comma_delimited_list, default: ""}
  map: {type: json, default: {}}
  yes_no: {type: boolean, default: false}
  secret: {type: string, default: x, hidden: true}
resources:
  all:
    type: OS::Heat::Value
    properties:
      value: [{get_param: text}, {get_param: number}, {get_param: list}, {get_param: map},
              {get_param: yes_no}]
  hidden: {type: OS::Heat::TestResource, properties: {value: {get_param: secret}}}
outputs:
  all: {value: {get_attr: [all, value]}}
  me: {value: [{get_param: "OS::stack_name"}, {get_param: "OS::project_id"}]}
"""
FACADE = """
heat_template_version: 2018-08-31
resources:
  kept:
    type: OS::Heat::Value
    properties:
      value: [{resource_facade: metadata}, {resource_facade: deletion_policy},
              {resource_facade: update_policy}]
outputs:
  result: {value: {get_attr: [kept, value]}}
"""
NAMED = """
heat_template_version: 2018-08-31
resources: {r: {type: OS::Heat::TestResource, properties: {value: {get_file: text.txt}}}}
outputs:
  OS::stack_id: {value: {get_attr: [r, output]}}
"""
CFN = json.dumps({
    "AWSTemplateFormatVersion": "2010-09-09",
    "Parameters": {"Value": {"Type": "String"}},
    "Resources": {"R": {"Type": "OS::Heat::TestResource", "Properties": {"value": {"Ref": "Value"}}}},
    "Outputs": {"Result": {"Value": {"Fn::GetAtt": ["R", "output"]}}},
})  # fmt: skip


@pytest.fixture
def running(in_own_project: Program) -> Program:
    return in_own_project


async def create(http: Program, resources: Json, **body: Json) -> None:
    await http.create("s", resources, **body)
    assert await http.until_ended("s") == "CREATE_COMPLETE", await http.stack("s")


async def test_properties_are_parameters_of_every_type(running: Program) -> None:
    properties = {
        "text": {"get_attr": ["a", "output"]}, "number": 2, "list": ["a", "b"],
        "map": {"k": ["v"]}, "yes_no": True, "secret": "not to be seen",
    }  # fmt: skip
    inner = {"type": "all.yaml", "properties": properties}
    await create(
        running, {"a": resource("late"), "web": inner}, files={"all.yaml": ALL_PARAMETER_TYPES}
    )
    web = await child_of(running, "s", "web")
    assert await output(running, web, "all") == ["late", 2, ["a", "b"], {"k": ["v"]}, True]
    name, project = await output(running, web, "me")
    assert (name, project) == ((await running.stack(web))["stack_name"], running.project)
    assert name.startswith("s-web-")
    response = (await running.stack(web))["parameters"]
    assert (response["secret"], response["text"]) == ("******", "late")
    events = await running.call("GET", f"/stacks/{name}/{web}/events")
    assert "not to be seen" not in json.dumps([response, events])


async def test_outputs_are_attributes_and_the_reference_names_the_stack(running: Program) -> None:
    resources = {
        "web": nested("result"),
        "named": {"type": "named.yaml"},
        "reads": {
            "type": "OS::Heat::Value",
            "properties": {"value": [{"get_attr": ["web", "result"]}, {"get_resource": "web"},
                                     {"get_resource": "named"}]},
        },
    }  # fmt: skip
    files = {"inner.yaml": INNER, "named.yaml": NAMED, "text.txt": "out of a file"}
    await create(running, resources, files=files)
    web = await child_of(running, "s", "web")
    name = (await running.stack(web))["stack_name"]
    response = (await running.stack_request("GET", "s", "/resources/reads"))["resource"][
        "attributes"
    ]["value"]
    arn = f"arn:openstack:heat::{running.project}:stacks/{name}/{web}"
    assert response == ["result", arn, "out of a file"]


async def test_a_nested_template_reads_the_resource_facade(running: Program) -> None:
    web = {
        "type": "facade.yaml", "metadata": {"tier": {"get_attr": ["a", "output"]}},
        "deletion_policy": "Retain", "update_policy": {"rolling": {"size": 2}},
    }  # fmt: skip
    await create(running, {"a": resource("gold"), "web": web}, files={"facade.yaml": FACADE})
    found = await output(running, await child_of(running, "s", "web"))
    assert found == [{"tier": "gold"}, "Retain", {"rolling": {"size": 2}}]


async def test_a_changed_registry_mapping_updates_the_nested_stack_in_place(
    running: Program,
) -> None:
    resources = {"web": {"type": "My::Server", "properties": {"value": "x"}}}
    mapped = {"resource_registry": {"My::Server": "inner.yaml"}}
    files = {"inner.yaml": INNER, "other.yaml": INNER.replace("[two, output]", "[one, output]")}
    await create(running, resources, environment=mapped, files=files)
    web = await child_of(running, "s", "web")
    mapped = {"resource_registry": {"My::Server": "other.yaml"}}
    await running.update("s", environment=mapped, files=files)
    assert await running.until_ended("s") == "UPDATE_COMPLETE"
    assert await child_of(running, "s", "web") == web
    document = await running.call("GET", f"/stacks/{web}/template")
    assert "[one, output]" in files["other.yaml"]
    _, response = document
    assert response["outputs"]["result"]["value"] == {"get_attr": ["one", "output"]}


async def test_unchanged_nested_resources_are_not_updated(running: Program) -> None:
    resources = {"web": nested("x"), "b": resource("old")}
    await create(running, resources, files={"inner.yaml": INNER})
    web = await child_of(running, "s", "web")
    resources["b"] = resource("new")
    await running.update("s", "PUT", template=template(resources), files={"inner.yaml": INNER})
    assert await running.until_ended("s") == "UPDATE_COMPLETE"
    assert (await running.stack(web))["stack_status"] == "CREATE_COMPLETE"
    changed = INNER.replace("two:", "two:\n    metadata: {changed: true}")
    await running.update("s", "PUT", template=template(resources), files={"inner.yaml": changed})
    assert await running.until_ended("s") == "UPDATE_COMPLETE"
    assert (await running.stack(web))["stack_status"] == "UPDATE_COMPLETE"
    events = await running.events(web)
    assert not [
        e for e in events if e["resource_name"] == "one" and "UPDATE" in e["resource_status"]
    ]


async def test_an_update_replaces_a_nested_resource_that_is_marked_unhealthy(
    running: Program,
) -> None:
    await create(running, {"web": nested("x", "outer.yaml")}, files=FILES)
    web = await child_of(running, "s", "web")
    inner = await child_of(running, web, "inner")
    before = (await running.resources(inner))["one"]["physical_resource_id"]
    await running.stack_request("PATCH", inner, "/resources/one", {"mark_unhealthy": True})
    await running.update("s")
    assert await running.until_ended("s") == "UPDATE_COMPLETE"
    assert (await running.resources(inner))["one"]["physical_resource_id"] != before


async def first_physical_ids(running: Program) -> set[str]:
    """The physical IDs of the first event of the resource "web", as each request shows it."""
    first = next(one for one in await running.events("s") if one["resource_name"] == "web")
    tree = (await running.stack_request("GET", "s", "/events?nested_depth=1"))["events"]
    path = f"/resources/web/events/{first['id']}"
    shown = (await running.stack_request("GET", "s", path))["event"]
    same = [one for one in tree if one["id"] == first["id"]]
    return {one["physical_resource_id"] for one in (first, *same, shown)}


async def test_a_resource_becomes_a_nested_stack_and_back(running: Program) -> None:
    """A replacement of another type; the old nested stack is deleted with its resources."""
    await create(running, {"web": resource("x")})
    before = await first_physical_ids(running)
    assert before == {(await running.resources("s"))["web"]["physical_resource_id"]}
    files = {"inner.yaml": INNER}
    await running.update("s", "PUT", template=template({"web": nested("y")}), files=files)
    assert await running.until_ended("s") == "UPDATE_COMPLETE"
    web = await child_of(running, "s", "web")
    assert (await running.stack(web))["stack_status"] == "CREATE_COMPLETE"
    assert await first_physical_ids(running) == before
    await running.update("s", "PUT", template=template({"web": resource("z")}))
    assert await running.until_ended("s") == "UPDATE_COMPLETE"
    assert (await running.stack(web))["stack_status"] == "DELETE_COMPLETE"
    # As in Heat, the first event of a replacement has the name of the new resource.
    events = [one for one in await running.events("s") if one["resource_name"] == "web"]
    first, second, third = [
        one["physical_resource_id"]
        for one in events
        if one["resource_status"] == "CREATE_IN_PROGRESS"
    ]
    completed = [
        one["physical_resource_id"] for one in events if one["resource_status"] == "CREATE_COMPLETE"
    ]
    assert second == (await running.stack(web))["stack_name"]
    assert (first, third) == (completed[0], completed[2]) and first != third


async def test_a_group_that_becomes_a_template_gets_a_new_nested_stack(running: Program) -> None:
    """A replacement that also has a nested stack; both have their own resources."""
    group = {"type": "OS::Heat::ResourceGroup", "properties": {"resource_def": resource("x")}}
    await create(running, {"web": group})
    before = await child_of(running, "s", "web")
    files = {"inner.yaml": INNER}
    await running.update("s", "PUT", template=template({"web": nested("y")}), files=files)
    assert await running.until_ended("s") == "UPDATE_COMPLETE"
    web = await child_of(running, "s", "web")
    assert web != before
    assert (await running.stack(before))["stack_status"] == "DELETE_COMPLETE"
    assert sorted(await running.resources(web)) == ["one", "two"]


async def test_nested_templates_can_be_in_cloudformation_syntax(running: Program) -> None:
    web = {"type": "cfn.template", "properties": {"Value": "x"}}
    await create(running, {"web": web}, files={"cfn.template": CFN})
    assert await output(running, await child_of(running, "s", "web"), "Result") == "x"


async def test_check_suspend_and_resume_include_nested_stacks(running: Program) -> None:
    await create(running, {"web": nested("x", "outer.yaml")}, files={
        "inner.yaml": INNER,
        "outer.yaml": "heat_template_version: 2018-08-31\nparameters: {value: {type: string}}\n"
                      "resources: {inner: {type: inner.yaml}}\n",
    })  # fmt: skip
    web = await child_of(running, "s", "web")
    inner = await child_of(running, web, "inner")
    for action in ("check", "suspend", "resume"):
        await running.act("s", action)
        for name in ("s", web, inner):
            assert await running.until_ended(name) == f"{action.upper()}_COMPLETE"


@pytest.mark.parametrize(
    ("value", "message"),
    [
        ("not a number", '"not a number" is not a number'),
        ("1000", "is out of range"),
    ],
)
async def test_a_parameter_that_is_invalid_at_run_time_fails_with_its_name(
    running: Program, value: str, message: str
) -> None:
    inner = """
heat_template_version: 2018-08-31
parameters: {count: {type: number, constraints: [{range: {max: 10}}]}}
resources: {r: {type: OS::Heat::TestResource}}
"""
    web = {"type": "inner.yaml", "properties": {"count": {"get_attr": ["a", "output"]}}}
    await running.create("s", {"a": resource(value), "web": web}, files={"inner.yaml": inner})
    assert await running.until_ended("s") == "CREATE_FAILED"
    reason = (await running.stack("s"))["stack_status_reason"]
    assert "count" in reason and message in reason, reason
    count = "select count(*) from stack where project = $1"
    assert await running.database.pool.fetchval(count, running.project) == 1


async def test_hidden_values_of_the_parent_are_hidden_in_nested_stacks(running: Program) -> None:
    """Also if the nested template does not declare the parameter hidden, and if only a part of the
    value is hidden.
    """
    joined = {"str_replace": {"template": "is P", "params": {"P": {"get_param": "pin"}}}}
    outer = template(
        {"web": nested({"get_param": "pin"}, "outer.yaml"), "part": nested(joined)},
        parameters={"pin": {"type": "string", "hidden": True}},
    )
    one = yaml.safe_load(INNER)
    del one["resources"]["two"], one["outputs"], one["parameters"]["fail"]
    files = {**FILES, "inner.yaml": json.dumps(one, default=str)}
    files["outer.yaml"] = files["outer.yaml"].partition("outputs:")[0]
    body = {
        "stack_name": "s",
        "template": outer,
        "files": files,
        "parameters": {"pin": "planted-9"},
    }
    status, response = await running.call("POST", "/stacks", body)
    assert status == 201, response
    assert await running.until_ended("s") == "CREATE_COMPLETE"
    web = await child_of(running, "s", "web")
    stacks = [web, await child_of(running, web, "inner"), await child_of(running, "s", "part")]
    for stack in stacks:
        document = await running.stack(stack)
        assert document["parameters"]["value"] == "******"
        for rest in ("/environment", "/resources/one", "/events", "/template"):
            path = f"/stacks/{document['stack_name']}/{stack}{rest}"
            _, result = await running.call("GET", path)
            assert "planted-9" not in json.dumps(result), rest
    tables = await running.database.pool.fetch(
        "select format('select count(*) from %I t where t::text like $1', tablename) as query"
        " from pg_tables where schemaname = 'public'"
    )
    for row in tables:
        assert await running.database.pool.fetchval(row["query"], "%planted-9%") == 0, row["query"]


SECRET_OUTPUTS = """
heat_template_version: 2018-08-31
resources:
  word: {type: OS::Heat::RandomString}
  plain: {type: OS::Heat::TestResource, properties: {value: shown}}
outputs:
  word: {value: {list_join: ["-", [is, {get_attr: [word, value]}]]}}
  plain: {value: {get_attr: [plain, output]}}
"""
MIDDLE = """
heat_template_version: 2018-08-31
resources: {web: {type: secret.yaml}}
outputs: {through: {value: {get_attr: [web, word]}}}
"""


@pytest.mark.parametrize(
    "path", [["word"], ["resource.word.value"], ["resource.word", "value"], ["deep"]]
)
async def test_secret_attributes_of_nested_stacks_are_masked_in_the_parent(
    running: Program, path: list[str]
) -> None:
    read = ["deep", "through"] if path == ["deep"] else ["web", *path]
    hooks = {"hooks": [{"at": "*after", "on": "pre-create"}]}
    resources = {
        "web": {"type": "secret.yaml"},
        "deep": {"type": "middle.yaml"},
        "after": resource({"get_attr": read}),
        "plain_after": resource({"get_attr": ["web", "plain"]}),
    }
    outputs = {"secret": {"value": {"get_attr": read}}}
    files = {"secret.yaml": SECRET_OUTPUTS, "middle.yaml": MIDDLE}
    await running.create(
        "s", {}, template=template(resources, outputs=outputs), environment=hooks, files=files
    )
    seen = {hook["resource_name"]: hook for hook in await running.waiting_hooks("s", count=2)}
    assert seen["after"]["resource"]["properties"]["value"] == "******"
    assert seen["plain_after"]["resource"]["properties"]["value"] == "shown"
    for hook in seen.values():
        assert (await running.signal(hook))[0] == 200
    assert await running.until_ended("s") == "CREATE_COMPLETE"
    secret = str(await output(running, "s", "secret")).removeprefix("is-")
    assert len(secret) >= 16
    for name in resources:
        response = await running.stack_request("GET", "s", f"/resources/{name}")
        assert secret not in str(response), name
    _, events = await running.call("GET", "/stacks/s/events")
    assert secret not in str(events)
