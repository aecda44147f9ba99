"""Stacks of Neutron resources, and what the cloud has of them."""

import asyncio
from typing import Any

from tests.openstack.cloud import Project
from tests.support.program import Http, template

Json = Any
ON = {"resource_types.openstack.enabled": True}


def neutron(kind: str, **properties: Json) -> Json:
    return {"type": f"OS::Neutron::{kind}", "properties": properties}


def ref(name: str) -> Json:
    return {"get_resource": name}


NETWORK = {
    "net": neutron("Net"),
    "subnet": neutron("Subnet", network=ref("net"), cidr="10.31.0.0/24"),
}


async def ended(server: Http, name: str = "s") -> str:
    """The status of the stack after its action, with the reason of a failure."""
    status = await server.until_ended(name)
    if status.endswith("FAILED"):
        return f"{status}: {(await server.stack(name))['stack_status_reason']}"
    return status


async def create(server: Http, resources: Json, name: str = "s", **more: Json) -> None:
    await server.create(name, resources, **more)
    status = await ended(server, name)
    assert status == "CREATE_COMPLETE", status


async def update(server: Http, resources: Json, name: str = "s") -> str:
    await server.update(name, "PUT", template=template(resources))
    return await ended(server, name)


async def delete(server: Http, name: str = "s") -> None:
    stack_id = (await server.stack(name))["id"]
    await server.stack_request("DELETE", name)
    status = await ended(server, stack_id)
    assert status == "DELETE_COMPLETE", status


async def physical_ids(server: Http, name: str = "s") -> dict[str, str]:
    found = await server.resources(name)
    return {key: one["physical_resource_id"] for key, one in found.items()}


async def attributes(server: Http, resource: str, name: str = "s") -> Json:
    shown = await server.stack_request("GET", name, f"/resources/{resource}")
    return shown["resource"]["attributes"]


async def read(project: Project, kind: str, object_id: str) -> Json:
    """An object as the member reads it."""
    found = await asyncio.to_thread(getattr(project.cloud.network, f"get_{kind}"), object_id)
    return found.to_dict()
