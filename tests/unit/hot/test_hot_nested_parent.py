"""What nested templates read of their parent stack, also in CloudFormation syntax."""

import json

import pytest

from engine.errors import Invalid
from tests.unit.hot.hot_support import defined, thing
from tests.unit.hot.nested_support import (
    UNKNOWN,
    findings_of,
    nested,
    template,
)


def test_a_nested_template_reads_its_resource() -> None:
    inner = template(
        resources={
            "x": thing(
                text={"resource_facade": "deletion_policy"},
                map={"inner": {"get_param": "n"}},
                value={"resource_facade": "metadata"},
            )
            | {"deletion_policy": {"resource_facade": "deletion_policy"}},
            "y": thing(sise={"resource_facade": "metadata"}),
        },
        parameters={"n": {"type": "number", "default": 1}},
    )
    around = {"metadata": {"a": {"get_attr": ["b", "output"]}}, "deletion_policy": "Retain"}
    resources = {"web": {"type": "server.yaml"} | around, "b": thing()}
    (finding,) = findings_of(resources, {"server.yaml": inner})
    assert finding.place == "resources.web<server.yaml>.resources.y.properties"
    sound = inner.replace("sise", "value")
    assert nested(resources, {"server.yaml": sound}).nested == {}
    bad = sound.replace('"metadata"', '"metedata"')
    assert len(findings_of(resources, {"server.yaml": bad})) == 2


def test_a_nested_template_reads_the_update_policy_of_its_resource() -> None:
    files = {
        "server.yaml": template(resources={"x": thing(size={"resource_facade": "update_policy"})})
    }
    (finding,) = findings_of({"web": {"type": "server.yaml", "update_policy": {"batch": 2}}}, files)
    assert finding.place == "resources.web<server.yaml>.resources.x.properties.size"
    assert "{'batch': 2}" in finding.reason


def test_hidden_metadata_is_unknown_in_a_nested_template_until_it_exists() -> None:
    inner = template(resources={"x": thing(size={"resource_facade": "metadata"})})
    sections = {"parameters": {"p": {"type": "string", "hidden": True}}}
    around = {"type": "server.yaml", "metadata": {"m": {"get_param": "p"}}}
    files, parameters = {"server.yaml": inner}, {"p": "planted"}
    assert nested({"web": around}, files, template=sections, parameters=parameters).nested == {}


CLOUDFORMATION = json.dumps(
    {
        "AWSTemplateFormatVersion": "2010-09-09",
        "Parameters": {"Size": {"Type": "Number"}, "Name": {"Type": "String"}},
        "Conditions": {
            "Named": {"Fn::Equals": [{"Ref": "Name"}, "x"]},
            "Own": {"Fn::Equals": [{"Ref": "AWS::StackName"}, "x"]},
        },
        "Resources": {
            "A": {"Type": "Test::Thing", "Properties": {"sise": {"Ref": "Size"}}},
            "B": {"Type": "Test::Thing", "Condition": "Named", "Properties": {"sise": 1}},
            "C": {"Type": "gone.yaml", "Condition": "Own"},
            "D": {"Type": "inner.template"},
        },
        "Outputs": {"O": {"Value": {"Fn::Join": ["", [{"Ref": "AWS::StackId"}]]}}},
    }
)


def test_cloudformation_templates_as_parent_and_as_nested_template() -> None:
    files = {
        "older.template": CLOUDFORMATION,
        "inner.template": template(resources={"q": thing(sise=1)}),
    }
    properties = {"Size": "4", "Name": UNKNOWN}
    top = {"web": {"type": "older.template", "properties": properties}, "b": thing()}
    assert [one.place for one in findings_of(top, files)] == [
        "resources.web<older.template>.Resources.A.Properties",
        "resources.web<older.template>.Resources.D<inner.template>.resources.q.properties",
    ]
    around = {
        "AWSTemplateFormatVersion": "2010-09-09",
        "Resources": {"W": {"Type": "gone.yaml"}, "V": {"Type": "inner.template"}},
    }
    with pytest.raises(Invalid) as caught:
        defined(around, files=files)
    assert [one.place for one in caught.value.findings] == [
        "Resources.W.Type",
        "Resources.V<inner.template>.resources.q.properties",
    ]
