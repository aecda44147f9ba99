"""Deployed servers: their agents poll for deployments with their own keys."""

import json
from pathlib import Path
from xml.etree import ElementTree

import pytest
from yarl import URL

from engine.types.software.deployed_server import PATH
from tests.integration.software.test_deployments import SCRIPT, deployment, send_signal
from tests.support.access import insert_credential, table_text
from tests.support.agent import OUTPUTS, SERVER, collect_metadata, signed_metadata_url
from tests.support.changes import error_text
from tests.support.ports import free_port
from tests.support.program import Json, Program, eventually, program, template


@pytest.fixture
def running(in_own_project: Program) -> Program:
    return in_own_project


def stack_of() -> Json:
    return {
        "script": SCRIPT,
        "server": SERVER,
        "dep": deployment(server={"get_resource": "server"}, input_values={"a": "A"}),
    }


async def agent_of(run: Program, name: str = "s") -> Json:
    """The settings of the server's agent, from the stack's outputs."""

    async def found() -> Json:
        return (await run.stack_request("GET", name, "/outputs/agent"))["output"]["output_value"]

    return await eventually(found)


async def create_server(run: Program, **body: Json) -> Json:
    sent = {"stack_name": "s", "template": template(stack_of(), outputs=OUTPUTS), **body}
    status, response = await run.call("POST", "/stacks", sent)
    assert status == 201, response
    await run.until_parked("s", 1)
    return await agent_of(run)


async def fetch_metadata(run: Program, agent: Json, **changed: str) -> tuple[int, str]:
    """As an agent does. changed: query parameters to change after signing."""
    async with run.session.get(signed_metadata_url(agent, **changed)) as answer:
        return answer.status, await answer.text()


def input_values(config: Json) -> dict[str, Json]:
    return {one["name"]: one.get("value") for one in config["inputs"]}


async def test_the_real_agent_gets_its_deployment_and_reports_the_result(
    running: Program, tmp_path: Path
) -> None:
    cfn = (await create_server(running))["cfn"]
    collected = await collect_metadata("cfn", cfn, tmp_path)
    assert collected["cfn"]["role"] == "web"
    assert collected["cfn"]["os-collect-config"]["cfn"] == cfn
    (config,) = collected["cfn"]["deployments"]
    assert (config["group"], config["config"], input_values(config)["a"]) == (
        "script",
        "echo $a",
        "A",
    )
    await send_signal(running, input_values(config), {"out": "42"})
    assert await running.until_ended("s") == "CREATE_COMPLETE"


async def test_the_metadata_of_a_server_has_its_current_deployments(running: Program) -> None:
    agent = await create_server(running)
    response = (await running.stack_request("GET", "s", "/resources/server/metadata"))["metadata"]
    assert response["role"] == "web" and response["os-collect-config"] == agent
    (config,) = response["deployments"]
    assert (
        input_values(config)["deploy_server_id"]
        == ((await running.resources("s"))["server"]["physical_resource_id"])
    )
    status, text = await fetch_metadata(running, agent)
    assert status == 200
    detail = ElementTree.fromstring(text).find("DescribeStackResourceResult/StackResourceDetail")
    assert detail is not None
    fields = {one.tag: one.text for one in detail}
    assert json.loads(fields.pop("Metadata") or "") == response
    assert (fields["StackName"], fields["LogicalResourceId"], fields["ResourceStatus"]) == (
        "s", "server", "CREATE_COMPLETE",
    )  # fmt: skip
    await send_signal(running, input_values(config), {})
    await running.until_ended("s")
    await running.update("s", template=template({"server": SERVER}, outputs=OUTPUTS))
    assert await running.until_ended("s") == "UPDATE_COMPLETE"
    response = (await running.stack_request("GET", "s", "/resources/server/metadata"))["metadata"]
    assert response["deployments"] == []


async def test_the_endpoint_gets_no_other_credential(running: Program) -> None:
    agent = await create_server(running)
    wrong = "0" * 64
    for changed in (
        {"StackName": "other"}, {"Signature": "x"}, {"AWSAccessKeyId": wrong},
        {"AWSAccessKeyId": "x"}, {"SignatureVersion": "1"},
    ):  # fmt: skip
        status, text = await fetch_metadata(running, agent, **changed)
        assert status == 401 and "is not signed" in text
        assert agent["cfn"]["secret_access_key"] not in text
    other = {"cfn": {**agent["cfn"], "stack_name": "before"}}
    assert (await fetch_metadata(running, other))[0] == 200
    status, text = await fetch_metadata(running, agent, Action="DescribeStacks")
    assert status == 401
    stack_id = (await running.stack("s"))["id"]
    await running.stack_request("DELETE", "s")
    assert await running.until_ended(stack_id) == "DELETE_COMPLETE"
    assert (await fetch_metadata(running, agent))[0] == 401


async def test_the_endpoint_requires_each_required_query_parameter(running: Program) -> None:
    url = URL(signed_metadata_url(await create_server(running)))
    _, document = await running.call("GET", "//openapi.json")
    parameters = document["paths"][PATH]["get"]["parameters"]
    required = {one["name"] for one in parameters if one.get("required")}
    assert required == set(url.query) - {"StackName", "LogicalResourceId"}
    for name in required:
        async with running.session.get(url.without_query_params(name)) as answer:
            assert answer.status == 401 and "is not signed" in await answer.text()


async def test_behind_a_proxy_the_metadata_url_is_signed_for_the_public_address(
    database_url: str,
) -> None:
    public, listen = "https://headgate.example.org/gate", f"127.0.0.1:{free_port()}"
    settings = {"server.public_url": public, "server.listen": listen}
    async with program(database_url, settings) as run:
        run.url = f"http://{listen}"
        agent = await create_server(run)
        assert agent["cfn"]["metadata_url"] == f"{public}/cfn/v1/"
        async with run.session.get(signed_metadata_url(agent).replace(public, run.url)) as answer:
            assert answer.status == 200
        other = {"cfn": {**agent["cfn"], "metadata_url": "https://elsewhere/cfn/v1/"}}
        async with run.session.get(
            signed_metadata_url(other).replace("https://elsewhere", run.url)
        ) as answer:
            assert answer.status == 401


async def test_the_secret_of_the_agent_is_masked_in_reads(running: Program) -> None:
    agent = await create_server(running)
    secret = agent["cfn"]["secret_access_key"]
    response = await running.stack_request("GET", "s", "/resources/server")
    assert secret not in str(response)
    assert secret not in str(await running.events("s"))


async def test_a_reader_cannot_signal_for_the_server(database_url: str) -> None:
    async with program(database_url, {"auth.mode": "tokens"}) as run:
        settings = {
            role: {"X-Auth-Token": await insert_credential(run.database, "p", role, [role])}
            for role in ("reader", "author")
        }
        sent = {"stack_name": "s", "template": template(stack_of())}
        status, response = await run.call("POST", "/stacks", sent, headers=settings["author"])
        assert status == 201, response
        path = f"/stacks/s/{response['stack']['id']}/resources/server"

        async def is_published() -> Json:
            _, document = await run.call("GET", f"{path}/metadata", headers=settings["author"])
            return document["metadata"]["deployments"]

        (config,) = await eventually(is_published)
        url = input_values(config)["deploy_signal_id"]
        server = input_values(config)["deploy_server_id"]
        ways = (
            f"{path}/metadata",
            f"/software_configs/{config['id']}",
            f"/software_deployments/metadata/{server}",
        )
        for way in ways:
            responses = {
                role: str(await run.call("GET", way, headers=one)) for role, one in settings.items()
            }
            assert url in responses["author"]
            assert (
                "?token=" not in responses["reader"]
                and "secret_access_key" not in responses["reader"]
            )
            shows_values = way.endswith("/resources/server/metadata")
            assert "echo $a" in responses["author"]
            assert ("echo $a" in responses["reader"]) == shows_values
            assert ("deploy_signal_id" in responses["reader"]) == shows_values
        kept = [await table_text(run.database, one) for one in ("resource", "software_config")]
        assert "?token=" not in str(kept)
        _, document = await run.call("GET", f"{path}/metadata", headers=settings["author"])
        secret = document["metadata"]["os-collect-config"]["cfn"]["secret_access_key"]
        assert secret not in str(kept)


@pytest.mark.parametrize("name", ["POLL_SERVER_HEAT", "POLL_TEMP_URL", "ZAQAR_MESSAGE"])
async def test_unsupported_transports_of_server_configs_are_refused(
    running: Program, name: str
) -> None:
    server = {**SERVER, "properties": {"software_config_transport": name}}
    sent = {"stack_name": "s", "template": template({"server": server})}
    status, response = await running.call("POST", "/stacks", sent)
    assert status == 400 and "POLL_SERVER_CFN" in error_text(response["error"])
