"""A misspelt name is answered with the nearest of all declared names: also of parameters without a
value, disabled resources, and what cannot be read."""

import pytest

from engine.words import Json
from tests.unit.hot.hot_support import faults, thing
from tests.unit.hot.nested_support import findings_of, template, web

SIZE: Json = {"parameters": {"flavor": {"type": "string"}}}
OFF: Json = {"server": thing() | {"condition": False}}
NAMES: Json = {"type": "Test::Naming", "properties": {"allowed": ["sevrer"]}}
EACH: Json = {"server": thing() | {"for_each": ["first", "second"]}}


HOT, EXTENDED = "2021-04-16", "headgate"
CONDITION: Json = {
    "conditions": {"c": {"equals": [{"get_param": "flavro"}, 1]}},
    "resources": {"a": thing() | {"condition": "c"}},
}
GROUPS: Json = {"parameter_groups": [{"label": "g", "parameters": ["flavro"]}]}


def _a(value: Json, **others: Json) -> Json:
    return {"resources": {"a": thing(value=value), **others}}


@pytest.mark.parametrize(
    ("version", "sections", "wanted"),
    [
        (HOT, SIZE | _a({"get_param": "flavro"}), "flavor"),
        (HOT, SIZE | _a({"get_param": "OS::stack_nmae"}), "OS::stack_name"),
        (HOT, SIZE | CONDITION, "flavor"),
        (HOT, SIZE | GROUPS, "flavor"),
        (EXTENDED, SIZE | _a("${flavro}"), "flavor"),
        (HOT, _a({"get_resource": "sevrer"}, **OFF), "server"),
        (HOT, _a({"get_attr": ["sevrer", "output"]}, **OFF), "server"),
        (EXTENDED, _a({"get_resource": "sevrer"}, **EACH), "server"),
        (HOT, _a(1, server=1, b=thing() | {"depends_on": "sevrer"}), "server"),
        (EXTENDED, _a(1, b=thing() | {"lifecycle": {"replace_when": ["sevrer"]}}, **OFF), "server"),
        (HOT, {"resources": {"a": NAMES, **OFF}}, "server"),
        (HOT, {"resources": {"a": NAMES, "server": {"type": 1}}}, "server"),
    ],
    ids=[
        "get_param", "pseudo parameter", "condition", "parameter group", "interpolation",
        "get_resource", "get_attr", "for_each", "depends_on", "replace_when",
        "property", "unreadable resource",
    ],
)  # fmt: skip
def test_names_without_a_value_are_suggested(version: str, sections: Json, wanted: str) -> None:
    found = faults({"heat_template_version": version, **sections})
    assert any(one.remedy.startswith(f'Did you mean "{wanted}"?') for one in found), found


def test_names_of_cfn_templates_without_a_value_are_suggested() -> None:
    body = {"Type": "Test::Thing", "Properties": {"value": {"Ref": "flavro"}}}
    sections = {"Parameters": {"flavor": {"Type": "String"}}, "Resources": {"a": body}}
    found = faults({"AWSTemplateFormatVersion": "2010-09-09", **sections})
    assert found[-1].remedy == 'Did you mean "flavor"?'


def test_unreadable_parameters_are_suggested_for_values_of_a_request() -> None:
    found = faults({"parameters": {"flavor": 3}}, parameters={"flavro": "x"})
    assert 'Did you mean "flavor"?' in [one.remedy for one in found]


@pytest.mark.parametrize("name", ["OS::stack_nmae", "AWS::StackName"])
def test_pseudo_parameters_of_a_nested_stack_are_those_of_its_dialect(name: str) -> None:
    inside = template(resources={"x": thing(text={"get_param": name})})
    found = findings_of(web(), {"server.yaml": inside})
    assert [one.remedy for one in found] == ['Did you mean "OS::stack_name"?']


X: Json = {"data": {"net": {"type": "Test::Thing", "id": "i"}}, "locals": {"k": 1}}
NAMED: Json = {"parameters": {"on": {"type": "string", "default": "x"}}}
QUOTES = "Put the name in quotes"


@pytest.mark.parametrize(
    ("sections", "remedy"),
    [
        (_a("${b.output}", b=thing()), "Write {get_attr: [b, output]}."),
        (_a("x ${b}", b=thing()), "Write {get_resource: b}."),
        (_a("${data.net.output}") | X, "Write {get_attr: [data.net, output]}."),
        (_a("${local.k}") | X, 'Write "${k}".'),
        (_a("${server.output}", **EACH), "Write {get_attr: [server, output]}."),
        (_a("${server.first.output}", **EACH), """{get_attr: ['server["first"]', output]}."""),
        (_a("${parameters.on}") | NAMED, 'Write "${on}".'),
        *(
            (_a({"get_attr": [name, "output"]}, **EACH), """Did you mean 'server["first"]'?""")
            for name in ("server-first", "server.first", "server[first]", "server['first']")
        ),
        (_a({"get_resource": "server-second"}, **EACH), """'server["second"]'"""),
        (_a(1, b=thing() | {"depends_on": "server.first"}, **EACH), """'server["first"]'"""),
        (_a({"get_param": True}) | NAMED, QUOTES),
        (_a({"get_param": [True, "a"]}) | NAMED, QUOTES),
        (_a({"get_param": False}) | NAMED, QUOTES),
        ({"resources": {"a": thing() | {"condition": {"get_param": True}}}}, QUOTES),
        (_a({"get_resource": True}), QUOTES),
        ({"resources": {"a": thing() | {"depends_on": True}}}, QUOTES),
        ({"resources": {"a": thing() | {"depends_on": ["b", False]}}}, QUOTES),
        (_a({"get_attr": [True, "output"]}), QUOTES),
    ],
)  # fmt: skip
def test_the_right_form_is_shown(sections: Json, remedy: str) -> None:
    (found,) = faults({"heat_template_version": EXTENDED, **sections})
    assert remedy in found.remedy


@pytest.mark.parametrize("key", ["properties", "metadata", "update_policy"])
def test_a_reference_in_place_of_a_map_is_answered_with_the_function(key: str) -> None:
    body = {"type": "Test::Thing", key: "${on}"}
    (found,) = faults({"heat_template_version": EXTENDED, "resources": {"a": body}, **NAMED})
    assert found.place == f"resources.a.{key}" and "{get_param: NAME}" in found.remedy
    (found,) = faults({"resources": {"a": body}, **NAMED})
    assert found.remedy == "Write a map."


def test_references_in_types_are_refused() -> None:
    sections: Json = {"resources": {"a": {"type": "x-${on}.yaml"}}}
    sections["data"] = {"d": {"type": "Test::${on}", "id": "i"}}
    found = faults({"heat_template_version": EXTENDED, **sections, **NAMED})
    assert [one.place for one in found] == ["resources.a.type", "data.d.type"]
    assert {one.reason for one in found} == {"References are not replaced in types."}
