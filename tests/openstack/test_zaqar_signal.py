"""Signals that servers post to a real Zaqar, with the credentials that they get."""

import asyncio
import json
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import aiohttp
import pytest

from tests.openstack.cloud import OpenStack, Project
from tests.openstack.crashes import die_after_each, settings_file
from tests.openstack.neutron_stacks import delete as delete_stack
from tests.openstack.stack_users import Agent, StackDomain, domain, run
from tests.openstack.stacks import delete, reason
from tests.support.program import Http, Program, ServerProcess, eventually, template

Json = Any
__all__ = ["domain", "run"]  # fixtures


@pytest.fixture(scope="session", autouse=True)
def zaqar(openstack: OpenStack) -> None:
    """Zaqar runs; it starts once per run."""
    openstack.start("zaqar")


def pair(name: str = "", **properties: Json) -> Json:
    """A handle `h` and a condition `w` that waits for it. name: what their names end with."""
    waits = {"handle": {"get_resource": f"h{name}"}, "timeout": 300, **properties}
    transport = {"signal_transport": "ZAQAR_SIGNAL"}
    return {
        f"h{name}": {"type": "OS::Heat::WaitConditionHandle", "properties": transport},
        f"w{name}": {"type": "OS::Heat::WaitCondition", "properties": waits},
    }


async def begin(program: Program, names: Sequence[str] = ("",), **more: Json) -> list[Agent]:
    """Create the stack `s`; return a server for each of its handles."""
    body = template({k: v for one in names for k, v in pair(one, **more).items()})
    body["outputs"] = {
        f"signal{one}": {"value": {"get_attr": [f"h{one}", "signal"]}} for one in names
    }
    status, response = await program.call("POST", "/stacks", {"stack_name": "s", "template": body})
    assert status == 201, response

    async def given() -> list[Agent] | None:
        found = (await program.stack("s"))["outputs"]
        values = [one["output_value"] for one in sorted(found, key=lambda one: one["output_key"])]
        return [Agent(json.loads(one)) for one in values] if all(values) else None

    agents: list[Agent] = await eventually(given)
    return agents


async def data_of(program: Program, name: str = "w") -> Json:
    found = await program.stack_request("GET", "s", f"/resources/{name}")
    return json.loads(found["resource"]["attributes"]["data"])


async def test_messages_to_the_queue_count_once_and_nothing_stays(
    run: Program, domain: StackDomain
) -> None:
    (agent,) = await begin(run, count=4)
    assert agent.given["domain_id"] == domain.id
    await agent.post({}, {"id": "b", "data": "two", "reason": "r"})
    await agent.post({"data": {"three": 3}})
    await agent.post({"id": "b", "data": "again"})
    await agent.post({"data": 5})
    assert await run.until_ended("s") == "CREATE_COMPLETE"
    data = await data_of(run)
    assert data["b"] == "again" and len(data) == 4
    assert sorted(map(str, data.values())) == ["5", "None", "again", "{'three': 3}"]
    documents = [
        await run.stack_request("GET", "s", rest)
        for rest in ("/resources/h", "/resources/w", "/events")
    ]
    assert agent.given["password"] not in json.dumps(documents)
    await delete(run)
    assert await domain.names() == []
    assert await agent.is_refused()


async def test_messages_that_have_expired_count_for_a_later_update(run: Program) -> None:
    """Zaqar accepts lifetimes from one minute: the queue is emptied in place of the wait."""
    (agent,) = await begin(run, count=2)
    await agent.post({"id": "a"}, {"id": "b"})
    assert await run.until_ended("s") == "CREATE_COMPLETE"
    queue = f"/queues/{agent.given['queue_id']}"
    await agent.request("POST", f"{queue}/purge", {"resource_types": ["messages"]})
    await agent.post({"id": "c"})
    await run.update("s", "PUT", template=template(pair(count=3)))
    assert await run.until_ended("s") == "UPDATE_COMPLETE"
    assert (await data_of(run)).keys() == {"a", "b", "c"}
    await delete(run)


async def test_a_message_that_another_client_has_claimed_counts(run: Program) -> None:
    """It is claimed before a condition reads it."""
    (agent,) = await begin(run, count=1)
    await agent.post({})
    assert await run.until_ended("s") == "CREATE_COMPLETE"
    await agent.post({"id": "claimed"})
    claim = {"ttl": 300, "grace": 60}
    path = f"/queues/{agent.given['queue_id']}/claims"
    claimed = await agent.request("POST", path, claim)
    assert "claimed" in json.dumps(claimed)
    await run.update("s", "PUT", template=template(pair(count=2)))
    assert await run.until_ended("s") == "UPDATE_COMPLETE"
    assert "claimed" in await data_of(run)
    await delete(run)


@pytest.mark.parametrize(
    ("body", "why"),
    [
        ({"status": "FAILURE", "reason": "no disk"}, "WaitConditionFailure: no disk"),
        ({"status": "done"}, "signal 1 is invalid"),
        ("{", "not valid JSON"),
        ([1], "not a JSON object"),
        (" " * 65_537, "longer than 65536 bytes"),
    ],
    ids=["failure", "status", "syntax", "list", "size"],
)
async def test_a_message_that_is_no_success_fails_the_condition_with_the_reason(
    run: Program, body: Json, why: str
) -> None:
    (agent,) = await begin(run)
    await agent.post(body)
    assert await run.until_ended("s") == "CREATE_FAILED"
    assert why in await reason(run, "s", "w")
    await delete(run)


async def test_servers_reach_only_their_own_queue(run: Program) -> None:
    one, two = await begin(run, ("1", "2"))
    assert await one.queues() == [one.given["queue_id"]]
    assert one.given["project_id"] != two.given["project_id"]
    await one.post({})
    await two.post({})
    assert await run.until_ended("s") == "CREATE_COMPLETE"
    await delete(run)


async def test_a_delete_ends_the_wait_and_leaves_nothing(run: Program) -> None:
    (agent,) = await begin(run, count=2)
    await agent.post({})
    await delete(run)
    assert await agent.is_refused()


async def test_a_killed_create_makes_one_user_and_leaves_nothing(
    database_url: str, openstack: OpenStack, project: Project, domain: StackDomain, tmp_path: Path
) -> None:
    """A process dies after each commit of the creation of a handle, also before its user is
    stored."""
    settings = settings_file(openstack, domain.settings)
    server = ServerProcess(tmp_path, settings=settings, database_url=database_url)
    connector = aiohttp.TCPConnector(force_close=True)
    try:
        async with aiohttp.ClientSession(
            connector=connector, headers={"X-Auth-Token": project.token()}
        ) as session:
            http = Http(session, server.url, project.id)
            assert await die_after_each(server, http, {"a": pair()["h"]}) == "CREATE_COMPLETE"
            assert len(await domain.names()) == 2
            await delete_stack(http)
            assert await domain.names() == []
    finally:
        server.kill()


SCRIPT: Json = {
    "type": "OS::Heat::SoftwareConfig",
    "properties": {
        "group": "script",
        "config": "echo $a",
        "inputs": [{"name": "a"}],
        "outputs": [{"name": "out"}, {"name": "trouble", "error_output": True}],
    },
}


def deployment(value: str = "1", **properties: Json) -> Json:
    """A config and its deployment `d`."""
    deploys = {
        "config": {"get_resource": "c"},
        "server": "web-1",
        "input_values": {"a": value},
        "signal_transport": "ZAQAR_SIGNAL",
        **properties,
    }
    return {"c": SCRIPT, "d": {"type": "OS::Heat::SoftwareDeployment", "properties": deploys}}


async def until_published(program: Program, action: str, server: str = "web-1") -> Agent:
    """Wait for the deployment of a server; return the server with the credentials in its inputs."""

    async def published() -> Agent | None:
        path = f"/software_deployments/metadata/{server}"
        for one in (await program.call("GET", path))[1]["metadata"]:
            values = {each["name"]: each.get("value") for each in one["inputs"]}
            if values["deploy_action"] == action:
                assert "deploy_signal_id" not in values
                return Agent({name.removeprefix("deploy_"): one for name, one in values.items()})
        return None

    found: Agent = await eventually(published)
    return found


async def test_a_server_posts_the_results_of_its_deployments(
    run: Program, domain: StackDomain
) -> None:
    """Each operation has a queue and a password of its own; those of an earlier one are invalid."""
    actions = ["CREATE", "UPDATE", "DELETE"]
    body = template(deployment(actions=actions))
    body["outputs"] = {"out": {"value": {"get_attr": ["d", "out"]}}}
    await run.call("POST", "/stacks", {"stack_name": "s", "template": body})
    first = await until_published(run, "CREATE")
    await first.post({"deploy_status": "IN_PROGRESS"})
    await first.post({"out": "one", "deploy_status_code": 0})
    await first.post({"out": "too late", "deploy_status_code": 1})
    assert await run.until_ended("s") == "CREATE_COMPLETE"
    assert (await run.stack("s"))["outputs"][0]["output_value"] == "one"
    await run.update("s", "PUT", template=template(deployment("2", actions=actions)))
    second = await until_published(run, "UPDATE")
    assert await first.is_refused()
    assert await second.queues() == [second.given["queue_id"]] != [first.given["queue_id"]]
    await second.post({"deploy_status_code": 7})
    assert await run.until_ended("s") == "UPDATE_FAILED"
    assert "non-zero status code: 7" in await reason(run, "s", "d")
    documents = [await run.stack_request("GET", "s", rest) for rest in ("/resources/d", "/events")]
    assert second.given["password"] not in json.dumps(documents)
    await run.stack_request("DELETE", "s")
    last = await until_published(run, "DELETE")
    await last.post({})
    await eventually(lambda: is_gone(run))
    assert await domain.names() == []


async def is_gone(program: Program) -> bool:
    return (await program.call("GET", "/stacks/s"))[0] == 404


async def test_a_group_ends_with_the_messages_of_its_servers(run: Program) -> None:
    properties = deployment()["d"]["properties"]
    del properties["server"]
    servers = {"one": "web-1", "two": "web-2"}
    group = {"type": "OS::Heat::SoftwareDeploymentGroup",
             "properties": {**properties, "servers": servers}}  # fmt: skip
    await run.create("s", {"c": SCRIPT, "g": group})
    agents = [await until_published(run, "CREATE", server) for server in servers.values()]
    await agents[0].post({"deploy_status_code": 0})
    await agents[1].post([])
    assert await run.until_ended("s") == "CREATE_FAILED"
    assert "not a JSON object" in await reason(run, "s", "g")
    await delete(run)


async def test_a_killed_process_loses_no_message(
    database_url: str, openstack: OpenStack, project: Project, domain: StackDomain, tmp_path: Path
) -> None:
    """Messages that are posted while no process runs, and before the next one has kept them."""
    settings = settings_file(openstack, domain.settings)
    server = ServerProcess(tmp_path, settings=settings, database_url=database_url)
    connector = aiohttp.TCPConnector(force_close=True)
    try:
        await asyncio.to_thread(server.start)
        async with aiohttp.ClientSession(
            connector=connector, headers={"X-Auth-Token": project.token()}
        ) as session:
            http = Http(session, server.url, project.id)
            body = template(deployment())
            await http.call("POST", "/stacks", {"stack_name": "s", "template": body})

            async def published() -> Agent | None:
                path = "/software_deployments/metadata/web-1"
                for one in (await http.call("GET", path))[1]["metadata"]:
                    values = {each["name"]: each.get("value") for each in one["inputs"]}
                    return Agent({name.removeprefix("deploy_"): v for name, v in values.items()})
                return None

            agent: Agent = await eventually(published)
            server.kill()
            await agent.post({"out": "one", "deploy_status_code": 0})
            await asyncio.to_thread(server.start)

            async def ended() -> str | None:
                status = (await http.call("GET", "/stacks/s"))[1]["stack"]["stack_status"]
                return None if status.endswith("IN_PROGRESS") else str(status)

            assert await eventually(ended) == "CREATE_COMPLETE"
            await delete_stack(http)
    finally:
        server.kill()
