"""Stacks of OpenStack resources in tests: templates, updates, and their ends."""

from collections.abc import AsyncIterator, Iterator, Mapping
from contextlib import contextmanager
from typing import Any

import pytest
import pytest_asyncio

from tests.openstack.cloud import OpenStack, Project
from tests.openstack.headgate import connected_headgate
from tests.support.program import Program, eventually, template

Json = Any
#: The property `networks` of a server without interfaces.
NO_NETWORKS = [{"allocate_network": "none"}]
#: Settings of a server with the resource types of OpenStack.
SETTINGS: Mapping[str, Any] = {"resource_types.openstack.enabled": True}


@pytest_asyncio.fixture
async def run(database_url: str, openstack: OpenStack, project: Project) -> AsyncIterator[Program]:
    """A Headgate server with the resource types of OpenStack."""
    async with connected_headgate(database_url, openstack, project, settings=SETTINGS) as program:
        yield program


@pytest_asyncio.fixture
async def admin_run(
    database_url: str, openstack: OpenStack, project: Project
) -> AsyncIterator[Program]:
    """As `run`, with a token of an administrator in the project."""
    admin = project.connect(project.add_user(("admin", "member")))
    async with connected_headgate(database_url, openstack, project, settings=SETTINGS) as program:
        program.session.headers["X-Auth-Token"] = str(admin.auth_token)
        yield program


@contextmanager
def network_of(project: Project, cidr: str = "10.31.0.0/24") -> Iterator[Any]:
    """A network with a subnet, deleted at the end."""
    network = project.cloud.network.create_network(name=f"net-{cidr.split('.')[1]}")
    try:
        project.cloud.network.create_subnet(network_id=network.id, cidr=cidr, ip_version=4)
        yield network
    finally:
        project.cloud.network.delete_network(network)


@pytest.fixture
def network(project: Project) -> Iterator[Any]:
    with network_of(project) as created:
        yield created


def server(**properties: Json) -> Json:
    """A server without interfaces, if it names no networks."""
    usual = {"flavor": "m1.nano", "image": "cirros", "networks": NO_NETWORKS}
    return {"type": "OS::Nova::Server", "properties": {**usual, **properties}}


def volume(**properties: Json) -> Json:
    return {"type": "OS::Cinder::Volume", "properties": {"size": 1, **properties}}


async def resource_of(run: Program, stack: str, name: str = "a") -> Json:
    found = await run.stack_request("GET", stack, f"/resources/{name}")
    return found["resource"]


async def reason(run: Program, stack: str, name: str = "a") -> str:
    return str((await resource_of(run, stack, name))["resource_status_reason"])


async def create(run: Program, resources: Json, *, name: str = "s", **body: Json) -> None:
    """Create a stack, which must complete."""
    await run.create(name, resources, **body)
    status = await run.until_ended(name)
    assert status == "CREATE_COMPLETE", (await run.stack(name))["stack_status_reason"]


async def update(run: Program, resources: Json, *, name: str = "s", **body: Json) -> None:
    """Update a stack, which must complete."""
    assert await update_until_ended(run, resources, name=name, **body) == "UPDATE_COMPLETE", (
        await run.stack(name)
    )["stack_status_reason"]


async def update_until_ended(
    run: Program, resources: Json, *, name: str = "s", **body: Json
) -> str:
    await run.update(name, "PUT", template=template(resources), **body)
    return await run.until_ended(name)


async def delete(run: Program, name: str = "s") -> None:
    """Delete a stack, and wait until it is gone."""
    await run.stack_request("DELETE", name)

    async def gone() -> bool:
        status, response = await run.call("GET", f"/stacks/{name}")
        if status == 404:
            return True
        found = response["stack"]
        assert found["stack_status"] != "DELETE_FAILED", found["stack_status_reason"]
        return False

    await eventually(gone)
