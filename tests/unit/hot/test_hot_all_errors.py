"""All errors are reported together: a syntax error hides no other error, and causes no follow-up
errors.
"""

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


def test_syntax_and_semantic_errors_are_reported_together_syntax_first() -> None:
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
        "outputs.none",
        "resources.meaning.properties",
        "resources.type.type",
        "outputs.off.value.get_attr",
    ]


@pytest.mark.parametrize(
    "usage",
    [
        {"resources": {"good": thing(value={"get_param": "bad"})}},
        {"resources": {"good": thing(value={"get_param": ["bad", "x", 1]})}},
        {"resources": {"good": thing(size={"get_param": "bad"})}},
        {"conditions": {"c": {"equals": [{"get_param": "bad"}, 1]}}},
        {"resources": {"good": thing(value={"if": [{"equals": [{"get_param": "bad"}, 1]}, 1, 2]})}},
    ],
)
def test_references_to_an_invalid_parameter_are_no_errors(usage: Json) -> None:
    template = {"parameters": {"bad": {"type": "nummer"}}} | usage
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
def test_references_to_an_invalid_resource_are_no_errors(good: Json) -> None:
    template = {"resources": {"bad": {}, "good": good, "more": thing()}}
    assert places(template) == ["resources.bad"]


def test_a_cycle_is_reported_next_to_an_invalid_resource() -> None:
    cycle = {"a": {**thing(), "depends_on": "b"}, "b": {**thing(), "depends_on": ["a", "bad"]}}
    assert places({"resources": {"bad": {}} | cycle}) == ["resources.bad", ""]


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
def test_an_invalid_section_hides_semantic_errors_only(document: Json) -> None:
    rest = {"resources": {"a": thing(value={"get_resource": "other"})}}
    assert len(faults(rest | document)) == 1


def test_an_invalid_condition_is_reported_once_and_hides_no_error() -> None:
    template = {
        "conditions": {"bad": WRONG_CONDITION, "also": {"not": "bad"}, "other": {"not": [1, 2]}},
        "resources": {
            "on": {**thing(vaule=1), "condition": "also"},
            "reads": thing(value={"get_attr": ["on", "outptu"]}),
            "either": thing(value={"if": ["bad", 1, 2]}),
        },
        "outputs": {"o": {"value": {"get_attr": ["nix", "x"]}, "condition": "bad"}},
    }
    assert places(template) == [
        "conditions.other",
        "conditions.bad",
        "resources.on.properties",
        "resources.reads.properties.value.get_attr",
        "outputs.o.value.get_attr",
    ]


def nested_findings(files: dict[str, str], resources: Json) -> list[Finding]:
    return faults({"resources": resources}, nesting=NestedTemplates(files))


FILE = """
heat_template_version: 2018-08-31
parameters: {bad: {type: nummer}, good: {type: number}}
resources:
  x: {type: Test::Thing, properties: {vaule: {get_param: bad}}}
  y: {}
outputs: {o: {}, p: {value: {get_resource: y}}}
"""


def test_syntax_and_semantic_errors_of_a_nested_template_are_reported_together() -> None:
    web = {"type": "web.yaml", "properties": {"bad": {"any": "thing"}, "good": 1}}
    reads = thing(value=[{"get_attr": ["web", "o"]}, {"get_attr": ["web", "resource.y"]}])
    findings = [
        one.place for one in nested_findings({"web.yaml": FILE}, {"web": web, "reads": reads})
    ]
    here = "resources.web<web.yaml>"
    assert findings == [
        f"{here}.parameters.bad",
        f"{here}.resources.y",
        f"{here}.outputs.o",
        f"{here}.resources.x.properties",
    ]


def test_syntax_errors_of_a_nested_template_are_reported_once_and_semantic_ones_per_use() -> None:
    web = {"type": "web.yaml", "properties": {"good": 1}}
    findings = nested_findings({"web.yaml": FILE}, {"web": web, "too": web})
    assert sum(".parameters." in one.place for one in findings) == 1
    assert sum(one.place.endswith(".resources.x.properties") for one in findings) == 2


def test_an_invalid_template_is_not_compared_with_the_type_that_it_replaces() -> None:
    environment = {"resource_registry": {"Test::Strict": "web.yaml"}}
    template = {"resources": {"a": {"type": "Test::Strict", "properties": {"needed": "x"}}}}
    text = "heat_template_version: 2018-08-31\nparameters: {needed: {type: strin}}"
    (one,) = faults(template, environment, nesting=NestedTemplates({"web.yaml": text}))
    assert one.place == "resources.a<web.yaml>.parameters.needed"


def test_an_invalid_environment_causes_no_errors_about_its_content() -> None:
    """Missing parameter values and unmapped types are not reported, because the environment may
    have them.
    """
    wrong = Finding("resource_registry.a", "this", "")
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


def test_all_errors_of_an_environment_are_reported_at_once() -> None:
    with pytest.raises(Invalid) as caught:
        parse_environment(
            {
                "parameter": {},
                "parameters": [],
                "event_sinks": None,
                "encrypted_param_names": 5,
                "resource_registry": {"a": 5},
                "hooks": 5,
            }
        )
    assert {one.place.partition(".")[0] for one in caught.value.findings} == {
        "parameter", "parameters", "event_sinks", "encrypted_param_names",
        "resource_registry", "hooks",
    }  # fmt: skip


@pytest.mark.parametrize(
    ("name", "known", "message"),
    [
        ("sise", ["size", "flavor"], 'Did you mean "size"?'),
        ("q", ["size", "flavor"], "Parameters: size, flavor."),
        ("q", [], "Parameters: none."),
        ("q", list("abcdefghij"), "Parameters: a, b, c, d, e, f, g, h, and 2 more."),
        ("q", ["x" * 100], f"Parameters: {'x' * 60}."),
    ],
)
def test_existing_names_are_listed_if_none_is_similar(
    name: str, known: list[str], message: str
) -> None:
    assert one_of(name, known, "Parameters") == message


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
def test_each_error_has_a_remedy(template: Json, remedy: str) -> None:
    (one,) = faults(template)
    assert remedy in one.remedy
