"""The sections `moved` and `import` in templates of version 2026-12-01."""

import pytest

from engine.hot.template.moved_and_imported import imported_names
from engine.words import Json
from tests.unit.hot.hot_support import defined, faults, thing


def template(**sections: Json) -> Json:
    return {
        "heat_template_version": "2026-12-01",
        "parameters": {
            "id": {"type": "string", "default": "p1"},
            "key": {"type": "string", "hidden": True, "default": "p2"},
        },
        "resources": {"c": thing(), "off": thing() | {"condition": False}},
        **sections,
    }


def test_moved_resources_and_chains_lead_to_names_of_the_template() -> None:
    written = template(moved=[{"from": "a", "to": "b"}, {"from": "b", "to": "c"}])
    assert [(one.name, one.to) for one in defined(written).moved] == [("a", "c"), ("b", "c")]


def test_a_move_to_a_resource_that_is_switched_off_is_left_out() -> None:
    assert defined(template(moved=[{"from": "a", "to": "off"}])).moved == ()


def test_imported_ids_may_come_from_parameters() -> None:
    written = template(**{"import": [{"resource": "c", "id": {"get_param": "id"}}]})
    assert defined(written).imported == {"c": "p1"}
    assert imported_names(written) == {"c"} and imported_names({}) == frozenset()
    off = template(**{"import": [{"resource": "off", "id": "x"}]})
    assert defined(off).imported == {}


@pytest.mark.parametrize(
    ("section", "value", "place", "part", "remedy"),
    [
        ("moved", {}, "moved", "must be a list", "[{from: ..., to: ...}]"),
        ("moved", ["a"], "moved[0]", "must be a map", "from"),
        ("moved", [{"from": "a"}], "moved[0]", '"to" is missing', "from"),
        ("moved", [{"form": "a", "to": "c"}], "moved[0].form", "not a valid keyword", '"from"?'),
        ("moved", [{"from": 1, "to": "c"}], "moved[0].from", "name of a resource", ""),
        ("moved", [{"from": "a", "to": "cc"}], "moved[0].to", "not in the template", '"c"?'),
        ("moved", [{"from": "c", "to": "c"}], "moved[0].from", "still in the template", "Remove"),
        ("import", 5, "import", "must be a list", "resource"),
        ("import", [{"resource": "cc", "id": "x"}], "import[0].resource", "not in the", '"c"?'),
        ("import", [{"resource": "c"}], "import[0]", '"id" is missing', "id"),
        ("import", [{"resource": "c", "id": 5}], "import[0].id", "must be text", "physical ID"),
        ("import", [{"resource": "c", "id": ""}], "import[0].id", "must be text", "physical ID"),
        (
            "import", [{"resource": "c", "id": {"get_param": "key"}}], "import[0].id",
            "hidden parameter", "",
        ),
        (
            "import", [{"resource": "c", "id": {"get_resource": "c"}}], "import[0].id",
            "must be known", "parameter",
        ),
        (
            "import", [{"resource": "c", "id": "x"}] * 2, "import[1].resource",
            "imported twice", "Remove",
        ),
    ],
)  # fmt: skip
def test_faults_have_a_place_and_a_remedy(
    section: str, value: Json, place: str, part: str, remedy: str
) -> None:
    fault = faults(template(**{section: value}))[0]
    assert fault.place == place
    assert part in fault.reason and remedy in fault.remedy


def test_two_moves_and_cycles_are_refused() -> None:
    twice = faults(template(moved=[{"from": "a", "to": "c"}, {"from": "a", "to": "c"}]))
    assert "moved twice" in twice[0].reason
    cycle = faults(template(moved=[{"from": "a", "to": "b"}, {"from": "b", "to": "a"}]))
    assert "form a cycle" in cycle[0].reason and cycle[0].remedy == "Remove one of the entries."


@pytest.mark.parametrize(("to", "reason", "remedy"), [
    ("web", 'has "for_each"', """'web["KEY"]'"""), ('c["x"]', 'has no "for_each"', "Write c."),
])  # fmt: skip
@pytest.mark.parametrize("section", ["moved", "import"])
def test_names_with_and_without_keys(section: str, to: str, reason: str, remedy: str) -> None:
    entry = {"from": "gone", "to": to} if section == "moved" else {"resource": to, "id": "x"}
    web = thing() | {"for_each": ["x"]}
    found = faults(template(resources={"c": thing(), "web": web}, **{section: [entry]}))[0]
    assert reason in found.reason and remedy in found.remedy


@pytest.mark.parametrize("id_", [{"get_local": "one"}, "${one}", "p-${id}"])
def test_imported_ids_may_come_from_locals_and_references(id_: Json) -> None:
    written = template(**{"locals": {"one": "p-${id}"}, "import": [{"resource": "c", "id": id_}]})
    assert defined(written).imported == {"c": "p-p1"}


def test_resources_with_keys_are_moved_and_imported_by_their_whole_name() -> None:
    written = template(
        resources={"c": thing() | {"for_each": ["x", "y"]}},
        moved=[{"from": "c", "to": 'c["x"]'}, {"from": 'c["z"]', "to": 'c["y"]'}],
        **{"import": [{"resource": 'c["x"]', "id": "p1"}]},
    )
    found = defined(written)
    assert [(one.name, one.to) for one in found.moved] == [("c", 'c["x"]'), ('c["z"]', 'c["y"]')]
    assert found.imported == {'c["x"]': "p1"}
    (fault,) = faults(template(moved=[{"from": "a", "to": 'c["x"]'}]))
    assert "for_each" in fault.reason


KEYED: Json = thing() | {"for_each": {"get_param": "keys"}}


def keyed(**sections: Json) -> Json:
    keys = {"type": "comma_delimited_list", "default": "east,west"}
    return template(resources={"web": KEYED, "off": KEYED | {"condition": False}}, **sections) | {
        "parameters": {"keys": keys}
    }


@pytest.mark.parametrize("section", ["moved", "import"])
@pytest.mark.parametrize(
    ("name", "reason", "remedy"),
    [
        ('web["wst"]', 'of "web" has no such key', """Did you mean "web["west"]"?"""),
        ('off["wst"]', 'of "off" has no such key', """Did you mean "off["west"]"?"""),
        ('web["${k}"]', "not replaced in names", """with its whole name: 'web["KEY"]'."""),
        ("${web}", "not replaced in names", "with its whole name: NAME."),
    ],
)
def test_a_name_that_no_resource_has_is_refused(
    section: str, name: str, reason: str, remedy: str
) -> None:
    entry = {"from": "gone", "to": name} if section == "moved" else {"resource": name, "id": "x"}
    (fault,) = faults(keyed(**{section: [entry]}))
    assert fault.place == f"{section}[0].{'to' if section == 'moved' else 'resource'}"
    assert reason in fault.reason and remedy in fault.remedy


def test_former_names_and_links_of_chains_have_no_references() -> None:
    chain = [{"from": "a${k}", "to": 'b["${k}"]'}, {"from": 'b["${k}"]', "to": 'web["east"]'}]
    found = faults(keyed(moved=chain))
    places = sorted(one.place for one in found)
    assert places == ["moved[0].from", "moved[0].to", "moved[1].from"]
    assert {"are not replaced in names of resources" in one.reason for one in found} == {True}


def test_keys_that_are_switched_off_or_unknown_are_not_reported() -> None:
    entries: Json = {"moved": [{"from": "gone", "to": 'off["west"]'}],
                     "import": [{"resource": 'off["east"]', "id": "x"}]}  # fmt: skip
    assert (defined(keyed(**entries)).moved, defined(keyed(**entries)).imported) == ((), {})
    late = keyed(moved=[{"from": "gone", "to": 'web["other"]'}])
    assert defined(late, unknown=frozenset({"keys"})).moved == ()


def test_an_external_resource_is_not_imported() -> None:
    written = template(**{"import": [{"resource": "c", "id": "x"}]})
    written["resources"]["c"]["external_id"] = "y"
    (fault,) = faults(written)
    assert fault.place == "import[0].resource" and "external_id" in fault.reason


def test_a_nested_template_has_neither() -> None:
    inside = """
heat_template_version: 2026-12-01
resources: {x: {type: Test::Thing}}
moved: [{from: w, to: x}]
"""
    written = template()
    written["resources"]["c"] = {"type": "inside.yaml"}
    (fault,) = faults(written, files={"inside.yaml": inside})
    assert 'nested template cannot have the section "moved"' in fault.reason


@pytest.mark.parametrize("section", ["moved", "import"])
def test_earlier_versions_name_the_version(section: str) -> None:
    written = template(**{section: []}) | {"heat_template_version": "2021-04-16"}
    (fault,) = faults(written)
    assert fault.remedy == "Use heat_template_version 2026-12-01."
