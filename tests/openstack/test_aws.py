"""The types AWS::EC2::* on a real OpenStack, through a Headgate server."""

from typing import Any

from tests.openstack.cloud import Project
from tests.openstack.stacks import create, delete, network, resource_of, run, update
from tests.support.program import Program

__all__ = ["network", "run"]  # fixtures
Json = Any


def ec2(kind: str, **properties: Json) -> Json:
    return {"type": f"AWS::EC2::{kind}", "properties": properties}


def ref(name: str) -> Json:
    return {"get_resource": name}


RULE = {"IpProtocol": "tcp", "FromPort": "22", "ToPort": "22", "CidrIp": "0.0.0.0/0"}
MACHINE = {"ImageId": "cirros", "InstanceType": "m1.nano"}
#: What heat-templates' samples are made of: a server with a group, a volume and an address, in a
#: network of its own that has a gateway.
RESOURCES: dict[str, Json] = {
    "vpc": ec2("VPC", CidrBlock="10.41.0.0/16"),
    "subnet": ec2("Subnet", VpcId=ref("vpc"), CidrBlock="10.41.0.0/24"),
    "table": ec2("RouteTable", VpcId=ref("vpc")),
    "association": ec2(
        "SubnetRouteTableAssociation", RouteTableId=ref("table"), SubnetId=ref("subnet")
    ),
    "internet": ec2("InternetGateway"),
    "gateway": ec2("VPCGatewayAttachment", VpcId=ref("vpc"), InternetGatewayId=ref("internet")),
    "group": ec2("SecurityGroup", GroupDescription="ssh", SecurityGroupIngress=[RULE]),
    "card": ec2("NetworkInterface", SubnetId=ref("subnet"), GroupSet=[ref("group")]),
    "machine": ec2(
        "Instance",
        **MACHINE,
        NetworkInterfaces=[ref("card")],
        UserData="#!/bin/sh",
        Tags=[{"Key": "role", "Value": "web"}],
    ),
    "disk": ec2("Volume", AvailabilityZone="nova", Size=1),
    "mount": ec2(
        "VolumeAttachment", InstanceId=ref("machine"), VolumeId=ref("disk"), Device="/dev/vdb"
    ),
    "address": {**ec2("EIP"), "depends_on": ["association", "gateway"]},
    "assigned": ec2("EIPAssociation", EIP=ref("address"), InstanceId=ref("machine")),
}


async def test_a_machine_in_a_network_of_its_own(run: Program, project: Project) -> None:
    await create(run, RESOURCES)
    cloud = project.cloud
    machine, card, address = [
        await resource_of(run, "s", name) for name in ("machine", "card", "address")
    ]
    (server,) = cloud.compute.servers()
    assert server.metadata["role"] == "web"
    addresses = [one["addr"] for entries in server.addresses.values() for one in entries]
    assert machine["attributes"]["PrivateIp"] in addresses
    assert card["attributes"]["PrivateIpAddress"] in addresses
    (floating,) = cloud.network.ips(project_id=project.id)
    assert address["attributes"]["AllocationId"] == floating.id
    (port,) = cloud.network.ports(device_id=server.id)
    assert floating.port_id == port.id
    (attached,) = cloud.compute.volume_attachments(server.id)
    assert attached.volume_id == (await resource_of(run, "s", "disk"))["physical_resource_id"]

    vpc = cloud.network.get_network((await resource_of(run, "s", "vpc"))["physical_resource_id"])
    routers = {one.name: one for one in cloud.network.routers(project_id=project.id)}
    table = routers.pop((await resource_of(run, "s", "table"))["attributes"]["show"]["name"])
    assert list(routers) == [vpc.name]
    interfaces = cloud.network.ports(device_owner="network:router_interface", network_id=vpc.id)
    assert [one.device_id for one in interfaces] == [table.id]
    assert table.external_gateway_info["network_id"]

    resized = dict(RESOURCES)
    properties = {
        **RESOURCES["machine"]["properties"],
        "InstanceType": "m1.tiny",
        "Tags": [{"Key": "role", "Value": "db"}],
    }
    resized["machine"] = ec2("Instance", **properties)
    closed = {**RULE, "CidrIp": "10.0.0.0/8"}
    resized["group"] = ec2("SecurityGroup", GroupDescription="ssh", SecurityGroupIngress=[closed])
    await update(run, resized)
    (after,) = cloud.compute.servers()
    assert (after.id, after.flavor["original_name"]) == (server.id, "m1.tiny")
    assert after.metadata["role"] == "db"
    group_id = (await resource_of(run, "s", "group"))["physical_resource_id"]
    group = cloud.network.get_security_group(group_id)
    ingress = [one for one in group.security_group_rules if one["direction"] == "ingress"]
    assert [one["remote_ip_prefix"] for one in ingress] == ["10.0.0.0/8"]
    await run.stack_request("POST", "s", "/actions", {"suspend": None})
    assert await run.until_ended("s") == "SUSPEND_COMPLETE"
    assert next(cloud.compute.servers()).status == "SUSPENDED"
    await run.stack_request("POST", "s", "/actions", {"resume": None})
    assert await run.until_ended("s") == "RESUME_COMPLETE"
    await run.stack_request("POST", "s", "/actions", {"check": None})
    assert await run.until_ended("s") == "CHECK_COMPLETE"
    await delete(run)


async def test_a_machine_in_a_subnet_without_more(
    run: Program, project: Project, network: Any
) -> None:
    (subnet_id,) = project.cloud.network.get_network(network.id).subnet_ids
    await create(run, {"a": ec2("Instance", **MACHINE, SubnetId=subnet_id)})
    (port,) = project.cloud.network.ports(network_id=network.id, device_owner="compute:nova")
    shown = (await resource_of(run, "s"))["attributes"]
    assert shown["PublicIp"] == port.fixed_ips[0]["ip_address"]
    assert shown["AvailabilityZone"] == "nova"
    # Nova chooses the only network: the port of the subnet stays as it fits.
    await update(run, {"a": ec2("Instance", **MACHINE)})
    assert len(list(project.cloud.network.ports(device_owner="compute:nova"))) == 1
    await delete(run)
