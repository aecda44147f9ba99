"""Software configs of templates are visible in the API, and the reverse."""

import pytest

from tests.support.program import Json, Program, template

CONFIGS, DEPLOYMENTS = "/software_configs", "/software_deployments"


@pytest.fixture
def running(in_own_project: Program) -> Program:
    return in_own_project


def config(text: str, **more: Json) -> Json:
    return {"type": "OS::Heat::SoftwareConfig", "properties": {"config": text, **more}}


async def ids(run: Program) -> list[str]:
    _, response = await run.call("GET", CONFIGS)
    return [one["id"] for one in response["software_configs"]]


async def test_a_changed_config_is_replaced_with_its_readers_and_deleted_with_the_stack(
    running: Program,
) -> None:
    mime = {"parts": [{"config": {"get_resource": "script"}, "filename": "a.sh"}]}
    resources: Json = {
        "script": config("echo 1", group="script", inputs=[{"name": "a"}]),
        "mime": {"type": "OS::Heat::MultipartMime", "properties": mime},
        "text": {
            "type": "OS::Heat::Value",
            "properties": {"value": {"get_attr": ["mime", "config"]}},
        },
    }
    stack_id = await running.create("s", resources)
    assert await running.until_ended("s") == "CREATE_COMPLETE"
    before = await running.resources("s")
    script = before["script"]["physical_resource_id"]
    _, response = await running.call("GET", f"{CONFIGS}/{script}")
    shown = response["software_config"]
    assert (shown["config"], shown["group"]) == ("echo 1", "script")
    assert shown["name"].startswith("s-script-")
    resources["script"] = config("echo 2", group="script")
    await running.update("s", template=template(resources))
    assert await running.until_ended("s") == "UPDATE_COMPLETE"
    after = await running.resources("s")
    shown = await running.stack_request("GET", "s", "/resources/text")
    assert "echo 2" in shown["resource"]["attributes"]["value"]
    new = [after[name]["physical_resource_id"] for name in ("script", "mime")]
    assert sorted(await ids(running)) == sorted(new) and script not in new
    await running.stack_request("DELETE", "s")
    assert await running.until_ended(stack_id) == "DELETE_COMPLETE"
    assert await ids(running) == []


async def test_a_deployed_config_cannot_be_deleted(
    running: Program,
) -> None:
    stack_id = await running.create("s", {"script": config("echo 1")})
    assert await running.until_ended("s") == "CREATE_COMPLETE"
    config_id = (await running.resources("s"))["script"]["physical_resource_id"]
    body = {"config_id": config_id, "server_id": "web-1"}
    _, response = await running.call("POST", DEPLOYMENTS, body)
    await running.stack_request("DELETE", "s")
    assert await running.until_ended(stack_id) == "DELETE_FAILED"
    reason = (await running.resources(stack_id))["script"]["resource_status_reason"]
    assert f"Software config with id {config_id} can not be deleted as it is referenced" in reason
    await running.call("DELETE", f"{DEPLOYMENTS}/{response['software_deployment']['id']}")
    await running.stack_request("DELETE", stack_id)
    assert await running.until_ended(stack_id) == "DELETE_COMPLETE"


async def test_an_invalid_config_is_refused_before_anything_is_stored(
    running: Program,
) -> None:
    resources = {"a": config("x", inputs=[{"name": "n", "type": "Number", "default": "many"}])}
    sent = {"stack_name": "s", "template": template(resources)}
    status, response = await running.call("POST", "/stacks", sent)
    assert status == 400
    assert "resources.a.properties.inputs[0].default" in response["error"]["message"]
    assert (await running.call("GET", "/stacks"))[1]["stacks"] == []


async def test_a_config_of_another_project_is_not_found(running: Program) -> None:
    _, response = await running.call("POST", f"//v1/q{CONFIGS}", {"name": "c", "config": "secret"})
    other = response["software_config"]["id"]
    parts = [{"config": other}]
    await running.create("s", {
        "m": {"type": "OS::Heat::MultipartMime", "properties": {"parts": parts}},
    })  # fmt: skip
    assert await running.until_ended("s") == "CREATE_FAILED"
    reason = (await running.resources("s"))["m"]["resource_status_reason"]
    assert f"Software config with id {other} not found" in reason
