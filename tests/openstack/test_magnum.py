"""Cluster templates and clusters, on a real Magnum. Its driver has no machines: it completes
changes, or fails and waits as the labels of the cluster template say.
"""

import asyncio
from collections.abc import AsyncIterator, Iterator
from pathlib import Path
from typing import Any

import aiohttp
import pytest
import pytest_asyncio

from tests.openstack.cloud import OpenStack, Project
from tests.openstack.crashes import die_after_each, settings_file
from tests.openstack.headgate import connected_headgate, reader_settings
from tests.openstack.neutron_stacks import delete as delete_stack
from tests.openstack.neutron_stacks import physical_ids
from tests.openstack.observations import drift_of
from tests.openstack.stacks import (
    SETTINGS,
    create,
    delete,
    reason,
    resource_of,
    update,
    update_until_ended,
)
from tests.support.program import Http, Program, ServerProcess, eventually

Json = Any


@pytest.fixture(scope="session", autouse=True)
def magnum(openstack: OpenStack) -> None:
    """Magnum runs; it starts once per run."""
    openstack.start("magnum")


@pytest.fixture
def image(project: Project) -> Iterator[str]:
    """The ID of an image for nodes, deleted at the end."""
    created = project.cloud.image.create_image(
        "nodes", data=b"nodes", disk_format="raw", container_format="bare", os_distro="testbed"
    )
    try:
        yield created.id
    finally:
        project.cloud.image.delete_image(created.id)


@pytest_asyncio.fixture
async def run(
    database_url: str, openstack: OpenStack, project: Project, image: str, tmp_path: Path
) -> AsyncIterator[Program]:
    """A server with a reader."""
    with openstack.reader(f"reader-{project.name}") as reader:
        settings = {**SETTINGS, **reader_settings(reader, tmp_path)}
        async with connected_headgate(database_url, openstack, project, settings=settings) as one:
            yield one


def cluster_template(image: str, **properties: Json) -> Json:
    usual = {
        "image": image, "external_network": "public", "coe": "kubernetes", "flavor": "m1.small",
        "master_flavor": "m1.small", "docker_volume_size": 3,
    }  # fmt: skip
    return {"type": "OS::Magnum::ClusterTemplate", "properties": {**usual, **properties}}


def cluster(**properties: Json) -> Json:
    given = {"cluster_template": {"get_resource": "kind"}, **properties}
    return {"type": "OS::Magnum::Cluster", "properties": given}


def resources(image: str, **labels: Json) -> dict[str, Json]:
    """labels: of the cluster template."""
    kind = cluster_template(image, labels={f"testbed.{key}": one for key, one in labels.items()})
    return {"kind": kind, "a": cluster()}


async def shown(run: Program, name: str = "a") -> Json:
    return (await resource_of(run, "s", name))["attributes"]["show"]


async def send(project: Project, method: str, path: str, body: Json = None) -> Json:
    """The answer to a request of another client."""
    api = project.cloud.container_infrastructure_management
    headers = {"OpenStack-API-Version": "container-infra 1.9"}
    answer = await asyncio.to_thread(api.request, path, method, json=body, headers=headers)
    assert answer.status_code < 300, answer.text
    return answer.json() if answer.text else None


async def test_the_types_live_and_change(run: Program, project: Project, image: str) -> None:
    made = {
        "kind": cluster_template(
            image, name="kind", labels={"size": 1, "ok": True}, dns_nameserver="10.0.0.9",
            floating_ip_enabled=False,
        ),
        "a": cluster(),
        "b": cluster(name="b", node_count=2, create_timeout=30),
    }  # fmt: skip
    await create(run, made)
    before = await physical_ids(run)
    kind = await shown(run, "kind")
    assert (kind["name"], kind["image_id"], kind["labels"]) == (
        "kind", image, {"size": "1", "ok": "True"},
    )  # fmt: skip
    attributes = (await resource_of(run, "s", "b"))["attributes"]
    assert attributes["status"] == "CREATE_COMPLETE" and attributes["node_count"] == 2
    assert attributes["api_address"].startswith("https://")
    assert attributes["cluster_template_id"] == before["kind"]
    assert len(attributes["node_addresses"]) == 2 and len(attributes["master_addresses"]) == 1
    assert attributes["show"]["labels"].items() >= {"size": "1"}.items()
    assert attributes["show"]["create_timeout"] == 30 and attributes["name"] == "b"
    assert await drift_of(run) == {}

    for nodes in (3, 1):  # the second update begins with the status that the first one ends with
        made["b"]["properties"]["node_count"] = nodes
        await update(run, made)
        found = await send(project, "GET", f"/clusters/{before['b']}")
        assert (found["status"], found["node_count"]) == ("UPDATE_COMPLETE", nodes)
        assert (await resource_of(run, "s", "b"))["attributes"]["node_count"] == nodes
    assert await physical_ids(run) == before
    await run.stack_request("POST", "s", "/actions", {"check": None})
    assert await run.until_ended("s") == "CHECK_COMPLETE"

    made["kind"]["properties"]["labels"] = {"size": 2}
    await update(run, made)
    after = await physical_ids(run)
    assert all(after[name] != before[name] for name in made)
    found = await send(project, "GET", f"/clusters/{after['b']}")
    assert found["labels"]["size"] == "2" and found["name"] == "b"
    await delete(run)


async def test_an_administrator_publishes_a_template(
    run: Program, project: Project, image: str
) -> None:
    admin = project.connect(project.add_user(("admin", "member")))
    run.session.headers["X-Auth-Token"] = str(admin.auth_token)
    made = resources(image)
    await create(run, made)
    before = await physical_ids(run)
    made["kind"]["properties"]["public"] = True
    await update(run, made)
    assert (await shown(run, "kind"))["public"] is True and await physical_ids(run) == before
    await update(run, made, converge=True)
    assert await physical_ids(run) == before
    await delete(run)


async def test_a_cluster_is_waited_for(
    run: Program, project: Project, image: str, tmp_path: Path
) -> None:
    released = tmp_path / "released"
    made = resources(image, create_file=str(released))
    await run.create("s", made)

    async def waits() -> bool:
        return "is not ready: CREATE_IN_PROGRESS" in await reason(run, "s")

    await eventually(waits)
    await run.stack_request("DELETE", "s")  # while Magnum creates it
    released.touch()

    async def is_gone() -> bool:
        return (await run.call("GET", "/stacks/s"))[0] == 404

    await eventually(is_gone)
    assert (await send(project, "GET", "/clusters"))["clusters"] == []


async def test_failures_have_the_reasons_of_magnum(run: Program, image: str) -> None:
    made = resources(
        image, create_error="no host has room", update_error="no more room; once",
        delete_error="a node stays; once",
    )  # fmt: skip
    await run.create("s", made)
    assert await run.until_ended("s") == "CREATE_FAILED"
    expected = "the cluster has failed: CREATE_FAILED: no host has room"
    assert expected in await reason(run, "s")
    del made["kind"]["properties"]["labels"]["testbed.create_error"]
    await run.stack_request("DELETE", "s")
    assert await run.until_ended("s") == "DELETE_FAILED"
    expected = "the cluster could not be deleted: DELETE_FAILED: a node stays; once"
    assert expected in await reason(run, "s")
    await delete(run)

    await create(run, made)
    before = await physical_ids(run)
    made["a"]["properties"]["node_count"] = 2
    assert await update_until_ended(run, made) == "UPDATE_FAILED"
    expected = "the cluster has failed: UPDATE_FAILED: no more room; once"
    assert expected in await reason(run, "s")
    await update(run, made)
    found = await shown(run)
    assert (found["status"], found["node_count"]) == ("UPDATE_COMPLETE", 2)
    assert await physical_ids(run) == before
    made["a"]["properties"]["create_timeout"] = 90
    assert await update_until_ended(run, made) == "UPDATE_FAILED"
    assert "cannot change cluster property(ies) create_timeout" in await reason(run, "s")
    del made["a"]["properties"]["create_timeout"]
    await update(run, made)
    assert await physical_ids(run) == before
    await run.stack_request("DELETE", "s")
    assert await run.until_ended("s") == "DELETE_FAILED"
    await delete(run)


async def test_changes_of_other_clients_are_found_and_repaired(
    run: Program, project: Project, image: str
) -> None:
    made = resources(image, update_error="no more room; once")
    made["b"] = cluster()
    await create(run, made)
    before = await physical_ids(run)
    scaled, removed = f"/clusters/{before['a']}", f"/clusters/{before['b']}"
    await send(project, "DELETE", removed)
    api = project.cloud.container_infrastructure_management

    async def is_removed() -> bool:
        answer = await asyncio.to_thread(api.get, removed)
        return bool(answer.status_code == 404)

    await eventually(is_removed)

    async def resize_until(status: str) -> None:
        async def has_ended() -> bool:
            return bool((await send(project, "GET", scaled))["status"] == status)

        await send(project, "POST", f"{scaled}/actions/resize", {"node_count": 3})
        await eventually(has_ended)

    await resize_until("UPDATE_FAILED")
    assert await drift_of(run) == {"a": ("degraded", []), "b": ("missing", [])}
    await resize_until("UPDATE_COMPLETE")
    assert await drift_of(run) == {"a": ("changed", ["node_count"]), "b": ("missing", [])}
    await update(run, made, converge=True)
    assert (await send(project, "GET", scaled))["node_count"] == 1
    assert await drift_of(run) == {}
    after = await physical_ids(run)
    assert (after["kind"], after["a"]) == (before["kind"], before["a"])
    await delete(run)


async def test_unusable_templates_are_refused_before_anything_is_created(
    run: Program, project: Project, image: str
) -> None:
    for made, text in (
        (
            cluster(cluster_template="none"),
            "Unable to find cluster template with name or id 'none'",
        ),
        (cluster_template("none"), "Unable to find image"),
        (cluster_template(image, volume_driver="rexray"), "is not a volume driver of kubernetes"),
    ):
        document = {"heat_template_version": "2018-08-31", "resources": {"a": made}}
        body = {"stack_name": "s", "template": document}
        status, answer = await run.call("POST", "/stacks", body)
        assert status == 400 and text in str(answer), answer
    await run.create("s", {"kind": cluster_template(image, docker_volume_size=1)})
    assert await run.until_ended("s") == "CREATE_FAILED"
    found = await reason(run, "s", "kind")
    assert "Magnum refused to create the cluster template: docker volume size 1 GB" in found
    await delete(run)


async def test_a_killed_create_finds_its_own_objects(
    database_url: str, openstack: OpenStack, project: Project, image: str, tmp_path: Path
) -> None:
    """A process dies after Magnum has accepted an object, before the result is stored."""
    server = ServerProcess(tmp_path, settings=settings_file(openstack), database_url=database_url)
    connector = aiohttp.TCPConnector(force_close=True)
    made = {"kind": cluster_template(image, name="kind"), "a": cluster(), "b": cluster(name="b")}
    try:
        async with aiohttp.ClientSession(
            connector=connector, headers={"X-Auth-Token": project.token()}
        ) as session:
            http = Http(session, server.url, project.id)
            status = await die_after_each(server, http, made)
            assert status == "CREATE_COMPLETE", (await http.stack("s"))["stack_status_reason"]
            ids = await physical_ids(http)
            api = project.cloud.container_infrastructure_management
            assert {one.id for one in api.clusters()} == {ids["a"], ids["b"]}
            assert [(one.id, one.name) for one in api.cluster_templates()] == [
                (ids["kind"], "kind")
            ]
            await delete_stack(http)

            async def is_gone() -> bool:
                return not await asyncio.to_thread(lambda: list(api.cluster_templates()))

            await eventually(is_gone)
    finally:
        server.kill()
