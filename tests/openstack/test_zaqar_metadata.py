"""Servers that take their metadata from a real Zaqar, with the credentials that they get."""

import json
from typing import Any

import pytest

from tests.openstack.cloud import OpenStack
from tests.openstack.stack_users import Agent, StackDomain, domain, run
from tests.openstack.stacks import delete, update
from tests.support.program import Program, eventually, template

Json = Any
__all__ = ["domain", "run"]  # fixtures
CFN = "POLL_SERVER_CFN"


@pytest.fixture(scope="session", autouse=True)
def zaqar(openstack: OpenStack) -> None:
    """Zaqar runs; it starts once per run."""
    openstack.start("zaqar")


def server(transport: str = "ZAQAR_MESSAGE", **metadata: Json) -> Json:
    properties = {"software_config_transport": transport}
    return {"type": "OS::Heat::DeployedServer", "properties": properties, "metadata": metadata}


def deployment(value: str = "1") -> Json:
    """A server `a` and a deployment `d` to it, which reports through Zaqar."""
    config = {
        "group": "script", "config": "echo $a", "inputs": [{"name": "a"}],
        "outputs": [{"name": "out"}],
    }  # fmt: skip
    deploys = {
        "config": {"get_resource": "c"}, "server": {"get_resource": "a"},
        "input_values": {"a": value}, "signal_transport": "ZAQAR_SIGNAL",
    }  # fmt: skip
    return {
        "a": server(role="web"),
        "c": {"type": "OS::Heat::SoftwareConfig", "properties": config},
        "d": {"type": "OS::Heat::SoftwareDeployment", "properties": deploys},
    }


async def begin(program: Program, resources: Json) -> Agent:
    """Create the stack `s`; return the agent of its server, which knows its first settings."""
    outputs = {"settings": {"value": {"get_attr": ["a", "os_collect_config"]}}}
    body = {**template(resources), "outputs": outputs}
    status, response = await program.call("POST", "/stacks", {"stack_name": "s", "template": body})
    assert status == 201, response

    async def given() -> Agent | None:
        (found,) = (await program.stack("s"))["outputs"]
        settings = found["output_value"]
        return Agent(settings["zaqar"]) if settings else None

    agent: Agent = await eventually(given)
    return agent


async def take(agent: Agent) -> list[Json]:
    """All messages, taken out of the queue one by one, as os-collect-config does."""
    found: list[Json] = []
    while True:
        path = f"/queues/{agent.given['queue_id']}/messages?pop=1"
        response = await agent.request("DELETE", path)
        if not response or not response["messages"]:
            return found
        found.append(response["messages"][0]["body"])


async def until_deployed(agent: Agent, value: str) -> Agent:
    """Take messages until the deployment has this input; return the server with its inputs."""

    async def deployed() -> Agent | None:
        for message in await take(agent):
            assert message["role"] == "web"
            for one in message["deployments"]:
                values = {each["name"]: each.get("value") for each in one["inputs"]}
                if values["a"] == value:
                    return Agent({k.removeprefix("deploy_"): v for k, v in values.items()})
        return None

    found: Agent = await eventually(deployed)
    return found


async def test_a_server_deploys_with_nothing_but_zaqar(run: Program, domain: StackDomain) -> None:
    agent = await begin(run, deployment())
    first = await until_deployed(agent, "1")
    assert first.given["user_id"] != agent.given["user_id"]
    await first.post({"out": "one", "deploy_status_code": 0})
    assert await run.until_ended("s") == "CREATE_COMPLETE"
    await run.update("s", "PUT", template=template(deployment("2")))
    second = await until_deployed(agent, "2")
    await second.post({"deploy_status_code": 0})
    assert await run.until_ended("s") == "UPDATE_COMPLETE"
    assert not await agent.is_refused()
    shown = [await run.stack_request("GET", "s", rest) for rest in ("/resources/a", "/events")]
    assert agent.given["password"] not in json.dumps(shown)
    await run.update("s", "PUT", template=template({"a": server(role="web")}))
    assert await run.until_ended("s") == "UPDATE_COMPLETE"
    assert (await take(agent))[-1]["deployments"] == []
    await delete(run)
    assert await domain.names() == []
    assert await agent.is_refused()


async def test_the_agent_learns_the_next_transport_from_its_queue(run: Program) -> None:
    agent = await begin(run, {"a": server()})
    assert await run.until_ended("s") == "CREATE_COMPLETE"
    (message,) = await take(agent)
    settings = message["os-collect-config"]
    assert settings["collectors"] == ["zaqar", "local"]
    assert settings["zaqar"] == agent.given
    await update(run, {"a": server(CFN)})
    (message,) = await take(agent)
    settings = message["os-collect-config"]
    assert settings["collectors"] == ["cfn", "local"] and settings["cfn"]["metadata_url"]
    assert set(settings["zaqar"].values()) == {None}
    await delete(run)
    assert await agent.is_refused()


async def test_servers_reach_only_their_own_queue(run: Program) -> None:
    agent = await begin(run, {"a": server(), "b": server()})
    assert await run.until_ended("s") == "CREATE_COMPLETE"
    assert await agent.queues() == [agent.given["queue_id"]]
    await delete(run)
