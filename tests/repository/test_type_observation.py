"""The reference says how resource types are observed."""

from collections.abc import Mapping, Sequence
from typing import Any

import pytest

from engine.hot.schema.properties import fill_defaults
from engine.hot.schema.type_schema import TypeSchema
from engine.types.contract import Call, Done, Outcome, ResourceType
from engine.types.observation import Observation
from engine.types.observed_list import ObservedList
from engine.words import ResourceId
from tools.type_observation import (
    ALONE,
    BY_CHECK,
    BY_LIST,
    BY_PROPERTIES,
    EACH,
    NOT,
    observation_of,
)
from tools.type_reference import properties_page, types


class Unobserved(ResourceType):
    schema = TypeSchema("Test::Thing", properties={}, attributes={})

    def create(self, call: Call) -> Outcome:
        return Done(None)

    def delete(self, call: Call) -> Outcome:
        return Done(None)


class Checked(Unobserved):
    check_observes = True


class Listed(Unobserved):
    def observation_key(self, call: Call) -> str | None:
        return "things" if call.physical_id else None

    def observe(self, calls: Sequence[Call]) -> Mapping[ResourceId, Observation]:
        return {}


class ListedPageByPage(Unobserved):
    def observation_key(self, call: Call) -> str | None:
        return "things" if call.physical_id else None

    def observed_list(self, call: Call) -> ObservedList | None:
        return None


class Alone(Listed):
    def observation_key(self, call: Call) -> str | None:
        return str(call.resource_id)


@pytest.mark.parametrize(
    ("kind", "expected"),
    [
        (Unobserved, NOT),
        (Checked, BY_CHECK),
        (Listed, BY_LIST),
        (ListedPageByPage, BY_LIST),
        (Alone, ALONE),
    ],
    ids=["unobserved", "checked", "listed", "listed page by page", "alone"],
)
def test_it_is_what_the_type_says(kind: type[ResourceType], expected: str) -> None:
    assert observation_of("Test::Thing", kind()) == expected


def test_each_type_is_in_the_reference_with_how_it_is_observed() -> None:
    known, page = types(), properties_page()
    for name, expected in {
        "OS::Neutron::Port": BY_LIST, "AWS::EC2::VPC": BY_LIST, "OS::Barbican::Secret": ALONE,
        "OS::Barbican::Order": NOT, "OS::Neutron::QoSDscpMarkingRule": NOT,
        "OS::Heat::ResourceGroup": NOT,
    }.items():  # fmt: skip
        assert observation_of(name, known[name]) == expected
        assert f"\n## {name}\n\n{known[name].schema.description}\n\nObserved: {expected}." in page


def test_types_with_a_description_of_their_own_are_observed() -> None:
    known = types()
    special = {*BY_PROPERTIES, *(name for name in known if name.startswith(EACH))}
    for name in special:
        kind: Any = type(known[name])
        if observation_of(name, known[name]) != NOT:
            own = (kind.observe, kind.observed_list)
            assert own != (ResourceType.observe, ResourceType.observed_list), name


def test_no_built_in_type_is_observed_by_its_check() -> None:
    """Each check that asks a provider needs the credential of a request, which an observation has
    not; the others read records of Headgate."""
    unobserved = {name: one for name, one in types().items() if observation_of(name, one) == NOT}
    assert [name for name, one in types().items() if one.check_observes] == []
    # As for templates, constraints of its nested template are checked with the credential.
    assert unobserved.pop("AWS::CloudFormation::Stack").uses_credential
    assert {name for name, one in unobserved.items() if not one.uses_credential} == {
        name
        for name in unobserved
        if name.startswith(("OS::Heat::", "AWS::AutoScaling::", "AWS::CloudFormation::"))
    } | {"AWS::EC2::InternetGateway"}


def test_built_in_types_tell_which_paths_they_compare() -> None:
    """Paths to ignore are checked with them; also with values that are not known yet."""
    for name, one in types().items():
        assert one.observed_paths(fill_defaults(one.schema, {})) is not None, name
        unknown = dict.fromkeys(one.schema.properties)
        if name not in ("Headgate::HTTP", "OS::Heat::Stack"):  # the paths are keys of a value
            assert one.observed_paths(fill_defaults(one.schema, unknown)) is not None, name
    port, address = types()["AWS::EC2::NetworkInterface"], {"SubnetId": "s", "GroupSet": None}
    assert set(port.observed_paths(address) or ()) == {"SubnetId", "GroupSet"}


@pytest.mark.parametrize(
    ("name", "properties"),
    [("Headgate::HTTP", {"compare": None}), ("OS::Heat::Stack", {"parameters": None})],
)
def test_paths_in_a_value_that_is_not_known_are_not_known(
    name: str, properties: Mapping[str, Any]
) -> None:
    known = types()[name]
    assert known.observed_paths(properties) is None
    assert known.observed_paths({}) == []


def test_types_without_an_observation_of_their_own_compare_nothing() -> None:
    kinds = (Unobserved, Checked, Listed, ListedPageByPage)
    assert [kind().observed_paths({}) for kind in kinds] == [(), (), None, None]
