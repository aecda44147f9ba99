"""Heat's custom constraints that need no external service, by name.

engine/types/custom_constraints.py describes constraints with external validators.
"""

import ipaddress
import re
from collections.abc import Callable, Mapping
from datetime import datetime

import orjson

from engine.hot.syntax.json_text import why_invalid
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


def _dns_reason(value: Json) -> str:
    """Return why a value is no name, as Heat's."""
    name = str(value).removesuffix(".")
    if len(name) > MAX_NAME_LENGTH:
        return f"'{value}' exceeds the {MAX_NAME_LENGTH} character FQDN limit"
    label = next((one for one in name.split(".") if not LABEL.fullmatch(one)), "")
    rule = "must be 1-63 characters long, each of which can only be alphanumeric or a hyphen."
    if label.startswith("-") or label.endswith("-"):
        rule = "must not start or end with a hyphen."
    reason = f"Name '{label}' {rule}" if label else "Encountered an empty component."
    return f"'{value}' not in valid format. Reason: {reason}"


def _subnet_reason(value: Json) -> str:
    return f"'{value}' is not a valid IP subnet"


def _domain_reason(value: Json) -> str:
    return f"'{value}' must end with '.'." if _dns_name(value) else _dns_reason(value)


def _json_reason(value: Json) -> str:
    return f"JSON string {value} is invalid: {why_invalid(str(value)) or 'it is not JSON'}"


def _relative_reason(value: Json) -> str:
    if _dns_name(value) and value.endswith("."):
        return f"'{value}' is a FQDN. It should be a relative domain name."
    return _dns_reason(value)


def _address_or_subnet_reason(value: Json) -> str:
    return _subnet_reason(value) if "/" in str(value) else f"'{value}' is not a valid IP address"


#: What Heat writes about an invalid value after quoting it, by name of the constraint.
REASONS: Mapping[str, Callable[[Json], str]] = {
    "dns_domain": _domain_reason,
    "dns_name": _dns_reason,
    "ip_addr": lambda _: "Invalid IP address",
    "ip_or_cidr": _address_or_subnet_reason,
    "iso_8601": lambda _: "",
    "json_string": _json_reason,
    "mac_addr": lambda _: "Invalid MAC address.",
    "net_cidr": _subnet_reason,
    "rel_dns_name": _relative_reason,
}
#: What to do about an invalid value, by name of the constraint.
REMEDIES: Mapping[str, str] = {
    "cron_expression": "Write five fields, such as 0 5 * * *.",
    "dns_domain": "Write a domain that ends with a dot, such as example.com.",
    "dns_name": "Write a name such as host.example.com.",
    "expiration": "Write a time in the future, such as 2030-01-31T12:00:00Z.",
    "ip_addr": "Write an address such as 192.0.2.1 or 2001:db8::1.",
    "ip_or_cidr": "Write an address such as 192.0.2.1, or a subnet such as 192.0.2.0/24.",
    "iso_8601": "Write a time such as 2030-01-31T12:00:00Z.",
    "json_string": "Write JSON.",
    "mac_addr": "Write an address such as fa:16:3e:00:00:01.",
    "net_cidr": "Write a subnet such as 192.0.2.0/24.",
    "openstack.region": "Write the ID of a region in your service catalog.",
    "rel_dns_name": "Write a name without a dot at its end, such as www.",
    "timezone": "Write a name such as Europe/Berlin.",
}

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
