"""Heat's custom constraints that need no external service, by name.

engine/types/custom_constraints.py describes constraints with external validators.
"""

import ipaddress
import re
from collections.abc import Callable, Mapping
from datetime import datetime

import orjson

from engine.words import Json

MAX_NAME_LENGTH = 255
#: Minimum length of the domain that is appended to a relative name.
MIN_DOMAIN_LENGTH = 3
LABEL = re.compile(r"(?!-)[a-z0-9-]{1,63}(?<!-)")


def _check_with(read: Callable[[str], object]) -> Callable[[Json], bool]:
    """Return a check that fails when the parser raises ValueError, TypeError or KeyError."""

    def check(value: Json) -> bool:
        try:
            read(value)
        except (ValueError, TypeError, KeyError):
            return False
        return True

    return check


def _cidr(value: str) -> object:
    _, _, length = str(value).partition("/")
    if not length.isdecimal():
        raise ValueError("no prefix length")
    return ipaddress.ip_network(value, strict=False)


def _ip(value: str) -> object:
    if "%" in value:
        raise ValueError("an address has no zone")
    return ipaddress.ip_address(value)


def _ip_or_cidr(value: str) -> object:
    return _cidr(value) if "/" in value else _ip(value)


#: Six groups of up to two digits with colons or hyphens, three of up to four, or no separators (as
#: netaddr accepts).
MAC = re.compile(
    r"[0-9a-f]{1,2}([:-])([0-9a-f]{1,2}\1){4}[0-9a-f]{1,2}"
    r"|[0-9a-f]{1,4}([:.-])[0-9a-f]{1,4}\3[0-9a-f]{1,4}|[0-9a-f]{11,12}",
    re.IGNORECASE,
)


def _mac(value: Json) -> bool:
    return isinstance(value, str) and MAC.fullmatch(value) is not None


def _timestamp(value: str) -> object:
    if "W" in value:
        raise ValueError("a date is written by month and day")
    return datetime.fromisoformat(value)


def _dns_name(value: Json) -> bool:
    if not isinstance(value, str):
        return False
    name = value.removesuffix(".")
    return len(name) <= MAX_NAME_LENGTH and all(LABEL.fullmatch(label) for label in name.split("."))


def _dns_domain(value: Json) -> bool:
    return _dns_name(value) and value.endswith(".")


def _rel_dns_name(value: Json) -> bool:
    fits = _dns_name(value) and len(value) <= MAX_NAME_LENGTH - MIN_DOMAIN_LENGTH
    return fits and not value.endswith(".")


#: Constraints that accept an empty string.
EMPTY_ALLOWED = frozenset(
    {
        "cron_expression",
        "dns_domain",
        "dns_name",
        "expiration",
        "json_string",
        "rel_dns_name",
        "timezone",
    }
)

CUSTOM_CHECKS: Mapping[str, Callable[[Json], bool]] = {
    "dns_domain": _dns_domain,
    "dns_name": _dns_name,
    "ip_addr": _check_with(_ip),
    "ip_or_cidr": _check_with(_ip_or_cidr),
    "iso_8601": _check_with(_timestamp),
    "json_string": _check_with(orjson.loads),
    "mac_addr": _mac,
    "net_cidr": _check_with(_cidr),
    "rel_dns_name": _rel_dns_name,
    "test_constr": lambda value: True,
}

#: Constraints that OpenStack services validate in Heat. They are accepted unless an installed
#: resource type provides a validator. Any other unknown name is refused.
_SERVICE_CONSTRAINTS = """
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
SERVICE_CONSTRAINTS = frozenset(_SERVICE_CONSTRAINTS.split())
