"""Deployments on a real database: published to servers, ended by their signals."""

import jsonschema_rs
import pytest

from channels.schemas.events import SCHEMAS
from tests.support.program import Json, Program, eventually, template
from tests.support.receiver import Receiver, until

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


def deployment(type_: str = NAME, **said: Json) -> Json:
    return {
        "type": type_,
        "properties": {"config": {"get_resource": "script"}, "server": "web-1", **said},
    }


def stack_of(**said: Json) -> Json:
    return {
        "script": SCRIPT,
        "dep": deployment(**said),
        "seen": {
            "type": "OS::Heat::Value",
            "properties": {"value": {"get_attr": ["dep", "out"]}},
        },
    }


async def metadata(run: Program, server: str = "web-1") -> list[Json]:
    """The deployments that a server gets."""
    _, said = await run.call("GET", f"{DEPLOYMENTS}/metadata/{server}")
    return list(said["metadata"])


async def published(run: Program, action: str, server: str = "web-1") -> dict[str, Json]:
    """The input values for a server, once they are published."""

    async def found() -> dict[str, Json] | None:
        for one in await metadata(run, server):
            values = {given["name"]: given.get("value") for given in one["inputs"]}
            if values.get("deploy_action") == action:
                return values
        return None

    values: dict[str, Json] = await eventually(found)
    return values


async def say(run: Program, values: Json, body: Json) -> int:
    """Send the server's signal to its signal URL."""
    path = values["deploy_signal_id"].removeprefix(run.url)
    status, _ = await run.call(values["deploy_signal_verb"], f"/{path}", body)
    return status


async def test_a_server_gets_it_and_its_signal_completes_the_resource(running: Program) -> None:
    await running.create("s", stack_of(input_values={"a": "A"}))
    values = await published(running, "CREATE")
    assert (values["a"], values["deploy_server_id"]) == ("A", "web-1")
    assert values["deploy_stack_id"] == f"s/{(await running.stack('s'))['id']}"
    (config,) = await metadata(running)
    assert (config["group"], config["config"]) == ("script", "echo $a")
    assert await say(running, values, {"out": "42", "deploy_status_code": 0}) == 200
    assert await running.until_ended("s") == "CREATE_COMPLETE"
    shown = await running.at("GET", "s", "/resources/seen")
    assert shown["resource"]["attributes"]["value"] == "42"
    one = (await running.resources("s"))["dep"]
    _, said = await running.call("GET", f"{DEPLOYMENTS}/{one['physical_resource_id']}")
    found = said["software_deployment"]
    assert (found["action"], found["status"], found["status_reason"], found["server_id"]) == (
        "CREATE", "COMPLETE", "Outputs received", "web-1",
    )  # fmt: skip
    assert found["output_values"]["out"] == "42" and found["config_id"] == config["id"]


async def test_a_signal_that_says_it_failed_fails_the_resource_and_the_next_update_mends_it(
    running: Program,
) -> None:
    await running.create("s", stack_of())
    values = await published(running, "CREATE")
    await say(running, values, {"trouble": "no disk", "deploy_status_code": 1})
    assert await running.until_ended("s") == "CREATE_FAILED"
    before = (await running.resources("s"))["dep"]
    assert before["resource_status_reason"].endswith(
        "Deployment to server failed: deploy_status_code : Deployment exited with non-zero"
        " status code: 1, trouble : no disk"
    )
    await running.update("s", template=template(stack_of()))

    async def another() -> bool:
        return (await published(running, "CREATE"))["deploy_signal_id"] != values[
            "deploy_signal_id"
        ] or len(await metadata(running)) > 1

    await eventually(another)
    for config in await metadata(running):
        given = {one["name"]: one.get("value") for one in config["inputs"]}
        await say(running, given, {"out": "7"})
    assert await running.until_ended("s") == "UPDATE_COMPLETE"
    after = (await running.resources("s"))["dep"]
    assert after["physical_resource_id"] != before["physical_resource_id"]
    assert len(await metadata(running)) == 1


async def test_an_update_waits_for_a_signal_of_its_own(running: Program) -> None:
    """The URL and the deployment stay the same; earlier signals do not count."""
    await running.create("s", stack_of())
    first = await published(running, "CREATE")
    await say(running, first, {"out": "one"})
    assert await running.until_ended("s") == "CREATE_COMPLETE"
    await say(running, first, {"out": "too late", "deploy_status_code": 1})
    before = (await running.resources("s"))["dep"]["physical_resource_id"]
    (old,) = await metadata(running)
    await running.update("s", template=template(stack_of(input_values={"a": "B"})))
    second = await published(running, "UPDATE")
    assert second["a"] == "B" and second["deploy_signal_id"] == first["deploy_signal_id"]
    await running.waiting_count("s", 1)
    await say(running, second, {"out": "two"})
    assert await running.until_ended("s") == "UPDATE_COMPLETE"
    assert (await running.resources("s"))["dep"]["physical_resource_id"] == before
    (new,) = await metadata(running)
    assert new["id"] != old["id"]
    assert (await running.call("GET", f"/software_configs/{old['id']}"))[0] == 404


async def test_a_server_may_have_work_when_it_is_suspended_resumed_and_deleted(
    running: Program,
) -> None:
    actions = ["SUSPEND", "RESUME", "DELETE"]
    stack_id = await running.create("s", stack_of(actions=actions))
    assert await running.until_ended("s") == "CREATE_COMPLETE"
    assert await metadata(running) == []
    for action in actions[:2]:
        await running.act("s", action.lower())
        await say(running, await published(running, action), {})
        assert await running.until_ended("s") == f"{action}_COMPLETE"
    await running.at("DELETE", "s")
    values = await published(running, "DELETE")
    assert (await running.resources(stack_id))["dep"]["resource_status"] == "DELETE_IN_PROGRESS"
    await say(running, values, {})
    assert await running.until_ended(stack_id) == "DELETE_COMPLETE"
    assert await metadata(running) == []
    assert (await running.call("GET", "/software_configs"))[1]["software_configs"] == []
    assert await say(running, values, {}) == 404


async def test_an_old_deployment_is_deleted_while_its_replacement_exists(
    running: Program,
) -> None:
    """Another server is another deployment; each is signalled at its own URL."""
    actions = ["CREATE", "DELETE"]
    await running.create("s", stack_of(actions=actions))
    first = await published(running, "CREATE")
    await say(running, first, {})
    assert await running.until_ended("s") == "CREATE_COMPLETE"
    changed = stack_of(actions=actions, server="web-2")
    await running.update("s", template=template(changed))
    await say(running, await published(running, "CREATE", "web-2"), {"out": "new"})
    leaving = await published(running, "DELETE")
    assert leaving["deploy_signal_id"] == first["deploy_signal_id"]
    await say(running, leaving, {})
    assert await running.until_ended("s") == "UPDATE_COMPLETE"
    assert await metadata(running) == []
    assert len(await metadata(running, "web-2")) == 1


async def test_the_api_can_report_progress_and_results(running: Program) -> None:
    """Through the API, as with a signal: there is an event, and the result wakes the resource."""
    await running.create("s", stack_of())
    values = await published(running, "CREATE")
    await running.waiting_count("s", 1)
    deployment_id = (await running.call("GET", DEPLOYMENTS))[1]["software_deployments"][0]["id"]
    path = f"{DEPLOYMENTS}/{deployment_id}"
    at_it = {"status": "IN_PROGRESS", "status_reason": "Ann is at it"}
    assert (await running.call("PUT", path, at_it))[0] == 200

    async def said() -> bool:
        sentences = [one["sentence"] for one in (await running.at("GET", "s", "/why"))["nodes"]]
        return any(one.endswith(": Ann is at it (server web-1).") for one in sentences)

    await eventually(said)
    body = {"deploy_status": "IN_PROGRESS", "deploy_status_reason": "half of it"}
    await say(running, values, body)

    async def told() -> bool:
        reasons = [one["resource_status_reason"] for one in await running.events("s")]
        return "half of it" in reasons

    await eventually(told)
    events = {
        (one["resource_status"], one["resource_status_reason"])
        for one in await running.events("s")
        if one["resource_name"] == "dep"
    }
    assert ("CREATE_IN_PROGRESS", "Ann is at it") in events
    ended = {"status": "COMPLETE", "output_values": {"out": "by hand"}}
    await running.call("PUT", path, ended)
    assert await running.until_ended("s") == "CREATE_COMPLETE"
    shown = await running.at("GET", "s", "/resources/dep")
    assert shown["resource"]["attributes"]["out"] == "by hand"


async def test_progress_is_an_event_of_the_operation(running: Program, receiver: Receiver) -> None:
    wanted = {"target": receiver.url, "events": ["headgate.resource.*.progress"]}
    await running.call("POST", "/subscriptions", wanted)
    await running.create("s", stack_of())
    await running.waiting_count("s", 1)
    (one,) = (await running.call("GET", DEPLOYMENTS))[1]["software_deployments"]
    said = {"status": "IN_PROGRESS", "status_reason": "Ann is at it"}
    await running.call("PUT", f"{DEPLOYMENTS}/{one['id']}", said)
    await until(lambda: receiver.events)
    (event,) = receiver.events
    kind = "headgate.resource.create.progress"
    assert (event["type"], event["data"]["resource"]["reason"]) == (kind, "Ann is at it")
    jsonschema_rs.validator_for(SCHEMAS[kind], validate_formats=True).validate(event)


async def test_a_deployment_deleted_through_the_api_fails_its_resource(running: Program) -> None:
    await running.create("s", stack_of())
    await published(running, "CREATE")
    await running.waiting_count("s", 1)
    deployment_id = (await running.call("GET", DEPLOYMENTS))[1]["software_deployments"][0]["id"]
    await running.call("DELETE", f"{DEPLOYMENTS}/{deployment_id}")
    assert await running.until_ended("s") == "CREATE_FAILED"
    reason = (await running.resources("s"))["dep"]["resource_status_reason"]
    assert reason.endswith(f"Deployment with id {deployment_id} not found")


@pytest.mark.parametrize("transport", ["TEMP_URL_SIGNAL", "ZAQAR_SIGNAL"])
async def test_invalid_properties_are_refused_before_anything_is_stored(
    running: Program, transport: str
) -> None:
    sent = {"stack_name": "s", "template": template(stack_of(signal_transport=transport))}
    status, said = await running.call("POST", "/stacks", sent)
    assert status == 400
    assert "resources.dep.properties.signal_transport" in said["error"]["message"]
    assert "CFN_SIGNAL" in said["error"]["message"]


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
    first = await published(running, "CREATE")
    assert await metadata(running, "web-2") == [], "it is not its turn"
    await say(running, first, {"deploy_stdout": "o1", "out": "1"})
    second = await published(running, "CREATE", "web-2")
    await say(running, second, {"deploy_stdout": "o2", "out": "2"})
    assert await running.until_ended("s") == "CREATE_COMPLETE"
    shown = (await running.at("GET", "s", "/resources/read"))["resource"]["attributes"]["value"]
    assert shown == [{"one": "o1", "two": "o2"}, {"one": "1", "two": "2"}, "2"]
    # One server is added and one removed; unchanged servers get no new deployment.
    group["properties"]["servers"] = {"two": "web-2", "three": "web-3"}
    await running.update("s", "PUT", template=template({"script": SCRIPT, "group": group}))
    third = await published(running, "CREATE", "web-3")
    await say(running, third, {"out": "3"})
    assert await running.until_ended("s") == "UPDATE_COMPLETE"
    assert await metadata(running) == []
    (kept,) = [one for one in await metadata(running, "web-2")]
    assert {given["name"]: given.get("value") for given in kept["inputs"]}[
        "deploy_action"
    ] == "CREATE"


async def test_what_is_wrong_with_a_group_is_told_of_the_group(running: Program) -> None:
    group: Json = {"type": "OS::Heat::StructuredDeploymentGroup",
                   "properties": {"servers": {"a": "w"}, "signal_transport": "ZAQAR_SIGNAL"}}  # fmt: skip
    body = {"stack_name": "s", "template": template({"group": group})}
    status, said = await running.call("POST", "/stacks", body)
    assert status == 400
    assert "resources.group.properties.signal_transport" in said["error"]["message"], said
    group["properties"] = {"servers": ["w"]}
    assert (await running.call("POST", "/stacks", body))[0] == 400
