"""Custom constraints that need no external service, and those that are built in."""

from datetime import UTC, datetime

import pytest

from engine.hot.schema.custom_constraints import CUSTOM_CHECKS
from engine.types.custom_constraints import BUILT_IN, ValidationContext
from engine.words import Json
from tests.unit.hot.hot_support import defined, faults

NOON = datetime(2026, 1, 1, 12, tzinfo=UTC)
VALID_VALUES: dict[str, list[Json]] = {
    "dns_name": ["a", "host.example.com", "host.example.com.", "x-1", "a" * 63],
    "dns_domain": ["example.com.", "com."],
    "rel_dns_name": ["www", "www.dev"],
    "ip_addr": ["10.0.0.1", "::1"],
    "ip_or_cidr": ["10.0.0.1", "10.0.0.0/8"],
    "net_cidr": ["10.0.0.0/24", "2001:db8::/32"],
    "mac_addr": [
        "aa:bb:cc:dd:ee:ff",
        "AABBCCDDEEFF",
        "aa-bb-cc-dd-ee-ff",
        "0011.2233.4455",
        "0:1:2:3:4:5",
    ],
    "iso_8601": ["2020-01-01T00:00:00Z"],
    "json_string": ["{}", "[1]"],
    "test_constr": ["anything"],
    "cron_expression": ["0 5 * * *", "*/5 * * * 1-5", "0 5 * * * 30"],
    "expiration": ["2026-01-01T12:00:01Z", "2026-01-01T12:00:01", "2099-01-01"],
    "timezone": ["Europe/Berlin", "UTC"],
}
INVALID_VALUES: dict[str, list[Json]] = {
    "dns_name": ["-a", "a-", "a b", "a..b", "A", "a" * 64, ".".join(["a" * 60] * 5), "a_b", 5],
    "dns_domain": ["example.com", "-a.", 5],
    "rel_dns_name": ["www.", ".".join(["a" * 60] * 4) + ".abcdefghijkl", 5],
    "ip_addr": ["10.0.0.256", "host", 5, "fe80::1%eth0"],
    "ip_or_cidr": ["10.0.0.0/33", "x"],
    "net_cidr": ["10.0.0.0", "10.0.0.0/33", "10.0.0.0/255.0.0.0", 5],
    "mac_addr": ["aa:bb", "aa-bb:cc-dd:ee-ff", "gg:bb:cc:dd:ee:ff", 5],
    "iso_8601": ["yesterday", 5, "2020-W01"],
    "json_string": ["{", 5],
    "cron_expression": ["0 25 * * *", "0 5", "", 5, "0 5 * * * * * *"],
    "expiration": ["2026-01-01T12:00:00Z", "never", 5],
    "timezone": ["Mars/Olympus", "../etc/passwd", "/etc/passwd", 5, "x" * 10_000],
}


def is_valid(name: str, value: Json) -> bool:
    if name in CUSTOM_CHECKS:
        return CUSTOM_CHECKS[name](value)
    ((constraint),) = [one for one in BUILT_IN if one.name == name]
    return constraint.validate(value, ValidationContext("p", NOON)) is None


@pytest.mark.parametrize(("name", "value"), [(n, v) for n, vs in VALID_VALUES.items() for v in vs])
def test_valid_values_of_custom_constraints(name: str, value: Json) -> None:
    assert is_valid(name, value)


@pytest.mark.parametrize(
    ("name", "value"), [(n, v) for n, vs in INVALID_VALUES.items() for v in vs]
)
def test_invalid_values_of_custom_constraints(name: str, value: Json) -> None:
    assert not is_valid(name, value)


def test_every_custom_constraint_has_test_values() -> None:
    assert VALID_VALUES.keys() == CUSTOM_CHECKS.keys() | {one.name for one in BUILT_IN}


def constrained(name: Json) -> Json:
    rule = {"custom_constraint": name}
    return {"parameters": {"p": {"type": "string", "default": "x", "constraints": [rule]}}}


def test_an_unknown_name_is_refused_with_the_nearest_known_one() -> None:
    (found,) = faults(constrained("nova.flavour"))
    assert found.place == "parameters.p.constraints"
    assert 'no custom constraint "nova.flavour"' in found.reason
    assert "nova.flavor" in found.remedy


def test_the_name_of_a_custom_constraint_must_be_a_text() -> None:
    (found,) = faults(constrained(["nova.flavor"]))
    assert "must be a name" in found.reason


def test_names_of_openstack_and_of_plugins_are_accepted() -> None:
    defined(constrained("nova.flavor"))
    defined(constrained("acme.owner"), validators={"acme.owner"})
