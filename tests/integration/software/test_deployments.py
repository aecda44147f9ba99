"""Deployments on a real database: published to servers and completed by their signals."""

from collections.abc import AsyncIterator

import jsonschema_rs
import pytest
import pytest_asyncio

from channels.schemas.event_schemas import SCHEMAS
from tests.support.changes import error_text
from tests.support.program import Json, Program, eventually, template
from tests.support.receiver import Receiver, running_receiver, until

DEPLOYMENTS, NAME = "/software_deployments", "OS::Heat::SoftwareDeployment"
SCRIPT: Json = {
    "type": "OS::Heat::SoftwareConfig",
    "properties": {
        "group": "script",
        "config": "echo $a",
        "inputs": [{"name": "a", "default": "x"}],
        "outputs": [{"name": "out"}, {"name": "trouble", "error_output": True}],
    },
}


@pytest.fixture
def running(in_own_project: Program) -> Program:
    return in_own_project


@pytest_asyncio.fixture(loop_scope="session")
async def receiver() -> AsyncIterator[Receiver]:
    async with running_receiver() as one:
        yield one


def deployment(type_: str = NAME, **properties: Json) -> Json:
    return {
        "type": type_,
        "properties": {"config": {"get_resource": "script"}, "server": "web-1", **properties},
    }


def deployment_stack(**properties: Json) -> Json:
    return {
        "script": SCRIPT,
        "dep": deployment(**properties),
        "seen": {
            "type": "OS::Heat::Value",
            "properties": {"value": {"get_attr": ["dep", "out"]}},
        },
    }


async def metadata(run: Program, server: str = "web-1") -> list[Json]:
    """The deployments in the metadata of a server."""
    _, response = await run.call("GET", f"{DEPLOYMENTS}/metadata/{server}")
    return list(response["metadata"])


async def until_published(run: Program, action: str, server: str = "web-1") -> dict[str, Json]:
    """Wait for the deployment of a server; return its input values."""

    async def found() -> dict[str, Json] | None:
        for one in await metadata(run, server):
            values = {one_input["name"]: one_input.get("value") for one_input in one["inputs"]}
            if values.get("deploy_action") == action:
                return values
        return None

    values: dict[str, Json] = await eventually(found)
    return values


async def send_signal(run: Program, values: Json, body: Json) -> int:
    """Send the server's signal to its signal URL."""
    path = values["deploy_signal_id"].removeprefix(run.url)
    status, _ = await run.call(values["deploy_signal_verb"], f"/{path}", body)
    return status


async def test_a_server_gets_the_deployment_and_its_signal_completes_the_resource(
    running: Program,
) -> None:
    await running.create("s", deployment_stack(input_values={"a": "A"}))
    values = await until_published(running, "CREATE")
    assert (values["a"], values["deploy_server_id"]) == ("A", "web-1")
    assert values["deploy_stack_id"] == f"s/{(await running.stack('s'))['id']}"
    (config,) = await metadata(running)
    assert (config["group"], config["config"]) == ("script", "echo $a")
    assert await send_signal(running, values, {"out": "42", "deploy_status_code": 0}) == 200
    assert await running.until_ended("s") == "CREATE_COMPLETE"
    document = await running.stack_request("GET", "s", "/resources/seen")
    assert document["resource"]["attributes"]["value"] == "42"
    one = (await running.resources("s"))["dep"]
    _, response = await running.call("GET", f"{DEPLOYMENTS}/{one['physical_resource_id']}")
    found = response["software_deployment"]
    assert (found["action"], found["status"], found["status_reason"], found["server_id"]) == (
        "CREATE", "COMPLETE", "Outputs received", "web-1",
    )  # fmt: skip
    assert found["output_values"]["out"] == "42" and found["config_id"] == config["id"]


async def test_a_failure_signal_fails_the_resource_and_an_update_deploys_again(
    running: Program,
) -> None:
    await running.create("s", deployment_stack())
    values = await until_published(running, "CREATE")
    await send_signal(running, values, {"trouble": "no disk", "deploy_status_code": 1})
    assert await running.until_ended("s") == "CREATE_FAILED"
    before = (await running.resources("s"))["dep"]
    assert before["resource_status_reason"].endswith(
        "Deployment to server failed: deploy_status_code : Deployment exited with non-zero"
        " status code: 1, trouble : no disk"
    )
    await running.update("s", template=template(deployment_stack()))

    async def is_redeployed() -> bool:
        return (await until_published(running, "CREATE"))["deploy_signal_id"] != values[
            "deploy_signal_id"
        ] or len(await metadata(running)) > 1

    await eventually(is_redeployed)
    for config in await metadata(running):
        inputs = {one["name"]: one.get("value") for one in config["inputs"]}
        await send_signal(running, inputs, {"out": "7"})
    assert await running.until_ended("s") == "UPDATE_COMPLETE"
    after = (await running.resources("s"))["dep"]
    assert after["physical_resource_id"] != before["physical_resource_id"]
    assert len(await metadata(running)) == 1


async def test_an_update_waits_for_a_new_signal(running: Program) -> None:
    """The URL and the deployment stay the same; earlier signals do not count."""
    await running.create("s", deployment_stack())
    first = await until_published(running, "CREATE")
    await send_signal(running, first, {"out": "one"})
    assert await running.until_ended("s") == "CREATE_COMPLETE"
    await send_signal(running, first, {"out": "too late", "deploy_status_code": 1})
    before = (await running.resources("s"))["dep"]["physical_resource_id"]
    (old,) = await metadata(running)
    await running.update("s", template=template(deployment_stack(input_values={"a": "B"})))
    second = await until_published(running, "UPDATE")
    assert second["a"] == "B" and second["deploy_signal_id"] == first["deploy_signal_id"]
    await running.until_parked("s", 1)
    await send_signal(running, second, {"out": "two"})
    assert await running.until_ended("s") == "UPDATE_COMPLETE"
    assert (await running.resources("s"))["dep"]["physical_resource_id"] == before
    (new,) = await metadata(running)
    assert new["id"] != old["id"]
    assert (await running.call("GET", f"/software_configs/{old['id']}"))[0] == 404


async def test_deployments_for_suspend_resume_and_delete(
    running: Program,
) -> None:
    actions = ["SUSPEND", "RESUME", "DELETE"]
    stack_id = await running.create("s", deployment_stack(actions=actions))
    assert await running.until_ended("s") == "CREATE_COMPLETE"
    assert await metadata(running) == []
    for action in actions[:2]:
        await running.act("s", action.lower())
        await send_signal(running, await until_published(running, action), {})
        assert await running.until_ended("s") == f"{action}_COMPLETE"
    await running.stack_request("DELETE", "s")
    values = await until_published(running, "DELETE")
    assert (await running.resources(stack_id))["dep"]["resource_status"] == "DELETE_IN_PROGRESS"
    await send_signal(running, values, {})
    assert await running.until_ended(stack_id) == "DELETE_COMPLETE"
    assert await metadata(running) == []
    assert (await running.call("GET", "/software_configs"))[1]["software_configs"] == []
    assert await send_signal(running, values, {}) == 404


async def test_an_old_deployment_is_deleted_while_its_replacement_exists(
    running: Program,
) -> None:
    """Another server is another deployment; each is signalled at its own URL."""
    actions = ["CREATE", "DELETE"]
    await running.create("s", deployment_stack(actions=actions))
    first = await until_published(running, "CREATE")
    await send_signal(running, first, {})
    assert await running.until_ended("s") == "CREATE_COMPLETE"
    changed = deployment_stack(actions=actions, server="web-2")
    await running.update("s", template=template(changed))
    await send_signal(running, await until_published(running, "CREATE", "web-2"), {"out": "new"})
    leaving = await until_published(running, "DELETE")
    assert leaving["deploy_signal_id"] == first["deploy_signal_id"]
    await send_signal(running, leaving, {})
    assert await running.until_ended("s") == "UPDATE_COMPLETE"
    assert await metadata(running) == []
    assert len(await metadata(running, "web-2")) == 1


async def test_the_api_can_report_progress_and_results(running: Program) -> None:
    """Through the API, as with a signal: there is an event, and the result wakes the resource."""
    await running.create("s", deployment_stack())
    values = await until_published(running, "CREATE")
    await running.until_parked("s", 1)
    deployment_id = (await running.call("GET", DEPLOYMENTS))[1]["software_deployments"][0]["id"]
    path = f"{DEPLOYMENTS}/{deployment_id}"
    at_it = {"status": "IN_PROGRESS", "status_reason": "Ann is at it"}
    assert (await running.call("PUT", path, at_it))[0] == 200

    async def progress_is_shown() -> bool:
        sentences = [
            one["sentence"] for one in (await running.stack_request("GET", "s", "/why"))["nodes"]
        ]
        return any(one.endswith(": Ann is at it (server web-1).") for one in sentences)

    await eventually(progress_is_shown)
    body = {"deploy_status": "IN_PROGRESS", "deploy_status_reason": "half of it"}
    await send_signal(running, values, body)

    async def is_reported() -> bool:
        reasons = [one["resource_status_reason"] for one in await running.events("s")]
        return "half of it" in reasons

    await eventually(is_reported)
    events = {
        (one["resource_status"], one["resource_status_reason"])
        for one in await running.events("s")
        if one["resource_name"] == "dep"
    }
    assert ("CREATE_IN_PROGRESS", "Ann is at it") in events
    ended = {"status": "COMPLETE", "output_values": {"out": "by hand"}}
    await running.call("PUT", path, ended)
    assert await running.until_ended("s") == "CREATE_COMPLETE"
    response = await running.stack_request("GET", "s", "/resources/dep")
    assert response["resource"]["attributes"]["out"] == "by hand"


async def test_progress_is_an_event_of_the_operation(running: Program, receiver: Receiver) -> None:
    wanted = {"target": receiver.url, "events": ["headgate.resource.*.progress"]}
    await running.call("POST", "/subscriptions", wanted)
    await running.create("s", deployment_stack())
    await running.until_parked("s", 1)
    (one,) = (await running.call("GET", DEPLOYMENTS))[1]["software_deployments"]
    body = {"status": "IN_PROGRESS", "status_reason": "Ann is at it"}
    await running.call("PUT", f"{DEPLOYMENTS}/{one['id']}", body)
    await until(lambda: receiver.events)
    (event,) = receiver.events
    kind = "headgate.resource.create.progress"
    assert (event["type"], event["data"]["resource"]["reason"]) == (kind, "Ann is at it")
    jsonschema_rs.validator_for(SCHEMAS[kind], validate_formats=True).validate(event)


async def test_a_deployment_deleted_through_the_api_fails_its_resource(running: Program) -> None:
    await running.create("s", deployment_stack())
    await until_published(running, "CREATE")
    await running.until_parked("s", 1)
    deployment_id = (await running.call("GET", DEPLOYMENTS))[1]["software_deployments"][0]["id"]
    await running.call("DELETE", f"{DEPLOYMENTS}/{deployment_id}")
    assert await running.until_ended("s") == "CREATE_FAILED"
    reason = (await running.resources("s"))["dep"]["resource_status_reason"]
    assert reason.endswith(f"Deployment with id {deployment_id} not found")


@pytest.mark.parametrize("transport", ["TEMP_URL_SIGNAL", "ZAQAR_SIGNAL"])
async def test_invalid_properties_are_refused_before_anything_is_stored(
    running: Program, transport: str
) -> None:
    sent = {"stack_name": "s", "template": template(deployment_stack(signal_transport=transport))}
    status, response = await running.call("POST", "/stacks", sent)
    assert status == 400
    assert "resources.dep.properties.signal_transport" in response["error"]["message"]
    assert "CFN_SIGNAL" in error_text(response["error"])


async def test_a_group_deploys_to_each_server_in_batches(running: Program) -> None:
    group: Json = {
        "type": f"{NAME}Group",
        "properties": {"config": {"get_resource": "script"}, "input_values": {"a": "1"},
                       "servers": {"one": "web-1", "two": "web-2"}},
        "update_policy": {"batch_create": {"max_batch_size": 1}},
    }  # fmt: skip
    read: Json = {
        "type": "OS::Heat::Value",
        "properties": {"value": [{"get_attr": ["group", "deploy_stdouts"]},
                                 {"get_attr": ["group", "out"]},
                                 {"get_attr": ["group", "resource.two.out"]}]},
    }  # fmt: skip
    await running.create("s", {"script": SCRIPT, "group": group, "read": read})
    first = await until_published(running, "CREATE")
    assert await metadata(running, "web-2") == [], "it is not its turn"
    await send_signal(running, first, {"deploy_stdout": "o1", "out": "1"})
    second = await until_published(running, "CREATE", "web-2")
    await send_signal(running, second, {"deploy_stdout": "o2", "out": "2"})
    assert await running.until_ended("s") == "CREATE_COMPLETE"
    response = (await running.stack_request("GET", "s", "/resources/read"))["resource"][
        "attributes"
    ]["value"]
    assert response == [{"one": "o1", "two": "o2"}, {"one": "1", "two": "2"}, "2"]
    # One server is added and one removed; unchanged servers get no new deployment.
    group["properties"]["servers"] = {"two": "web-2", "three": "web-3"}
    await running.update("s", "PUT", template=template({"script": SCRIPT, "group": group}))
    third = await until_published(running, "CREATE", "web-3")
    await send_signal(running, third, {"out": "3"})
    assert await running.until_ended("s") == "UPDATE_COMPLETE"
    assert await metadata(running) == []
    (kept,) = [one for one in await metadata(running, "web-2")]
    assert {one_input["name"]: one_input.get("value") for one_input in kept["inputs"]}[
        "deploy_action"
    ] == "CREATE"


async def test_errors_of_a_deployment_group_have_the_groups_path(running: Program) -> None:
    group: Json = {"type": "OS::Heat::StructuredDeploymentGroup",
                   "properties": {"servers": {"a": "w"}, "signal_transport": "ZAQAR_SIGNAL"}}  # fmt: skip
    body = {"stack_name": "s", "template": template({"group": group})}
    status, response = await running.call("POST", "/stacks", body)
    assert status == 400
    assert "resources.group.properties.signal_transport" in response["error"]["message"], response
    group["properties"] = {"servers": ["w"]}
    assert (await running.call("POST", "/stacks", body))[0] == 400
