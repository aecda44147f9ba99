"""The types of Neutron of which most need an administrator: all of them, in one stack."""

import asyncio
import secrets
from typing import Any

from tests.openstack.cloud import OpenStack, Project
from tests.openstack.headgate import connected_headgate
from tests.openstack.neutron_stacks import (
    NETWORK,
    ON,
    attributes,
    create,
    delete,
    ended,
    neutron,
    physical_ids,
    ref,
    update,
)

Json = Any


def resources(project: str, vlan: int, **changed: Json) -> Json:
    """changed: properties of some resources in place of the usual ones, by name."""
    address = {"get_attr": ["child", "fixed_ips", 0, "ip_address"]}
    properties: dict[str, tuple[str, Json]] = {
        "scope": ("AddressScope", {"name": "scope"}),
        "pool": ("SubnetPool", {"prefixes": ["10.88.0.0/16"], "address_scope": ref("scope")}),
        "pooled": ("Net", {}),
        "from_pool": (
            "Subnet",
            {"network": ref("pooled"), "subnetpool": ref("pool"), "prefixlen": 26},
        ),
        "provider": (
            "ProviderNet",
            {"network_type": "vlan", "physical_network": "physnet2", "segmentation_id": vlan},
        ),
        "segment": (
            "Segment",
            {
                "network": ref("provider"),
                "network_type": "vlan",
                "physical_network": "physnet1",
                "segmentation_id": vlan,
            },
        ),
        "rbac": (
            "RBACPolicy",
            {
                "object_type": "network",
                "object_id": ref("net"),
                "action": "access_as_shared",
                "target_tenant": project,
            },
        ),
        "qos": ("QoSPolicy", {"description": "d"}),
        "bandwidth": ("QoSBandwidthLimitRule", {"policy": ref("qos"), "max_kbps": 1000}),
        "dscp": ("QoSDscpMarkingRule", {"policy": ref("qos"), "dscp_mark": 16}),
        "minimum": ("QoSMinimumBandwidthRule", {"policy": ref("qos"), "min_kbps": 10}),
        "rate": ("QoSMinimumPacketRateRule", {"policy": ref("qos"), "min_kpps": 10}),
        "parent": ("Port", {"network": ref("net"), "qos_policy": ref("qos")}),
        "child": ("Port", {"network": ref("net")}),
        "trunk": (
            "Trunk",
            {
                "port": ref("parent"),
                "sub_ports": [
                    {"port": ref("child"), "segmentation_id": 101, "segmentation_type": "vlan"}
                ],
            },
        ),
        "label": ("MeteringLabel", {}),
        "meter": (
            "MeteringRule",
            {"metering_label_id": ref("label"), "remote_ip_prefix": "10.0.0.0/8"},
        ),
        "router": ("Router", {"external_gateway_info": {"network": "public"}}),
        "interface": ("RouterInterface", {"router": ref("router"), "subnet": ref("subnet")}),
        "routes": (
            "ExtraRouteSet",
            {
                "router": ref("router"),
                "routes": [{"destination": "10.99.0.0/24", "nexthop": "10.31.0.200"}],
            },
        ),
        "route": (
            "ExtraRoute",
            {"router_id": ref("router"), "destination": "10.98.0.0/24", "nexthop": "10.31.0.201"},
        ),
        "address": ("FloatingIP", {"floating_network": "public"}),
        "forward": (
            "FloatingIPPortForward",
            {
                "floating_ip": ref("address"),
                "internal_port": ref("child"),
                "internal_ip_address": address,
                "internal_port_number": 80,
                "external_port": 8080,
                "protocol": "tcp",
            },
        ),
        "quota": ("Quota", {"project": project, "network": 50}),
    }
    own = {
        name: neutron(kind, **(given | changed.get(name, {})))
        for name, (kind, given) in properties.items()
    }
    return {**NETWORK, **own}


async def test_all_types_are_created_updated_checked_and_deleted(
    database_url: str, openstack: OpenStack, project: Project
) -> None:
    vlan = 2000 + secrets.randbelow(2000)
    admin = project.connect(project.add_user(("admin", "member")))
    async with connected_headgate(database_url, openstack, project, settings=ON) as server:
        server.session.headers["X-Auth-Token"] = str(admin.auth_token)
        await create(server, resources(project.id, vlan))
        known = await physical_ids(server)
        pooled = await attributes(server, "from_pool")
        assert pooled["cidr"].endswith("/26")
        segments = (await attributes(server, "provider"))["segments"]
        assert [one["segmentation_id"] for one in segments] == [vlan]

        changed = {
            "scope": {"name": "other"},
            "pool": {"prefixes": ["10.88.0.0/16", "10.90.0.0/16"]},
            "segment": {"description": "new"},
            "qos": {"description": None, "name": "named"},
            "bandwidth": {"max_kbps": 2000},
            "dscp": {"dscp_mark": 20},
            "trunk": {"sub_ports": [], "admin_state_up": False},
            "routes": {"routes": [{"destination": "10.97.0.0/24", "nexthop": "10.31.0.200"}]},
            "forward": {"external_port": 8081},
            "quota": {"network": 60},
        }
        assert await update(server, resources(project.id, vlan, **changed)) == "UPDATE_COMPLETE"
        assert await physical_ids(server) == known
        network = admin.network
        router = await asyncio.to_thread(network.get_router, known["router"])
        assert sorted(one["destination"] for one in router.routes) == [
            "10.97.0.0/24",
            "10.98.0.0/24",
        ]
        trunk = await asyncio.to_thread(network.get_trunk, known["trunk"])
        assert (trunk.sub_ports, trunk.is_admin_state_up) == ([], False)
        policy = await asyncio.to_thread(network.get_qos_policy, known["qos"])
        assert (policy.name, policy.description) == ("named", "")
        assert {one["type"]: one.get("max_kbps", one.get("dscp_mark")) for one in policy.rules} == {
            "bandwidth_limit": 2000,
            "dscp_marking": 20,
            "minimum_bandwidth": None,
            "minimum_packet_rate": None,
        }
        quota = await asyncio.to_thread(network.get_quota, project.id)
        assert quota.networks == 60

        await server.act("s", "check")
        assert await ended(server) == "CHECK_COMPLETE"
        await delete(server)
