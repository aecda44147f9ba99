"""A process dies between the creation of an object and the commit of its ID."""

import asyncio
from collections import Counter
from pathlib import Path
from typing import Any

import aiohttp

from tests.openstack.cloud import OpenStack, Project
from tests.openstack.crashes import die_after_each, settings_file
from tests.openstack.neutron_stacks import NETWORK, delete, neutron, physical_ids, ref
from tests.support.program import Http, ServerProcess

Json = Any
#: Each has another way in which an interrupted create finds its object.
RESOURCES: dict[str, Json] = {
    **NETWORK,
    "named": neutron("Port", network=ref("net"), name="p", tags=["a"]),
    "described": neutron("SecurityGroup", name="g", description="d", rules=[{"protocol": "tcp"}]),
    "rule": neutron("SecurityGroupRule", security_group=ref("described"), protocol="udp"),
    "router": neutron("Router", external_gateway_info={"network": "public"}),
    "interface": neutron("RouterInterface", router=ref("router"), subnet=ref("subnet")),
    "address": neutron("FloatingIP", floating_network="public"),
    "association": neutron(
        "FloatingIPAssociation", floatingip_id=ref("address"), port_id=ref("named")
    ),
}


async def test_nothing_is_created_twice(
    database_url: str, openstack: OpenStack, project: Project, tmp_path: Path
) -> None:
    server = ServerProcess(tmp_path, settings=settings_file(openstack), database_url=database_url)
    connector = aiohttp.TCPConnector(force_close=True)
    try:
        async with aiohttp.ClientSession(
            connector=connector, headers={"X-Auth-Token": project.token()}
        ) as session:
            http = Http(session, server.url, project.id)
            assert await die_after_each(server, http, RESOURCES) == "CREATE_COMPLETE"
            known = await physical_ids(http)
            assert await asyncio.to_thread(count, project) == Counter(
                networks=1, subnets=1, ports=1, security_groups=1, routers=1, ips=1, rules=4
            )
            port = await asyncio.to_thread(project.cloud.network.get_port, known["named"])
            group = await asyncio.to_thread(
                project.cloud.network.get_security_group, known["described"]
            )
            assert (port.name, port.tags, group.name, group.description) == ("p", ["a"], "g", "d")
            await delete(http)
    finally:
        server.kill()


def count(project: Project) -> Counter[str]:
    """How many objects the project has, without those that Neutron creates itself."""
    network, found = project.cloud.network, Counter[str]()
    for kind in ("networks", "subnets", "routers", "ips"):
        owned = [one for one in getattr(network, kind)() if one.project_id == project.id]
        found[kind] = len(owned)
    found["ports"] = sum(not one.device_owner for one in network.ports(project_id=project.id))
    for group in network.security_groups(project_id=project.id):
        if group.name != "default":
            found["security_groups"] += 1
            found["rules"] += len(group.security_group_rules)
    return found
