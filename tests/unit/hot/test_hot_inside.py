"""Attributes of what is inside of a resource: kept once, read in many ways."""

import pytest

from engine.hot.expression import Call
from engine.hot.inside import INSIDE, Way, kept, shown
from engine.hot.resolve import resolve
from engine.words import Json

WAYS = {
    "refs": Way.REFERENCES,
    "refs_map": Way.REFERENCES_BY_NAME,
    "current_size": Way.COUNT,
    "outputs_list": Way.EACH,
    "attributes": Way.EACH_BY_NAME,
}
WITHIN = kept([("x", "ref-x", {"ip": "10.0.0.9"})], {"refs": Way.REFERENCES})
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
    attributes = {"own": "as it stands", **kept(MEMBERS, WAYS, of_each=True)}
    assert get_attr(attributes, *path) == value


@pytest.mark.parametrize(
    ("named", "value"), [("0", "ref-b"), ("1", "ref-a"), ("2", None), ("a", None)]
)
def test_members_without_names_anybody_knows_are_read_by_their_place(
    named: str, value: Json
) -> None:
    assert get_attr(kept(MEMBERS, WAYS, by_place=True), f"resource.{named}") == value


def test_where_nothing_is_said_of_each_member_an_unknown_attribute_is_null() -> None:
    assert get_attr(kept(MEMBERS, WAYS), "ip") is None


def test_the_type_s_own_attribute_stands_before_what_members_make() -> None:
    assert get_attr({"refs": "mine", **kept(MEMBERS, WAYS)}, "refs") == "mine"


def test_people_see_what_members_make_and_not_the_entry() -> None:
    attributes = {"own": 1, **kept(MEMBERS, WAYS, of_each=True)}
    seen = {"own": 1, "refs": ["ref-b", "ref-a"], "refs_map": {"b": "ref-b", "a": "ref-a"}}
    assert shown(attributes) == get_attr(attributes) == {**seen, "current_size": 2}
    assert INSIDE not in shown(attributes)


def test_what_members_hold_that_is_nobodys_to_see_is_masked_for_people_alone() -> None:
    attributes = kept(MEMBERS, WAYS, secret=["a"])
    assert set(shown(attributes, "***").values()) == {"***"}
    assert shown(attributes)["refs"] == ["ref-b", "ref-a"]
