"""The types AWS::EC2::*: what they request from the services of OpenStack, and what they show."""

from base64 import b64decode
from collections.abc import Mapping
from dataclasses import replace
from typing import Any, ClassVar

import orjson
import pytest

from engine.hot.schema.type_schema import Kind, TypeSchema, updatable
from engine.types.contract import (
    Call,
    Confirm,
    Confirmation,
    Done,
    Failed,
    Outcome,
    ResourceType,
    Wait,
)
from engine.types.http_client import NoResponse, Response
from engine.types.observation import Difference, Observation
from engine.types.openstack.aws.instance import Instance
from engine.types.openstack.aws.mapped_type import MappedType
from engine.types.openstack.cloud import Cloud
from engine.types.successor import Successor
from engine.words import ObservedState, ResourceId, StackId
from tests.unit.types.calls import KEY, NOW, a_call, findings_of, run
from tests.unit.types.openstack.clouds import (
    Answers,
    NoIdentity,
    answer,
    type_with,
    types_of_all_services,
)

Json = Any
TYPES: Mapping[str, Any] = {one.schema.name: one for one in types_of_all_services()}
IDS = [f"{number:08x}-1111-4111-8111-111111111111" for number in range(1, 9)]
NET, SUBNET, PORT, SERVER, FLOATING, EXTERNAL, ROUTER, OTHER = IDS
OWN_NAME = f"s-r-{KEY.hex[:12]}"


def kind(name: str) -> Any:
    return TYPES[f"AWS::EC2::{name}"]


def web(*answers: Response | NoResponse) -> Answers:
    return Answers(*answers)


def ok(**body: Json) -> Response:
    return answer(200, body)


async def run_to_the_end(type_: Any, operation: str, call: Call) -> tuple[Outcome, Call]:
    """Run an operation until it ends. Returns its outcome and its last call."""
    for _ in range(20):
        outcome = await run(type_, operation, call)
        if not isinstance(outcome, Wait):
            return outcome, call
        call = replace(call, progress=outcome.progress, now=max(NOW, outcome.until or NOW))
    raise AssertionError("the operation does not end")


async def perform(
    name: str, operation: str, given: Json, cloud: Answers, **known: Json
) -> tuple[Any, list[tuple[str, str, Json]]]:
    """The outcome, and the requests: method, path and body."""
    type_ = type_with(cloud, f"AWS::EC2::{name}")
    call = a_call(type_, given, credential="t", **known)
    outcome, _ = await run_to_the_end(type_, operation, call)
    assert not cloud.answers
    return outcome, requests_of(cloud)


def requests_of(cloud: Answers) -> list[tuple[str, str, Json]]:
    """Method, path and body of each request that was sent."""
    return [
        (
            one.method,
            one.url.partition("://")[2].partition("/")[2],
            orjson.loads(one.body) if one.body else None,
        )
        for one in cloud.requests
    ]


# ---- AWS::EC2::Instance


def mapped(name: str, **given: Json) -> Json:
    found: MappedType = kind(name)
    return found.map(given)


@pytest.mark.parametrize(
    ("given", "networks"),
    [
        ({}, [{"allocate_network": "auto"}]),
        ({"SubnetId": SUBNET}, [{"subnet": SUBNET}]),
        ({"NetworkInterfaces": [PORT, OTHER]}, [{"port": PORT}, {"port": OTHER}]),
        # A port takes precedence over a subnet, as in Heat.
        ({"NetworkInterfaces": [PORT], "SubnetId": SUBNET}, [{"port": PORT}]),
        (
            {"NetworkInterfaces": [
                {"NetworkInterfaceId": PORT, "DeviceIndex": "10"},
                {"NetworkInterfaceId": OTHER, "DeviceIndex": 9},
            ]},
            [{"port": OTHER}, {"port": PORT}],
        ),
        (
            {"NetworkInterfaces": [{"NetworkInterfaceId": PORT, "DeviceIndex": "1"}, OTHER]},
            [{"port": PORT}, {"port": OTHER}],
        ),
    ],
)  # fmt: skip
def test_the_interfaces_of_an_instance(given: Json, networks: Json) -> None:
    assert mapped("Instance", **given)["networks"] == networks


def test_the_other_properties_of_an_instance() -> None:
    hints = [{"Key": "a", "Value": "1"}, {"Key": "b", "Value": "2"}, {"Key": "a", "Value": "3"}]
    found = mapped(
        "Instance",
        ImageId="cirros",
        InstanceType="m1",
        KeyName="k",
        AvailabilityZone="nova",
        SecurityGroups=["web"],
        SecurityGroupIds=["id-1"],
        Tags=[{"Key": "role", "Value": "web"}],
        NovaSchedulerHints=hints,
        UserData="#!/bin/sh",
        Volumes=[{"Device": "/dev/vdb", "VolumeId": OTHER}],
        BlockDeviceMappings=[
            {"DeviceName": "vdc",
             "Ebs": {"SnapshotId": "s", "VolumeSize": "3", "DeleteOnTermination": False}},
        ],
    )  # fmt: skip
    assert found == {
        "image": "cirros",
        "flavor": "m1",
        "key_name": "k",
        "availability_zone": "nova",
        "security_groups": ["web", "id-1"],
        "networks": [{"allocate_network": "auto"}],
        "metadata": {"role": "web"},
        "scheduler_hints": {"a": ["1", "3"], "b": "2"},
        "user_data": "#!/bin/sh",
        "block_device_mapping_v2": [
            {"volume_id": OTHER, "device_name": "/dev/vdb", "boot_index": -1,
             "delete_on_termination": False},
        ],
        "block_device_mapping": [
            {"device_name": "vdc", "snapshot_id": "s", "volume_size": 3,
             "delete_on_termination": False},
        ],
    }  # fmt: skip


RUNNING = {
    "id": SERVER,
    "name": OWN_NAME,
    "status": "ACTIVE",
    "metadata": {"role": "web"},
    "OS-EXT-AZ:availability_zone": "nova",
    "addresses": {"a": [{"addr": "10.0.0.5"}], "b": [{"addr": "10.1.0.5"}]},
    "flavor": {"original_name": "m1"},
    "image": {"id": OTHER},
}


async def test_an_instance_is_a_server_with_a_port_in_its_subnet() -> None:
    given = {
        "ImageId": OTHER, "InstanceType": NET, "SubnetId": SUBNET, "SecurityGroups": [ROUTER],
        "Tags": [{"Key": "role", "Value": "web"}],
        "Volumes": [{"Device": "/dev/vdb", "VolumeId": EXTERNAL}],
    }  # fmt: skip
    cloud = web(
        ok(flavor={"id": NET, "name": "m1"}),
        ok(ports=[]),
        ok(subnet={"id": SUBNET, "network_id": NET}),
        answer(201, {"port": {"id": PORT}}),
        answer(202, {"server": {"id": SERVER}}),
        ok(server=RUNNING),
        ok(ports=[]),
    )
    metadata: Json = {"AWS::CloudFormation::Init": {"config": {}}}
    done, sent = await perform("Instance", "create", given, cloud, metadata=metadata)
    assert isinstance(done, Done) and done.physical_id == SERVER
    port = next(body for method, path, body in sent if (method, path) == ("POST", "ports"))
    assert port["port"]["security_groups"] == [ROUTER]
    assert port["port"]["fixed_ips"] == [{"subnet_id": SUBNET}]
    server = next(body for _, path, body in sent if path == "servers" and body)["server"]
    assert server["networks"] == [{"port": PORT}]
    assert server["metadata"]["role"] == "web"
    assert "cfn-init-data" in b64decode(server["user_data"]).decode()
    attached = server["block_device_mapping_v2"][-1]
    assert (attached["uuid"], attached["device_name"]) == (EXTERNAL, "/dev/vdb")
    assert attached["delete_on_termination"] is False
    address = "10.1.0.5"  # of the last network by name, as in Heat
    expected = dict.fromkeys(
        ("PrivateDnsName", "PublicDnsName", "PrivateIp", "PublicIp"), address
    ) | {"AvailabilityZone": "nova"}
    assert {key: one for key, one in done.attributes.items() if key != "show"} == expected
    assert done.attributes["show"]["id"] == SERVER


def test_an_instance_without_an_address_shows_that_of_heat() -> None:
    call = a_call(kind("Instance"), {"ImageId": OTHER, "InstanceType": NET})
    found = kind("Instance").own_attributes(call, {"show": {"addresses": {}}})
    assert found["PublicIp"] == "0.0.0.0" and found["AvailabilityZone"] is None


INSTANCE = {"ImageId": "cirros", "InstanceType": "m1"}


@pytest.mark.parametrize(
    ("changed", "expected"),
    [
        ({"InstanceType"}, False),
        ({"Tags", "SubnetId", "NetworkInterfaces"}, False),
        ({"ImageId"}, True),
        ({"KeyName"}, True),
        ({"SecurityGroups"}, True),
        ({"Volumes"}, True),
        ({"UserData"}, True),
    ],
)
def test_what_replaces_an_instance(changed: set[str], expected: bool) -> None:
    """As the schema says, also for an update that repairs a failed server."""
    call = a_call(kind("Instance"), INSTANCE, previous=INSTANCE, changed=frozenset(changed))
    assert kind("Instance").needs_replace(call) is expected


def test_the_other_type_gets_the_changes_under_its_names() -> None:
    before = {**INSTANCE, "Tags": [{"Key": "a", "Value": "1"}]}
    now = {**before, "InstanceType": "m2", "SubnetId": SUBNET}
    changed = frozenset({"InstanceType", "SubnetId"})
    call = a_call(kind("Instance"), now, previous=before, changed=changed, physical_id=SERVER)
    inner = kind("Instance")._translate(call)
    assert inner.changed == {"flavor", "networks"}
    assert (inner.previous["flavor"], inner.properties["flavor"]) == ("m1", "m2")
    assert inner.previous["metadata"] == inner.properties["metadata"] == {"a": "1"}
    # The defaults of the other type are there.
    assert inner.properties["flavor_update_policy"] == "RESIZE"


def test_differences_have_the_names_of_the_properties() -> None:
    seen = Observation(
        ObservedState.CHANGED,
        [
            Difference("flavor", "m1", "m2"),
            Difference("metadata", {"a": "1"}, {"a": "2"}),
            Difference("name", "x", "y"),
        ],
    )
    found = kind("Instance")._own_observation(seen)
    assert [(one.path, one.observed) for one in found.differences] == [
        ("InstanceType", "m2"),
        ("Tags", [{"Key": "a", "Value": "2"}]),
    ]
    unnamed = Observation(ObservedState.CHANGED, [Difference("name", "x", "y")])
    assert kind("Instance")._own_observation(unnamed).state is ObservedState.PRESENT


# ---- refusals before anything is created


@pytest.mark.parametrize(
    ("name", "given", "place", "reason"),
    [
        (
            "Instance",
            {**INSTANCE, "SecurityGroups": ["a"], "NetworkInterfaces": [PORT]},
            "",
            "SecurityGroups/SecurityGroupIds, NetworkInterfaces",
        ),
        (
            "Instance",
            {**INSTANCE, "BlockDeviceMappings": [{"DeviceName": "vdb"}]},
            ".BlockDeviceMappings[0]",
            "Ebs is missing",
        ),
        (
            "Instance",
            {**INSTANCE, "BlockDeviceMappings": [
                {"DeviceName": "vdb", "Ebs": {"SnapshotId": "s", "Iops": 3}}]},
            ".BlockDeviceMappings[0].Ebs.Iops",
            "is not implemented",
        ),
        (
            "Instance",
            {**INSTANCE, "Tags": [{"Key": "headgate_operation", "Value": "x"}]},
            ".Tags",
            "is reserved",
        ),
        (
            "VPC", {"Tags": [{"Key": "a", "Value": "b"}]}, ".Tags", "is not implemented"
        ),
        (
            "InternetGateway",
            {"Tags": [{"Key": "a", "Value": "b"}]},
            ".Tags",
            "is not implemented",
        ),
        (
            "EIPAssociation",
            {"EIP": "10.0.0.1", "AllocationId": FLOATING, "InstanceId": SERVER},
            "",
            "Either 'EIP' or 'AllocationId' must be provided.",
        ),
        (
            "SecurityGroup",
            {"GroupDescription": "g", "SecurityGroupIngress": [
                {"IpProtocol": "tcp", "FromPort": "x", "ToPort": "80"}]},
            ".SecurityGroupIngress[0].FromPort",
            "[x] is not a port",
        ),
        (
            "SecurityGroup",
            {"GroupDescription": "g", "SecurityGroupEgress": [
                {"IpProtocol": "tcp", "FromPort": "81", "ToPort": "80"}]},
            ".SecurityGroupEgress[0]",
            "FromPort 81 is greater than ToPort 80",
        ),
        (
            "SecurityGroup",
            {"GroupDescription": "g", "SecurityGroupIngress": [{"IpProtocol": "tpc"}]},
            ".SecurityGroupIngress[0].IpProtocol",
            "is not an IP protocol",
        ),
        (
            "SecurityGroup",
            {"GroupDescription": "g", "SecurityGroupIngress": [
                {"IpProtocol": "tcp", "FromPort": "80", "ToPort": "80", "CidrIp": "10.0.0/8"}]},
            ".SecurityGroupIngress[0].CidrIp",
            "is not a network of IPv4",
        ),
        (
            "SecurityGroup",
            {"GroupDescription": "g", "SecurityGroupIngress": [
                {"IpProtocol": "-1", "CidrIp": "10.0.0.0/8", "SourceSecurityGroupId": OTHER}]},
            ".SecurityGroupIngress[0]",
            "SourceSecurityGroupId and CidrIp exclude each other",
        ),
        (
            "SecurityGroup",
            {"GroupDescription": "g", "SecurityGroupIngress": [
                {"IpProtocol": "tcp", "SourceSecurityGroupOwnerId": "1"}]},
            ".SecurityGroupIngress[0].SourceSecurityGroupOwnerId",
            "is not implemented",
        ),
    ],
)  # fmt: skip
def test_refusals(name: str, given: Json, place: str, reason: str) -> None:
    (found,) = findings_of(kind(name), given)
    assert str(found.place) == f"resources.r.properties{place}"
    assert reason in str(found.reason) and found.remedy


# ---- AWS::EC2::SecurityGroup


@pytest.mark.parametrize(
    ("given", "rule"),
    [
        (
            {"IpProtocol": "tcp", "FromPort": "22", "ToPort": "23", "CidrIp": "10.0.0.0/8"},
            {"protocol": "tcp", "port_range_min": 22, "port_range_max": 23,
             "remote_ip_prefix": "10.0.0.0/8"},
        ),
        # Any ICMP: the ports are null, and CidrIp stays.
        (
            {"IpProtocol": "ICMP", "FromPort": "-1", "ToPort": "-1", "CidrIp": "0.0.0.0/0"},
            {"protocol": "icmp", "remote_ip_prefix": "0.0.0.0/0"},
        ),
        # CidrIp limits a rule without ports too.
        ({"IpProtocol": "-1", "CidrIp": "10.0.0.0/8"}, {"remote_ip_prefix": "10.0.0.0/8"}),
        ({"CidrIp": "10.0.0.0/8"}, {"remote_ip_prefix": "10.0.0.0/8"}),
        (
            {"IpProtocol": "-1", "FromPort": "-1", "ToPort": "-1", "CidrIp": "10.0.0.0/8"},
            {"remote_ip_prefix": "10.0.0.0/8"},
        ),
        *(
            (
                {"IpProtocol": protocol, "CidrIp": "10.0.0.0/8"},
                {"protocol": protocol, "remote_ip_prefix": "10.0.0.0/8"},
            )
            for protocol in ("tcp", "udp", "icmp", "47")
        ),
        (
            {"IpProtocol": "udp", "FromPort": "1", "ToPort": "2", "SourceSecurityGroupId": OTHER},
            {"protocol": "udp", "port_range_min": 1, "port_range_max": 2,
             "remote_group_id": OTHER},
        ),
        (
            {"IpProtocol": "tcp", "SourceSecurityGroupName": "web"},
            {"protocol": "tcp", "remote_group_id": "web"},
        ),
    ],
)  # fmt: skip
def test_the_rules_of_a_security_group(given: Json, rule: Json) -> None:
    found = mapped(
        "SecurityGroup",
        GroupDescription="g",
        SecurityGroupIngress=[given],
        SecurityGroupEgress=[given],
    )
    common = {"ethertype": "IPv4", "remote_mode": "remote_ip_prefix"}
    assert found["description"] == "g"
    assert found["rules"] == [
        {"direction": "ingress", **common, **rule},
        {"direction": "egress", **common, **rule},
    ]


# ---- AWS::EC2::Volume and VolumeAttachment


def test_the_properties_of_volumes() -> None:
    tags = [{"Key": "a", "Value": "1"}]
    assert mapped("Volume", AvailabilityZone="nova", Size=2, SnapshotId=OTHER, Tags=tags) == {
        "availability_zone": "nova",
        "size": 2,
        "backup_id": OTHER,
        "metadata": {"a": "1"},
    }
    assert mapped("VolumeAttachment", InstanceId=SERVER, VolumeId=OTHER, Device="/dev/vdb") == {
        "instance_uuid": SERVER,
        "volume_id": OTHER,
        "mountpoint": "/dev/vdb",
    }


async def test_the_snapshot_of_a_volume_is_a_backup() -> None:
    """Also with DeletionPolicy: Snapshot, as in Heat."""
    assert kind("Volume").schema.snapshots
    cloud = web(
        ok(backups=[]),
        ok(volume={"id": OTHER, "status": "available"}),
        answer(202, {"backup": {"id": PORT}}),
        ok(backup={"id": PORT, "status": "available"}),
    )
    given = {"AvailabilityZone": "nova", "Size": 1}
    done, sent = await perform("Volume", "snapshot", given, cloud, physical_id=OTHER)
    assert isinstance(done, Done) and done.data == {"backup_id": PORT}
    assert sent[2][2]["backup"]["volume_id"] == OTHER


async def test_an_instance_has_no_snapshot() -> None:
    """As in Heat."""
    assert not kind("Instance").schema.snapshots
    done, sent = await perform("Instance", "snapshot", INSTANCE, web(), physical_id=SERVER)
    assert isinstance(done, Done) and not sent


# ---- AWS::EC2::NetworkInterface


async def test_a_network_interface_is_a_port_in_the_network_of_its_subnet() -> None:
    given = {"SubnetId": SUBNET, "PrivateIpAddress": "10.0.0.5", "GroupSet": [OTHER]}
    fixed = [{"subnet_id": SUBNET, "ip_address": "10.0.0.5"}]
    cloud = web(
        ok(subnet={"id": SUBNET, "network_id": NET}),
        answer(
            201,
            {"port": {"id": PORT, "status": "DOWN", "network_id": NET, "fixed_ips": fixed}},
        ),
        ok(network={"id": NET}),
        ok(subnet={"id": SUBNET}),
    )
    done, sent = await perform("NetworkInterface", "create", given, cloud)
    body = sent[1][2]["port"]
    assert (body["network_id"], body["fixed_ips"], body["security_groups"]) == (
        NET, fixed, [OTHER]
    )  # fmt: skip
    assert done.attributes["PrivateIpAddress"] == "10.0.0.5"


async def test_other_groups_change_a_network_interface_in_place() -> None:
    before = {"SubnetId": SUBNET, "GroupSet": [OTHER]}
    found = {"id": PORT, "status": "DOWN", "network_id": NET, "fixed_ips": []}
    cloud = web(ok(port=found), ok(network={"id": NET}))
    known = {"physical_id": PORT, "previous": before, "changed": frozenset({"GroupSet"})}
    done, sent = await perform(
        "NetworkInterface", "update", {**before, "GroupSet": []}, cloud, **known
    )
    assert isinstance(done, Done)
    assert sent[0] == ("PUT", f"ports/{PORT}", {"port": {"security_groups": []}})


# ---- AWS::EC2::EIP and EIPAssociation

EIP = {"id": FLOATING, "status": "DOWN", "floating_ip_address": "192.0.2.7"}
INTERFACES = [
    {"id": OTHER, "created_at": "2026-01-02", "network_id": NET, "fixed_ips": []},
    {"id": PORT, "created_at": "2026-01-01", "network_id": NET,
     "fixed_ips": [{"ip_address": "fd00::1"}, {"ip_address": "10.0.0.5"}]},
]  # fmt: skip


async def test_an_eip_is_a_floating_ip_of_the_only_external_network() -> None:
    cloud = web(
        ok(networks=[{"id": EXTERNAL}]),
        ok(ports=INTERFACES),
        answer(201, {"floatingip": EIP}),
    )
    done, sent = await perform("EIP", "create", {"InstanceId": SERVER}, cloud)
    assert sent[0][:2] == ("GET", "networks?router%3Aexternal=True&limit=500")
    body = sent[2][2]["floatingip"]
    assert body["floating_network_id"] == EXTERNAL
    assert (body["port_id"], body["fixed_ip_address"]) == (PORT, "10.0.0.5")
    assert done.physical_id == FLOATING
    assert done.attributes["AllocationId"] == FLOATING
    assert kind("EIP").reference("r", FLOATING, done.data) == "192.0.2.7"
    assert kind("EIP").reference("r", None, {}) == "r"


@pytest.mark.parametrize(
    ("networks", "expected"),
    [
        ([], "Expected 1 external network, found 0"),
        ([{"id": EXTERNAL}, {"id": OTHER}], "Expected 1 external network, found 2"),
        ([{"id": EXTERNAL, "is_default": True}, {"id": OTHER}], EXTERNAL),
        (
            [{"id": EXTERNAL, "is_default": True}, {"id": OTHER, "is_default": True}, {"id": NET}],
            "Expected 1 external network, found 3",
        ),
    ],
)
async def test_which_external_network_it_is(networks: Json, expected: str) -> None:
    answers = [ok(networks=networks)]
    if expected == EXTERNAL:
        answers.append(answer(201, {"floatingip": EIP}))
    outcome, sent = await perform("EIP", "create", {}, web(*answers))
    if isinstance(outcome, Failed):
        assert expected in outcome.reason and "OS::Neutron::FloatingIP" in outcome.reason
        assert outcome.physical_id is None
    else:
        assert sent[-1][2]["floatingip"]["floating_network_id"] == expected


@pytest.mark.parametrize("server", [SERVER, None])
async def test_an_eip_moves_to_another_server_or_to_none(server: str | None) -> None:
    answers = [ok(ports=INTERFACES)] if server else []
    cloud = web(*answers, ok(floatingip=EIP))
    known = {
        "physical_id": FLOATING,
        "previous": {"InstanceId": OTHER},
        "changed": frozenset({"InstanceId"}),
    }
    given = {"InstanceId": server} if server else {}
    done, sent = await perform("EIP", "update", given, cloud, **known)
    assert isinstance(done, Done)
    fields = sent[-1][2]["floatingip"]
    assert fields["port_id"] == (PORT if server else None)
    assert kind("EIP").reference("r", FLOATING, done.data) == "192.0.2.7"


def vpc(gateway: str | None, routers: int = 1) -> list[Response]:
    """A port's network with the name of this many routers."""
    info = {"network_id": gateway} if gateway else None
    router = {"id": ROUTER, "external_gateway_info": info}
    return [
        ok(port={"id": PORT, "network_id": NET}),
        ok(network={"id": NET, "name": "n"}),
        ok(routers=[router] * routers),
    ]


FLOATS = ok(floatingip={"id": FLOATING, "floating_network_id": EXTERNAL})


async def test_an_association_gives_the_router_of_the_vpc_a_gateway() -> None:
    given = {"AllocationId": FLOATING, "NetworkInterfaceId": PORT}
    cloud = web(*vpc(None), FLOATS, ok(router={}), ok(floatingip={**EIP, "port_id": PORT}))
    done, sent = await perform("EIPAssociation", "create", given, cloud)
    gateway = {"router": {"external_gateway_info": {"network_id": EXTERNAL}}}
    assert sent[4] == ("PUT", f"routers/{ROUTER}", gateway)
    assert sent[5][2]["floatingip"]["port_id"] == PORT
    assert done.physical_id == FLOATING
    # get_resource returns the name of the resource in the cloud, as in Heat.
    reference = kind("EIPAssociation").reference("r", FLOATING, done.data)
    assert reference == OWN_NAME


@pytest.mark.parametrize(
    "answers", [[*vpc(EXTERNAL), FLOATS], vpc(None, routers=0)], ids=["has one", "no router"]
)
async def test_an_association_leaves_other_routers_alone(answers: list[Response]) -> None:
    given = {"AllocationId": FLOATING, "NetworkInterfaceId": PORT}
    cloud = web(*answers, ok(floatingip={**EIP, "port_id": PORT}))
    _, sent = await perform("EIPAssociation", "create", given, cloud)
    assert [path for method, path, _ in sent if method == "PUT"] == [f"floatingips/{FLOATING}"]


async def test_an_association_by_address() -> None:
    cloud = web(ok(ports=INTERFACES), ok(floatingips=[EIP]), ok(floatingip=EIP))
    given = {"EIP": "192.0.2.7", "InstanceId": SERVER}
    _, sent = await perform("EIPAssociation", "create", given, cloud)
    assert sent[-1] == (
        "PUT",
        f"floatingips/{FLOATING}",
        {"floatingip": {"port_id": PORT, "fixed_ip_address": "10.0.0.5"}},
    )


@pytest.mark.parametrize(
    ("given", "reason"),
    [
        ({"InstanceId": SERVER}, "Either 'EIP' or 'AllocationId' must be provided."),
        ({"EIP": "192.0.2.7"}, "Must specify 'InstanceId' if you specify 'EIP'."),
        ({"AllocationId": FLOATING}, "InstanceId, NetworkInterfaceId"),
    ],
)
async def test_an_incomplete_association_fails(given: Json, reason: str) -> None:
    failed, sent = await perform("EIPAssociation", "create", given, web())
    assert isinstance(failed, Failed) and reason in failed.reason and not sent


async def test_an_update_repairs_an_association_without_a_floating_ip() -> None:
    """Its create failed before it had found one."""
    given = {"EIP": "192.0.2.7", "InstanceId": SERVER}
    cloud = web(ok(ports=INTERFACES), ok(floatingips=[EIP]), ok(floatingip=EIP))
    known = {"previous": given, "failed": True, "data": {"name": OWN_NAME}}
    done, sent = await perform("EIPAssociation", "update", given, cloud, **known)
    assert isinstance(done, Done) and done.physical_id == FLOATING
    assert sent[-1][2]["floatingip"]["port_id"] == PORT
    assert done.data["name"] == OWN_NAME


BY_ADDRESS = {"EIP": "192.0.2.7", "InstanceId": SERVER}
BY_ID = {"AllocationId": FLOATING, "NetworkInterfaceId": PORT}
CONNECTS = {"port_id": PORT, "fixed_ip_address": "10.0.0.5"}


@pytest.mark.parametrize(
    ("before", "given", "answers", "fixed"),
    [
        (BY_ADDRESS, BY_ID, [*vpc(EXTERNAL), FLOATS], None),
        (BY_ID, BY_ADDRESS, [ok(ports=INTERFACES), ok(floatingips=[EIP])], "10.0.0.5"),
    ],
    ids=["by ID", "by address"],
)
async def test_the_same_association_in_other_words_stays(
    before: Json, given: Json, answers: list[Response], fixed: str | None
) -> None:
    """It is updated in place: the delete of a replaced one would disconnect the address."""
    type_, changed = kind("EIPAssociation"), frozenset({*before, *given})
    known = {
        "physical_id": FLOATING, "previous": before, "changed": changed, "data": {"port": PORT}
    }  # fmt: skip
    assert not type_.needs_replace(a_call(type_, given, **known))
    assert all(type_.schema.properties[name].update_allowed for name in changed)
    cloud = web(*answers, ok(floatingip={**EIP, "port_id": PORT}))
    done, sent = await perform("EIPAssociation", "update", given, cloud, **known)
    assert done.physical_id == FLOATING and done.data["port"] == PORT
    fields = {"port_id": PORT, "fixed_ip_address": fixed}
    assert [one for one in sent if one[0] == "PUT"] == [
        ("PUT", f"floatingips/{FLOATING}", {"floatingip": fields})
    ]


async def test_an_association_leaves_its_former_address() -> None:
    """Another address of another server."""
    given = {"EIP": "192.0.2.8", "InstanceId": SERVER}
    known = {
        "physical_id": FLOATING,
        "previous": {"EIP": "192.0.2.7", "InstanceId": NET},
        "changed": frozenset(given),
        "data": {"port": OTHER},
    }
    assert not kind("EIPAssociation").needs_replace(a_call(kind("EIPAssociation"), given, **known))
    cloud = web(
        ok(ports=INTERFACES),
        ok(floatingips=[{**EIP, "id": EXTERNAL}]),
        ok(floatingip={**EIP, "port_id": OTHER}),
        ok(floatingip=EIP),
        ok(floatingip={**EIP, "id": EXTERNAL}),
    )
    done, sent = await perform("EIPAssociation", "update", given, cloud, **known)
    assert done.physical_id == EXTERNAL and done.data["port"] == PORT
    assert [one[1:] for one in sent if one[0] == "PUT"] == [
        (f"floatingips/{FLOATING}", {"floatingip": {"port_id": None}}),
        (f"floatingips/{EXTERNAL}", {"floatingip": CONNECTS}),
    ]


class Replaced:
    """The replacement of each resource."""

    def __init__(self, found: Successor | None) -> None:
        self._found = found

    async def read(self, stack_id: StackId, resource_id: ResourceId) -> Successor | None:
        return self._found


@pytest.mark.parametrize("name", ["EIPAssociation", "VPCGatewayAttachment"])
@pytest.mark.parametrize("replaced", [True, False])
async def test_what_a_replacement_has_stays_connected(name: str, replaced: bool) -> None:
    """A resource that is replaced because of `replace_when`."""
    successors = Replaced(Successor({}, {}) if replaced else None)
    given: Json
    data: Json
    if name == "EIPAssociation":
        given, physical_id, data = BY_ID, FLOATING, {"port": PORT}
        answers = [ok(floatingip={**EIP, "port_id": PORT}), ok(floatingip=EIP)]
    else:
        given, physical_id, data = {"VpcId": NET}, NET, {"routers": {OTHER: EXTERNAL}}
        answers = [table(OTHER, EXTERNAL), ok()]
    cloud = web(*([] if replaced else answers))
    type_: Any = type_with(cloud, f"AWS::EC2::{name}")
    for one in (type_, getattr(type_, "other", type_)):
        one.successors = successors
    call = a_call(type_, given, credential="t", physical_id=physical_id, data=data)
    outcome, _ = await run_to_the_end(type_, "delete", call)
    assert isinstance(outcome, Done) and not cloud.answers
    assert [one.method for one in cloud.requests] == ([] if replaced else ["GET", "PUT"])


# ---- AWS::EC2::VPC and what it consists of

NETWORK = {"id": NET, "status": "ACTIVE", "name": OWN_NAME}
NO_SEGMENTS = ok(segments=[])
DEFAULT = {"id": ROUTER, "status": "ACTIVE", "name": OWN_NAME}


async def test_a_vpc_is_a_network_and_a_router_of_its_name() -> None:
    cloud = web(answer(201, {"network": NETWORK}), answer(201, {"router": DEFAULT}))
    done, sent = await perform("VPC", "create", {}, cloud)
    assert sent[0][2]["network"]["name"] == sent[1][2]["router"]["name"] == OWN_NAME
    assert done.physical_id == NET and done.data["router"] == ROUTER


async def test_a_vpc_whose_router_fails_has_its_network() -> None:
    """The delete removes what there is."""
    cloud = web(answer(201, {"network": NETWORK}), answer(409, {}))
    failed, _ = await perform("VPC", "create", {}, cloud)
    assert isinstance(failed, Failed) and failed.physical_id == NET
    deletes = web(ok(network=NETWORK), ok(routers=[]), answer(204))
    done, sent = await perform("VPC", "delete", {}, deletes, physical_id=NET, data=failed.data)
    assert isinstance(done, Done)
    assert [path for method, path, _ in sent if method == "DELETE"] == [f"networks/{NET}"]


async def test_a_repeated_create_of_a_vpc_finds_its_router() -> None:
    """The answer of the router's create was lost: it is found by its name."""
    type_ = type_with(web(answer(201, {"network": NETWORK})), "AWS::EC2::VPC")
    call = a_call(type_, {}, credential="t")
    wait = await run(type_, "create", call)
    assert isinstance(wait, Wait)
    cloud = web(ok(routers=[DEFAULT]))
    done, sent = await perform("VPC", "create", {}, cloud, progress=wait.progress, repeated=True)
    assert isinstance(done, Done) and done.data["router"] == ROUTER
    assert [method for method, _, _ in sent] == ["GET"]


async def test_the_delete_of_a_vpc_begins_with_its_router() -> None:
    cloud = web(answer(204), answer(204))
    known = {"physical_id": NET, "data": {"router": ROUTER}}
    done, sent = await perform("VPC", "delete", {}, cloud, **known)
    assert isinstance(done, Done)
    assert [path for _, path, _ in sent] == [f"routers/{ROUTER}", f"networks/{NET}"]


async def test_a_vpc_whose_router_is_in_use_is_not_deleted() -> None:
    used = {"id": PORT, "fixed_ips": [{"subnet_id": SUBNET}]}
    cloud = web(answer(409, {}), ok(ports=[used]))
    known = {"physical_id": NET, "data": {"router": ROUTER}}
    failed, _ = await perform("VPC", "delete", {}, cloud, **known)
    assert isinstance(failed, Failed) and f"an interface in the subnet {SUBNET}" in failed.reason
    assert (failed.physical_id, failed.data) == (NET, {"router": ROUTER})


def interface(*ports: Json) -> Response:
    return ok(ports=list(ports))


CONNECTED = interface({"id": PORT, "device_owner": "network:router_interface"})
FREE = interface()
ROUTERS = [ok(network=NETWORK), ok(routers=[DEFAULT])]


async def test_a_subnet_is_connected_with_the_router_of_its_vpc() -> None:
    given = {"VpcId": NET, "CidrBlock": "10.0.0.0/24", "AvailabilityZone": "nova"}
    subnet = {"id": SUBNET, "network_id": NET, "cidr": "10.0.0.0/24"}
    cloud = web(answer(201, {"subnet": subnet}), *ROUTERS, FREE, ok())
    done, sent = await perform("Subnet", "create", given, cloud)
    body = sent[0][2]["subnet"]
    assert (body["network_id"], body["cidr"], body["ip_version"]) == (NET, "10.0.0.0/24", 4)
    added = f"routers/{ROUTER}/add_router_interface"
    assert sent[-1] == ("PUT", added, {"subnet_id": SUBNET})
    assert done.attributes["AvailabilityZone"] == "nova"

    deletes = web(*ROUTERS, CONNECTED, ok(), answer(204))
    done, sent = await perform("Subnet", "delete", given, deletes, physical_id=SUBNET)
    removed = f"routers/{ROUTER}/remove_router_interface"
    assert isinstance(done, Done)
    assert [path for method, path, _ in sent if method != "GET"] == [
        removed,
        f"subnets/{SUBNET}",
    ]


async def test_a_subnet_of_a_vpc_that_is_given_by_its_name_is_disconnected() -> None:
    given = {"VpcId": "net", "CidrBlock": "10.0.0.0/24"}
    by_name = ok(networks=[{"id": NET, "name": "net"}])
    cloud = web(by_name, *ROUTERS, CONNECTED, ok(), answer(204))
    done, sent = await perform("Subnet", "delete", given, cloud, physical_id=SUBNET)
    assert isinstance(done, Done)
    assert sent[1][1] == f"networks/{NET}"
    assert [one for one in sent if one[0] != "GET"] == [
        ("PUT", f"routers/{ROUTER}/remove_router_interface", {"subnet_id": SUBNET}),
        ("DELETE", f"subnets/{SUBNET}", None),
    ]


async def test_the_delete_of_a_subnet_whose_vpc_is_gone() -> None:
    given = {"VpcId": "net", "CidrBlock": "10.0.0.0/24"}
    unknown = [ok(networks=[]), answer(404, {}), ok(networks=[])]
    cloud = web(*unknown, answer(404, {}))
    done, _ = await perform("Subnet", "delete", given, cloud, physical_id=SUBNET)
    assert isinstance(done, Done)


async def test_a_subnet_that_cannot_be_connected_is_known() -> None:
    given = {"VpcId": NET, "CidrBlock": "10.0.0.0/24"}
    subnet = {"id": SUBNET, "network_id": NET}
    cloud = web(answer(201, {"subnet": subnet}), *ROUTERS, FREE, answer(409, {}))
    failed, _ = await perform("Subnet", "create", given, cloud)
    assert isinstance(failed, Failed) and failed.physical_id == SUBNET


@pytest.mark.parametrize("gateway", [EXTERNAL, None])
async def test_a_route_table_is_a_router_with_the_gateway_of_the_vpc(gateway: str | None) -> None:
    info = {"external_gateway_info": {"network_id": gateway} if gateway else None}
    cloud = web(
        ok(network=NETWORK),
        ok(routers=[{**DEFAULT, **info}]),
        answer(201, {"router": {"id": OTHER, "status": "ACTIVE"}}),
        ok(),
        ok(router={"id": OTHER, "status": "ACTIVE"}),
    )
    cloud.answers = cloud.answers[:4]
    done, sent = await perform("RouteTable", "create", {"VpcId": NET}, cloud)
    assert done.physical_id == OTHER
    expected = {"network_id": EXTERNAL} if gateway else None
    assert sent[2][2]["router"].get("external_gateway_info") == expected
    assert sent[3][1:] == (f"routers/{OTHER}/tags", {"tags": [f"headgate-vpc:{NET}"]})


async def test_a_route_table_takes_the_place_of_the_router_of_the_vpc() -> None:
    given = {"RouteTableId": OTHER, "SubnetId": SUBNET}
    in_vpc = [ok(subnet={"id": SUBNET, "network_id": NET}), *ROUTERS]
    cloud = web(*in_vpc, CONNECTED, ok(), FREE, ok())
    done, sent = await perform("SubnetRouteTableAssociation", "create", given, cloud)
    assert done.physical_id == f"{OTHER}:subnet_id={SUBNET}"
    assert [path for method, path, _ in sent if method == "PUT"] == [
        f"routers/{ROUTER}/remove_router_interface",
        f"routers/{OTHER}/add_router_interface",
    ]
    deletes = web(ok(), *in_vpc, FREE, ok())
    done, sent = await perform(
        "SubnetRouteTableAssociation", "delete", given, deletes, physical_id=done.physical_id
    )
    assert [path for method, path, _ in sent if method == "PUT"] == [
        f"routers/{OTHER}/remove_router_interface",
        f"routers/{ROUTER}/add_router_interface",
    ]


async def test_the_delete_of_an_association_whose_subnet_is_gone() -> None:
    given = {"RouteTableId": OTHER, "SubnetId": SUBNET}
    known = {"physical_id": f"{OTHER}:subnet_id={SUBNET}"}
    cloud = web(answer(404, {}), answer(404, {}))
    done, _ = await perform("SubnetRouteTableAssociation", "delete", given, cloud, **known)
    assert isinstance(done, Done)


def table(*routers: str | None) -> Response:
    """A list of routers: IDs and networks in turn."""
    pairs = zip(routers[::2], routers[1::2], strict=True)
    return ok(
        routers=[
            {"id": one, "external_gateway_info": {"network_id": network} if network else None}
            for one, network in pairs
        ]
    )


EXTERNALS = ok(networks=[{"id": EXTERNAL}])
ATTACHED = {"VpcId": NET, "InternetGatewayId": "g"}
GATEWAY: Json = {"router": {"external_gateway_info": {"network_id": EXTERNAL}}}
NO_GATEWAY: Json = {"router": {"external_gateway_info": {}}}


def gateways(sent: list[tuple[str, str, Json]]) -> list[tuple[str, Json]]:
    return [(path, body) for method, path, body in sent if method == "PUT"]


async def attachment(operation: str, cloud: Answers, given: Json = ATTACHED, **known: Json) -> Any:
    return await perform("VPCGatewayAttachment", operation, given, cloud, **known)


async def test_a_gateway_attachment_connects_the_route_tables_of_the_vpc() -> None:
    tables = table(OTHER, None, ROUTER, EXTERNAL)
    done, sent = await attachment("create", web(EXTERNALS, tables, tables, ok()))
    assert f"tags=headgate-vpc%3A{NET}" in sent[1][1]
    assert gateways(sent) == [(f"routers/{OTHER}", GATEWAY)]
    assert done.physical_id == NET
    # Another client, or another attachment, has connected the other one.
    assert done.data == {"network": EXTERNAL, "routers": {OTHER: EXTERNAL}}


async def test_a_gateway_attachment_disconnects_what_it_has_connected() -> None:
    known = {"physical_id": NET, "data": {"routers": {OTHER: EXTERNAL, ROUTER: EXTERNAL}}}
    # Another client has given ROUTER another network since.
    done, sent = await attachment("delete", web(table(OTHER, EXTERNAL, ROUTER, NET), ok()), **known)
    assert isinstance(done, Done)
    assert gateways(sent) == [(f"routers/{OTHER}", NO_GATEWAY)]
    assert sent[0][1] == f"routers?id={ROUTER}&id={OTHER}&limit=500"


async def test_a_route_table_that_ends_during_the_delete_of_its_attachment() -> None:
    known = {"physical_id": NET, "data": {"routers": {OTHER: EXTERNAL}}}
    done, _ = await attachment("delete", web(table(OTHER, EXTERNAL), answer(404, {})), **known)
    assert isinstance(done, Done)


async def test_the_second_attachment_of_a_vpc_leaves_the_gateways_of_the_first() -> None:
    tables = table(OTHER, EXTERNAL)
    done, sent = await attachment("create", web(EXTERNALS, tables, tables))
    assert done.data["routers"] == {} and gateways(sent) == []
    _, sent = await attachment("delete", web(), physical_id=NET, data=done.data)
    assert sent == []


async def test_an_update_repairs_a_failed_gateway_attachment() -> None:
    type_ = kind("VPCGatewayAttachment")
    assert type_.repairs
    free = table(OTHER, None, ROUTER, None)
    failed, sent = await attachment("create", web(EXTERNALS, free, free, ok(), answer(409, {})))
    assert isinstance(failed, Failed) and failed.physical_id == NET
    both = {OTHER: EXTERNAL, ROUTER: EXTERNAL}
    assert failed.data["routers"] == both
    half = table(OTHER, EXTERNAL, ROUTER, None)
    known = {
        "physical_id": NET, "previous": ATTACHED, "failed": True, "data": failed.data
    }  # fmt: skip
    done, sent = await attachment("update", web(EXTERNALS, half, half, ok()), **known)
    assert gateways(sent) == [(f"routers/{ROUTER}", GATEWAY)]
    assert done.data["routers"] == both
    # It can also be removed.
    known = {"physical_id": NET, "data": failed.data}
    _, sent = await attachment("delete", web(half, ok()), **known)
    assert gateways(sent) == [(f"routers/{OTHER}", NO_GATEWAY)]


async def test_an_update_repairs_a_gateway_attachment_without_a_vpc() -> None:
    failed, _ = await attachment("create", web(ok(networks=[])))
    assert isinstance(failed, Failed) and failed.physical_id is None
    tables = table(OTHER, None)
    known = {"previous": ATTACHED, "failed": True, "data": failed.data}
    done, _ = await attachment("update", web(EXTERNALS, tables, tables, ok()), **known)
    assert done.physical_id == NET and done.data["routers"] == {OTHER: EXTERNAL}


async def test_another_internet_gateway_has_no_effect() -> None:
    properties = kind("VPCGatewayAttachment").schema.properties
    assert [name for name, one in properties.items() if not one.update_allowed] == []
    data = {"network": EXTERNAL, "routers": {OTHER: EXTERNAL}}
    known = {
        "physical_id": NET, "previous": ATTACHED, "data": data,
        "changed": frozenset({"InternetGatewayId"}),
    }  # fmt: skip
    given = {**ATTACHED, "InternetGatewayId": "other"}
    done, sent = await attachment("update", web(), given, **known)
    assert sent == [] and (done.physical_id, done.data) == (NET, data)


async def test_a_gateway_attachment_moves_to_another_vpc() -> None:
    data = {"network": EXTERNAL, "routers": {OTHER: EXTERNAL}}
    changed = frozenset({"VpcId"})
    known = {"physical_id": NET, "previous": ATTACHED, "data": data, "changed": changed}
    given = {"VpcId": SUBNET}
    tables = table(ROUTER, None)
    cloud = web(EXTERNALS, tables, tables, ok(), table(OTHER, EXTERNAL), ok())
    done, sent = await attachment("update", cloud, given, **known)
    assert gateways(sent) == [(f"routers/{ROUTER}", GATEWAY), (f"routers/{OTHER}", NO_GATEWAY)]
    assert done.physical_id == SUBNET and done.data["routers"] == {ROUTER: EXTERNAL}
    # A failure knows the route tables of both.
    cloud = web(EXTERNALS, tables, tables, answer(409, {}))
    failed, _ = await attachment("update", cloud, given, **known)
    assert failed.data["routers"] == {ROUTER: EXTERNAL, OTHER: EXTERNAL}
    # The same VPC, by its name.
    named = web(ok(networks=[{"id": NET, "name": "net"}]), EXTERNALS, *[table(OTHER, EXTERNAL)] * 2)
    done, sent = await attachment("update", named, {"VpcId": "net"}, **known)
    assert gateways(sent) == [] and (done.physical_id, done.data) == (NET, data)


async def test_a_replacement_takes_over_the_route_tables() -> None:
    tables = table(OTHER, EXTERNAL)
    done, _ = await attachment("create", web(EXTERNALS, tables, tables), replaced=NET)
    assert done.data["routers"] == {OTHER: EXTERNAL}
    done, _ = await attachment("create", web(EXTERNALS, tables, tables), replaced=SUBNET)
    assert done.data["routers"] == {}


async def test_a_repair_keeps_the_external_network() -> None:
    """Although another one is the default now."""
    networks = ok(networks=[{"id": EXTERNAL}, {"id": SUBNET, "is_default": True}])
    tables = table(OTHER, None)
    data = {"network": EXTERNAL, "routers": {OTHER: EXTERNAL}}
    known = {"physical_id": NET, "previous": ATTACHED, "failed": True, "data": data}
    _, sent = await attachment("update", web(networks, tables, tables, ok()), **known)
    assert gateways(sent) == [(f"routers/{OTHER}", GATEWAY)]


async def test_an_adopted_gateway_attachment_has_connected_all_route_tables() -> None:
    cloud = web(EXTERNALS, table(OTHER, EXTERNAL))
    done, _ = await attachment("adopt", cloud, physical_id=NET)
    assert done.data == {"network": EXTERNAL, "routers": {OTHER: EXTERNAL}}
    data = {"network": EXTERNAL, "routers": {}}
    done, _ = await attachment("check", web(table(OTHER, EXTERNAL)), physical_id=NET, data=data)
    assert done.data == data
    failed, _ = await attachment("check", web(table(OTHER, None)), physical_id=NET, data=data)
    assert isinstance(failed, Failed) and "a route table has no gateway" in failed.reason


async def test_an_error_of_a_lookup_pauses_the_operation_as_long_as_the_service_asks() -> None:
    busy = answer(503, {}, retry_after="1")
    cloud = web(busy, ok(networks=[{"id": EXTERNAL}]), answer(201, {"floatingip": EIP}))
    done, _ = await perform("EIP", "create", {}, cloud)
    assert isinstance(done, Done)


class Steps(ResourceType):
    """A type whose update asks for a confirmation, and then needs its progress."""

    schema = TypeSchema("T", {"flavor": updatable(Kind.STRING)}, steps=("resize",))
    seen: ClassVar[list[Json]] = []

    def create(self, call: Call) -> Outcome:
        return Done("1")

    def update(self, call: Call) -> Outcome:
        self.seen.append(call.progress)
        if call.progress is None:
            return Wait(NOW, {"at": "flavor"})
        if call.confirmation is None:
            return Confirm("resize", {"at": "flavor", "phase": "asked"})
        return Done(call.physical_id)

    def delete(self, call: Call) -> Outcome:
        return Done(None)


async def test_the_answer_of_a_hook_finds_the_progress_of_the_other_type() -> None:
    """Also that of a type that has looked up more."""
    other = Steps()
    type_ = Instance(TYPES["AWS::EC2::Instance"].schema, other, Cloud(web(), NoIdentity()))
    assert type_.schema.steps == ("resize",)
    known = {"physical_id": "1", "previous": INSTANCE, "changed": frozenset({"InstanceType"})}
    call = a_call(type_, {**INSTANCE, "InstanceType": "m2"}, credential="t", **known)
    first = await run(type_, "update", call)
    assert isinstance(first, Wait)
    asked = await run(type_, "update", replace(call, progress=first.progress))
    assert isinstance(asked, Confirm)
    answer_ = Confirmation("resize", accepted=True, by="ann")
    done = await run(type_, "update", replace(call, progress=asked.progress, confirmation=answer_))
    assert isinstance(done, Done)
    assert other.seen == [None, {"at": "flavor"}, {"at": "flavor", "phase": "asked"}]


async def test_a_cancelled_create_that_the_other_type_does_not_cancel_has_what_it_needs() -> None:
    cloud = web(ok(networks=[{"id": EXTERNAL}]), answer(201, {"floatingip": EIP}))
    done, sent = await perform("EIP", "create", {}, cloud, cancelled=True)
    assert isinstance(done, Done)
    assert sent[-1][2]["floatingip"]["floating_network_id"] == EXTERNAL


async def test_a_cancelled_create_of_an_instance_ends() -> None:
    cloud = web(ok(servers=[]))
    failed, sent = await perform("Instance", "create", INSTANCE, cloud, cancelled=True)
    assert isinstance(failed, Failed) and failed.physical_id is None and len(sent) == 1
