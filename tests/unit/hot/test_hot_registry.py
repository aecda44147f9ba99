"""The resource registry: which entry applies to a type, and where it leads."""

import pytest

from engine.errors import Invalid
from engine.hot.environment.environment import parse_environment
from engine.hot.environment.registry import CircularAlias, ResourceRegistry
from engine.words import Json
from tests.unit.hot.hot_support import faults

TYPES = frozenset({"OS::Heat::None", "OS::Heat::Random", "OS::Nova::Server", "C", "X::Thing"})


def registry(
    user: dict[str, Json] | None = None, operator: dict[str, Json] | None = None
) -> ResourceRegistry:
    operator_registry = parse_environment(
        {"resource_registry": operator or {}}, operator=None
    ).registry
    return parse_environment({"resource_registry": user or {}}, operator_registry).registry


def end(found: ResourceRegistry, name: str, resource: str = "r") -> str | None:
    led = found.find(name, resource, TYPES)
    return led.type if led else None


@pytest.mark.parametrize(
    ("mapped", "name", "type_"),
    [
        ({}, "C", "C"),
        ({}, "Nowhere", None),
        ({"base_url": "file:///x", "A": "B", "B": "C"}, "A", "C"),
        ({"OS::Long::*": "X::*"}, "OS::Long::Thing", "X::Thing"),
        ({"OS::*": "OS::Heat::None"}, "OS::Nova::Server", "OS::Heat::None"),
        ({"OS::*": "OS::Heat::None"}, "OS::Heat::None", "OS::Heat::None"),
        # Entries are tried in alphabetical order, and a star comes early.
        (
            {"OS::*": "OS::Heat::None", "OS::Nova::Server": "C"},
            "OS::Nova::Server",
            "OS::Heat::None",
        ),
        ({"OS::*": "OS::Heat::None", "OS::Nova::*": "C"}, "OS::Nova::Server", "OS::Heat::None"),
        ({"C*": "OS::Heat::None", "C": "X::Thing"}, "C", "X::Thing"),
        # An entry without a target is ignored.
        ({"OS::Heat::Random": "Nope"}, "OS::Heat::Random", "OS::Heat::Random"),
        ({"OS::*": "Nope::*", "OS::Nova::*": "C"}, "OS::Nova::Server", "C"),
        ({"A": "B"}, "A", None),
        # An entry that maps to itself has no effect.
        ({"C": "C"}, "C", "C"),
        ({"OS::*": "OS::*"}, "OS::Heat::None", "OS::Heat::None"),
        # A template ends the search.
        ({"A": "B", "B": "web.yaml"}, "A", "web.yaml"),
        ({"web.yaml": "C"}, "web.yaml", "web.yaml"),
        ({"A": "https://t.example.org/web.template"}, "A", "https://t.example.org/web.template"),
        ({"resources": {"r": {"C": "OS::Heat::None"}}}, "C", "OS::Heat::None"),
        ({"resources": {"other": {"C": "OS::Heat::None"}}}, "C", "C"),
        ({"resources": {"*": {"C": "OS::Heat::None"}}}, "C", "C"),  # no globs for types
        ({"resources": {"r": {"C": "X::Thing"}}, "C": "OS::Heat::None"}, "C", "X::Thing"),
        ({"resources": {"r": {"A": "B"}}, "B": "C"}, "A", "C"),
        ({"resources": {"r": {"x": {"C": "OS::Heat::None"}}}}, "C", "C"),  # of a nested stack
    ],
)
def test_the_target_of_a_type_name(mapped: dict[str, Json], name: str, type_: str | None) -> None:
    assert end(registry(mapped), name) == type_


@pytest.mark.parametrize(
    ("user", "operator", "name", "type_"),
    [
        ({}, {"A": "C"}, "A", "C"),
        ({"A": "X::Thing"}, {"A": "C"}, "A", "X::Thing"),
        ({"A": "B"}, {"B": "C"}, "A", "C"),
        ({"Z*": "X::Thing"}, {"ZA": "C"}, "ZA", "X::Thing"),  # the user's star has priority
        ({}, {"resources": {"r": {"A": "C"}}}, "A", "C"),
        ({"A": "X::Thing"}, {"resources": {"r": {"A": "C"}}}, "A", "X::Thing"),
        # An operator's chain stays in the operator's registry.
        ({"B": "X::Thing"}, {"A": "B", "B": "C"}, "A", "C"),
        # The user's null removes a mapping of the operator, and no type.
        ({"A": None}, {"A": "C"}, "A", None),
        ({"A*": None}, {"A::B": "C"}, "A::B", None),
        ({"OS::Heat::None": None}, {"OS::Heat::None": "C"}, "OS::Heat::None", "OS::Heat::None"),
        ({"A*": None, "A::B": "X::Thing"}, {"A::B": "C"}, "A::B", "X::Thing"),
        ({"B": None}, {"A": "B", "B": "C"}, "A", "C"),  # the operator's entry for B stays
        # The operator's null removes types.
        ({}, {"OS::Heat::*": None}, "OS::Heat::None", None),
        ({"A": "OS::Heat::None"}, {"OS::Heat::*": None}, "A", None),
        ({}, {"OS::Heat::*": None, "OS::Heat::None": "C"}, "OS::Heat::None", "C"),
    ],
)
def test_entries_of_the_user_have_priority_over_the_operators(
    user: dict[str, Json], operator: dict[str, Json], name: str, type_: str | None
) -> None:
    assert end(registry(user, operator), name) == type_


def test_entries_of_a_resource_do_not_apply_to_others() -> None:
    found = registry({"resources": {"a": {"C": "OS::Heat::None"}}})
    assert [end(found, "C", one) for one in ("b", "a", "b")] == ["C", "OS::Heat::None", "C"]


def test_nulls_apply_in_any_order_of_keys() -> None:
    one: dict[str, Json] = {"A::B": "C", "A::*": None}
    assert end(registry(one), "A::B") == end(registry(dict(reversed(one.items()))), "A::B") == "C"


LONG = "Y" * 4096
CHAIN = {f"A{number:03}": f"A{number + 1:03}" for number in range(40)}


@pytest.mark.parametrize(
    ("mapped", "place", "chain"),
    [
        ({"A": "B", "B": "A"}, "A", "A -> B -> A"),
        ({"Z": "A", "A": "B", "B": "D", "D": "A"}, "Z", "A -> B -> D -> A"),
        ({"X::*": "Y::*", "Y::*": "X::*"}, "X::*", "X::* -> Y::* -> X::*"),
        ({"X*": "XX*"}, "X*", "X* -> XX* -> XXX* -> XXXX* -> ..."),
        ({"X*": f"X{LONG}*"}, "X*", f"X* -> X{LONG[:99]} -> ..."),
        (CHAIN, "A000", "A000 -> A001 -> A002 -> A003 -> ..."),
    ],
    ids=["two", "led to", "stars", "growing", "long", "line"],
)
def test_cycles_are_refused(mapped: dict[str, Json], place: str, chain: str) -> None:
    with pytest.raises(Invalid) as caught:
        registry(mapped)
    finding = caught.value.findings[0]
    assert finding.place == f"resource_registry.{place}"
    assert finding.reason == f"Circular aliases: {chain}"


def test_a_cycle_of_one_resource_is_found_when_it_is_resolved() -> None:
    with pytest.raises(CircularAlias):
        end(registry({"resources": {"r": {"X": "Y", "Y": "X"}}}), "X")


def test_many_entries_are_parsed_and_searched() -> None:
    many: dict[str, Json] = {f"A{number}::*": "C" for number in range(20_000)}
    found = registry(many)
    assert end(found, "A19999::x") == "C" and end(found, "B") is None


def test_the_entries_that_lead_to_a_template_are_returned() -> None:
    found = registry({"C": "web.yaml", "A": "C"}, {"C": "X::Thing"})
    led = found.find("A", "r", TYPES)
    assert led is not None and led.by is not None and led.by.path == ("C",)
    operator_registry = found.find("C", "r", TYPES, without=led.by)
    assert (
        operator_registry is not None
        and operator_registry.type == "X::Thing"
        and operator_registry.by is not None
    )
    assert operator_registry.by.of_operator
    past = (
        found.operator.find("C", "r", TYPES, without=operator_registry.by)
        if found.operator
        else None
    )
    assert past is not None and (past.type, past.by) == ("C", None)


def test_a_mapping_to_an_unknown_type_is_reported_with_its_target() -> None:
    mapped = {"resource_registry": {"My::Own": "Test::Thign"}}
    (finding,) = faults({"resources": {"a": {"type": "My::Own"}}}, mapped)
    assert str(finding) == (
        "resources.a.type: The Resource Type (My::Own) could not be found. "
        'It is mapped to "Test::Thign", which is not a resource type. Did you mean "Test::Thing"?'
    )


def test_restricted_actions_by_glob() -> None:
    resources = {
        "db_*": {"restricted_actions": "replace"},
        "*": {"restricted_actions": ["update"], "in": {"restricted_actions": "replace"}},
    }
    found = registry({"resources": resources})
    assert found.restrictions_of("db_1") == {"replace", "update"} and found.restrictions_of(
        "in"
    ) == {"update"}
