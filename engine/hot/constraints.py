"""Rules for values: of parameters in templates and of properties in resource types, one table each.

Constraints that need a cloud service are accepted without a check in this release.
"""

import ipaddress
import re
from collections.abc import Callable, Mapping
from datetime import datetime

import orjson

from engine.hot.schema import Constraint
from engine.words import Json


def broken_rule(constraint: Constraint, value: Json) -> str | None:
    """Return what is wrong with a value, or None. A description replaces the message."""
    said = CHECKS[constraint.kind](constraint, value)
    return (constraint.description or said) if said else None


def as_json(value: Json) -> str:
    """JSON text the way Heat's messages show it, any size of number included."""
    try:
        return orjson.dumps(value).decode()
    except TypeError:
        return str(value)


def _bounds(rule: Constraint) -> str:
    return f"(min: {rule.min}, max: {rule.max})"


def _outside(rule: Constraint, value: int | float) -> bool:
    return (rule.min is not None and value < rule.min) or (
        rule.max is not None and value > rule.max
    )


def _length(rule: Constraint, value: Json) -> str | None:
    if not isinstance(value, str | list | dict):
        return None
    outside = _outside(rule, len(value))
    return f"length ({len(value)}) is out of range {_bounds(rule)}" if outside else None


def _range(rule: Constraint, value: Json) -> str | None:
    if not isinstance(value, int | float):
        return None
    return f"{value} is out of range {_bounds(rule)}" if _outside(rule, value) else None


def _modulo(rule: Constraint, value: Json) -> str | None:
    step, offset = rule.step or 1, rule.offset or 0
    if not isinstance(value, int | float) or value % step == offset % step:
        return None
    return f"{value} is not a multiple of {step} with an offset of {offset}"


def _allowed_values(rule: Constraint, value: Json) -> str | None:
    bad = [
        item
        for item in (value if isinstance(value, list) else [value])
        if not any(
            item == one and isinstance(item, bool) == isinstance(one, bool) for one in rule.allowed
        )
    ]
    if not bad:
        return None
    shown = ", ".join(as_json(one) for one in rule.allowed)
    return f"{as_json(bad[0])} is not an allowed value [{shown}]"


def _allowed_pattern(rule: Constraint, value: Json) -> str | None:
    if not isinstance(value, str) or re.fullmatch(rule.pattern, value):
        return None
    return f'"{value}" does not match pattern "{rule.pattern}"'


def _custom(rule: Constraint, value: Json) -> str | None:
    check = CUSTOM.get(rule.name)
    if check is None or value in (None, ""):
        return None
    bad = [item for item in (value if isinstance(value, list) else [value]) if not check(item)]
    if not bad:
        return None
    return f"Error validating value '{bad[0]}': it is not a valid {rule.name}"


CHECKS: Mapping[str, Callable[[Constraint, Json], str | None]] = {
    "length": _length,
    "range": _range,
    "modulo": _modulo,
    "allowed_values": _allowed_values,
    "allowed_pattern": _allowed_pattern,
    "custom_constraint": _custom,
}


def _readable(read: Callable[[str], object]) -> Callable[[Json], bool]:
    """Make a check out of a reader that raises ValueError."""

    def check(value: Json) -> bool:
        try:
            read(value)
        except (ValueError, TypeError):
            return False
        return True

    return check


def _cidr(value: str) -> object:
    if "/" not in value:
        raise ValueError("no prefix length")
    return ipaddress.ip_network(value, strict=False)


def _ip(value: str) -> object:
    if not isinstance(value, str):
        raise ValueError("an address is text")
    return ipaddress.ip_address(value)


def _ip_or_cidr(value: str) -> object:
    return _cidr(value) if "/" in value else _ip(value)


MAC = re.compile(r"([0-9a-fA-F]{2})([:-]?[0-9a-fA-F]{2}){5}")


def _mac(value: Json) -> bool:
    return isinstance(value, str) and MAC.fullmatch(value) is not None


CUSTOM: Mapping[str, Callable[[Json], bool]] = {
    "ip_addr": _readable(_ip),
    "ip_or_cidr": _readable(_ip_or_cidr),
    "net_cidr": _readable(_cidr),
    "mac_addr": _mac,
    "json_string": _readable(orjson.loads),
    "iso_8601": _readable(datetime.fromisoformat),
    "test_constr": lambda value: True,
}

#: Known to Heat, accepted without a check. Anything else is refused with the nearest name.
UNCHECKED_NAMES = """
    cron_expression dns_domain dns_name rel_dns_name expiration timezone
    barbican.container barbican.secret blazar.host blazar.reservation cinder.backup cinder.qos_specs
    cinder.snapshot cinder.volume cinder.vtype designate.zone glance.image heat.resource_type
    ironic.node ironic.portgroup keystone.domain keystone.group keystone.project keystone.region
    keystone.role keystone.service keystone.user magnum.cluster magnum.cluster_template
    manila.share_network manila.share_snapshot manila.share_type mistral.workflow
    monasca.notification neutron.address_scope neutron.flow_classifier neutron.lb.provider
    neutron.lbaas.listener
    neutron.lbaas.loadbalancer neutron.lbaas.pool neutron.lbaas.provider neutron.network
    neutron.port neutron.port_pair neutron.port_pair_group neutron.qos_policy neutron.router
    neutron.security_group neutron.segment neutron.subnet neutron.subnetpool
    neutron.taas.tap_flow neutron.taas.tap_service nova.flavor nova.host nova.keypair nova.network
    nova.server octavia.flavor octavia.flavorprofile octavia.l7policy octavia.listener
    octavia.loadbalancer octavia.pool sahara.cluster sahara.cluster_template sahara.data_source
    sahara.image sahara.job_binary sahara.job_type sahara.plugin trove.flavor vitrage.template
    zaqar.queue"""
UNCHECKED = frozenset(UNCHECKED_NAMES.split())
CUSTOM_NAMES = sorted(UNCHECKED | CUSTOM.keys())
