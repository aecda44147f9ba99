"""Services that answer without what their documents must have: an operation ends or is repeated,
and its reason names the service."""

from typing import Any

import orjson
import pytest

from engine.hot.schema.type_schema import Kind, Property
from engine.types.contract import Outcome, ResourceType
from engine.types.http_client import Request, Response
from engine.types.openstack.cloud import Cloud
from tests.unit.types.calls import a_call, run
from tests.unit.types.openstack.clouds import Renewing, types_of_all_services

Json = Any
ID = "11111111-1111-4111-8111-111111111111"
#: The keys below which services answer one object.
KEYS = (
    "address_scope", "aggregate", "availability_zone", "availability_zone_profile", "backup",
    "cluster", "clustertemplate", "encryption", "flavor", "flavorprofile", "floatingip",
    "healthmonitor", "image", "instance", "keypair",
    "l7policy", "listener", "loadbalancer", "member", "metering_label", "metering_label_rule",
    "network", "nodegroup", "policy", "pool", "port", "port_forwarding", "qos_specs", "quota",
    "quota_set",
    "rbac_policy", "restore", "router", "rule", "security_group", "security_group_rule",
    "security_service", "segment", "server", "server_group", "share", "share_network",
    "share_type", "snapshot", "subnet", "subnetpool", "trunk", "user",
    "volume", "volumeAttachment", "volume_type",
)  # fmt: skip
#: Other lists than `${KEY}s`.
LISTS = (
    "access_list", "address_scopes", "export_locations", "flavor_access", "instanceActions",
    "interfaceAttachments", "l7policies", "messages", "policies", "qos_specs_list",
    "rbac_policies", "volume_type_access",
)  # fmt: skip
#: Objects without an ID, and with an ID alone.
OBJECTS: dict[str, Json] = {
    "empty": {},
    "id": {"id": ID, "uuid": ID},
    "ready": {"id": ID, "uuid": ID, "status": "ACTIVE", "provisioning_status": "ACTIVE"},
}


class SameAnswer:
    """An HTTP client whose answers to all requests are alike."""

    def __init__(self, one: Json) -> None:
        lists = {f"{key}s": [one] for key in KEYS} | {key: [one] for key in LISTS}
        self._body = orjson.dumps({**lists, **dict.fromkeys(KEYS, one), **one})

    def refusal(self, url: str) -> tuple[str, str] | None:
        return None

    async def send(self, request: Request) -> Response:
        return Response(200, {}, self._body)


def value_of(known: Property) -> Json:
    """A value that fits a property without constraints of its own."""
    if known.kind is Kind.LIST:
        return [value_of(known.items)] if known.items else [ID]
    if known.kind is Kind.MAP:
        return {name: value_of(one) for name, one in (known.fields or {}).items() if one.required}
    return {Kind.INTEGER: 1, Kind.NUMBER: 1, Kind.BOOLEAN: True}.get(known.kind, ID)


#: Values of required properties with constraints.
FITTING: dict[str, Json] = {
    "cidr": "10.0.0.0/24", "destination": "10.0.0.0/24", "nexthop": "10.0.0.9",
    "ip_version": 4, "protocol": "tcp", "remote_ip_prefix": "10.0.0.0/24", "provider": "luks",
    "dscp_mark": 0, "interface": "public", "share_protocol": "NFS",
    "network_type": "vlan", "internal_ip_address": "10.0.0.9", "location": "http://h/i",
    "disk_format": "raw", "container_format": "bare", "object_type": "network",
    "action": "access_as_shared", "prefixes": ["10.0.0.0/16"],
}  # fmt: skip


#: Values of properties of types for which the others do not fit.
OF_TYPES: dict[str, dict[str, Json]] = {
    "AWS::EC2::EIP": {"InstanceId": ID},
    "AWS::EC2::EIPAssociation": {"AllocationId": ID, "NetworkInterfaceId": ID},
    "AWS::EC2::Instance": {"SubnetId": ID},
    "AWS::EC2::Subnet": {"CidrBlock": "10.0.0.0/24"},
    "AWS::EC2::Volume": {"Size": 1},
    "AWS::EC2::VolumeAttachment": {"Device": "/dev/vdb"},
    "OS::Aodh::CompositeAlarm": {"composite_rule": {"operator": "or", "rules": [{}, {}]}},
    "OS::Barbican::Order": {"type": "key", "algorithm": "aes", "bit_length": 256},
    "OS::Cinder::Volume": {"size": 1},
    "OS::Designate::RecordSet": {"type": "A"},
    "OS::Magnum::ClusterTemplate": {
        "coe": "kubernetes",
        "docker_storage_driver": "overlay",
        "server_type": "vm",
        "volume_driver": "cinder",
        "dns_nameserver": "10.0.0.9",
    },
    "OS::Manila::SecurityService": {"type": "ldap"},
    "OS::Manila::Share": {"access_rules": [{"access_type": "ip", "access_to": "10.0.0.9"}]},
    "OS::Manila::ShareNetwork": {"neutron_subnet": ID, "security_services": [ID]},
    "OS::Mistral::CronTrigger": {"pattern": "0 0 * * *"},
    "OS::Mistral::Workflow": {"type": "direct", "tasks": [{"name": "a", "action": "b"}]},
    "OS::Neutron::RouterGateway": {"network": ID},
    "OS::Nova::Server": {"image": ID, "networks": [{"subnet": ID}, {"network": ID}]},
    "OS::Trove::Instance": {"replica_count": 1, "networks": [], "users": []},
    "OS::Octavia::AvailabilityZoneProfile": {"availability_zone_data": "{}"},
    "OS::Octavia::FlavorProfile": {"flavor_data": "{}"},
    "OS::Octavia::HealthMonitor": {"type": "TCP"},
    "OS::Octavia::L7Policy": {"action": "REJECT"},
    "OS::Octavia::L7Rule": {"type": "PATH", "compare_type": "REGEX"},
    "OS::Octavia::Listener": {"protocol": "TCP"},
    "OS::Octavia::Pool": {"protocol": "TCP", "lb_algorithm": "ROUND_ROBIN", "listener": ID},
    "OS::Octavia::PoolMember": {"address": "10.0.0.9"},
}


def properties_of(type_: ResourceType) -> dict[str, Json]:
    required = {name: one for name, one in type_.schema.properties.items() if one.required}
    found = {name: FITTING.get(name, value_of(one)) for name, one in required.items()}
    return found | OF_TYPES.get(type_.schema.name, {})


#: The entries of the progress of some types.
SAVED = {"port": ID, "public": "key", "private": "", "before": []}
#: The types whose `absent` in the progress is a list.
ASSIGNMENTS = ("OS::Keystone::GroupRoleAssignment", "OS::Keystone::UserRoleAssignment")
NAMES = [one.schema.name for one in types_of_all_services()]


@pytest.mark.parametrize("answer", OBJECTS)
@pytest.mark.parametrize("name", NAMES)
async def test_no_answer_raises(name: str, answer: str) -> None:
    cloud = Cloud(SameAnswer(OBJECTS[answer]), Renewing())
    type_ = next(one for one in types_of_all_services(cloud) if one.schema.name == name)
    given = properties_of(type_)
    created = {"physical_id": ID, "previous": given}
    absent: Json = [] if name in ASSIGNMENTS else True
    operations: list[tuple[str, Json]] = [
        *(
            ("create", {"progress": one})
            for one in (None, {"id": ID, **SAVED}, {"absent": absent, **SAVED})
        ),
        ("update", {**created, "changed": frozenset(given)}),
        ("update", {**created, "progress": {"at": "networks", "ports": []}}),
        *((one, created) for one in ("check", "delete", "snapshot")),
    ]
    for operation, more in operations:
        call = a_call(type_, given, credential="t", repeated=True, **more)
        assert isinstance(await run(type_, operation, call), Outcome), operation
    call = a_call(type_, given, **created)
    if type_.observation_key(call) is not None:
        observed: Any = type_.observe([call])
        found = observed if isinstance(observed, dict) else await observed
        assert set(found) == {call.resource_id}
