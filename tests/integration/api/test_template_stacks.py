"""AWS::CloudFormation::Stack: nested stacks whose templates the server fetches."""

from collections.abc import AsyncIterator

import pytest
import pytest_asyncio
import yaml
from aiohttp import web
from yarl import URL

from tests.support.program import Json, Program, eventually, program, resource, template
from tests.support.receiver import Received, Receiver

STACK = "AWS::CloudFormation::Stack"
MASK = "******"
LOOPBACK = "127.0.0.0/8"
INSIDE = """HeatTemplateFormatVersion: '2012-12-12'
Parameters:
  Size: {Type: Number, Default: 1}
  Key: {Type: String, NoEcho: true, Default: none}
  Name: {Type: String, Default: same}
Resources:
  Web: {Type: OS::Heat::TestResource, Properties: {value: {Ref: Size}}}
  Other: {Type: OS::Heat::TestResource, Properties: {value: {Ref: Name}}}
  Handle: {Type: OS::Heat::WaitConditionHandle}
Outputs:
  Address: {Value: {'Fn::GetAtt': [Web, output]}}
  Key: {Value: {Ref: Key}}
  Token: {Value: {'Fn::GetAtt': [Handle, token]}}
"""
AROUND = """heat_template_version: 2018-08-31
parameters: {url: {type: string, default: URL}}
resources:
  inner:
    type: INSIDE
    properties: {TemplateURL: {get_param: url}, Parameters: {Size: 8}}
outputs: {address: {value: {get_attr: [inner, Outputs.Address]}}}
"""


def outer(url: Json, parameters: Json = None, **more: Json) -> Json:
    properties = {"TemplateURL": url, "Parameters": parameters or {}, **more}
    return template(
        {
            "inner": {"type": STACK, "properties": properties},
            "after": resource({"get_attr": ["inner", "Outputs.Address"]}),
        },
        outputs={
            "address": {"value": {"get_attr": ["inner", "Outputs.Address"]}},
            "name": {"value": {"get_resource": "inner"}},
            "key": {"value": {"get_attr": ["inner", "Outputs.Key"]}},
            "token": {"value": {"get_attr": ["inner", "Outputs.Token"]}},
        },
    )


class Templates:
    """Templates at URLs. texts: by path."""

    def __init__(self, receiver: Receiver) -> None:
        self.receiver = receiver
        self.texts = {"/inside.json": INSIDE}
        receiver.handle = self._answer

    async def _answer(self, received: Received) -> web.StreamResponse:
        text = self.texts.get(received.path)
        return web.Response(status=404) if text is None else web.Response(text=text)

    def url(self, path: str = "/inside.json") -> str:
        return str(URL(self.receiver.url).with_path(path))

    @property
    def fetched(self) -> list[str]:
        return [one.path for one in self.receiver.received]


@pytest.fixture
def templates(receiver: Receiver) -> Templates:
    return Templates(receiver)


@pytest_asyncio.fixture
async def run(database_url: str) -> AsyncIterator[Program]:
    async with program(database_url, {"template_urls.allow": [LOOPBACK]}) as running:
        yield running


async def outputs(run: Program, name: str) -> dict[str, Json]:
    shown = (await run.stack(name))["outputs"]
    return {one["output_key"]: one["output_value"] for one in shown}


async def nested(run: Program, name: str) -> Json:
    stack = (await run.resources(name))["inner"]["physical_resource_id"]
    return await run.stack(stack)


async def refusal(run: Program, path: str = "/stacks", **body: Json) -> Json:
    status, response = await run.call("POST", path, {"stack_name": "refused", **body})
    assert status == 400, response
    return response["error"]["findings"]


async def test_a_stack_is_created_updated_in_place_and_deleted(
    run: Program, templates: Templates
) -> None:
    body = {"stack_name": "s", "template": outer(templates.url(), {"Size": 2, "Key": "secret"})}
    status, response = await run.call("POST", "/stacks/preview", body)
    assert status == 200, response
    (inside,) = [one for one in response["stack"]["resources"] if isinstance(one, list)]
    assert {one["resource_name"] for one in inside} == {"Web", "Other", "Handle"}
    status, response = await run.call("POST", "/validate", {"template": body["template"]})
    assert status == 200, response
    status, response = await run.call("POST", "/stacks", body)
    assert status == 201, response
    assert await run.until_ended("s") == "CREATE_COMPLETE"
    found = await outputs(run, "s")
    inner = await nested(run, "s")
    before = await run.resources(inner["id"])
    assert found["address"] == "2"
    assert found["name"].endswith(f"{inner['stack_name']}/{inner['id']}")
    assert found["key"] == "secret" and found["token"]
    shown = (await run.stack_request("GET", "s", "/resources/inner"))["resource"]
    assert shown["attributes"]["Outputs.Token"] == MASK
    assert inner["parameters"]["Key"] == MASK and inner["parent"]

    templates.texts.clear()  # what is stored is used
    count = len(templates.fetched)
    for method, size in (("PATCH", 3), ("PUT", 4)):
        changed = outer(templates.url(), {"Size": size, "Key": "secret"})
        path = f"/stacks/s/{(await run.stack('s'))['id']}"
        status, preview = await run.call(method, f"{path}/preview", {"template": changed})
        assert status == 200, preview
        updated = [one["resource_name"] for one in preview["resource_changes"]["updated"]]
        assert "inner" in updated
        await run.update("s", method, template=changed)
        assert await run.until_ended("s") == "UPDATE_COMPLETE"
        assert (await outputs(run, "s"))["address"] == str(size)
    after = await nested(run, "s")
    assert after["id"] == inner["id"] and len(templates.fetched) == count
    for name, one in (await run.resources(inner["id"])).items():
        assert one["physical_resource_id"] == before[name]["physical_resource_id"]

    for action in ("check", "suspend", "resume"):
        await run.act("s", action)
        assert await run.until_ended("s") == f"{action.upper()}_COMPLETE"
    whole = (await run.stack("s"))["id"]
    await run.stack_request("DELETE", "s")
    assert await run.until_ended(whole) == "DELETE_COMPLETE"
    assert (await run.call("GET", "/stacks"))[1]["stacks"] == []


async def test_another_url_is_fetched_and_updates_the_nested_stack(
    run: Program, templates: Templates
) -> None:
    templates.texts["/other.yaml"] = INSIDE.replace("value: {Ref: Name}", "value: other")
    parameters = {"url": {"type": "string"}}
    text = outer({"get_param": "url"}, {"Size": 2}) | {"parameters": parameters}
    body = {"stack_name": "s", "template": text, "parameters": {"url": templates.url()}}
    status, response = await run.call("POST", "/stacks", body)
    assert status == 201, response
    assert await run.until_ended("s") == "CREATE_COMPLETE"
    inner = await nested(run, "s")
    await run.update("s", "PATCH", parameters={"url": templates.url("/other.yaml")})
    assert await run.until_ended("s") == "UPDATE_COMPLETE"
    assert (await nested(run, "s"))["id"] == inner["id"]
    shown = await run.stack_request("GET", inner["id"], "/template")
    assert shown["Resources"]["Other"]["Properties"] == {"value": "other"}
    assert templates.fetched.count("/other.yaml") == 1


async def test_templates_at_urls_refer_to_others_and_are_types_of_resources(
    run: Program, templates: Templates
) -> None:
    around = AROUND.replace("type: INSIDE", f"type: {STACK}").replace(
        "URL}", f"{templates.url()}}}", 1
    )
    templates.texts["/around.yaml"] = around
    templates.texts["/given.yaml"] = AROUND.replace("type: INSIDE", f"type: {STACK}")
    resources = {
        "inner": {"type": STACK, "properties": {"TemplateURL": templates.url("/around.yaml")}},
        "named": {"type": templates.url("/given.yaml"), "properties": {"url": templates.url()}},
    }
    environment = {
        "resource_registry": {"resources": {"inner": {"inner": {"Web": {"hooks": "pre-create"}}}}}
    }
    body = {"stack_name": "s", "template": template(resources), "environment": environment}
    status, response = await run.call("POST", "/stacks", body)
    assert status == 201, response
    (hook,) = await run.waiting_hooks("s")
    assert hook["resource_name"] == "Web"
    await run.signal(hook)
    assert await run.until_ended("s") == "CREATE_COMPLETE"
    assert sorted(set(templates.fetched)) == ["/around.yaml", "/given.yaml", "/inside.json"]


async def test_values_of_other_resources_are_parameters(run: Program, templates: Templates) -> None:
    text = outer(templates.url(), {"Size": {"get_attr": ["size", "output"]}})
    text["resources"]["size"] = resource("5")
    text["resources"]["size"]["type"] = "OS::Heat::Value"
    text["resources"]["inner"]["properties"]["Parameters"]["Size"] = {"get_attr": ["size", "value"]}
    status, response = await run.call("POST", "/stacks", {"stack_name": "s", "template": text})
    assert status == 201, response
    assert await run.until_ended("s") == "CREATE_COMPLETE"
    assert (await outputs(run, "s"))["address"] == "5"
    text["resources"]["size"]["properties"]["value"] = "6"
    await run.update("s", "PUT", template=text)
    assert await run.until_ended("s") == "UPDATE_COMPLETE"
    assert (await outputs(run, "s"))["address"] == "6"
    text["resources"]["inner"]["properties"]["TemplateURL"] = templates.url("/none.yaml")
    path = f"/stacks/s/{(await run.stack('s'))['id']}"
    status, response = await run.call("PUT", path, {"template": text})
    assert (status, len(response["error"]["findings"])) == (400, 1)


@pytest.mark.parametrize(
    ("properties", "place", "reason"),
    [
        ({"TemplateURL": {"get_attr": ["other", "output"]}}, ".TemplateURL", "must be known when"),
        ({"TemplateURL": {"get_resource": "other"}}, ".TemplateURL", "must be known when"),
        ({"TemplateURL": "inside.yaml"}, ".TemplateURL", "must be a URL that begins with"),
        ({"TemplateURL": ""}, ".TemplateURL", "must be a URL that begins with"),
        ({"TemplateURL": {"get_param": "hidden"}}, ".TemplateURL", "must not be computed"),
        ({"TemplateURL": "/none.yaml"}, ".TemplateURL", "it answered 404"),
        ({"TemplateURL": "http://10.9.8.7/x.yaml"}, ".TemplateURL", "private network"),
        ({}, "", "Property TemplateURL not assigned"),
        ({"TemplateUrl": "x"}, "", "Unknown Property TemplateUrl"),
        ({"TemplateURL": "/", "Parameters": {"Sise": 1}}, ".Parameters", "Unknown Property Sise"),
        ({"TemplateURL": "/", "Parameters": {"Size": "x"}}, ".Parameters.Size", "is not a number"),
        ({"TemplateURL": "/", "Parameters": [1]}, ".Parameters", "map"),
        ({"TemplateURL": "/", "TimeoutInMinutes": "x"}, ".TimeoutInMinutes", "not an integer"),
    ],
)
async def test_faults_have_a_place_a_reason_and_a_remedy(
    run: Program, templates: Templates, properties: Json, place: str, reason: str
) -> None:
    given = dict(properties)
    if given.get("TemplateURL") in ("/", "/none.yaml"):
        given["TemplateURL"] = templates.url(
            "/inside.json" if given["TemplateURL"] == "/" else "/none.yaml"
        )
    text = yaml.safe_dump(
        template(
            {"inner": {"type": STACK, "properties": given}, "other": resource()},
            parameters={"hidden": {"type": "string", "hidden": True, "default": "http://x/y"}},
        )
    )
    findings = await refusal(run, template=text)
    found = [one for one in findings if reason in one["reason"]]
    assert found, findings
    assert found[0]["place"].startswith(f"resources.inner.properties{place}")
    assert found[0]["remedy"] and found[0]["line"]


async def test_outputs_that_do_not_exist_are_refused(run: Program, templates: Templates) -> None:
    for attribute in ("Outputs.Adress", "Address", "Outputs"):
        text = outer(templates.url())
        text["resources"]["after"] = resource({"get_attr": ["inner", attribute]})
        (found,) = await refusal(run, template=text)
        assert f"(inner {attribute}) is incorrect" in found["reason"]
        assert "Outputs." in found["remedy"]
        assert attribute == "Outputs" or "Outputs.Address" in found["remedy"]


async def test_a_time_limit_has_no_effect(run: Program, templates: Templates) -> None:
    body = {"template": outer(templates.url(), TimeoutInMinutes=5)}
    status, response = await run.call("POST", "/validate", body)
    assert status == 200, response
    (warning,) = response["warnings"]
    assert warning["path"] == "resources.inner.properties.TimeoutInMinutes"


async def test_without_the_setting_the_operators_remedy_is_shown(
    in_own_project: Program, templates: Templates
) -> None:
    (found,) = await refusal(in_own_project, template=outer(templates.url()))
    assert "this server fetches no templates" in found["reason"]
    assert "[template_urls] allow" in found["remedy"]
    assert found["place"] == "resources.inner.properties.TemplateURL"
    assert templates.fetched == []
    sent = {"template": outer(templates.url()), "files": {templates.url(): INSIDE}}
    status, response = await in_own_project.call("POST", "/stacks", {"stack_name": "s", **sent})
    assert status == 201, response
    assert await in_own_project.until_ended("s") == "CREATE_COMPLETE"


async def test_a_stack_is_adopted_and_restored_and_rolls_back(
    run: Program, templates: Templates
) -> None:
    def whole(size: int, **more: Json) -> Json:
        text = outer(templates.url(), {"Size": size})
        text["resources"] |= more
        return text

    body = {"stack_name": "s", "template": whole(2)}
    assert (await run.call("POST", "/stacks", body))[0] == 201
    assert await run.until_ended("s") == "CREATE_COMPLETE"
    inner = await nested(run, "s")
    before = await run.resources(inner["id"])
    exported = await run.stack_request("DELETE", "s", "/abandon")
    templates.texts.clear()
    adopted = {"stack_name": "s", "adopt_stack_data": exported}
    status, response = await run.call("POST", "/stacks", adopted)
    assert status == 201, response
    assert await run.until_ended("s") == "ADOPT_COMPLETE"
    inner = await nested(run, "s")
    now = await run.resources(inner["id"])
    for name in ("Web", "Other"):
        assert now[name]["physical_resource_id"] == before[name]["physical_resource_id"]

    taken = await run.stack_request("POST", "s", "/snapshots", {"name": "n"})
    path = f"/snapshots/{taken['id']}"

    async def complete() -> bool:
        found = await run.stack_request("GET", "s", path)
        return str(found["snapshot"]["status"]) == "COMPLETE"

    await eventually(complete)
    await run.update("s", "PUT", template=whole(3))
    assert await run.until_ended("s") == "UPDATE_COMPLETE"
    assert (await outputs(run, "s"))["address"] == "3"
    await run.stack_request("POST", "s", f"{path}/restore")
    assert await run.until_ended("s") == "RESTORE_COMPLETE"
    assert (await outputs(run, "s"))["address"] == "2"
    assert (await nested(run, "s"))["id"] == inner["id"]

    failing = resource("x", depends_on="inner")
    failing["properties"]["fail"] = True
    await run.update("s", "PUT", template=whole(4, failing=failing), disable_rollback=False)
    assert await run.until_ended("s") == "ROLLBACK_COMPLETE"
    assert (await outputs(run, "s"))["address"] == "2"


async def test_only_parameters_with_secrets_are_hidden(run: Program, templates: Templates) -> None:
    text = outer(templates.url(), {"Size": 2, "Name": {"get_param": "password"}})
    text["parameters"] = {"password": {"type": "string", "hidden": True}}
    body = {"stack_name": "s", "template": text, "parameters": {"password": "hunter2"}}
    status, preview = await run.call("POST", "/stacks/preview?show_nested=true", body)
    assert status == 200 and "hunter2" not in str(preview)
    assert (await run.call("POST", "/stacks", body))[0] == 201
    assert await run.until_ended("s") == "CREATE_COMPLETE"
    inner = await nested(run, "s")
    assert (inner["parameters"]["Name"], inner["parameters"]["Size"]) == (MASK, "2")
    await run.update("s", "PATCH", parameters={"password": "hunter3"})
    assert await run.until_ended("s") == "UPDATE_COMPLETE"
    for path in ("", "/resources/inner", "/events?nested_depth=3"):
        assert "hunter" not in str(await run.stack_request("GET", "s", path))
    shown = await run.stack_request("GET", inner["id"], "/resources/Other")
    assert "hunter" not in str(shown)
    web_shown = await run.stack_request("GET", inner["id"], "/resources/Web")
    assert web_shown["resource"]["attributes"]["output"] == "2"


async def test_members_of_groups_have_templates_at_urls(run: Program, templates: Templates) -> None:
    def group(size: int) -> Json:
        member = {
            "type": STACK,
            "properties": {"TemplateURL": templates.url(), "Parameters": {"Size": size}},
        }
        properties = {"count": 2, "resource_def": member}
        read = {
            "one": {"value": {"get_attr": ["g", "resource.1.Outputs.Address"]}},
            "all": {"value": {"get_attr": ["g", "Outputs.Address"]}},
        }
        return template(
            {"g": {"type": "OS::Heat::ResourceGroup", "properties": properties}}, outputs=read
        )

    body = {"stack_name": "s", "template": group(2)}
    status, response = await run.call("POST", "/stacks", body)
    assert status == 201, response
    assert await run.until_ended("s") == "CREATE_COMPLETE"
    assert await outputs(run, "s") == {"one": "2", "all": ["2", "2"]}
    templates.texts.clear()
    await run.update("s", "PUT", template=group(3))
    assert await run.until_ended("s") == "UPDATE_COMPLETE"
    assert await outputs(run, "s") == {"one": "3", "all": ["3", "3"]}
    assert templates.fetched == ["/inside.json"]


async def test_an_unhealthy_nested_stack_is_replaced(run: Program, templates: Templates) -> None:
    body = {"stack_name": "s", "template": outer(templates.url(), {"Size": 2})}
    assert (await run.call("POST", "/stacks", body))[0] == 201
    assert await run.until_ended("s") == "CREATE_COMPLETE"
    inner = await nested(run, "s")
    stack = await run.stack("s")
    status, _ = await run.call(
        "PATCH",
        f"/stacks/s/{stack['id']}/resources/inner",
        {"mark_unhealthy": True, "resource_status_reason": "gone"},
    )
    assert status == 200
    await run.update("s", "PATCH")
    assert await run.until_ended("s") == "UPDATE_COMPLETE"
    again = await nested(run, "s")
    assert again["id"] != inner["id"] and (await outputs(run, "s"))["address"] == "2"


async def test_faults_of_a_fetched_template_have_their_line(
    run: Program, templates: Templates
) -> None:
    templates.texts["/inside.json"] = INSIDE.replace("value: {Ref: Name}", "valu: x")
    for path in ("/stacks", "/stacks/preview", "/validate"):
        body = {"stack_name": "refused", "template": outer(templates.url())}
        status, response = await run.call("POST", path, body)
        (found,) = [one for one in response["error"]["findings"] if "valu" in one["reason"]]
        assert status == 400 and found["file"] == templates.url()
        assert (found["line"], found["quote"] is None) == (8, False), path
