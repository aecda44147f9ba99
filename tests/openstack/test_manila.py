"""Shares, share networks, share types and security services, on a real Manila. Its only back end
creates shares without servers and stores nothing.
"""

import asyncio
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import aiohttp
import pytest
import pytest_asyncio

from tests.openstack.cloud import (
    OpenStack,
    Project,
    security_services_of,
    share_types_of,
    shared_objects,
)
from tests.openstack.crashes import die_after_each, settings_file
from tests.openstack.headgate import connected_headgate, reader_settings
from tests.openstack.neutron_stacks import delete as delete_stack
from tests.openstack.neutron_stacks import physical_ids
from tests.openstack.observations import drift_of
from tests.openstack.stacks import (
    SETTINGS,
    create,
    delete,
    network_of,
    reason,
    resource_of,
    update,
)
from tests.support.program import Http, Program, ServerProcess, eventually

Json = Any
SECRET = "correct-horse-4182"


@pytest.fixture(scope="session", autouse=True)
def manila(openstack: OpenStack) -> None:
    """Manila runs; it starts once per run."""
    openstack.start("manila")


@pytest_asyncio.fixture
async def run(
    database_url: str, openstack: OpenStack, project: Project, tmp_path: Path
) -> AsyncIterator[Program]:
    """A server with a reader, and a token of an administrator."""
    admin = project.connect(project.add_user(("admin", "member")))
    with openstack.reader(f"reader-{project.name}") as reader:
        settings = {**SETTINGS, **reader_settings(reader, tmp_path)}
        async with connected_headgate(database_url, openstack, project, settings=settings) as one:
            one.session.headers["X-Auth-Token"] = str(admin.auth_token)
            yield one


def ref(name: str) -> Json:
    return {"get_resource": name}


def manila_type(kind: str, **properties: Json) -> Json:
    return {"type": f"OS::Manila::{kind}", "properties": properties}


def share(**properties: Json) -> Json:
    given = {"share_protocol": "NFS", "size": 1, "share_type": ref("kind"), **properties}
    return manila_type("Share", **given)


def rule(to: str, level: str = "rw") -> Json:
    return {"access_type": "ip", "access_to": to, "access_level": level}


def resources(project: Project) -> dict[str, Json]:
    return {
        "kind": manila_type(
            "ShareType", name=f"type-{project.name}", driver_handles_share_servers=False,
            is_public=False, extra_specs={"share_backend_name": "nowhere"},
        ),
        "directory": manila_type(
            "SecurityService", type="ldap", server="ldap.test", user="u", password=SECRET
        ),
        "net": manila_type("ShareNetwork", description="d", security_services=[ref("directory")]),
        "share": share(metadata={"a": 1}, access_rules=[rule("10.0.0.1"), rule("10.0.0.2")]),
    }  # fmt: skip


async def access_of(project: Project, share_id: str) -> dict[str, str]:
    """The levels of the access rules of a share, by address."""
    api, headers = project.cloud.shared_file_system, {"X-OpenStack-Manila-API-Version": "2.13"}
    answer = await asyncio.to_thread(
        api.post, f"/shares/{share_id}/action", json={"access_list": None}, headers=headers
    )
    return {
        one["access_to"]: one["access_level"]
        for one in answer.json()["access_list"]
        if one["state"] not in ("queued_to_deny", "denying")
    }


async def shown(run: Program, name: str) -> Json:
    return (await resource_of(run, "s", name))["attributes"]["show"]


async def test_the_types_live_and_change(
    run: Program, openstack: OpenStack, project: Project
) -> None:
    made = resources(project)
    await create(run, made)
    before = await physical_ids(run)
    found = await shown(run, "share")
    assert (found["status"], found["share_type"]) == ("available", before["kind"])
    assert found["metadata"] == {"a": "1"} and found["share_proto"] == "NFS"
    exported = (await resource_of(run, "s", "share"))["attributes"]["export_locations"]
    assert exported and all(":/" in one for one in exported)
    assert await access_of(project, before["share"]) == {"10.0.0.1": "rw", "10.0.0.2": "rw"}
    specs = (await shown(run, "kind"))["extra_specs"]
    assert specs["share_backend_name"] == "nowhere" and "False" in specs.values()
    attached = f"/security-services?share_network_id={before['net']}"
    (service,) = shared_objects(project.cloud, attached, "security_services")
    assert service.id == before["directory"]
    assert SECRET not in str(await resource_of(run, "s", "directory"))
    (service,) = security_services_of(project.cloud)
    assert service.fields["password"] == SECRET
    assert await drift_of(run) == {}

    with network_of(project) as network:
        (subnet,) = network.subnet_ids or project.cloud.network.get_network(network).subnet_ids
        made["kind"]["properties"]["extra_specs"] = {"thin_provisioning": True}
        made["directory"]["properties"] |= {"server": "other.test", "name": "directory"}
        made["net"] = manila_type("ShareNetwork", neutron_subnet=subnet)
        made["share"] = share(
            name="renamed", description="new", metadata={"b": "2"},
            access_rules=[rule("10.0.0.2", "ro"), rule("10.0.0.3")],
        )  # fmt: skip
        await update(run, made)
        assert await physical_ids(run) == before
        found = await shown(run, "share")
        assert (found["name"], found["description"]) == ("renamed", "new")
        assert found["metadata"] == {"b": "2"}
        assert await access_of(project, before["share"]) == {"10.0.0.2": "ro", "10.0.0.3": "rw"}
        specs = (await shown(run, "kind"))["extra_specs"]
        assert "share_backend_name" not in specs and "thin_provisioning" in specs
        found = await shown(run, "net")
        assert (found["neutron_net_id"], found["neutron_subnet_id"]) == (network.id, subnet)
        assert not found["description"]
        assert shared_objects(project.cloud, attached, "security_services") == []
        (service,) = security_services_of(project.cloud)
        assert (service.name, service.fields["server"]) == ("directory", "other.test")
        await run.stack_request("POST", "s", "/actions", {"check": None})
        assert await run.until_ended("s") == "CHECK_COMPLETE"
        await delete(run)
    assert [one for one in share_types_of(openstack.admin) if one.id == before["kind"]] == []


async def test_changes_of_other_clients_are_found_and_repaired(
    run: Program, project: Project
) -> None:
    made = resources(project)
    await create(run, made)
    before = await physical_ids(run)
    api = project.cloud.shared_file_system
    changed = {"share": {"display_name": "other"}}
    await asyncio.to_thread(api.put, f"/shares/{before['share']}", json=changed)
    metadata = {"metadata": {"a": "3"}}
    await asyncio.to_thread(api.put, f"/shares/{before['share']}/metadata", json=metadata)
    await asyncio.to_thread(api.delete, f"/share-networks/{before['net']}")
    assert await drift_of(run) == {
        "share": ("changed", ["metadata"]),
        "net": ("missing", []),
    }
    await update(run, made, converge=True)
    assert (await shown(run, "share"))["metadata"] == {"a": "1"}
    assert await drift_of(run) == {}
    await delete(run)


async def test_a_failed_share_has_the_reason_of_manila(run: Program, project: Project) -> None:
    made = {name: resources(project)[name] for name in ("kind", "share")}
    made["kind"]["properties"]["extra_specs"] = {"share_backend_name": "missing"}
    await run.create("s", made)
    assert await run.until_ended("s") == "CREATE_FAILED"
    found = await reason(run, "s", "share")
    assert "the share has failed: error: " in found and "storage" in found, found
    await delete(run)


async def test_unknown_names_are_refused_before_anything_is_created(run: Program) -> None:
    for properties, text in (
        ({"share_type": "none"}, "Unable to find share type with name or id 'none'"),
        ({"share_network": "none"}, "Unable to find share network"),
        ({"snapshot": "none"}, "Unable to find share snapshot"),
    ):
        given = {"share_protocol": "NFS", "size": 1, **properties}
        document = {"heat_template_version": "2018-08-31", "resources": {
            "share": manila_type("Share", **given)}}  # fmt: skip
        status, answer = await run.call(
            "POST", "/stacks", {"stack_name": "s", "template": document}
        )
        assert status == 400 and text in str(answer), answer


async def test_a_killed_create_finds_its_own_objects(
    database_url: str, openstack: OpenStack, project: Project, tmp_path: Path
) -> None:
    """A process dies after Manila has created an object, before the result is stored."""
    server = ServerProcess(tmp_path, settings=settings_file(openstack), database_url=database_url)
    connector = aiohttp.TCPConnector(force_close=True)
    admin = project.connect(project.add_user(("admin", "member")))
    made = resources(project)
    del made["share"]["properties"]["metadata"]
    try:
        async with aiohttp.ClientSession(
            connector=connector, headers={"X-Auth-Token": str(admin.auth_token)}
        ) as session:
            http = Http(session, server.url, project.id)
            status = await die_after_each(server, http, made, {"kind": 2})
            assert status == "CREATE_COMPLETE", (await http.stack("s"))["stack_status_reason"]
            ids = await physical_ids(http)
            api = project.cloud.shared_file_system
            assert [one.id for one in api.shares()] == [ids["share"]]
            assert [one.id for one in api.share_networks()] == [ids["net"]]
            assert [one.id for one in security_services_of(project.cloud)] == [ids["directory"]]
            await delete_stack(http)

            async def is_gone() -> bool:
                return not await asyncio.to_thread(lambda: list(api.shares()))

            await eventually(is_gone)
    finally:
        server.kill()
