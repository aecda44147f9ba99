"""Existing networks and servers of a real OpenStack are read with the caller's token, and a stack
takes them over without a request that changes anything."""

import asyncio
from typing import Any

import yaml

from tests.openstack.cloud import OpenStack, Project
from tests.openstack.neutron_stacks import delete, ended, physical_ids
from tests.openstack.stacks import run
from tests.support.program import Program

__all__ = ["run"]  # a fixture
Json = Any
READS = ("GET", "HEAD")
#: What Neutron tells Nova about ports, at times of its own.
OF_NEUTRON = "POST /v2.1/os-server-external-events"


def make_objects(project: Project) -> dict[str, str]:
    """A network with all that a server needs, made by other means; IDs by type."""
    network, compute = project.cloud.network, project.cloud.compute
    net = network.create_network(name="lan")
    subnet = network.create_subnet(
        name="lan", network_id=net.id, ip_version=4, cidr="10.31.0.0/24", gateway_ip=None
    )
    router = network.create_router(name="edge")
    group = network.create_security_group(name="web", description="${servers}")
    network.create_security_group_rule(
        security_group_id=group.id, direction="ingress", ether_type="IPv4", protocol="tcp",
        port_range_min=80, port_range_max=80, remote_group_id=group.id,
    )  # fmt: skip
    port = network.create_port(name="web", network_id=net.id, security_groups=[group.id])
    key = compute.create_keypair(name="laptop")
    server = compute.create_server(
        name="web", flavor_id=compute.find_flavor("m1.nano", ignore_missing=False).id,
        image_id=next(project.cloud.image.images()).id, networks=[{"port": port.id}],
        key_name=key.name, metadata={"tier": "front"},
    )  # fmt: skip
    compute.wait_for_server(server)
    return {
        "OS::Neutron::Net": net.id,
        "OS::Neutron::Subnet": subnet.id,
        "OS::Neutron::Router": router.id,
        "OS::Neutron::SecurityGroup": group.id,
        "OS::Neutron::Port": port.id,
        "OS::Nova::KeyPair": key.name,
        "OS::Nova::Server": server.id,
    }


def changes(openstack: OpenStack) -> list[str]:
    """The requests that change something, of the services of the objects."""
    found = [*openstack.requests("nova"), *openstack.requests("neutron")]
    return [one for one in found if not one.startswith((*READS, OF_NEUTRON))]


async def test_a_network_with_a_server_is_taken_over_unchanged(
    run: Program, openstack: OpenStack, project: Project
) -> None:
    ids = await asyncio.to_thread(make_objects, project)
    wanted = {"resources": [{"type": kind, "id": one} for kind, one in ids.items()]}
    before = changes(openstack)
    status, read = await run.call("POST", "/import", wanted)
    assert status == 200 and (read["findings"], read["parameters"]) == ([], []), read
    assert [one["differences"] for one in read["resources"]] == [[]] * len(ids), read
    names = {one["resource_type"]: one["resource_name"] for one in read["resources"]}
    resources = yaml.safe_load(read["template"])["resources"]
    properties = {kind: resources[name]["properties"] for kind, name in names.items()}
    assert properties["OS::Neutron::Subnet"]["network"] == {
        "get_resource": names["OS::Neutron::Net"]
    }
    assert properties["OS::Neutron::Subnet"]["gateway_ip"] == ""
    assert properties["OS::Neutron::SecurityGroup"]["rules"] == [
        {
            "direction": "ingress", "ethertype": "IPv4", "protocol": "tcp", "port_range_min": 80,
            "port_range_max": 80, "remote_mode": "remote_group_id",
        }
    ]  # fmt: skip
    assert properties["OS::Neutron::Port"]["security_groups"] == [
        {"get_resource": names["OS::Neutron::SecurityGroup"]}
    ]
    assert properties["OS::Nova::Server"]["networks"] == [
        {"port": {"get_resource": names["OS::Neutron::Port"]}}
    ]
    assert properties["OS::Nova::Server"]["key_name"] == {
        "get_resource": names["OS::Nova::KeyPair"]
    }

    await run.create("taken", {}, template=read["template"])
    assert await ended(run, "taken") == "CREATE_COMPLETE", read["template"]
    assert sorted((await physical_ids(run, "taken")).values()) == sorted(ids.values())
    preview = await run.stack_request("PATCH", "taken", "/preview", {})
    assert len(preview["resource_changes"]["unchanged"]) == len(ids), preview["resource_changes"]
    assert changes(openstack) == before
    await delete(run, "taken")  # nothing is left in the project
