"""Attributes of the members of a group: stored once, and read in several ways."""

import pytest

from engine.hot.evaluation.resolver import resolve
from engine.hot.expressions.expression import FunctionCall
from engine.hot.expressions.masking import MASK
from engine.hot.expressions.member_attributes import (
    EVERY_ATTRIBUTE,
    MEMBERS_ENTRY,
    REFERENCE,
    Aggregation,
    mask_attributes,
    members_entry,
    visible_attributes,
)
from engine.hot.functions.function import FunctionError
from engine.words import Json

READS = {
    "refs": Aggregation.REFERENCES,
    "refs_map": Aggregation.REFERENCES_BY_NAME,
    "current_size": Aggregation.COUNT,
    "outputs_list": Aggregation.EACH,
    "attributes": Aggregation.EACH_BY_NAME,
}
NESTED_TYPE = members_entry([("x", "ref-x", {"ip": "10.0.0.9"})], {"refs": Aggregation.REFERENCES})
MEMBERS: list[tuple[str, Json, dict[str, Json]]] = [
    ("b", "ref-b", {"ip": "10.0.0.2", "addresses": {"net": ["1", "2"]}}),
    ("a", "ref-a", {"ip": "10.0.0.1", **NESTED_TYPE}),
]


class Stack:
    def __init__(self, attributes: dict[str, Json]) -> None:
        self._attributes = attributes

    def reference(self, resource: str) -> str:
        return resource

    def attribute(self, resource: str, attribute: str) -> Json:
        return self._attributes.get(attribute)

    def attributes(self, resource: str) -> dict[str, Json]:
        return self._attributes


def get_attr(attributes: dict[str, Json], *args: Json) -> Json:
    return resolve(FunctionCall("get_attr", "2021-04-16", ["group", *args]), Stack(attributes))


EXPRESSIONS: list[tuple[list[Json], Json]] = [
    (["refs"], ["ref-b", "ref-a"]),
    (["refs", 1], "ref-a"),
    (["refs", 2], None),
    (["refs_map"], {"b": "ref-b", "a": "ref-a"}),
    (["refs_map", "a"], "ref-a"),
    (["current_size"], 2),
    (["outputs_list", "ip"], ["10.0.0.2", "10.0.0.1"]),
    (["outputs_list", "addresses", "net", 1], ["2", None]),
    (["attributes", "ip"], {"b": "10.0.0.2", "a": "10.0.0.1"}),
    (["attributes"], None),
    (["ip"], ["10.0.0.2", "10.0.0.1"]),
    (["addresses", "net", 0], ["1", None]),
    (["resource.a"], "ref-a"),
    (["resource.a.ip"], "10.0.0.1"),
    (["resource.a", "ip"], "10.0.0.1"),
    (["resource.b.addresses", "net"], ["1", "2"]),
    (["resource.a.refs", 0], "ref-x"),
    (["resource.a.resource.x.ip"], "10.0.0.9"),
    (["own"], "as it stands"),
]


@pytest.mark.parametrize(("path", "value"), EXPRESSIONS, ids=[str(path) for path, _ in EXPRESSIONS])
def test_every_way_to_read_attributes_of_members(path: list[Json], value: Json) -> None:
    attributes = {"own": "as it stands", **members_entry(MEMBERS, READS, of_each=True)}
    assert get_attr(attributes, *path) == value


def test_a_member_that_does_not_exist_is_an_error() -> None:
    attributes = members_entry(MEMBERS, READS, of_each=True)
    with pytest.raises(FunctionError, match='there is no member "c" among the 2 of the resource'):
        get_attr(attributes, "resource.c.ip")
    numbered = members_entry(MEMBERS, READS, by_index=True)
    for index in ("2", "a"):
        with pytest.raises(FunctionError, match=f"no member with the index {index}; .* has 2"):
            get_attr(numbered, f"resource.{index}")


@pytest.mark.parametrize(("named", "value"), [("0", "ref-b"), ("1", "ref-a")])
def test_members_with_generated_names_are_read_by_position(named: str, value: Json) -> None:
    assert get_attr(members_entry(MEMBERS, READS, by_index=True), f"resource.{named}") == value


def test_an_unknown_attribute_of_a_group_without_members_is_null() -> None:
    assert get_attr(members_entry(MEMBERS, READS), "ip") is None


def test_the_groups_own_attribute_has_priority_over_those_of_members() -> None:
    assert get_attr({"refs": "mine", **members_entry(MEMBERS, READS)}, "refs") == "mine"


def test_users_see_the_attributes_of_members_and_not_the_stored_entry() -> None:
    attributes = {"own": 1, **members_entry(MEMBERS, READS, of_each=True)}
    seen = {"own": 1, "refs": ["ref-b", "ref-a"], "refs_map": {"b": "ref-b", "a": "ref-a"}}
    assert visible_attributes(attributes) == get_attr(attributes) == {**seen, "current_size": 2}
    assert MEMBERS_ENTRY not in visible_attributes(attributes)


def test_secret_attributes_of_members_are_masked_in_every_read() -> None:
    attributes = members_entry(MEMBERS, READS, of_each=True, secret={"a": ["ip", REFERENCE]})
    seen = mask_attributes(attributes, ())
    assert visible_attributes(seen)["refs"] == ["ref-b", MASK]
    assert visible_attributes(seen)["current_size"] == 2
    assert get_attr(seen, "ip") == ["10.0.0.2", MASK]
    assert get_attr(seen, "resource.a.ip") == get_attr(seen, "resource.a") == MASK
    assert get_attr(seen, "outputs_list", "ip") == ["10.0.0.2", MASK]
    assert visible_attributes(attributes)["refs"] == ["ref-b", "ref-a"]


def test_a_path_into_a_masked_value_is_masked() -> None:
    attributes = members_entry(MEMBERS, READS, secret={"b": ["addresses"]})
    assert get_attr(mask_attributes(attributes, ()), "resource.b.addresses", "net", 0) == MASK


def test_all_attributes_of_a_group_include_those_of_members() -> None:
    seen = mask_attributes({"own": 1, **members_entry(MEMBERS, READS)}, [EVERY_ATTRIBUTE])
    assert visible_attributes(seen) == {
        "own": MASK, "refs": [MASK, MASK], "refs_map": {"b": MASK, "a": MASK}, "current_size": 2,
    }  # fmt: skip


@pytest.mark.parametrize("secret", [["a"], True])
def test_an_entry_of_an_earlier_version_masks_all_of_a_secret_member(secret: Json) -> None:
    attributes = {"value": "x", **members_entry(MEMBERS, READS)}
    attributes[MEMBERS_ENTRY] = {**attributes[MEMBERS_ENTRY], "secret": secret, "hides": ["value"]}
    del attributes[MEMBERS_ENTRY]["secrets"]
    seen = visible_attributes(mask_attributes(attributes, ()))
    assert seen["value"] == MASK
    assert seen["refs"] == ["ref-b" if secret is not True else MASK, MASK]
