"""Types that come after other resources of their template without a reference."""

import json
import sys
from collections.abc import Callable, Mapping
from functools import partial
from types import FrameType
from typing import Any

import pytest

from engine.hot.definition import implicit_dependencies
from engine.hot.nested import nested_templates
from engine.hot.nested.nested_templates import MAX_IMPLICIT
from engine.hot.schema.type_schema import ImplicitDependency, Kind, Property, TypeSchema
from engine.words import Json
from tests.unit.hot.hot_support import TYPES, defined, faults, thing

PORT = TypeSchema(
    "Test::Port",
    {"network": Property(Kind.STRING), "networks": Property(Kind.LIST)},
    follows=(
        ImplicitDependency("Test::Subnet", "network", "network"),
        ImplicitDependency("Test::Subnet", "networks.*.id", "network"),
        ImplicitDependency("Test::Router"),
    ),
)
VALUES = (ImplicitDependency("Test::Subnet", "network", "network"),)
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


@pytest.mark.parametrize(
    ("port", "subnet", "names"),
    [
        ({"network": {"a": [1, NET]}}, {"network": {"a": [1, NET]}}, {"net", "subnet"}),
        ({"network": {"a": [1, NET]}}, {"network": {"a": [2, NET]}}, {"net"}),
        ({"network": ["a"]}, {"network": {"a": None}}, set()),
    ],
)
def test_values_that_cannot_be_keys_are_compared(port: Json, subnet: Json, names: set[str]) -> None:
    free = {"network": Property(Kind.ANY)}
    types = KNOWN | {
        "Test::Port": TypeSchema("Test::Port", free, follows=PORT.follows),
        "Test::Subnet": TypeSchema("Test::Subnet", free),
    }
    resources = {"net": thing(), "port": one("Port", **port), "subnet": one("Subnet", **subnet)}
    found = defined({"resources": resources}, types=types).resources
    assert set(found["port"].requires) == names


def test_the_first_of_resources_that_follow_each_other_comes_last() -> None:
    routers = {f"r{n}": one("Router", of=ref(f"p{n}")) for n in range(3)}
    resources = {f"p{n}": one("Port") for n in range(3)} | routers
    found = defined({"resources": resources}, types=KNOWN).resources
    assert [set(found[f"p{n}"].requires) for n in range(3)] == [{"r1", "r2"}, {"r2"}, set()]


def after(name: str, **resource: Json) -> Json:
    return {**resource, "depends_on": name}


MANY = 4_000


def steps_of(run: Callable[[], object]) -> int:
    """The lines of implicit_dependencies.py that a call executes."""
    count, before = 0, sys.gettrace()

    def trace(frame: FrameType, event: str, arg: object) -> Any:
        nonlocal count
        if frame.f_code.co_filename != implicit_dependencies.__file__:
            return None
        count += event == "line"
        return trace

    sys.settrace(trace)
    try:
        run()
    finally:
        sys.settrace(before)
    return count


def chain(size: int) -> dict[str, Json]:
    """Ports, each after the previous one, and a router after the last."""
    ports = {f"p{n}": after(f"p{n - 1}", **one("Port")) for n in range(1, size)}
    last = after(f"p{size - 1}", **one("Router"))
    return {"p0": one("Port"), **ports, "last": last, "free": one("Router")}


def pairs(size: int) -> dict[str, Json]:
    """Ports and subnets of as many networks."""
    ports = {f"p{n}": one("Port", network=f"n{n}") for n in range(size)}
    return ports | {f"s{n}": one("Subnet", network=f"n{n}") for n in range(size)}


def joined(size: int) -> dict[str, Json]:
    """Routers that all require all ports."""
    ports = {f"p{n}": one("Port") for n in range(size)}
    join = {"type": "Test::Thing", "depends_on": [*ports]}
    return {**ports, "join": join, **{f"r{n}": after("join", **one("Router")) for n in range(size)}}


@pytest.mark.parametrize("build", [chain, pairs, joined])
def test_the_cost_grows_with_the_resources(build: Callable[[int], dict[str, Json]]) -> None:
    few, many = (
        steps_of(partial(defined, {"resources": build(size)}, types=KNOWN)) for size in (100, 400)
    )
    assert many < 5 * few


def test_a_long_chain_is_accepted() -> None:
    found = defined({"resources": chain(MANY)}, types=KNOWN).resources
    assert found["p0"].requires == {"free"}
    assert found[f"p{MANY - 1}"].requires == {"free", f"p{MANY - 2}"}


def test_many_pairs_are_accepted() -> None:
    types = KNOWN | {"Test::Port": TypeSchema("Test::Port", PORT.properties, follows=VALUES)}
    found = defined({"resources": pairs(MANY)}, types=types).resources
    assert all(found[f"p{n}"].requires == {f"s{n}"} for n in range(MANY))


def test_pairs_that_add_no_dependency_are_accepted() -> None:
    found = defined({"resources": joined(MANY)}, types=KNOWN).resources
    assert not any(found[f"p{n}"].requires for n in range(MANY))


def test_too_many_are_refused() -> None:
    ports = {f"p{n}": one("Port") for n in range(MANY)}
    routers = {f"r{n}": one("Router") for n in range(MANY)}
    (found,) = faults({"resources": ports | routers}, types=KNOWN)
    assert (found.place, found.code) == ("resources.p50", "RequestLimitExceeded")
    assert f"more than {MAX_IMPLICIT} dependencies" in found.reason
    assert f'"Test::Port" adds {MANY} to this resource' in found.reason
    assert found.remedy.startswith("Divide these resources among nested stacks")


def test_nested_stacks_count_together(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(nested_templates, "MAX_IMPLICIT", 5)
    nested = json.dumps({
        "heat_template_version": "2021-04-16",
        "parameters": {"p": {"type": "string"}},
        "resources": {"port": one("Port"), "a": one("Router"), "b": one("Router")},
    })  # fmt: skip
    stacks = {f"s{n}": {"type": "n.yaml", "properties": {"p": str(n)}} for n in range(3)}
    files = {"n.yaml": nested}
    defined({"resources": {"s0": stacks["s0"], "s1": stacks["s1"]}}, files=files, types=KNOWN)
    (found,) = faults({"resources": stacks}, files=files, types=KNOWN)
    assert found.place == "resources.s2<n.yaml>.resources.port"


def test_a_search_that_takes_too_many_steps_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(implicit_dependencies, "MAX_STEPS", 5)
    ports = {f"p{n}": one("Port") for n in range(9)}
    routers = {f"r{n}": one("Router", of=ref(f"p{n}")) for n in range(9)}
    (found,) = faults({"resources": ports | routers}, types=KNOWN)
    assert "too many to order" in found.reason
    assert found.code == "RequestLimitExceeded"
