"""Existing objects of OpenStack in the form of properties."""

from datetime import UTC, datetime
from typing import Any
from uuid import UUID

import pytest

from engine.hot.schema.type_schema import Kind, Property, TypeSchema
from engine.types.contract import Call
from engine.types.live_object import UnreadableCode, UnreadableObject
from engine.types.observation import PRESENT, Difference, Observation
from engine.types.openstack.live_values import LiveProperties, fit_value, live_object, unreadable
from engine.types.openstack.neutron.networks import SUBNET
from engine.types.openstack.neutron.ports import PORT
from engine.types.openstack.neutron.security_groups import existing_rules
from engine.types.openstack.nova.live_server import live_server
from engine.types.openstack.operation_marker import MARKER
from engine.types.openstack.service_errors import CloudError
from engine.words import Json, ObservedState, ResourceId, StackId

NONE = UUID(int=0)


def call(**properties: Json) -> Call:
    return Call(
        project="p", stack_id=StackId(NONE), stack_name="", resource_id=ResourceId(NONE),
        resource_name="", operation_key=NONE, now=datetime(2026, 1, 1, tzinfo=UTC),
        properties=properties, physical_id="id",
    )  # fmt: skip


def test_fields_get_the_names_of_properties() -> None:
    ips = [{"subnet_id": "s", "ip_address": "10.0.0.5", "more": 1}, {"subnet_id": None}]
    assert fit_value(PORT.properties["fixed_ips"], ips) == [
        {"subnet": "s", "ip_address": "10.0.0.5"},
        {},
    ]
    pools = [{"start": "10.0.0.2", "end": "10.0.0.9"}]
    assert fit_value(SUBNET.properties["allocation_pools"], pools) == pools
    assert fit_value(Property(Kind.MAP), {"a": None}) == {"a": None}  # its keys are not known


def test_given_properties_win_and_what_they_hide_is_a_difference() -> None:
    schema = TypeSchema(
        "Test::Thing",
        {
            "size": Property(Kind.INTEGER, default=1),
            "tags": Property(Kind.LIST),
            "groups": Property(Kind.LIST),
            "words": Property(Kind.LIST, default=[]),
            "password": Property(Kind.STRING, hidden=True),
            "other": Property(Kind.STRING),
        },
    )
    live = LiveProperties(
        {"size": 7, "tags": [], "groups": [], "words": [], "password": "x"}, {"other": "why"}
    )
    seen: list[Any] = []

    def compare(properties: Any) -> Observation:
        seen.append(properties)
        return Observation(ObservedState.CHANGED, [Difference("size", properties["size"], 7)])

    given = call(size=5, password="secret")
    found = live_object(schema, "n", live, given, compare, {"groups"})
    # An empty list is none, unless the type distinguishes them or the schema has a default.
    assert found.properties == {"size": 5, "groups": [], "words": []}
    assert seen == [{"size": 5, "groups": [], "words": []}]
    assert [(one.desired, one.observed) for one in found.differences] == [(5, 7)]
    assert found.unread.keys() == {"other", "password"} and "x" not in found.unread.values()
    assert live_object(schema, "n", live, call(other="a"), lambda _: PRESENT).unread.keys() == {
        "password"
    }


@pytest.mark.parametrize(
    ("status", "code"),
    [
        (404, UnreadableCode.MISSING),
        (403, UnreadableCode.FORBIDDEN),
        (401, UnreadableCode.FORBIDDEN),
        (503, UnreadableCode.UNAVAILABLE),
        (None, UnreadableCode.UNAVAILABLE),
    ],
)
def test_errors_of_a_service_have_a_code(status: int | None, code: UnreadableCode) -> None:
    assert unreadable("network", CloudError("no", status=status)).code is code


def rule(direction: str, ethertype: str = "IPv4", **more: Json) -> dict[str, Json]:
    empty = {"description": "", "protocol": None, "remote_group_id": None}
    return {"direction": direction, "ethertype": ethertype, **empty, **more}


def test_rules_that_neutron_adds_to_each_group_are_not_in_the_template() -> None:
    egress = [rule("egress"), rule("egress", "IPv6")]
    web = rule("ingress", protocol="tcp", remote_group_id="own")
    written = {
        "direction": "ingress", "ethertype": "IPv4", "protocol": "tcp",
        "remote_mode": "remote_group_id",
    }  # fmt: skip
    assert existing_rules("own", [*egress, web]) == [written]
    assert existing_rules("other", [*egress, web]) == [written | {"remote_group_id": "own"}]
    strict = rule("egress", protocol="udp")
    assert {one.get("protocol") for one in existing_rules("own", [strict, egress[0]])} == {
        "udp",
        None,
    }
    with pytest.raises(UnreadableObject, match="no rule for egress"):
        existing_rules("own", [web])


def test_ports_of_a_server_are_referred_to_only_if_they_are_imported() -> None:
    server = {
        "name": "web", "flavor": {"original_name": "m1"}, "image": "", "key_name": None,
        "metadata": {"tier": "front", MARKER: "mark"}, "config_drive": "True",
        "os-extended-volumes:volumes_attached": [{"id": "v1"}, {"id": "v2"}],
    }  # fmt: skip
    ports: list[dict[str, Json]] = [
        {"id": "p1", "network_id": "n", "fixed_ips": [{"ip_address": "10.0.0.5"}]},
        {"id": "p2", "network_id": "n", "fixed_ips": []},
        {"id": "p3", "network_id": "n", "fixed_ips": [{"ip_address": "10.0.0.6"}]},
    ]
    live = live_server(server, ports, {"p1"})
    assert live.values["networks"] == [
        {"port": "p1"},
        {"network": "n"},
        {"network": "n", "fixed_ip": "10.0.0.6"},
    ]
    assert live.values["metadata"] == {"tier": "front"} and live.values["config_drive"] is True
    assert live.values["block_device_mapping_v2"] == [
        {"volume_id": "v1", "boot_index": 0, "delete_on_termination": False}
    ]
    assert "user_data" in live.reasons
