"""Servers and volumes are observed, and creates completed, with the reader credential."""

from collections import Counter
from pathlib import Path
from typing import Any

import pytest

from engine.types.openstack.cloud import CloudAccess
from engine.types.openstack.services import COMPUTE, NETWORK
from hub.auth.keystone_client import KeystoneAccess, KeystoneClient
from hub.auth.keystone_cloud import KeystoneCloud
from tests.openstack.cloud import OpenStack, Project
from tests.openstack.headgate import connected_headgate, reader_settings
from tests.openstack.observations import drift_of, observing
from tests.openstack.stacks import (
    SETTINGS,
    create,
    delete,
    resource_of,
    server,
    update,
    volume,
)
from tests.support.completions import WAITING
from tests.support.program import Program, eventually

Json = Any


__all__ = ["observing"]  # a fixture


async def test_drift_is_observed_and_repaired(observing: Program, project: Project) -> None:
    resources = {
        "renamed": server(name="renamed", metadata={"a": "1"}),
        "off": server(),
        "gone": server(),
        "same": server(flavor="m1.tiny", tags=["t"], metadata={"b": 2}),
        "volume": volume(description="d"),
        "lost": volume(),
    }
    await create(observing, resources)
    listed = await observing.resources("s")
    ids = {name: one["physical_resource_id"] for name, one in listed.items()}
    assert await drift_of(observing) == {}
    compute: Any = project.cloud.compute
    storage: Any = project.cloud.block_storage
    compute.update_server(ids["renamed"], name="other")
    compute.set_server_metadata(ids["renamed"], c="3")
    compute.stop_server(ids["off"])
    compute.wait_for_server(compute.get_server(ids["off"]), status="SHUTOFF")
    gone, lost = compute.get_server(ids["gone"]), storage.get_volume(ids["lost"])
    compute.delete_server(gone)
    compute.wait_for_delete(gone)
    storage.update_volume(ids["volume"], description="another")
    storage.delete_volume(lost)
    storage.wait_for_delete(lost)
    assert await drift_of(observing) == {
        "renamed": ("changed", ["metadata", "name"]),
        "off": ("degraded", []),
        "gone": ("missing", []),
        "volume": ("changed", ["description"]),
        "lost": ("missing", []),
    }
    await update(observing, resources, converge=True)
    assert await drift_of(observing) == {}
    found = {name: one for name, one in (await observing.resources("s")).items()}
    kept = {name for name, one in found.items() if one["physical_resource_id"] == ids[name]}
    assert kept == {"renamed", "off", "same", "volume"}
    assert {one.status for one in compute.servers()} <= {"ACTIVE"}
    await delete(observing)


async def test_attributes_have_what_the_requester_can_read(
    observing: Program, openstack: OpenStack, project: Project
) -> None:
    """The observer, which completes the create, can read more."""
    slow = {"testbed.spawn_seconds": "3"}
    await create(observing, {"a": server(metadata=slow)})
    (found,) = project.cloud.compute.servers()
    full: Any = openstack.admin.compute.get_server(found.id)
    assert full.compute_host and not found.compute_host
    shown = (await resource_of(observing, "s"))["attributes"]
    assert "OS-EXT-SRV-ATTR:host" not in shown["show"]
    assert shown["show"]["id"] == found.id and shown["instance_name"] is None
    await delete(observing)


async def test_creates_are_completed_by_lists(
    observing: Program,
    openstack: OpenStack,
    project: Project,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """One request lists all servers, or all volumes, until they are ready; each is read once."""
    monkeypatch.setattr("engine.types.openstack.cloud_operation.READ_PAUSE", 3600.0)
    ready = tmp_path / "ready"
    count = 6
    resources = {
        **{f"s{n}": server(metadata={"testbed.spawn_file": str(ready)}) for n in range(count)},
        **{f"v{n}": volume(metadata={"testbed.create_file": str(ready)}) for n in range(count)},
    }
    await observing.create("s", resources)

    async def listed_often() -> bool:
        sent = await observing.database.pool.fetch("select sent from completion_request")
        waiting = await observing.database.pool.fetchval(WAITING)
        return len(sent) == 2 and min(one["sent"] for one in sent) > 2 and waiting == 2 * count

    await eventually(listed_often)
    ready.touch()
    assert await observing.until_ended("s") == "CREATE_COMPLETE"
    found = await observing.resources("s")
    for service, kind in (("nova", "servers"), ("cinder", "volumes")):
        requests = openstack.requests(service)
        lists = [one for one in requests if f"/{kind}/detail?" in one and project.id in one]
        assert lists, requests[-20:]
        ids = [
            one["physical_resource_id"]
            for one in found.values()
            if one["resource_type"].endswith(kind[:-1].capitalize())
        ]
        assert len(ids) == count
        reads = Counter(name for name in ids for one in requests if one.endswith(f"/{kind}/{name}"))
        assert reads == dict.fromkeys(ids, 1)
    await delete(observing)


async def test_an_operation_reads_its_object_itself_if_the_observer_does_not_find_it(
    database_url: str, openstack: OpenStack, project: Project, tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:  # fmt: skip
    """The reader may see networks only."""
    monkeypatch.setattr("engine.types.openstack.cloud_operation.READ_PAUSE", 1.0)
    rules = [{"service": "network", "method": "GET", "path": "/v2.0/**"}]
    with openstack.reader(f"reader-{project.name}", access_rules=rules) as reader:
        settings = {**SETTINGS, **reader_settings(reader, tmp_path)}
        async with connected_headgate(database_url, openstack, project, settings=settings) as run:
            await create(run, {"a": server(), "b": volume()})
            await delete(run)


class NoUsers:
    """The tokens of users, none of which is used."""

    def exchange(self, credential: str) -> str:
        raise AssertionError("the token of a user was used")

    async def renew(self, token: str) -> str | None:
        raise AssertionError("the token of a user was renewed")


async def test_a_session_of_the_reader_outlasts_the_renewal_of_its_token(
    openstack: OpenStack, project: Project
) -> None:
    """Its access rules do not allow the reader to ask for the service catalog."""
    rules = [{"service": "network", "method": "GET", "path": "/v2.0/**"}]
    identity = openstack.headgate_identity
    access = KeystoneAccess(
        openstack.auth_url.removesuffix("/v3"), identity.username, identity.password,
        identity.project, "Default", "Default", "", 30.0,
    )  # fmt: skip
    with openstack.reader(f"reader-{project.name}", access_rules=rules) as reader:
        async with KeystoneClient(access) as client:
            cloud = KeystoneCloud(
                client, NoUsers(), CloudAccess(reader_id=reader.id, reader_secret=reader.secret)
            )
            first = await cloud.reader_token()
            assert await cloud.reader_token() == first
            second = await cloud.reader_token(refused=first)
            assert second != first
            assert await cloud.reader_token(refused=first) == second
            for service in (NETWORK, COMPUTE):
                endpoint = await cloud.endpoint(service, second, "")
                assert endpoint is not None
                assert await cloud.endpoint(service, first, "") == endpoint
