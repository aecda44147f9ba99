"""Rules of the types of Neutron that need no request."""

from typing import Any

import pytest

from engine.errors import Findings
from engine.types.contract import Call, ResourceType
from engine.types.observation import PRESENT
from engine.types.openstack.cloud import Session
from engine.types.openstack.neutron.neutron_type import describe_ports
from engine.types.openstack.neutron.routers import parse_interface
from engine.types.openstack.neutron.security_groups import content_of, rule_changes, with_egress
from engine.types.openstack.object_type import MAX_TEXT, ObjectType, is_alike
from engine.words import ObservedState
from tests.unit.types.calls import KEY, a_call
from tests.unit.types.openstack.clouds import types

Json = Any
TYPES = types()
ROUTE = {"destination": "10.1.0.0/24", "nexthop": "10.0.0.9"}
NET = "11111111-1111-4111-8111-111111111111"
SUBNET = "22222222-2222-4222-8222-222222222222"


def object_type(kind: str) -> ObjectType:
    found: ResourceType = TYPES[f"OS::Neutron::{kind}"]
    assert isinstance(found, ObjectType)
    return found


def call(kind: str, properties: Json, **more: Any) -> Call:
    return a_call(object_type(kind), properties, **more)


def session(type_: ObjectType) -> Session:
    return type_.cloud.session(call("Net", {}, credential="token"))


# ---- requests


async def test_properties_become_fields() -> None:
    type_ = object_type("Port")
    given = {
        "network": NET,
        "fixed_ips": [{"subnet": SUBNET}],
        "allowed_address_pairs": [{"ip_address": "10.0.0.1"}],
        "value_specs": {"binding:profile": {"a": 1}},
        "tags": ["t"],
    }
    fields = await type_.fields_for_create(call("Port", given), session(type_))
    assert fields == {
        "network_id": NET,
        "fixed_ips": [{"subnet_id": SUBNET}],
        "allowed_address_pairs": [{"ip_address": "10.0.0.1"}],
        "binding:profile": {"a": 1},
        "admin_state_up": True,
        "binding:vnic_type": "normal",
        "device_id": "",
        "device_owner": "",
    }


@pytest.mark.parametrize(
    ("kind", "before", "after", "fields"),
    [
        ("SecurityGroup", {"description": "d"}, {}, {"description": ""}),
        ("Net", {"dns_domain": "a."}, {}, {"dns_domain": ""}),
        ("Net", {"value_specs": {"a": 1, "b": 2}}, {"value_specs": {"a": 1, "b": 3}}, {"b": 3}),
        ("Net", {"tags": ["a"]}, {}, {}),
        (
            "Subnet",
            {"host_routes": []},
            {"gateway_ip": ""},
            {"host_routes": [], "gateway_ip": None},
        ),
        ("Subnet", {"allocation_pools": []}, {}, {}),
        ("Router", {"external_gateway_info": {"network": NET}}, {}, {"external_gateway_info": {}}),
        ("FloatingIP", {"port_id": NET}, {}, {"port_id": None}),
        (
            "FloatingIP",
            {"port_id": NET},
            {"port_id": NET, "fixed_ip_address": "10.0.0.1"},
            {"port_id": NET, "fixed_ip_address": "10.0.0.1"},
        ),
        (
            "Port",
            {"security_groups": [NET]},
            {"port_security_enabled": False},
            {"port_security_enabled": False, "security_groups": []},
        ),
        ("Port", {"no_fixed_ips": False}, {"no_fixed_ips": True}, {"fixed_ips": []}),
    ],
)
async def test_changes_become_fields(kind: str, before: Json, after: Json, fields: Json) -> None:
    type_ = object_type(kind)
    required = {"Subnet": {"network": NET, "cidr": "10.0.0.0/24"}, "Port": {"network": NET},
                "FloatingIP": {"floating_network": NET}}.get(kind, {})  # fmt: skip
    changed = {one for one in before.keys() | after.keys() if before.get(one) != after.get(one)}
    made = call(kind, required | after, previous=required | before, changed=frozenset(changed))
    assert await type_.fields_for_update(made, session(type_), made.changed) == fields


# ---- how an interrupted create finds its object


def test_an_object_without_a_name_is_found_by_its_physical_name() -> None:
    mark = object_type("Net").mark(call("Net", {}))
    assert mark.fields == mark.query == {"name": "s-r-111111112222"}


def test_a_named_object_is_found_by_its_description() -> None:
    mark = object_type("Net").mark(call("Net", {"name": "n"}))
    assert mark.query == {"description": f"Created by Headgate: operation {KEY}"}
    assert not mark.renames


def test_a_named_and_described_object_is_renamed_after_its_create() -> None:
    group = call("SecurityGroup", {"name": "n", "description": "d"})
    mark = object_type("SecurityGroup").mark(group)
    assert mark.renames and mark.fields == {"name": "s-r-111111112222"}
    specs = call("Net", {"name": "n", "value_specs": {"description": "d"}})
    assert object_type("Net").mark(specs).renames


def test_a_long_name_keeps_its_end() -> None:
    mark = object_type("Net").mark(call("Net", {}, stack_name="s" * 300))
    assert len(mark.fields["name"]) == MAX_TEXT
    assert mark.fields["name"].endswith("-r-111111112222")


# ---- rules of security groups

RULE = {"direction": "ingress", "ethertype": "IPv4", "protocol": "tcp"}


@pytest.mark.parametrize(
    ("one", "other"),
    [
        ({"protocol": "6"}, {"protocol": "tcp"}),
        ({"protocol": "TCP"}, {"protocol": "tcp"}),
        ({"remote_ip_prefix": "10.0.0.7/8"}, {"remote_ip_prefix": "10.0.0.0/8"}),
        ({"remote_ip_prefix": "0.0.0.0/0"}, {}),
        ({"description": "a"}, {"description": "b"}),
    ],
)
def test_rules_are_the_same_as_for_neutron(one: Json, other: Json) -> None:
    assert content_of(RULE | one) == content_of(RULE | other)


def test_only_what_differs_is_changed() -> None:
    has = [
        {**RULE, "id": "kept"},
        {**RULE, "protocol": "udp", "id": "extra"},
        {**RULE, "protocol": "sctp", "id": "described", "description": "old"},
        {**RULE, "protocol": "icmp", "id": "foreign"},
    ]
    wanted = [
        RULE,
        {**RULE, "protocol": "sctp", "description": "new"},
        {**RULE, "protocol": "esp"},
    ]
    known = [RULE, {**RULE, "protocol": "udp"}, {**RULE, "protocol": "sctp"}]
    extra, missing = rule_changes(wanted, known, has)
    assert [one["id"] for one in extra] == ["extra", "described"]
    assert [one["protocol"] for one in missing] == ["sctp", "esp"]


def test_egress_is_allowed_unless_a_rule_says_otherwise() -> None:
    assert len(with_egress([RULE])) == 3
    assert with_egress([{**RULE, "direction": "egress"}]) == [{**RULE, "direction": "egress"}]


# ---- observations


@pytest.mark.parametrize(
    ("desired", "observed", "alike"),
    [
        ([1, 2], [2, 1], True),
        ([1], [1, 2], False),
        ([1, 1], [1, 2], False),
        ({"a": 1, "b": None}, {"a": 1, "b": 2, "c": 3}, True),
        ({"a": 1}, {}, False),
        ("4", 4, True),
        (True, 1, False),
        (True, "true", False),
        ("FA:16", "fa:16", True),
        ("", None, True),
        ("x", None, False),
        ([{"a": 1}], "x", False),
    ],
)
def test_values_are_compared_as_services_write_them(
    desired: Json, observed: Json, alike: bool
) -> None:
    assert is_alike(desired, observed) is alike


def test_a_changed_field_is_a_difference() -> None:
    type_ = object_type("Net")
    same = {"name": "n", "tags": ["a"], "admin_state_up": True, "shared": False, "status": "ACTIVE",
            "qos_policy_id": NET}  # fmt: skip
    given = {"name": "n", "tags": ["a"], "qos_policy": "by-name"}
    made = call("Net", given, attributes={"show": same})
    assert type_.compare(made, same) is PRESENT
    found = type_.compare(made, same | {"name": "m", "tags": []})
    assert found.state is ObservedState.CHANGED
    assert [(one.path, one.observed) for one in found.differences] == [("name", "m"), ("tags", [])]
    assert type_.compare(made, same | {"status": "ERROR"}).state is ObservedState.DEGRADED


def test_fields_that_the_requester_cannot_read_are_not_compared() -> None:
    """The reader credential may see more of an object than the user who requested the change."""
    given = {"name": "n", "physical_network": "x", "network_type": "vlan"}
    made = call("ProviderNet", given, attributes={"show": {"name": "n", "status": "ACTIVE"}})
    seen = {"name": "n", "status": "ACTIVE", "provider:physical_network": "hidden"}
    assert object_type("ProviderNet").compare(made, seen) is PRESENT
    differs = object_type("ProviderNet").compare(made, seen | {"name": "m"})
    assert [one.path for one in differs.differences] == ["name"]


def test_a_port_that_a_server_uses_has_no_drift() -> None:
    used = {"device_id": "server", "device_owner": "compute:nova", "network_id": NET,
            "fixed_ips": [{"subnet_id": SUBNET, "ip_address": "10.0.0.4"}]}  # fmt: skip
    given = {"network": NET, "fixed_ips": [{"subnet": SUBNET}]}
    made = call("Port", given, attributes={"show": used})
    assert object_type("Port").compare(made, used) is PRESENT
    moved = used | {"fixed_ips": [{"subnet_id": NET, "ip_address": "10.0.0.4"}]}
    assert object_type("Port").compare(made, moved).state is ObservedState.CHANGED


# ---- validation, messages


@pytest.mark.parametrize(
    ("kind", "properties", "message"),
    [
        ("Subnet", {"cidr": "10.0.0.0/8", "subnetpool": "p"}, "at the same time: cidr, subnetpool"),
        ("Subnet", {"ipv6_ra_mode": "slaac"}, "needs ip_version: 6"),
        (
            "Subnet",
            {"ip_version": 6, "ipv6_ra_mode": "slaac", "ipv6_address_mode": "dhcpv6-stateful"},
            "they must be equal",
        ),
        ("Port", {"no_fixed_ips": True, "fixed_ips": [{}]}, "exclude each other"),
        ("Port", {"port_security_enabled": False, "security_groups": ["a"]}, "no security groups"),
        ("RouterInterface", {"subnet": "a", "port": "b"}, "at the same time: subnet, port"),
        ("Router", {"l3_agent_ids": ["a", "b"]}, "Non HA routers can only have one L3 agent."),
        ("Router", {"l3_agent_id": "a", "l3_agent_ids": ["a"]}, "l3_agent_id, l3_agent_ids"),
        ("Router", {"l3_agent_id": "a", "distributed": True}, "distributed, l3_agent_id"),
        ("Router", {"ha": True, "distributed": True}, "exclude each other"),
        ("SecurityGroupRule", {"port_range_min": 9, "port_range_max": 8}, "is greater than"),
        ("Quota", {"project": "p"}, "at least one quota must be given"),
    ],
)
def test_properties_that_exclude_each_other(kind: str, properties: Json, message: str) -> None:
    findings = Findings()
    object_type(kind).check_properties(properties, "resources.a.properties", findings)
    assert [message in one.reason for one in findings.all] == [True]


def test_values_that_are_not_known_yet_are_no_fault() -> None:
    for type_ in TYPES.values():
        findings = Findings()
        type_.check_properties({"project": "p", "port": 1}, "resources.a.properties", findings)
        assert type_.schema.name == "OS::Neutron::Quota" or not findings.all


@pytest.mark.parametrize(
    ("text", "parsed"),
    [
        ("r:subnet_id=s", ("r", "subnet_id", "s")),
        ("r:port_id=p", ("r", "port_id", "p")),
        ("r:other=p", None),
        ("r", None),
        (":port_id=p", None),
        ("r:port_id=", None),
        ("", None),
    ],
)
def test_the_id_of_a_router_interface(text: str, parsed: Json) -> None:
    assert parse_interface(text) == parsed


def test_ports_are_named_with_what_they_belong_to() -> None:
    ports = [
        {"id": "1", "name": "web", "device_owner": "compute:nova", "device_id": "s"},
        {"id": "2", "name": "", "device_owner": "network:router_interface", "device_id": "r"},
        {"id": "3", "name": "", "device_owner": "", "device_id": ""},
        *({"id": str(number), "name": ""} for number in range(4, 8)),
    ]
    assert describe_ports(ports) == [
        "port web (1) of server s",
        "port 2 of router r",
        "port 3",
        "port 4",
        "port 5",
        "and 2 more",
    ]
