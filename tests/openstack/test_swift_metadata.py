"""Metadata of servers in a real Swift, which the real os-collect-config polls (POLL_TEMP_URL)."""

import asyncio
import json
from pathlib import Path
from typing import Any

import aiohttp
import pytest

from tests.openstack.cloud import OpenStack, Project
from tests.openstack.stacks import delete, reason, run
from tests.support.access import table_text
from tests.support.agent import OUTPUTS, collect_metadata
from tests.support.program import Program, eventually, template

Json = Any
__all__ = ["run"]  # a fixture
POLL = {"software_config_transport": "POLL_TEMP_URL"}
SCRIPT = {
    "type": "OS::Heat::SoftwareConfig",
    "properties": {"group": "script", "config": "echo $a", "outputs": [{"name": "out"}]},
}


@pytest.fixture(scope="session", autouse=True)
def swift(openstack: OpenStack) -> None:
    """Swift runs; it starts once per run."""
    openstack.start("swift")


def server(**properties: Json) -> Json:
    return {
        "type": "OS::Heat::DeployedServer",
        "metadata": {"role": "web"},
        "properties": POLL | properties,
    }


def deployment(value: str, **properties: Json) -> Json:
    return {
        "type": "OS::Heat::SoftwareDeployment",
        "properties": {
            "server": {"get_resource": "server"},
            "config": {"get_resource": "script"},
            "input_values": {"a": value},
            "signal_transport": "NO_SIGNAL",
            **properties,
        },
    }


def stack_of(values: Json, **properties: Json) -> Json:
    deployments = {f"d{n}": deployment(value) for n, value in values.items()}
    resources = {"script": SCRIPT, "server": server(**properties), **deployments}
    return template(resources, outputs=OUTPUTS)


async def create(program: Program, body: Json, name: str = "s") -> None:
    status, response = await program.call("POST", "/stacks", {"stack_name": name, "template": body})
    assert status == 201, response


async def url_of(program: Program, name: str = "s") -> str:
    async def found() -> Json:
        shown = await program.stack_request("GET", name, "/outputs/agent")
        return (shown["output"]["output_value"] or {}).get("request")

    return str((await eventually(found))["metadata_url"])


async def fetch(url: str) -> tuple[int, Json]:
    async with aiohttp.ClientSession() as session, session.get(url) as response:
        text = await response.text()
        return response.status, json.loads(text) if response.status == 200 else text


def values(document: Json) -> list[str]:
    """The value of the input `a` of each deployment."""
    return [
        one["value"]
        for config in document["deployments"]
        for one in config["inputs"]
        if one["name"] == "a"
    ]


async def containers(project: Project) -> list[str]:
    listed = await asyncio.to_thread(lambda: list(project.cloud.object_store.containers()))
    return sorted(one.name for one in listed)


async def ended(program: Program, wanted: str, name: str = "s") -> None:
    assert await program.until_ended(name) == wanted, await program.events(name)


async def test_the_real_agent_gets_its_deployments_from_swift_alone(
    run: Program, project: Project, tmp_path: Path
) -> None:
    """It gets the same metadata as the API shows. Updates and deletes of deployments reach it, and
    nothing stays."""
    await create(run, stack_of({1: "one", 2: "two"}))
    await ended(run, "CREATE_COMPLETE")
    url = await url_of(run)
    collected = await collect_metadata("request", {"metadata_url": url}, tmp_path)
    assert sorted(values(collected["request"])) == ["one", "two"]
    shown = (await run.stack_request("GET", "s", "/resources/server/metadata"))["metadata"]
    assert collected["request"] == shown and shown["role"] == "web"
    assert shown["os-collect-config"]["collectors"] == ["request", "local"]
    assert "temp_url_sig" not in str(await run.stack_request("GET", "s", "/resources/server"))
    assert "temp_url_sig" not in str(await run.events("s"))
    assert "temp_url_sig" not in await table_text(run.database, "resource")
    await run.update("s", "PUT", template=stack_of({2: "new"}))
    await ended(run, "UPDATE_COMPLETE")
    assert await url_of(run) == url
    assert values((await fetch(url))[1]) == ["new"]
    await delete(run)
    assert await containers(project) == []
    assert (await fetch(url))[0] in (401, 404)


async def test_deployments_of_the_api_and_of_other_stacks_reach_the_agent(
    run: Program, project: Project
) -> None:
    await create(run, stack_of({}))
    await ended(run, "CREATE_COMPLETE")
    url = await url_of(run)
    server_id = (await run.resources("s"))["server"]["physical_resource_id"]
    status, made = await run.call("POST", "/software_configs", {
        "group": "script", "config": "ls", "inputs": [{"name": "a", "value": "api"}],
    })  # fmt: skip
    assert status == 200, made
    sent = {"config_id": made["software_config"]["id"], "server_id": server_id}
    status, deployed = await run.call("POST", "/software_deployments", sent)
    assert status == 200, deployed
    assert values((await fetch(url))[1]) == ["api"]
    path = f"/software_deployments/{deployed['software_deployment']['id']}"
    status, response = await run.call("PUT", path, {"input_values": {"a": "changed"}})
    assert status == 200, response
    assert values((await fetch(url))[1]) == ["changed"]
    assert (await run.call("DELETE", path))[0] == 204
    assert values((await fetch(url))[1]) == []
    many = {f"d{n}": deployment(str(n), server=server_id) for n in range(8)}
    await create(run, template({"script": SCRIPT, **many}), "t")
    await ended(run, "CREATE_COMPLETE", "t")
    assert sorted(values((await fetch(url))[1])) == [str(n) for n in range(8)]
    await delete(run, "t")
    assert values((await fetch(url))[1]) == []
    await delete(run)
    assert await containers(project) == []


async def test_the_template_names_the_container_and_the_object(
    run: Program, project: Project
) -> None:
    """Servers share a container; one with a key of its own, and with objects, keeps both."""
    store = project.cloud.object_store

    def prepare() -> None:
        store.create_container("mine")
        store.set_container_temp_url_key("mine", "my-key")
        store.upload_object("mine", "other", data=b"kept")

    await asyncio.to_thread(prepare)
    names = {"a": "mine", "b": "shared", "c": "shared"}
    servers = {
        name: server(deployment_swift_data={"container": container, "object": name})
        for name, container in names.items()
    }
    outputs = {one: {"value": {"get_attr": [one, "os_collect_config"]}} for one in servers}
    await create(run, template(servers, outputs=outputs))
    await ended(run, "CREATE_COMPLETE")
    found = {one["output_key"]: one["output_value"] for one in (await run.stack("s"))["outputs"]}
    for name, container in names.items():
        url = found[name]["request"]["metadata_url"]
        assert f"/{container}/{name}?" in url
        status, document = await fetch(url)
        assert status == 200 and document["os-collect-config"]["request"]["metadata_url"] == url
    await run.update("s", "PUT", template=template({"b": servers["b"]}))
    await ended(run, "UPDATE_COMPLETE")
    assert await containers(project) == ["mine", "shared"]
    assert (await fetch(found["b"]["request"]["metadata_url"]))[0] == 200
    assert (await fetch(found["c"]["request"]["metadata_url"]))[0] == 404
    await delete(run)
    assert await containers(project) == ["mine"]

    def clean() -> None:
        assert [one.name for one in store.objects("mine")] == ["other"]
        assert store.get_container_metadata("mine").meta_temp_url_key == "my-key"
        store.delete_object("other", container="mine")
        store.delete_container("mine")

    await asyncio.to_thread(clean)


async def test_an_agent_learns_its_new_transport_from_the_earlier_object(
    run: Program, project: Project
) -> None:
    await create(run, stack_of({1: "one"}))
    await ended(run, "CREATE_COMPLETE")
    url = await url_of(run)
    changed = stack_of({1: "two"}, software_config_transport="POLL_SERVER_CFN")
    await run.update("s", "PUT", template=changed)
    await ended(run, "UPDATE_COMPLETE")
    settings = (await fetch(url))[1]["os-collect-config"]
    assert settings["collectors"] == ["cfn", "local"] and settings["cfn"]["secret_access_key"]
    assert settings["request"] == {"metadata_url": None}
    await delete(run)
    assert await containers(project) == []


async def test_a_lost_key_fails_a_deployment_and_an_update_of_the_server_repairs_it(
    run: Program, project: Project
) -> None:
    await create(run, stack_of({}))
    await ended(run, "CREATE_COMPLETE")
    url = await url_of(run)
    (container,) = await containers(project)
    store = project.cloud.object_store
    await asyncio.to_thread(store.set_container_temp_url_key, container, "another")
    await run.update("s", "PUT", template=stack_of({1: "one"}))
    await ended(run, "UPDATE_FAILED")
    assert "does not accept the temporary URL" in await reason(run, "s", "d1")
    assert (await fetch(url))[0] == 401
    await run.update("s", "PUT", template=stack_of({1: "one"}, name="web"))
    await ended(run, "UPDATE_COMPLETE")
    assert values((await fetch(await url_of(run)))[1]) == ["one"]
    await delete(run)
    assert await containers(project) == []


async def test_a_delete_without_the_container_succeeds(run: Program, project: Project) -> None:
    await create(run, stack_of({1: "one"}))
    await ended(run, "CREATE_COMPLETE")
    (container,) = await containers(project)
    store = project.cloud.object_store

    def remove() -> None:
        for one in store.objects(container):
            store.delete_object(one.name, container=container)
        store.delete_container(container)

    await asyncio.to_thread(remove)
    await delete(run)
    assert await containers(project) == []
