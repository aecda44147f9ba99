"""All that is wrong is told in one answer: what is wrong with the form of one thing hides nothing
of another, and nothing is told that only follows from it."""

from typing import Any

import pytest

from engine.errors import Finding, Invalid, one_of
from engine.hot.environment.environment import Environment, parse_environment
from engine.hot.nested.nested_templates import NestedTemplates
from engine.words import Json
from tests.unit.hot.hot_support import defined, faults, thing

WRONG_CONDITION = {"equals": [{"get_param": "nope"}, 1]}


def places(*args: Any, **more: Any) -> list[str]:
    return [one.place for one in faults(*args, **more)]


def test_form_and_meaning_are_told_together_form_first() -> None:
    template = {
        "parameters": {"size": {"type": "nummer"}},
        "resources": {
            "form": {"typ": "Test::Thing"},
            "meaning": thing(vaule=1),
            "type": {"type": "Test::Thin"},
        },
        "outputs": {"none": {}, "off": {"value": {"get_attr": ["type2", "x"]}}},
    }
    assert places(template) == [
        "parameters.size",
        "resources.form",
        "resources.form",
        "outputs.none",
        "resources.meaning.properties",
        "resources.type.type",
        "outputs.off.value.get_attr",
    ]


@pytest.mark.parametrize(
    "around",
    [
        {"resources": {"good": thing(value={"get_param": "bad"})}},
        {"resources": {"good": thing(value={"get_param": ["bad", "x", 1]})}},
        {"resources": {"good": thing(size={"get_param": "bad"})}},
        {"conditions": {"c": {"equals": [{"get_param": "bad"}, 1]}}},
        {"resources": {"good": thing(value={"if": [{"equals": [{"get_param": "bad"}, 1]}, 1, 2]})}},
    ],
)
def test_who_names_a_parameter_that_could_not_be_read_is_right(around: Json) -> None:
    template = {"parameters": {"bad": {"type": "nummer"}}} | around
    assert places(template, parameters={"bad": 1}) == ["parameters.bad"]


@pytest.mark.parametrize(
    "good",
    [
        thing(value={"get_resource": "bad"}),
        thing(value={"get_attr": ["bad", "whatever"]}),
        {**thing(), "depends_on": "bad"},
        {**thing(), "depends_on": ["bad", "more"]},
    ],
)
def test_who_names_a_resource_that_could_not_be_read_is_right(good: Json) -> None:
    template = {"resources": {"bad": {}, "good": good, "more": thing()}}
    assert places(template) == ["resources.bad"]


def test_a_circle_is_seen_beside_a_resource_that_could_not_be_read() -> None:
    circle = {"a": {**thing(), "depends_on": "b"}, "b": {**thing(), "depends_on": ["a", "bad"]}}
    assert places({"resources": {"bad": {}} | circle}) == ["resources.bad", ""]


@pytest.mark.parametrize(
    "document",
    [
        {"resources": ["a"]},
        {"parameters": 5},
        {"outputs": ["o"]},
        {"conditions": "c"},
        {"resuorces": {"other": thing()}},
    ],
)
def test_nothing_is_told_of_the_rest_where_a_section_cannot_be_told(document: Json) -> None:
    rest = {"resources": {"a": thing(value={"get_resource": "other"})}}
    assert len(faults(rest | document)) == 1


def test_a_wrong_condition_hides_nothing_and_is_told_once() -> None:
    template = {
        "conditions": {"bad": WRONG_CONDITION, "also": {"not": "bad"}, "other": {"not": "nix"}},
        "resources": {
            "on": {**thing(vaule=1), "condition": "also"},
            "reads": thing(value={"get_attr": ["on", "outptu"]}),
            "either": thing(value={"if": ["bad", 1, 2]}),
        },
        "outputs": {"o": {"value": {"get_resource": "nix"}, "condition": "bad"}},
    }
    assert places(template) == [
        "conditions.bad",
        "conditions.other",
        "resources.on.properties",
        "resources.reads.properties.value.get_attr",
        "outputs.o.value.get_resource",
    ]


def inside(files: dict[str, str], resources: Json) -> list[Finding]:
    return faults({"resources": resources}, nesting=NestedTemplates(files))


FILE = """
heat_template_version: 2018-08-31
parameters: {bad: {type: nummer}, good: {type: number}}
resources:
  x: {type: Test::Thing, properties: {vaule: {get_param: bad}}}
  y: {}
outputs: {o: {}, p: {value: {get_resource: y}}}
"""


def test_form_and_meaning_of_a_template_inside_are_told_together() -> None:
    web = {"type": "web.yaml", "properties": {"bad": {"any": "thing"}, "good": 1}}
    reads = thing(value=[{"get_attr": ["web", "o"]}, {"get_attr": ["web", "resource.y"]}])
    told = [one.place for one in inside({"web.yaml": FILE}, {"web": web, "reads": reads})]
    here = "resources.web<web.yaml>"
    assert told == [
        f"{here}.parameters.bad",
        f"{here}.resources.y",
        f"{here}.outputs.o",
        f"{here}.resources.x.properties",
    ]


def test_the_form_of_a_template_inside_is_told_once_and_its_meaning_for_each() -> None:
    web = {"type": "web.yaml", "properties": {"good": 1}}
    told = inside({"web.yaml": FILE}, {"web": web, "too": web})
    assert sum(".parameters." in one.place for one in told) == 1
    assert sum(one.place.endswith(".resources.x.properties") for one in told) == 2


def test_a_template_that_could_not_be_read_is_not_held_to_the_type_it_stands_for() -> None:
    environment = {"resource_registry": {"Test::Strict": "web.yaml"}}
    template = {"resources": {"a": {"type": "Test::Strict", "properties": {"needed": "x"}}}}
    text = "heat_template_version: 2018-08-31\nparameters: {needed: {type: strin}}"
    (one,) = faults(template, environment, nesting=NestedTemplates({"web.yaml": text}))
    assert one.place == "resources.a<web.yaml>.parameters.needed"


def test_of_an_environment_that_cannot_be_read_nobody_knows_what_it_gives() -> None:
    """So neither parameters without a value nor types that it may map are told of."""
    wrong = Finding("resource_registry.a", "this")
    template = {
        "parameters": {"missing": {"type": "string"}, "wrong": {"type": "number"}},
        "resources": {"a": {"type": "Mapped"}, "b": thing(vaule={"get_param": "missing"})},
    }
    with pytest.raises(Invalid) as caught:
        defined(
            template,
            parameters={"wrong": "x"},
            read=Environment(findings=(wrong,)),
        )
    assert [one.place for one in caught.value.findings] == [
        "resource_registry.a", "", "resources.b.properties",
    ]  # fmt: skip
    assert "wrong" in caught.value.findings[1].reason


def test_all_that_is_wrong_with_an_environment_is_told_at_once() -> None:
    with pytest.raises(Invalid) as caught:
        parse_environment(
            {
                "parameter": {},
                "parameters": [],
                "event_sinks": None,
                "encrypted_param_names": 5,
                "parameter_merge_strategies": {"a": "owerwrite"},
                "resource_registry": {"a": 5},
                "hooks": 5,
            }
        )
    assert {one.place.partition(".")[0] for one in caught.value.findings} == {
        "parameter", "parameters", "event_sinks", "encrypted_param_names",
        "parameter_merge_strategies", "resource_registry", "hooks",
    }  # fmt: skip


@pytest.mark.parametrize(
    ("name", "known", "said"),
    [
        ("sise", ["size", "flavor"], 'Did you mean "size"?'),
        ("q", ["size", "flavor"], "Parameters: size, flavor."),
        ("q", [], "Parameters: none."),
        ("q", list("abcdefghij"), "Parameters: a, b, c, d, e, f, g, h, and 2 more."),
        ("q", ["x" * 100], f"Parameters: {'x' * 60}."),
    ],
)
def test_where_no_name_is_near_those_that_there_are_are_told(
    name: str, known: list[str], said: str
) -> None:
    assert one_of(name, known, "Parameters") == said


@pytest.mark.parametrize(
    ("template", "remedy"),
    [
        ({"parameters": {"p": {"type": "string"}}}, "Give it a value"),
        ({"resources": {"a": {}}}, 'Add "type: '),
        ({"resources": {"a": {**thing(), "zzzzz": 1}}}, "Keys: type, properties"),
        ({"resources": {"a": {"type": "Zzz"}}}, "resource_registry"),
        ({"resources": {"a": thing(zzz=1)}}, "Properties: value, text"),
        ({"resources": {"a": {"type": "Test::Strict"}}}, 'Add "needed".'),
        ({"resources": {"a": {**thing(), "depends_on": "zzz"}}}, "Resources: a."),
        ({"resources": {"a": {**thing(), "deletion_policy": "Zzz"}}}, "Policies: Delete, "),
        ({"resources": {"a": {**thing(), "condition": "zzz"}}}, "Conditions: none."),
        ({"resources": {"a": thing(value={"get_param": "zzz"})}}, "Parameters: OS::stack_name"),
        (
            {"resources": {"a": thing(value={"get_attr": ["b", "zzz"]}), "b": thing()}},
            "Attributes: output",
        ),
        ({"resources": {"a": thing(value={"get_resource": "zzz"})}}, "Resources: a."),
        ({"resources": {"a": thing(value={"get_file": "zzz"})}}, "Files that were sent: none."),
        ({"zzzzzz": {}}, "Sections: "),
    ],
)
def test_each_fault_has_a_remedy(template: Json, remedy: str) -> None:
    (one,) = faults(template)
    assert remedy in one.remedy
