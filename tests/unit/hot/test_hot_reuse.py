"""Definitions of unchanged resources are used again, and are those of a complete evaluation."""

from collections.abc import Mapping
from dataclasses import replace

import pytest

from engine.errors import Findings
from engine.hot.definition.reuse import NONE_REUSABLE, ReusableResources
from engine.hot.definition.stack import StackDefinition
from engine.words import Json
from tests.unit.hot.hot_support import THING, TYPES, defined, faults, thing

TEMPLATE: dict[str, Json] = {
    "heat_template_version": "2021-04-16",
    "parameters": {"p": {"type": "string", "default": "x"}},
    "resources": {
        "a": thing(value=1, names=["aa"]),
        "after": thing(value=2) | {"depends_on": "a", "metadata": {"m": 1}},
        "kept": thing(text="t") | {"deletion_policy": "retain", "description": "d"},
        "given": thing(value={"get_param": "p"}),
        "reader": thing(value={"get_attr": ["a", "output"]}),
        "chosen": thing(value={"if": [True, 1, 2]}),
        "secret": thing(secret="s"),
        "outside": {"type": "Test::Thing", "external_id": "e"},
    },
}
INDEPENDENT = {"a", "after", "kept"}


def reusable(found: StackDefinition) -> ReusableResources:
    assert found.reusable is not None
    return found.reusable


def first() -> ReusableResources:
    return reusable(defined(TEMPLATE, previous=NONE_REUSABLE))


def changed(**resources: Json) -> dict[str, Json]:
    return TEMPLATE | {"resources": TEMPLATE["resources"] | resources}


def test_only_independent_resources_are_reusable() -> None:
    assert first().resources.keys() == INDEPENDENT
    assert reusable(defined(TEMPLATE)).resources == {}


@pytest.mark.parametrize(
    "template",
    [
        TEMPLATE,
        changed(a=thing(value=True, names=["aa"])),
        changed(a=thing(value=1.0, names=["aa"])),
        changed(a=thing(value={"get_param": "p"}, names=["aa"])),
        changed(a={"type": "Test::Free", "properties": {"value": 1, "names": ["aa"]}}),
        changed(a=thing(value=1, names=["aa"]) | {"external_id": "e"}),
        changed(after=thing(value=2) | {"depends_on": ["a", "kept"], "metadata": {"m": 1}}),
        changed(kept=thing(text="t")),
        changed(more=thing(value=1)),
        changed() | {"heat_template_version": "2018-08-31"},
    ],
    ids=[
        "equal",
        "true",
        "float",
        "param",
        "type",
        "external",
        "order",
        "policy",
        "new",
        "version",
    ],
)
def test_the_definition_is_that_of_a_complete_evaluation(template: dict[str, Json]) -> None:
    found = defined(template, previous=first())
    assert found.resources == defined(template).resources
    again = defined(template, previous=reusable(found))
    assert again.resources == found.resources


def test_a_dependency_on_a_disabled_resource_is_dropped() -> None:
    off = TEMPLATE["resources"]["a"] | {"condition": False}
    without = changed(a=off, reader=thing())
    assert defined(without, previous=first()).resources["after"].requires == frozenset()


def test_a_wrong_dependency_is_reported_again() -> None:
    gone = changed(reader=thing())
    gone["resources"] = {name: one for name, one in gone["resources"].items() if name != "a"}
    assert faults(gone, previous=first()) == faults(gone) != []


def test_warnings_are_given_again() -> None:
    """A map that is probably meant as a call is a warning."""
    unusual = changed(a=thing(value={"get_parm": "p"}))
    found = defined(unusual, previous=NONE_REUSABLE)
    assert found.warnings and "a" not in reusable(found).resources
    assert defined(unusual, previous=reusable(found)).warnings == found.warnings


def test_unchanged_resources_are_not_validated_again() -> None:
    checked: list[str] = []

    def check(name: str, properties: Mapping[str, Json], place: str, findings: Findings) -> None:
        checked.append(place.split(".")[1])

    template = changed(a=thing(value=3))
    defined(template, previous=first(), check_properties=check)
    assert INDEPENDENT & {*checked} == {"a"}


def test_another_schema_of_a_type_is_applied() -> None:
    other = TYPES | {THING.name: replace(THING, description="another")}
    checked: list[str] = []

    def check(name: str, properties: Mapping[str, Json], place: str, findings: Findings) -> None:
        checked.append(place.split(".")[1])

    defined(TEMPLATE, previous=first(), types=other, check_properties=check)
    assert {*checked} >= INDEPENDENT
