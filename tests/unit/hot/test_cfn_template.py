"""CFN templates: sections, resources, conditions and outputs, and what is said of bad ones."""

import pytest

from engine.errors import Invalid
from engine.hot.definition.stack import StackDefinition
from engine.hot.template.hook_declarations import HookDeclaration
from engine.hot.template.template import empty_template, parse_template, without_resources
from engine.words import Json
from tests.unit.hot.cfn_support import AWS, HEAT, cfn, cfn_thing
from tests.unit.hot.hot_support import defined, faults

WHOLE = cfn(
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


def test_a_whole_template() -> None:
    made = defined(WHOLE)
    assert made.description == "A whole one" and made.version == "2010-09-09"
    assert set(made.resources) == {"web", "db", "either"}
    web = made.resources["web"]
    assert web.properties == {"size": 5} and web.metadata == {"from": "s"}
    assert web.requires == {"db"} and web.deletion_policy == "Retain"
    assert (web.description, web.place) == ("serves", "Resources.web")
    assert made.outputs["key"].description == "its key"
    assert made.outputs["none"].value is None
    assert made.outputs["none"].description == "No description given"
    pseudo = {"AWS::StackName": "s", "AWS::Region": "ap-southeast-1"}
    stack_id = {"AWS::StackId": "arn:openstack:heat::p:stacks/s/id"}
    assert made.shown_parameters() == pseudo | stack_id | {"Stage": "prod"}


def test_another_parameter_switches_resources() -> None:
    made = defined(WHOLE | {"Outputs": {}}, parameters={"Stage": "test"})
    assert set(made.resources) == {"web", "off", "either"}
    assert made.resources["web"].properties == {"size": 1}


@pytest.mark.parametrize("version", [AWS, HEAT])
def test_nearly_nothing_is_enough(version: str) -> None:
    sections = ("Parameters", "Mappings", "Resources", "Outputs", "Description")
    assert not defined(cfn(version)).resources
    assert not defined(cfn(version, **dict.fromkeys(sections))).resources


def test_remarks_are_passed_over() -> None:
    remarks = {"Comment": "x", "CreationPolicy": {}, "UpdateReplacePolicy": "Retain", "//": 1}
    outputs = {"o": {"Value": 1, "Note": "x", "Export": {"Name": "y"}}}
    made = defined(cfn(Resources={"a": cfn_thing() | remarks}, Outputs=outputs))
    assert made.resources["a"].deletion_policy == "Delete" and made.outputs["o"].value == 1


def one(**keys: Json) -> dict[str, Json]:
    return cfn(Resources={"a": {"Type": "Test::Thing", **keys}})


def output(value: Json) -> dict[str, Json]:
    return cfn(Outputs={"o": value})


def conditions(**named: Json) -> dict[str, Json]:
    return cfn(Conditions=named)


CONDITION = "Condition validation error: "
FAULTS: list[tuple[dict[str, Json], str, str]] = [
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
    (cfn(Resources={"a": {}}), "Resources.a", 'Resource "a" has no type'),
    (cfn(Resources={"a/b": cfn_thing()}), "Resources.a/b", 'must not be empty or contain "/"'),
    (one(type="x"), "Resources.a", '"type" is not a valid keyword'),
    (one(DependOn="x"), "Resources.a", '"DependOn" is not a valid keyword'),
    (one(Type="Test::Thign"), "Resources.a.Type", "(Test::Thign) could not be found"),
    (one(Properties={"sise": 1}), "Resources.a.Properties", "Unknown Property sise"),
    (one(Properties={"size": 99}), "Resources.a.Properties.size", "is out of range"),
    (one(Properties=5), "Resources.a.Properties", "must be a map"),
    (one(Metadata=[]), "Resources.a.Metadata", "must be a map"),
    (one(DependsOn="nobody"), "Resources.a.DependsOn", "(in a) is incorrect"),
    (one(DependsOn=[5]), "Resources.a.DependsOn", "a name or a list of names"),
    (one(DeletionPolicy="retain"), "Resources.a.DeletionPolicy", 'policy "retain"'),
    (one(DeletionPolicy="Snapshot"), "Resources.a.DeletionPolicy", "not supported"),
    (
        one(DeletionPolicy={"Fn::GetAtt": ["a", "output"]}),
        "Resources.a.DeletionPolicy",
        "must be known when the stack is defined",
    ),
    (one(Description=[1]), "Resources.a.Description", "must be text"),
    (one(Condition="x"), "Resources.a.Condition", 'Invalid condition "x"'),
    (one(Condition=5), "Resources.a.Condition", 'Invalid condition "5"'),
    (
        cfn(HEAT, Resources={"a": cfn_thing() | {"Condition": "x"}}),
        "Resources.a",
        '"Condition" is not a valid keyword inside a resource definition of 2012-12-12',
    ),
    (
        cfn(HEAT, Outputs={"o": {"Value": 1, "Condition": "x"}}),
        "Outputs.o",
        '"Condition" is not a valid keyword inside a output definition of 2012-12-12',
    ),
    (output("x"), "Outputs.o", "must be a map with a value"),
    (output({"value": 1}), "Outputs.o", "Each output must contain a Value key"),
    (output({"Value": {"Ref": "x"}}), "Outputs.o.Value.Ref", '"x" (in o) is incorrect'),
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
    (conditions(c={"Fn::And": [True]}), "Conditions.c", CONDITION + "The minimum number"),
    (conditions(c={"Fn::Not": [True, True]}), "Conditions.c", "of the form: [condition]"),
    (conditions(c={"Fn::Not": True}), "Conditions.c", "of the form: [condition]"),
    (conditions(c={"Fn::Equals": [1, 2, 3]}), "Conditions.c", '"Fn::Equals" must be of the form'),
    (conditions(c={"Fn::FindInMap": ["m", "k"]}), "Conditions.c", "[mapping, key, value]"),
    (conditions(c={"Fn::FindInMap": ["m", "k", "v"]}), "Conditions.c", 'Mappings has no key "m"'),
    (conditions(c={"Ref": "AWS::Regoin"}), "Conditions.c", "(AWS::Regoin) was not provided"),
    (conditions(c={"Ref": ["AWS::Region"]}), "Conditions.c", "must be the name of a parameter"),
    (conditions(c={"Ref": "AWS::Region"}), "Conditions.c", "Invalid condition"),
    (conditions(c="d", d=True), "Conditions.c", 'definition of condition "c" is invalid: d'),
    (conditions(c={"Fn::Not": ["c"]}), "Conditions.c", "Circular definition"),
    (conditions(c={"Fn::Join": ["", []]}), "Conditions.c", '"Fn::Join" is invalid in this cont'),
    (conditions(c={"equals": [1, 1]}), "Conditions.c", "Invalid condition"),
    (cfn(Hooks={}), "Hooks", "must be a list of rules"),
    (one(Hooks=5), "Resources.a.Hooks", "is not a hook"),
]


@pytest.mark.parametrize(("template", "place", "part"), FAULTS)
def test_what_is_wrong_is_told(template: dict[str, Json], place: str, part: str) -> None:
    found = faults(template)
    match = [one for one in found if part in one.reason]
    assert match, found
    assert match[0].place == place


def test_remedies() -> None:
    def said(template: dict[str, Json]) -> str:
        return faults(template)[0].remedy

    assert said(one(DependOn="x")) == 'Did you mean "DependsOn"?'
    assert said(cfn(Parameter={})) == 'Did you mean "Parameters"?'
    newer = "Use AWSTemplateFormatVersion 2010-09-09."
    assert said(cfn(HEAT, Conditions={})) == newer
    assert said(cfn(HEAT, Resources={"a": cfn_thing() | {"Condition": "x"}})) == newer
    named = conditions(c={"Fn::And": [{"Condition": "d"}, True]}, d=True)
    assert said(named) == 'Write the name alone: "d".'


def test_one_fault_is_told_once() -> None:
    off = cfn(
        Conditions={"no": {"Fn::Not": [True]}},
        Resources={"a": cfn_thing() | {"Condition": "no"}, "b": cfn_thing(value={"Ref": "a"})},
    )
    assert [one.remedy for one in faults(off)] == ["Its condition is off."]
    missing = cfn(
        Parameters={"p": {"Type": "String"}}, Resources={"a": cfn_thing(value={"Ref": "p"})}
    )
    assert [one.code for one in faults(missing)] == ["UserParameterMissing"]


def test_everything_is_told_at_once() -> None:
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


def test_hooks_of_a_template_are_those_of_hot() -> None:
    rule = {"on": ["pre-update"], "when": {"equals": [{"get_param": "AWS::StackName"}, "s"]}}
    template = one(Hooks=["pre-create", rule]) | {"Hooks": [{"at": "a", "on": ["pre-delete"]}]}
    made = defined(template)
    assert made.hook_declarations == (
        HookDeclaration("a", "pre-create", "Resources.a.Hooks[0]", short=True),
        HookDeclaration("a", rule, "Resources.a.Hooks[1]", short=False),
        HookDeclaration("a", {"on": ["pre-delete"]}, "Hooks[0]", short=False),
    )
    assert made.decide(rule["when"], "") is True
    assert defined(conditions(c={"Fn::Not": [True]})).decide("c", "") is False


def region(default: str, **sections: Json) -> StackDefinition:
    template = cfn(Outputs={"o": {"Value": {"Ref": "AWS::Region"}}}, **sections)
    return defined(template, {"parameter_defaults": {"AWS::Region": default}})


def test_pseudo_parameters_have_other_values_by_default() -> None:
    assert region("us-east-1").outputs["o"].value == "us-east-1"
    assert region("us-east-1").shown_parameters()["AWS::Region"] == "us-east-1"
    own = {"AWS::Region": {"Type": "String", "AllowedValues": ["mine"]}}
    assert region("mine", Parameters=own).outputs["o"].value == "mine"
    with pytest.raises(Invalid, match=r"Parameter 'AWS::Region' is invalid: \"mars\" is not"):
        region("mars")
    hot = {"outputs": {"o": {"value": {"get_param": "OS::stack_name"}}}}
    made = defined(hot, {"parameter_defaults": {"OS::stack_name": "other"}})
    assert made.outputs["o"].value == "other"


def test_what_hangs_on_an_unknown_pseudo_parameter_is_not_there() -> None:
    template = cfn(Outputs={"o": {"Value": {"Ref": "AWS::Region"}}})
    made = defined(template, pseudo={"OS::project_id": "p"})
    assert made.shown_parameters() == {"AWS::Region": "ap-southeast-1"}
    made = defined(template, pseudo={"OS::project_id": "a b", "OS::stack_name": "s"})
    assert "AWS::StackId" not in made.pseudo and made.pseudo["AWS::StackName"] == "s"
    full = {"OS::project_id": "a/b", "OS::stack_name": "s", "OS::stack_id": "i"}
    found = defined(template, pseudo=full).pseudo["AWS::StackId"]
    assert found == "arn:openstack:heat::a%2Fb:stacks/s/i"


def test_documents_are_cut_in_their_own_words() -> None:
    left = without_resources(WHOLE, ["db", "off", "never"])
    assert set(parse_template(left).resources) == {"web", "either"}
    assert empty_template(WHOLE) == {AWS: "2010-09-09"}
    assert without_resources({"heat_template_version": "2021-04-16"}, ["a"])["resources"] == {}
