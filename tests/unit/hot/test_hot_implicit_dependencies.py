"""Types that come after other resources of their template without a reference."""

from collections.abc import Mapping

import pytest

from engine.hot.schema.type_schema import ImplicitDependency, Kind, Property, TypeSchema
from engine.words import Json
from tests.unit.hot.hot_support import TYPES, defined, thing

PORT = TypeSchema(
    "Test::Port",
    {"network": Property(Kind.STRING), "networks": Property(Kind.LIST)},
    follows=(
        ImplicitDependency("Test::Subnet", "network", "network"),
        ImplicitDependency("Test::Subnet", "networks.*.id", "network"),
        ImplicitDependency("Test::Router"),
    ),
)
SUBNET = TypeSchema("Test::Subnet", {"network": Property(Kind.STRING)})
ROUTER = TypeSchema("Test::Router", {"of": Property(Kind.STRING)})
LOOP = TypeSchema("Test::Loop", follows=(ImplicitDependency("Test::Port"),))
PORT_AFTER = TypeSchema("Test::Port", follows=(ImplicitDependency("Test::Loop"),))
KNOWN = TYPES | {one.name: one for one in (PORT, SUBNET, ROUTER, LOOP)}


def one(kind: str, **properties: Json) -> Json:
    return {"type": f"Test::{kind}", "properties": properties}


def required(resources: Mapping[str, Json], name: str = "port") -> set[str]:
    return set(defined({"resources": dict(resources)}, types=KNOWN).resources[name].requires)


NET: Json = {"get_resource": "net"}


@pytest.mark.parametrize(
    ("port", "subnet", "names"),
    [
        ({"network": NET}, {"network": NET}, {"net", "subnet"}),
        ({"network": "a"}, {"network": "a"}, {"subnet"}),
        ({"network": "a"}, {"network": "b"}, set()),
        ({"network": NET}, {"network": "a"}, {"net"}),
        ({}, {}, set()),
        ({"networks": [{"id": "b"}, {"id": NET}]}, {"network": NET}, {"net", "subnet"}),
    ],
)
def test_the_same_value_makes_a_dependency(port: Json, subnet: Json, names: set[str]) -> None:
    resources = {"net": thing(), "port": one("Port", **port), "subnet": one("Subnet", **subnet)}
    assert required(resources) == names


def test_without_properties_all_resources_of_the_type_come_first() -> None:
    assert required({"port": one("Port"), "a": one("Router"), "b": one("Router")}) == {"a", "b"}


def test_a_resource_that_requires_it_does_not_come_first() -> None:
    behind = {"a": thing(value={"get_resource": "port"}), "b": one("Router", of=ref("a"))}
    assert required({"port": one("Port"), **behind, "c": one("Router")}) == {"c"}


def test_two_ports_behind_each_other_make_no_cycle() -> None:
    router = one("Router", of=ref("first"))
    resources = {"first": one("Port"), "router": router, "second": one("Port")}
    assert required(resources, "first") == set()
    assert required(resources, "second") == {"router"}


def test_types_that_follow_each_other_make_no_cycle() -> None:
    types = KNOWN | {"Test::Port": PORT_AFTER}
    found = defined({"resources": {"a": one("Loop"), "b": one("Port")}}, types=types).resources
    assert [set(found[name].requires) for name in "ab"] == [{"b"}, set()]


def ref(name: str) -> Json:
    return {"get_resource": name}
