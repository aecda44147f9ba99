"""Attributes of what is inside of a resource: kept once, read in many ways."""

import pytest

from engine.hot.evaluation.resolver import resolve
from engine.hot.expressions.expression import Call
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
from engine.words import Json

WAYS = {
    "refs": Aggregation.REFERENCES,
    "refs_map": Aggregation.REFERENCES_BY_NAME,
    "current_size": Aggregation.COUNT,
    "outputs_list": Aggregation.EACH,
    "attributes": Aggregation.EACH_BY_NAME,
}
WITHIN = members_entry([("x", "ref-x", {"ip": "10.0.0.9"})], {"refs": Aggregation.REFERENCES})
MEMBERS: list[tuple[str, Json, dict[str, Json]]] = [
    ("b", "ref-b", {"ip": "10.0.0.2", "addresses": {"net": ["1", "2"]}}),
    ("a", "ref-a", {"ip": "10.0.0.1", **WITHIN}),
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
    return resolve(Call("get_attr", "2021-04-16", ["group", *args]), Stack(attributes))


OF_ONE_GROUP: list[tuple[list[Json], Json]] = [
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
    (["resource.c.ip"], None),
    (["own"], "as it stands"),
]


@pytest.mark.parametrize(
    ("path", "value"), OF_ONE_GROUP, ids=[str(path) for path, _ in OF_ONE_GROUP]
)
def test_every_way_to_read_what_is_inside(path: list[Json], value: Json) -> None:
    attributes = {"own": "as it stands", **members_entry(MEMBERS, WAYS, of_each=True)}
    assert get_attr(attributes, *path) == value


@pytest.mark.parametrize(
    ("named", "value"), [("0", "ref-b"), ("1", "ref-a"), ("2", None), ("a", None)]
)
def test_members_without_names_anybody_knows_are_read_by_their_place(
    named: str, value: Json
) -> None:
    assert get_attr(members_entry(MEMBERS, WAYS, by_index=True), f"resource.{named}") == value


def test_where_nothing_is_said_of_each_member_an_unknown_attribute_is_null() -> None:
    assert get_attr(members_entry(MEMBERS, WAYS), "ip") is None


def test_the_type_s_own_attribute_stands_before_what_members_make() -> None:
    assert get_attr({"refs": "mine", **members_entry(MEMBERS, WAYS)}, "refs") == "mine"


def test_people_see_what_members_make_and_not_the_entry() -> None:
    attributes = {"own": 1, **members_entry(MEMBERS, WAYS, of_each=True)}
    seen = {"own": 1, "refs": ["ref-b", "ref-a"], "refs_map": {"b": "ref-b", "a": "ref-a"}}
    assert visible_attributes(attributes) == get_attr(attributes) == {**seen, "current_size": 2}
    assert MEMBERS_ENTRY not in visible_attributes(attributes)


def test_what_is_secret_of_a_member_is_masked_however_it_is_read() -> None:
    attributes = members_entry(MEMBERS, WAYS, of_each=True, secret={"a": ["ip", REFERENCE]})
    seen = mask_attributes(attributes, ())
    assert visible_attributes(seen)["refs"] == ["ref-b", MASK]
    assert visible_attributes(seen)["current_size"] == 2
    assert get_attr(seen, "ip") == ["10.0.0.2", MASK]
    assert get_attr(seen, "resource.a.ip") == get_attr(seen, "resource.a") == MASK
    assert get_attr(seen, "outputs_list", "ip") == ["10.0.0.2", MASK]
    assert visible_attributes(attributes)["refs"] == ["ref-b", "ref-a"]


def test_a_path_that_goes_on_from_a_mask_ends_there() -> None:
    attributes = members_entry(MEMBERS, WAYS, secret={"b": ["addresses"]})
    assert get_attr(mask_attributes(attributes, ()), "resource.b.addresses", "net", 0) == MASK


def test_every_attribute_of_a_group_is_every_one_of_its_members_too() -> None:
    seen = mask_attributes({"own": 1, **members_entry(MEMBERS, WAYS)}, [EVERY_ATTRIBUTE])
    assert visible_attributes(seen) == {
        "own": MASK, "refs": [MASK, MASK], "refs_map": {"b": MASK, "a": MASK}, "current_size": 2,
    }  # fmt: skip


@pytest.mark.parametrize("secret", [["a"], True])
def test_an_entry_of_an_earlier_version_masks_all_of_a_secret_member(secret: Json) -> None:
    attributes = {"said": "x", **members_entry(MEMBERS, WAYS)}
    attributes[MEMBERS_ENTRY] = {**attributes[MEMBERS_ENTRY], "secret": secret, "hides": ["said"]}
    del attributes[MEMBERS_ENTRY]["secrets"]
    seen = visible_attributes(mask_attributes(attributes, ()))
    assert seen["said"] == MASK
    assert seen["refs"] == ["ref-b" if secret is not True else MASK, MASK]
