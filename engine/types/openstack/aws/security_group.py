"""AWS::EC2::SecurityGroup, of Neutron."""

import ipaddress
from collections.abc import Iterator, Mapping
from typing import ClassVar, Final

from engine.errors import Findings
from engine.types.openstack.aws.mapped_type import MappedType
from engine.types.openstack.neutron.security_groups import PROTOCOLS, check_rule
from engine.words import Json

_DIRECTIONS: Final = {"SecurityGroupIngress": "ingress", "SecurityGroupEgress": "egress"}
#: Any port, ICMP type or protocol, in Amazon's words.
ANY: Final = "-1"
MAX_PORT: Final = 65535


class Ec2SecurityGroup(MappedType):
    """Without a rule for egress, the group has those that Neutron gives to each group."""

    names: ClassVar = {
        "GroupDescription": ("description",),
        "VpcId": (),
        "SecurityGroupIngress": ("rules",),
        "SecurityGroupEgress": ("rules",),
    }
    not_implemented: ClassVar = tuple(
        f"{name}.*.SourceSecurityGroupOwnerId" for name in _DIRECTIONS
    )

    def map(self, properties: Mapping[str, Json]) -> dict[str, Json]:
        rules = [
            rule_of(one, direction)
            for name, direction in _DIRECTIONS.items()
            for _, one in _rules_in(properties, name)
        ]
        return {"description": properties.get("GroupDescription"), "rules": rules}

    def check_properties(
        self, properties: Mapping[str, Json], place: str, findings: Findings
    ) -> None:
        self.check_implemented(properties, place, findings)
        for name, direction in _DIRECTIONS.items():
            for number, one in _rules_in(properties, name):
                at = f"{place}.{name}[{number}]"
                wrong = [*_value_errors(one)]
                for field, reason, remedy in wrong:
                    findings.add(f"{at}.{field}", reason, remedy)
                if not wrong:
                    _check_rule(rule_of(one, direction), at, findings)


def rule_of(given: Mapping[str, Json], direction: str) -> dict[str, Json]:
    """A rule of OS::Neutron::SecurityGroup. It keeps CidrIp also without ports, unlike in Heat."""
    first, last = _port(given.get("FromPort")), _port(given.get("ToPort"))
    protocol = given.get("IpProtocol")
    rule = {
        "direction": direction,
        "ethertype": "IPv4",
        "protocol": None if protocol in (None, "", ANY) else str(protocol).lower(),
        "port_range_min": first,
        "port_range_max": last,
        "remote_ip_prefix": given.get("CidrIp"),
        "remote_group_id": given.get("SourceSecurityGroupId")
        or given.get("SourceSecurityGroupName"),
        "remote_mode": "remote_ip_prefix",
    }
    return {name: one for name, one in rule.items() if one is not None}


def _port(value: Json) -> int | None:
    """None: any."""
    try:
        number = int(value)
    except (TypeError, ValueError):
        return None
    return None if number < 0 else number


def _rules_in(
    properties: Mapping[str, Json], name: str
) -> Iterator[tuple[int, Mapping[str, Json]]]:
    rules = properties.get(name)
    for number, one in enumerate(rules if isinstance(rules, list) else []):
        if isinstance(one, Mapping):
            yield number, one


def _value_errors(rule: Mapping[str, Json]) -> Iterator[tuple[str, str, str]]:
    """(field, reason, remedy) of values that Neutron would refuse; others are known strings."""
    for name in ("FromPort", "ToPort"):
        value = rule.get(name)
        if isinstance(value, str) and not _is_port(value):
            yield name, f"[{value}] is not a port", f"Use -1 (any), or 0 to {MAX_PORT}."
    protocol = rule.get("IpProtocol")
    if isinstance(protocol, str) and protocol.lower() not in ("", ANY, *PROTOCOLS):
        yield "IpProtocol", f"[{protocol}] is not an IP protocol", "Use its name or number."
    cidr = rule.get("CidrIp")
    if isinstance(cidr, str) and not _is_network(cidr):
        yield "CidrIp", f"[{cidr}] is not a network of IPv4", "Use the CIDR form: 192.0.2.0/24."


def _is_port(value: str) -> bool:
    text = value.strip()
    return text == ANY or (text.isascii() and text.isdecimal() and int(text) <= MAX_PORT)


def _is_network(value: str) -> bool:
    try:
        ipaddress.IPv4Network(value, strict=False)
    except ValueError:
        return False
    return True


#: By property of OS::Neutron::SecurityGroup, in messages.
_OWN_WORDS: Final = {
    "remote_group_id": "SourceSecurityGroupId",
    "remote_ip_prefix": "CidrIp",
    "port_range_min": "FromPort",
    "port_range_max": "ToPort",
}


def _check_rule(rule: Mapping[str, Json], place: str, findings: Findings) -> None:
    found = Findings()
    check_rule(rule, place, found)
    for one in found.all:
        reason = str(one.reason)
        for other, own in _OWN_WORDS.items():
            reason = reason.replace(other, own)
        findings.add(place, reason, one.remedy)
