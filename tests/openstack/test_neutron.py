"""Networks, ports, routers and security groups of Neutron, through a server in mode keystone."""

import asyncio
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import pytest
import pytest_asyncio

from tests.openstack.cloud import OpenStack, Project
from tests.openstack.headgate import connected_headgate, reader_settings
from tests.openstack.neutron_stacks import (
    NETWORK,
    ON,
    attributes,
    create,
    delete,
    ended,
    neutron,
    physical_ids,
    read,
    ref,
    update,
)
from tests.support.program import Program, eventually

Json = Any


@pytest_asyncio.fixture
async def server(
    database_url: str, openstack: OpenStack, project: Project
) -> AsyncIterator[Program]:
    """A server with the types of OpenStack."""
    async with connected_headgate(database_url, openstack, project, settings=ON) as run:
        yield run


async def test_all_objects_of_a_network_are_created_and_deleted(
    server: Program, project: Project
) -> None:
    await create(
        server,
        {
            **NETWORK,
            "router": neutron("Router", external_gateway_info={"network": "public"}),
            "interface": neutron("RouterInterface", router=ref("router"), subnet=ref("subnet")),
            "group": neutron(
                "SecurityGroup",
                description="web",
                rules=[
                    {"protocol": "tcp", "port_range_min": 80, "port_range_max": 80},
                    {"remote_mode": "remote_group_id"},
                ],
            ),
            "rule": neutron(
                "SecurityGroupRule",
                security_group=ref("group"),
                protocol=6,
                port_range_min=22,
                port_range_max=22,
            ),
            "port": neutron(
                "Port",
                network=ref("net"),
                security_groups=[ref("group")],
                fixed_ips=[{"subnet": ref("subnet"), "ip_address": "10.31.0.9"}],
                tags=["a", "b"],
            ),
            "address": neutron("FloatingIP", floating_network="public", port_id=ref("port")),
            "second": neutron("FloatingIP", floating_network="public"),
            "other": neutron("Port", network=ref("net")),
            "association": neutron(
                "FloatingIPAssociation", floatingip_id=ref("second"), port_id=ref("other")
            ),
        },
    )
    known = await physical_ids(server)
    port = await read(project, "port", known["port"])
    assert port["network_id"] == known["net"]
    assert port["security_group_ids"] == [known["group"]]
    assert sorted(port["tags"]) == ["a", "b"]
    assert [one["ip_address"] for one in port["fixed_ips"]] == ["10.31.0.9"]
    assert port["name"].startswith("s-port-")
    shown = await attributes(server, "port")
    assert shown["network"]["id"] == known["net"]
    assert [one["id"] for one in shown["subnets"]] == [known["subnet"]]
    assert (await read(project, "ip", known["second"]))["port_id"] == known["other"]
    group = await read(project, "security_group", known["group"])
    assert len(group["security_group_rules"]) == 5  # two of egress
    await delete(server)


async def test_updates_in_place_keep_the_objects(server: Program, project: Project) -> None:
    await create(
        server,
        {
            **NETWORK,
            "port": neutron("Port", network=ref("net"), name="first", tags=["a"]),
            "group": neutron(
                "SecurityGroup", description="d", rules=[{"protocol": "tcp"}, {"protocol": "udp"}]
            ),
        },
    )
    before = await physical_ids(server)
    changed = {
        "net": neutron("Net", name="n", admin_state_up=False, value_specs={"mtu": 1400}),
        "subnet": neutron(
            "Subnet",
            network=ref("net"),
            cidr="10.31.0.0/24",
            name="x",
            dns_nameservers=["9.9.9.9"],
            gateway_ip="",
            enable_dhcp=False,
        ),
        "port": neutron(
            "Port",
            network=ref("net"),
            port_security_enabled=False,
            **{"binding:vnic_type": "direct"},
        ),
        "group": neutron("SecurityGroup", rules=[{"protocol": "udp", "description": "new"}]),
    }
    assert await update(server, changed) == "UPDATE_COMPLETE"
    assert await physical_ids(server) == before
    net = await read(project, "network", before["net"])
    assert (net["name"], net["is_admin_state_up"], net["mtu"]) == ("n", False, 1400)
    subnet = await read(project, "subnet", before["subnet"])
    assert (subnet["gateway_ip"], subnet["dns_nameservers"]) == (None, ["9.9.9.9"])
    port = await read(project, "port", before["port"])
    assert (port["is_port_security_enabled"], port["security_group_ids"]) == (False, [])
    assert (port["tags"], port["name"][:7]) == ([], "s-port-")
    group = await read(project, "security_group", before["group"])
    assert group["description"] == ""
    own = [one for one in group["security_group_rules"] if one["direction"] == "ingress"]
    assert [(one["protocol"], one["description"]) for one in own] == [("udp", "new")]
    await delete(server)


async def test_a_rule_that_differs_in_its_description_only_is_updated(
    server: Program, project: Project
) -> None:
    def rule(**more: Json) -> Json:
        return {
            "group": neutron("SecurityGroup"),
            "rule": neutron("SecurityGroupRule", security_group=ref("group"), **more),
        }

    await create(server, rule(port_range_min=80, port_range_max=80))
    before = await physical_ids(server)
    changed = rule(port_range_min=80, port_range_max=80, description="web")
    assert await update(server, changed) == "UPDATE_COMPLETE"
    after = await physical_ids(server)
    group = await read(project, "security_group", before["group"])
    rules = [one for one in group["security_group_rules"] if one["direction"] == "ingress"]
    assert [(one["id"], one["description"]) for one in rules] == [(after["rule"], "web")]
    await delete(server)


async def test_what_neutron_cannot_change_is_replaced(server: Program, project: Project) -> None:
    def resources(cidr: str, mac: str) -> Json:
        return {
            "net": neutron("Net"),
            "subnet": neutron("Subnet", network=ref("net"), cidr=cidr),
            "port": neutron(
                "Port", network=ref("net"), mac_address=mac, fixed_ips=[{"subnet": ref("subnet")}]
            ),
        }

    await create(server, resources("10.32.0.0/24", "fa:16:3e:00:00:01"))
    before = await physical_ids(server)
    changed = resources("10.33.0.0/24", "fa:16:3e:00:00:02")
    assert await update(server, changed) == "UPDATE_COMPLETE"
    after = await physical_ids(server)
    assert after["net"] == before["net"]
    assert after["subnet"] != before["subnet"] and after["port"] != before["port"]
    ports = await asyncio.to_thread(list, project.cloud.network.ports(network_id=after["net"]))
    assert [one.id for one in ports] == [after["port"]]
    await delete(server)


async def test_a_replaced_port_leaves_its_address_to_its_replacement(
    server: Program, project: Project
) -> None:
    def resources(mac: str, *addresses: str) -> Json:
        def port(*own: str, **more: Json) -> Json:
            fixed = [{"subnet": ref("subnet"), "ip_address": one} for one in own]
            return neutron("Port", network=ref("net"), fixed_ips=fixed, **more)

        return {**NETWORK, "port": port(*addresses, mac_address=mac), "other": port("10.31.0.60")}

    async def addresses_of(port: str) -> list[str]:
        found = await read(project, "port", port)
        return [one["ip_address"] for one in found["fixed_ips"]]

    await create(server, resources("fa:16:3e:00:00:01", "10.31.0.50"))
    before = await physical_ids(server)
    failed = await update(server, resources("fa:16:3e:00:00:02", "10.31.0.50", "10.31.0.60"))
    assert failed.startswith("UPDATE_FAILED") and "10.31.0.60" in failed
    assert await addresses_of(before["port"]) == ["10.31.0.50"]
    status = await update(server, resources("fa:16:3e:00:00:02", "10.31.0.50"))
    assert status == "UPDATE_COMPLETE", status
    after = await physical_ids(server)
    assert after["port"] != before["port"]
    assert await addresses_of(after["port"]) == ["10.31.0.50"]
    await delete(server)


async def test_a_replaced_port_gets_its_address_back_if_its_replacement_cannot_be_tagged(
    server: Program, project: Project
) -> None:
    def resources(mac: str, *tags: str) -> Json:
        fixed = [{"subnet": ref("subnet"), "ip_address": "10.31.0.50"}]
        given = {"network": ref("net"), "fixed_ips": fixed, "mac_address": mac, "tags": tags}
        return {**NETWORK, "port": neutron("Port", **given)}

    async def addresses_of(port: str) -> list[str]:
        found = await read(project, "port", port)
        return [one["ip_address"] for one in found["fixed_ips"]]

    await create(server, resources("fa:16:3e:00:00:01"))
    before = await physical_ids(server)
    failed = await update(server, resources("fa:16:3e:00:00:02", "t" * 300))
    assert failed.startswith("UPDATE_FAILED") and "tag" in failed
    assert await addresses_of(before["port"]) == ["10.31.0.50"]
    status = await update(server, resources("fa:16:3e:00:00:03", "t"))
    assert status == "UPDATE_COMPLETE", status
    after = await physical_ids(server)
    assert after["port"] != before["port"]
    assert await addresses_of(after["port"]) == ["10.31.0.50"]
    await delete(server)


async def test_an_object_that_was_deleted_outside_of_the_stack(
    server: Program, project: Project
) -> None:
    await create(server, {"a": neutron("Net"), "b": neutron("Net")})
    before = await physical_ids(server)
    await asyncio.to_thread(project.cloud.network.delete_network, before["a"])
    await server.act("s", "check")
    assert f"the network {before['a']} does not exist" in await ended(server)
    changed = {"a": neutron("Net", name="new"), "b": neutron("Net")}
    assert await update(server, changed) == "UPDATE_COMPLETE"
    after = await physical_ids(server)
    assert after["a"] != before["a"] and after["b"] == before["b"]
    await asyncio.to_thread(project.cloud.network.delete_network, after["a"])
    await delete(server)


async def test_a_network_in_use_says_by_what_at_once(server: Program, project: Project) -> None:
    await create(server, {"net": neutron("Net")})
    known = await physical_ids(server)
    port = await asyncio.to_thread(
        project.cloud.network.create_port, network_id=known["net"], name="foreign"
    )
    stack_id = (await server.stack("s"))["id"]
    await server.stack_request("DELETE", "s")
    status = await ended(server, stack_id)
    assert f"the network is in use by port foreign ({port.id}). Delete or detach" in status
    await asyncio.to_thread(project.cloud.network.delete_port, port)
    await delete(server)


async def test_a_quota_says_what_is_used(
    server: Program, project: Project, openstack: OpenStack
) -> None:
    await asyncio.to_thread(openstack.admin.set_network_quotas, project.id, network=1)
    await create(server, {"a": neutron("Net")}, "one")
    await server.create("two", {"b": neutron("Net")})
    status = await ended(server, "two")
    assert "Quota exceeded for network: 1 of 1 used. Delete what is not needed" in status
    await delete(server, "one")
    await delete(server, "two")


@pytest.mark.parametrize(
    ("resource", "message"),
    [
        (
            neutron("Subnet", network="no-such", cidr="10.0.0.0/24"),
            "Error validating value 'no-such': Unable to find network with name or id 'no-such'",
        ),
        (
            neutron("Subnet", network="publik", cidr="10.0.0.0/24"),
            "Unable to find network with name or id 'publik'. Did you mean \"public\"?",
        ),
        (
            neutron("Port", network="00000000-0000-4000-8000-000000000000"),
            "Unable to find network with name or id '00000000-0000-4000-8000-000000000000'",
        ),
        (
            neutron("Port", network="public", no_fixed_ips=True, fixed_ips=[{"subnet": "x"}]),
            "no_fixed_ips and fixed_ips exclude each other",
        ),
        (
            neutron("SecurityGroup", rules=[{"remote_group_id": "nope"}]),
            "Unable to find security_group with name or id 'nope'",
        ),
        (
            neutron("SecurityGroup", name="default"),
            'Security groups cannot be assigned the name "default"',
        ),
        (neutron("Router", l3_agent_ids=["a", "b"]), "can only have one L3 agent"),
    ],
)
async def test_an_invalid_template_is_refused_before_anything_is_created(
    server: Program, resource: Json, message: str
) -> None:
    sent = {"heat_template_version": "2018-08-31", "resources": {"a": resource}}
    status, answer = await server.call("POST", "/stacks", {"stack_name": "s", "template": sent})
    assert status == 400
    assert message in answer["error"]["message"]


@pytest.mark.parametrize(
    ("resource", "message"),
    [
        (
            neutron("Port", network=ref("net"), fixed_ips=[{"ip_address": "192.0.2.9"}]),
            "Neutron refused to create the port: IP address 192.0.2.9 is not a valid IP",
        ),
        (
            neutron("FloatingIP", floating_network=ref("net")),
            "is not a valid external network",
        ),
        (
            neutron("Subnet", network=ref("net"), cidr="10.31.0.0/25"),
            "overlaps with another subnet",
        ),
    ],
)
async def test_a_failure_has_the_words_of_neutron(
    server: Program, resource: Json, message: str
) -> None:
    await server.create("s", {**NETWORK, "a": {**resource, "depends_on": ["subnet"]}})
    status = await ended(server)
    assert status.startswith("CREATE_FAILED") and message in status
    await delete(server)


async def test_names_become_ids(server: Program, project: Project) -> None:
    await create(
        server, {"net": neutron("Net", name="named"), "group": neutron("SecurityGroup", name="web")}
    )
    known = await physical_ids(server)
    await create(
        server,
        {"port": neutron("Port", network="named", security_groups=["web"])},
        "second",
    )
    port = await read(project, "port", (await physical_ids(server, "second"))["port"])
    assert (port["network_id"], port["security_group_ids"]) == (known["net"], [known["group"]])
    await delete(server, "second")
    await delete(server)


async def test_an_existing_object_is_used_and_kept(server: Program, project: Project) -> None:
    net = await asyncio.to_thread(project.cloud.network.create_network, name="mine")
    resource = {**neutron("Net"), "external_id": net.id}
    await create(server, {"net": resource, "port": neutron("Port", network=ref("net"))})
    assert (await physical_ids(server))["net"] == net.id
    assert (await attributes(server, "net"))["name"] == "mine"
    await delete(server)
    await asyncio.to_thread(project.cloud.network.delete_network, net)
    wrong = {"heat_template_version": "2018-08-31", "resources": {"net": resource}}
    status, answer = await server.call("POST", "/stacks", {"stack_name": "t", "template": wrong})
    assert status == 400 and "there is no network with this ID" in answer["error"]["message"]


async def test_drift_is_observed_with_the_reader_credential(
    database_url: str, openstack: OpenStack, project: Project, tmp_path: Path
) -> None:
    with openstack.reader(f"reader-{project.name}") as reader:
        settings = {**ON, **reader_settings(reader, tmp_path)}
        async with connected_headgate(
            database_url, openstack, project, settings=settings
        ) as server:
            await _observe_drift(server, project)


async def _observe_drift(server: Program, project: Project) -> None:
    await create(
        server,
        {
            **NETWORK,
            "gone": neutron("Net"),
            "port": neutron("Port", network=ref("net"), tags=["a"], admin_state_up=True),
            "router": neutron("Router"),
            "interface": neutron("RouterInterface", router=ref("router"), subnet=ref("subnet")),
            "group": neutron("SecurityGroup", rules=[{"protocol": "tcp"}]),
        },
    )
    known = await physical_ids(server)
    assert await observed(server) == {}
    cloud = project.cloud.network
    await asyncio.to_thread(cloud.delete_network, known["gone"])
    await asyncio.to_thread(cloud.update_port, known["port"], is_admin_state_up=False)
    await asyncio.to_thread(cloud.update_subnet, known["subnet"], name="renamed")
    await asyncio.to_thread(cloud.remove_interface_from_router, known["router"], known["subnet"])
    group = await read(project, "security_group", known["group"])
    for rule in group["security_group_rules"]:
        await asyncio.to_thread(cloud.delete_security_group_rule, rule["id"])
    assert await observed(server) == {
        "gone": ("missing", []),
        "port": ("changed", ["admin_state_up"]),
        "interface": ("missing", []),
        "group": ("changed", ["rules"]),
    }
    await delete(server)


async def observed(server: Program) -> dict[str, tuple[str, list[str]]]:
    """State and paths of the resources with drift."""
    await server.act("s", "observe")

    async def done() -> Json:
        drift = await server.stack_request("GET", "s", "/drift")
        return None if drift["observing"] else drift

    drift = await eventually(done)
    return {
        one["resource_name"]: (
            one["reason"] if one["state"] == "unknown" else one["state"],
            [each["path"] for each in one["differences"]],
        )
        for one in drift["resources"]
    }
