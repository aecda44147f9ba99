"""Deployed servers: their agents poll for deployments with their own keys."""

import json
from pathlib import Path
from xml.etree import ElementTree

import pytest

from tests.integration.software.test_deployments import SCRIPT, deployment, say
from tests.support.access import everything_in, given_directly
from tests.support.agent import OUTPUTS, SERVER, asking, collected_by
from tests.support.program import Json, Program, eventually, free_port, program, template


def stack_of() -> Json:
    return {
        "script": SCRIPT,
        "server": SERVER,
        "dep": deployment(server={"get_resource": "server"}, input_values={"a": "A"}),
    }


async def agent_of(run: Program, name: str = "s") -> Json:
    """The settings of the server's agent, from the stack's outputs."""

    async def found() -> Json:
        return (await run.at("GET", name, "/outputs/agent"))["output"]["output_value"]

    return await eventually(found)


async def begun(run: Program, **body: Json) -> Json:
    sent = {"stack_name": "s", "template": template(stack_of(), outputs=OUTPUTS), **body}
    status, said = await run.call("POST", "/stacks", sent)
    assert status == 201, said
    await run.waiting_count("s", 1)
    return await agent_of(run)


async def ask(run: Program, agent: Json, **changed: str) -> tuple[int, str]:
    """As an agent does; changed: after it was signed."""
    async with run.session.get(asking(agent, **changed)) as answer:
        return answer.status, await answer.text()


def values(config: Json) -> dict[str, Json]:
    return {one["name"]: one.get("value") for one in config["inputs"]}


async def test_the_real_agent_gets_its_deployment_and_reports_the_result(
    running: Program, tmp_path: Path
) -> None:
    cfn = (await begun(running))["cfn"]
    collected = await collected_by("cfn", cfn, tmp_path)
    assert collected["cfn"]["role"] == "web"
    assert collected["cfn"]["os-collect-config"]["cfn"] == cfn
    (config,) = collected["cfn"]["deployments"]
    assert (config["group"], config["config"], values(config)["a"]) == ("script", "echo $a", "A")
    await say(running, values(config), {"out": "42"})
    assert await running.until_ended("s") == "CREATE_COMPLETE"


async def test_metadata_of_a_server_is_what_is_deployed_to_it_now(running: Program) -> None:
    agent = await begun(running)
    shown = (await running.at("GET", "s", "/resources/server/metadata"))["metadata"]
    assert shown["role"] == "web" and shown["os-collect-config"] == agent
    (config,) = shown["deployments"]
    assert (
        values(config)["deploy_server_id"]
        == ((await running.resources("s"))["server"]["physical_resource_id"])
    )
    status, text = await ask(running, agent)
    assert status == 200
    detail = ElementTree.fromstring(text).find("DescribeStackResourceResult/StackResourceDetail")
    assert detail is not None
    told = {one.tag: one.text for one in detail}
    assert json.loads(told.pop("Metadata") or "") == shown
    assert (told["StackName"], told["LogicalResourceId"], told["ResourceStatus"]) == (
        "s", "server", "CREATE_COMPLETE",
    )  # fmt: skip
    await say(running, values(config), {})
    await running.until_ended("s")
    await running.update("s", template=template({"server": SERVER}, outputs=OUTPUTS))
    assert await running.until_ended("s") == "UPDATE_COMPLETE"
    shown = (await running.at("GET", "s", "/resources/server/metadata"))["metadata"]
    assert shown["deployments"] == []


async def test_the_endpoint_gets_no_other_credential(running: Program) -> None:
    agent = await begun(running)
    wrong = "0" * 64
    for changed in (
        {"StackName": "other"}, {"Signature": "x"}, {"AWSAccessKeyId": wrong},
        {"AWSAccessKeyId": "x"}, {"SignatureVersion": "1"},
    ):  # fmt: skip
        status, text = await ask(running, agent, **changed)
        assert status == 401 and "is not signed" in text
        assert agent["cfn"]["secret_access_key"] not in text
    other = {"cfn": {**agent["cfn"], "stack_name": "before"}}
    assert (await ask(running, other))[0] == 200
    status, text = await ask(running, agent, Action="DescribeStacks")
    assert status == 401
    stack_id = (await running.stack("s"))["id"]
    await running.at("DELETE", "s")
    assert await running.until_ended(stack_id) == "DELETE_COMPLETE"
    assert (await ask(running, agent))[0] == 401


async def test_behind_a_proxy_it_is_signed_for_the_public_address(database_url: str) -> None:
    public, listen = "https://headgate.example.org/gate", f"127.0.0.1:{free_port()}"
    said = {"server.public_url": public, "server.listen": listen}
    async with program(database_url, said) as run:
        run.url = f"http://{listen}"
        agent = await begun(run)
        assert agent["cfn"]["metadata_url"] == f"{public}/cfn/v1/"
        async with run.session.get(asking(agent).replace(public, run.url)) as answer:
            assert answer.status == 200
        other = {"cfn": {**agent["cfn"], "metadata_url": "https://elsewhere/cfn/v1/"}}
        async with run.session.get(asking(other).replace("https://elsewhere", run.url)) as answer:
            assert answer.status == 401


async def test_the_secret_of_the_agent_is_masked_in_reads(running: Program) -> None:
    agent = await begun(running)
    secret = agent["cfn"]["secret_access_key"]
    shown = await running.at("GET", "s", "/resources/server")
    assert secret not in str(shown)
    assert secret not in str(await running.events("s"))


async def test_a_reader_cannot_signal_for_the_server(database_url: str) -> None:
    async with program(database_url, {"auth.mode": "tokens"}) as run:
        said = {
            role: {"X-Auth-Token": await given_directly(run.database, "p", role, [role])}
            for role in ("reader", "author")
        }
        sent = {"stack_name": "s", "template": template(stack_of())}
        status, made = await run.call("POST", "/stacks", sent, headers=said["author"])
        assert status == 201, made
        path = f"/stacks/s/{made['stack']['id']}/resources/server"

        async def published() -> Json:
            _, shown = await run.call("GET", f"{path}/metadata", headers=said["author"])
            return shown["metadata"]["deployments"]

        (config,) = await eventually(published)
        url = values(config)["deploy_signal_id"]
        server = values(config)["deploy_server_id"]
        ways = (
            f"{path}/metadata",
            f"/software_configs/{config['id']}",
            f"/software_deployments/metadata/{server}",
        )
        for way in ways:
            seen = {
                role: str(await run.call("GET", way, headers=one)) for role, one in said.items()
            }
            assert url in seen["author"]
            assert "?token=" not in seen["reader"] and "secret_access_key" not in seen["reader"]
            shows_values = way.endswith("/resources/server/metadata")
            assert "echo $a" in seen["author"]
            assert ("echo $a" in seen["reader"]) == shows_values
            assert ("deploy_signal_id" in seen["reader"]) == shows_values
        kept = [await everything_in(run.database, one) for one in ("resource", "software_config")]
        assert "?token=" not in str(kept)
        _, shown = await run.call("GET", f"{path}/metadata", headers=said["author"])
        secret = shown["metadata"]["os-collect-config"]["cfn"]["secret_access_key"]
        assert secret not in str(kept)


@pytest.mark.parametrize("name", ["POLL_SERVER_HEAT", "POLL_TEMP_URL", "ZAQAR_MESSAGE"])
async def test_ways_of_asking_that_there_are_not_are_refused(running: Program, name: str) -> None:
    server = {**SERVER, "properties": {"software_config_transport": name}}
    sent = {"stack_name": "s", "template": template({"server": server})}
    status, said = await running.call("POST", "/stacks", sent)
    assert status == 400 and "POLL_SERVER_CFN" in said["error"]["message"]
