"""Containers of objects, on a real Swift."""

import asyncio
from pathlib import Path
from typing import Any

import aiohttp
import pytest

from tests.openstack.cloud import OpenStack, Project
from tests.openstack.crashes import die_after_each, settings_file
from tests.openstack.neutron_stacks import delete as delete_stack
from tests.openstack.neutron_stacks import physical_ids
from tests.openstack.observations import drift_of, observing
from tests.openstack.stacks import (
    create,
    delete,
    reason,
    resource_of,
    run,
    update,
)
from tests.support.program import Http, Program, ServerProcess, template

Json = Any
__all__ = ["observing", "run"]  # fixtures


@pytest.fixture(scope="session", autouse=True)
def swift(openstack: OpenStack) -> None:
    """Swift runs; it starts once per run."""
    openstack.start("swift")


def container(**properties: Json) -> Json:
    return {"type": "OS::Swift::Container", "properties": properties}


def meta(**entries: Json) -> Json:
    return {key.replace("_", "-"): one for key, one in entries.items()}


async def headers(project: Project, name: str = "", method: str = "HEAD") -> dict[str, str]:
    """The headers of a container, or of the account, by lower-case name."""
    response = await asyncio.to_thread(
        project.cloud.object_store.request, f"/{name}" if name else "", method
    )
    assert response.status_code < 300
    return {key.lower(): one for key, one in response.headers.items()}


async def names(project: Project) -> list[str]:
    listed = await asyncio.to_thread(lambda: list(project.cloud.object_store.containers()))
    return [one.name for one in listed]


async def upload(project: Project, name: str, *objects: str) -> None:
    for one in objects:
        await asyncio.to_thread(project.cloud.object_store.upload_object, name, one, data=b"12345")


async def test_a_container_lives_and_changes(run: Program, project: Project) -> None:
    """Its objects survive each change of its properties."""
    first = {
        "name": "photos",
        "X-Container-Read": ".r:*,.rlistings",
        "X-Container-Write": "*:*",
        "X-Container-Meta": {"Web-Index": "index.html", "number": 7, "Größe".encode().hex(): "ü"},
        "X-Account-Meta": {"Owner": "ops", "Old": "x"},
    }
    await create(run, {"a": container(**first)})
    found = await headers(project, "photos")
    assert found["x-container-read"] == ".r:*,.rlistings"
    assert found["x-container-write"] == "*:*"
    assert (found["x-container-meta-web-index"], found["x-container-meta-number"]) == (
        "index.html", "7",
    )  # fmt: skip
    account = await headers(project)
    assert (account["x-account-meta-owner"], account["x-account-meta-old"]) == ("ops", "x")
    shown = (await resource_of(run, "s"))["attributes"]
    assert await resource_of(run, "s") | {"physical_resource_id": "photos"} == await resource_of(
        run, "s"
    )
    assert (shown["ObjectCount"], shown["BytesUsed"]) == (0, 0)
    assert shown["DomainName"] == "127.0.0.1"
    assert shown["RootURL"].endswith(f"/v1/AUTH_{project.id}")
    assert shown["WebsiteURL"] == f"{shown['RootURL']}/photos"
    assert shown["HeadContainer"]["x-container-read"] == ".r:*,.rlistings"
    await upload(project, "photos", "one")
    second = {
        "name": "photos",
        "X-Container-Read": ".r:*",
        "X-Container-Meta": {"web-index": "start.html"},
        "X-Account-Meta": {"Owner": "dev"},
        "PurgeOnDelete": True,
    }
    await update(run, {"a": container(**second)})
    found = await headers(project, "photos")
    assert (found["x-container-read"], found["x-container-object-count"]) == (".r:*", "1")
    assert "x-container-write" not in found and "x-container-meta-number" not in found
    assert found["x-container-meta-web-index"] == "start.html"
    account = await headers(project)
    assert account["x-account-meta-owner"] == "dev" and "x-account-meta-old" not in account
    assert (await resource_of(run, "s"))["attributes"]["ObjectCount"] == 1
    renamed = {**second, "name": "pictures"}
    await update(run, {"a": container(**renamed)})
    assert await names(project) == ["pictures"]
    await delete(run)
    assert await names(project) == []


async def test_a_killed_create_finds_its_own_container(
    database_url: str, openstack: OpenStack, project: Project, tmp_path: Path
) -> None:
    """A process dies after Swift has created a container, before the result is stored."""
    server = ServerProcess(tmp_path, settings=settings_file(openstack), database_url=database_url)
    connector = aiohttp.TCPConnector(force_close=True)
    resources = {
        "a": container(name="one", **{"X-Container-Meta": {"owner": "ops"}}),
        "b": container(**{"X-Container-Read": ".r:*"}),
    }
    try:
        async with aiohttp.ClientSession(
            connector=connector, headers={"X-Auth-Token": project.token()}
        ) as session:
            http = Http(session, server.url, project.id)
            assert await die_after_each(server, http, resources) == "CREATE_COMPLETE"
            known = await physical_ids(http)
            assert sorted(await names(project)) == sorted(known.values())
            assert (await headers(project, "one"))["x-container-meta-owner"] == "ops"
            await delete_stack(http)
            assert await names(project) == []
    finally:
        server.kill()


async def test_a_container_of_another_client_is_not_taken(run: Program, project: Project) -> None:
    store = project.cloud.object_store
    await asyncio.to_thread(store.create_container, "photos")
    await upload(project, "photos", "precious")
    before = await headers(project, "photos")
    await run.create("s", {"a": container(name="photos", PurgeOnDelete=True)})
    assert await run.until_ended("s") == "CREATE_FAILED"
    assert "photos" in (found := await reason(run, "s")) and "already" in found
    await delete(run)
    after = await headers(project, "photos")
    assert after["x-container-object-count"] == "1"
    assert {one for one in after if "headgate" in one} == set()
    assert before["x-timestamp"] == after["x-timestamp"]
    await asyncio.to_thread(store.delete_object, "precious", container="photos")
    await asyncio.to_thread(store.delete_container, "photos")


async def test_a_container_with_objects_is_deleted_only_if_the_template_says_so(
    run: Program, project: Project
) -> None:
    await create(run, {"a": container(name="photos")})
    await upload(project, "photos", "a/b", "c d", "ü")
    await run.stack_request("DELETE", "s")
    assert await run.until_ended("s") == "DELETE_FAILED"
    found = await reason(run, "s")
    assert "it has 3 objects" in found and "PurgeOnDelete" in found
    await update(run, {"a": container(name="photos", PurgeOnDelete=True)})
    await delete(run)
    assert await names(project) == []


@pytest.mark.parametrize(
    ("properties", "place"),
    [
        ({"name": "a/b"}, "name"),
        ({"X-Container-Meta": {"a b": "x"}}, "X-Container-Meta.a b"),
        ({"X-Container-Meta": {"a": "x\ny"}}, "X-Container-Meta.a"),
        ({"X-Container-Meta": {"Headgate-Operation-1": "x"}}, "X-Container-Meta.Headgate"),
    ],
)
async def test_what_swift_cannot_store_is_refused_before_anything_is_created(
    run: Program, project: Project, properties: Json, place: str
) -> None:
    body = {"stack_name": "s", "template": template({"a": container(**properties)})}
    status, response = await run.call("POST", "/stacks", body)
    assert status == 400
    (finding,) = response["error"]["findings"]
    assert place in finding["place"] and finding["remedy"]
    assert await names(project) == []


async def test_a_container_that_another_client_deleted_is_missing_and_created_again(
    observing: Program, project: Project
) -> None:
    resources = {"a": container(name="photos"), "b": container()}
    await create(observing, resources)
    await asyncio.to_thread(project.cloud.object_store.delete_container, "photos")
    assert await drift_of(observing) == {"a": ("missing", [])}
    await update(observing, resources, converge=True)
    await headers(project, "photos")  # it exists; the list of the account may lack it for a moment
    assert await drift_of(observing) == {}
    await delete(observing)
