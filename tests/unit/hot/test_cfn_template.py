"""CloudFormation templates: sections, resources, conditions and outputs, and messages about invalid
ones.
"""

import pytest

from engine.errors import Invalid
from engine.hot.definition.stack import StackDefinition
from engine.hot.template.hook_declarations import HookDeclaration
from engine.hot.template.template import empty_template, parse_template, without_resources
from engine.words import Json
from tests.unit.hot.cfn_support import AWS, HEAT, cfn, cfn_thing
from tests.unit.hot.hot_support import defined, faults

FULL_TEMPLATE = cfn(
    Description="A whole one",
    Parameters={"Stage": {"Type": "String", "Default": "prod"}},
    Mappings={"Size": {"prod": {"n": 5}, "test": {"n": 1}}},
    Conditions={
        "IsProd": {"Fn::Equals": [{"Ref": "Stage"}, "prod"]},
        "IsLarge": {"Fn::Equals": [{"Fn::FindInMap": ["Size", {"Ref": "Stage"}, "n"]}, 5]},
        "IsTest": {"Fn::Not": ["IsProd"]},
        "Both": {"Fn::And": ["IsProd", "IsLarge"]},
        "Neither": {"Fn::And": ["IsProd", "IsTest"]},
        "Either": {"Fn::Or": ["IsTest", {"Fn::Not": [{"Fn::Equals": [1, "1"]}]}]},
    },
    Resources={
        "web": {
            "Type": "Test::Thing",
            "Description": "serves",
            "DependsOn": ["db", "off"],
            "DeletionPolicy": "Retain",
            "Metadata": {"from": {"Ref": "AWS::StackName"}},
            "Properties": {"size": {"Fn::FindInMap": ["Size", {"Ref": "Stage"}, "n"]}},
        },
        "db": {"Type": "Test::Thing", "Condition": "Both"},
        "off": {"Type": "Test::Thing", "Condition": "IsTest"},
        "never": {"Type": "Test::Thing", "Condition": "Neither"},
        "either": {"Type": "Test::Thing", "Condition": {"Fn::Or": ["IsTest", "Either"]}},
    },
    Outputs={
        "key": {"Description": "its key", "Value": {"Fn::GetAtt": ["web", "output"]}},
        "none": {"Value": {"Ref": "off"}, "Condition": "IsTest", "Export": {"Name": "x"}},
    },
)


def test_a_full_template_is_parsed() -> None:
    definition = defined(FULL_TEMPLATE)
    assert definition.description == "A whole one" and definition.version == "2010-09-09"
    assert set(definition.resources) == {"web", "db", "either"}
    web = definition.resources["web"]
    assert web.properties == {"size": 5} and web.metadata == {"from": "s"}
    assert web.requires == {"db"} and web.deletion_policy == "Retain"
    assert (web.description, web.place) == ("serves", "Resources.web")
    assert definition.outputs["key"].description == "its key"
    assert definition.outputs["none"].value is None
    assert definition.outputs["none"].description == "No description given"
    pseudo = {"AWS::StackName": "s", "AWS::Region": "ap-southeast-1"}
    stack_id = {"AWS::StackId": "arn:openstack:heat::p:stacks/s/id"}
    assert definition.shown_parameters() == pseudo | stack_id | {"Stage": "prod"}


def test_another_parameter_switches_resources() -> None:
    definition = defined(FULL_TEMPLATE | {"Outputs": {}}, parameters={"Stage": "test"})
    assert set(definition.resources) == {"web", "off", "either"}
    assert definition.resources["web"].properties == {"size": 1}


@pytest.mark.parametrize("version", [AWS, HEAT])
def test_a_minimal_template_is_parsed(version: str) -> None:
    sections = ("Parameters", "Mappings", "Resources", "Outputs", "Description")
    assert not defined(cfn(version)).resources
    assert not defined(cfn(version, **dict.fromkeys(sections))).resources


def test_comments_are_ignored() -> None:
    remarks = {"Comment": "x", "CreationPolicy": {}, "UpdateReplacePolicy": "Retain", "//": 1}
    outputs = {"o": {"Value": 1, "Note": "x", "Export": {"Name": "y"}}}
    definition = defined(cfn(Resources={"a": cfn_thing() | remarks}, Outputs=outputs))
    assert (
        definition.resources["a"].deletion_policy == "Delete" and definition.outputs["o"].value == 1
    )


def one(**keys: Json) -> dict[str, Json]:
    return cfn(Resources={"a": {"Type": "Test::Thing", **keys}})


def output(value: Json) -> dict[str, Json]:
    return cfn(Outputs={"o": value})


def conditions(**named: Json) -> dict[str, Json]:
    return cfn(Conditions=named)


def used(c: Json) -> dict[str, Json]:
    """A template with a condition that a resource uses."""
    return cfn(Conditions={"c": c}, Resources={"a": cfn_thing() | {"Condition": "c"}})


INVALID_TEMPLATES: list[tuple[dict[str, Json], str, str]] = [
    ({AWS: "2010-09-10"}, AWS, '"AWSTemplateFormatVersion: 2010-09-10". '),
    ({AWS: "2010-09-10"}, AWS, '"AWSTemplateFormatVersion" should be: 2010-09-09'),
    ({HEAT: "2010-09-09"}, HEAT, "should be: 2012-12-12"),
    ({"heat_template_version": "2010-09-09"}, "heat_template_version", "should be one of: 2013"),
    (cfn(AWS) | cfn(HEAT), "", f"Ambiguous versions ({HEAT}, {AWS})"),
    (cfn(resources={}), "resources", "The template section is invalid: resources"),
    (cfn(Metadata={}), "Metadata", "The template section is invalid: Metadata"),
    (cfn(HEAT, Conditions={}), "Conditions", "The template section is invalid: Conditions"),
    (cfn(Mappings=[1]), "Mappings", '"Mappings" must be a map'),
    (cfn(Resources=[1]), "Resources", '"Resources" must be a map'),
    (cfn(Resources={"a": None}), "Resources.a", "Each Resource must contain a Type key."),
    (cfn(Resources={"a": {}}), "Resources.a", "Each Resource must contain a Type key"),
    (cfn(Resources={"a/b": cfn_thing()}), "Resources.a/b", 'Resource name may not contain "/"'),
    (one(Type="Test::Thign"), "Resources.a.Type", "(Test::Thign) could not be found"),
    (one(Properties={"sise": 1}), "Resources.a.Properties", "Unknown Property sise"),
    (one(Properties={"size": 99}), "Resources.a.Properties.size", "is out of range"),
    (one(Properties=5), "Resources.a.Properties", "a Properties type must be object"),
    (one(Metadata=[]), "Resources.a.Metadata", "a Metadata type must be object"),
    (one(DependsOn="nobody"), "Resources.a.DependsOn", "(in a) is incorrect"),
    (one(DependsOn=[5]), "Resources.a.DependsOn", "a DependsOn must be a list of strings"),
    (one(DeletionPolicy="retain"), "Resources.a.DeletionPolicy", 'policy "retain"'),
    (one(DeletionPolicy="Snapshot"), "Resources.a.DeletionPolicy", "not supported"),
    (
        one(DeletionPolicy={"Fn::GetAtt": ["a", "output"]}),
        "Resources.a.DeletionPolicy",
        "must be known when the stack is defined",
    ),
    (one(Description=[1]), "Resources.a.Description", "type must be string"),
    (one(Condition="x"), "Resources.a.Condition", 'Invalid condition "x"'),
    (one(Condition=5), "Resources.a.Condition", "type must be string_or_boolean"),
    (output("x"), "Outputs.o", "An output must be a map."),
    (output({"value": 1}), "Outputs.o", "Each output definition must contain a Value key"),
    (
        cfn(
            Resources={
                "a": cfn_thing(),
                "b": cfn_thing(value={"Fn::Join": ["", [{"Fn::GetAtt": ["a", "output"]}, 1]]}),
            }
        ),
        "Resources.b.Properties.value.Fn::Join",
        "Items to join must be strings not 1",
    ),
    (output({"Value": 1, "Condition": "x"}), "Outputs.o.Condition", 'Invalid condition "x"'),
    (
        cfn(Parameters={"a": {"Type": "String", "Default": ""}}, Resources={"a": cfn_thing()}),
        "",
        "Duplicate names {'a'}",
    ),
    (
        cfn(Resources={"a": cfn_thing(value={"Ref": "a"})}),
        "",
        "Circular Dependency Found: a -> a",
    ),
    (conditions(c={"Fn::And": [True]}), "Conditions.c.Fn::And", "The minimum number"),
    (conditions(c={"Fn::Not": [True, True]}), "Conditions.c.Fn::Not", "of the form: [condition]"),
    (conditions(c={"Fn::Not": True}), "Conditions.c.Fn::Not", "of the form: [condition]"),
    (
        conditions(c={"Fn::Equals": [1, 2, 3]}),
        "Conditions.c.Fn::Equals",
        '"Fn::Equals" must be of the form',
    ),
    (
        conditions(c={"Fn::FindInMap": ["m", "k"]}),
        "Conditions.c.Fn::FindInMap",
        "[mapping, key, value]",
    ),
    (conditions(c={"Fn::FindInMap": ["m", "k", "v"]}), "Conditions.c", 'Mappings has no key "m"'),
    (used(c={"Ref": "AWS::Regoin"}), "Conditions.c", "(AWS::Regoin) was not provided"),
    (conditions(c={"Ref": ["AWS::Region"]}), "Conditions.c", "must be the name of a parameter"),
    (conditions(c={"Ref": "AWS::Region"}), "Conditions.c", "is invalid: "),
    (conditions(c="d", d=True), "Conditions.c", 'definition of condition "c" is invalid: d'),
    (used(c={"Fn::Not": ["c"]}), "Conditions.c", "Circular definition"),
    (
        conditions(c={"Fn::Join": ["", []]}),
        "Conditions.c.Fn::Join",
        '"Fn::Join" is invalid in this cont',
    ),
    (conditions(c={"equals": [1, 1]}), "Conditions.c", "is invalid: "),
    (cfn(Hooks={}), "Hooks", "must be a list of rules"),
    (one(Hooks=5), "Resources.a.Hooks", "is not a hook"),
]


@pytest.mark.parametrize(("template", "place", "part"), INVALID_TEMPLATES)
def test_invalid_cloudformation_templates_are_reported(
    template: dict[str, Json], place: str, part: str
) -> None:
    found = faults(template)
    match = [one for one in found if part in one.reason]
    assert match, found
    assert match[0].place == place


def test_cloudformation_errors_have_remedies() -> None:
    def message_of(template: dict[str, Json]) -> str:
        return faults(template)[0].remedy

    assert message_of(cfn(Parameter={})) == 'Did you mean "Parameters"?'
    newer = "Use AWSTemplateFormatVersion 2010-09-09."
    assert message_of(cfn(HEAT, Conditions={})) == newer
    named = used({"Fn::And": [{"Condition": "d"}, True]})
    named["Conditions"]["d"] = True
    assert message_of(named) == 'Write the name alone: "d".'


def test_each_error_is_reported_once() -> None:
    off = cfn(
        Conditions={"no": {"Fn::Not": [True]}},
        Resources={"a": cfn_thing() | {"Condition": "no"}, "b": cfn_thing(value={"Ref": "a"})},
    )
    assert [one.remedy for one in faults(off)] == ["Its condition is false."]
    missing = cfn(
        Parameters={"p": {"Type": "String"}}, Resources={"a": cfn_thing(value={"Ref": "p"})}
    )
    assert [one.code for one in faults(missing)] == ["UserParameterMissing"]


def test_all_errors_of_a_cloudformation_template_are_reported_at_once() -> None:
    bad = cfn(
        Parameters={"p": {"Type": "Sting"}},
        Resources={"a": cfn_thing(size=99, value={"Ref": "x"}), "b": {}},
        Outputs={"o": {}},
    )
    places = {one.place for one in faults(bad)}
    assert places == {
        "Parameters.p.Type", "Resources.b", "Outputs.o",
        "Resources.a.Properties.size", "Resources.a.Properties.value.Ref",
    }  # fmt: skip
    bad = cfn(Resources={"a": cfn_thing(size=99, value={"Ref": "x"}), "b": cfn_thing(flag="x")})
    places = {one.place for one in faults(bad)}
    wanted = {"Properties.size", "Properties.value.Ref"}
    assert places == {f"Resources.a.{one}" for one in wanted} | {"Resources.b.Properties.flag"}


def test_hooks_of_cloudformation_templates_are_those_of_hot() -> None:
    rule = {"on": ["pre-update"], "when": {"equals": [{"get_param": "AWS::StackName"}, "s"]}}
    template = one(Hooks=["pre-create", rule]) | {"Hooks": [{"at": "a", "on": ["pre-delete"]}]}
    definition = defined(template)
    assert definition.hook_declarations == (
        HookDeclaration("a", "pre-create", "Resources.a.Hooks[0]", short=True),
        HookDeclaration("a", rule, "Resources.a.Hooks[1]", short=False),
        HookDeclaration("a", {"on": ["pre-delete"]}, "Hooks[0]", short=False),
    )
    assert definition.decide(rule["when"], "") is True
    assert defined(conditions(c={"Fn::Not": [True]})).decide("c", "") is False


def region(default: str, **sections: Json) -> StackDefinition:
    template = cfn(Outputs={"o": {"Value": {"Ref": "AWS::Region"}}}, **sections)
    return defined(template, {"parameter_defaults": {"AWS::Region": default}})


def test_pseudo_parameters_have_defaults() -> None:
    assert region("us-east-1").outputs["o"].value == "us-east-1"
    assert region("us-east-1").shown_parameters()["AWS::Region"] == "us-east-1"
    own = {"AWS::Region": {"Type": "String", "AllowedValues": ["mine"]}}
    assert region("mine", Parameters=own).outputs["o"].value == "mine"
    with pytest.raises(Invalid, match=r"Parameter 'AWS::Region' is invalid: \"mars\" is not"):
        region("mars")
    hot = {"outputs": {"o": {"value": {"get_param": "OS::stack_name"}}}}
    definition = defined(hot, {"parameter_defaults": {"OS::stack_name": "other"}})
    assert definition.outputs["o"].value == "other"


def test_resources_that_depend_on_an_unknown_pseudo_parameter_are_absent() -> None:
    template = cfn(Outputs={"o": {"Value": {"Ref": "AWS::Region"}}})
    definition = defined(template, pseudo={"OS::project_id": "p"})
    assert definition.shown_parameters() == {"AWS::Region": "ap-southeast-1"}
    definition = defined(template, pseudo={"OS::project_id": "a b", "OS::stack_name": "s"})
    assert "AWS::StackId" not in definition.pseudo and definition.pseudo["AWS::StackName"] == "s"
    full = {"OS::project_id": "a/b", "OS::stack_name": "s", "OS::stack_id": "i"}
    found = defined(template, pseudo=full).pseudo["AWS::StackId"]
    assert found == "arn:openstack:heat::a%2Fb:stacks/s/i"


def test_limits_of_documents_are_reported_with_cloudformation_names() -> None:
    left = without_resources(FULL_TEMPLATE, ["db", "off", "never"])
    assert set(parse_template(left).resources) == {"web", "either"}
    assert empty_template(FULL_TEMPLATE) == {AWS: "2010-09-09"}
    assert without_resources({"heat_template_version": "2021-04-16"}, ["a"])["resources"] == {}
