"""Initial templates of resource types."""

import random

import pytest

from engine.hot.schema.type_schema import Constraint, Kind, Property, TypeSchema
from engine.hot.syntax.document import DocumentLimits, check_document
from engine.hot.template.template import parse_template
from engine.types.command import Command, CommandSettings
from engine.types.random_string import RandomString
from engine.types.registry import built_in
from hub.api.orchestration.resource_types import cfn_template, hot_template
from tests.support.scripted_type import Thing, World

LIMITS = DocumentLimits(max_bytes=1_000_000, max_depth=50)


def test_the_template_of_a_random_string_is_heats() -> None:
    found = hot_template(RandomString(random.Random(1)).schema)
    assert found["heat_template_version"] == "2016-10-14"
    assert found["description"] == "Initial template of RandomString"
    length = found["parameters"]["length"]
    assert (length["type"], length["default"]) == ("number", 32)
    assert length["constraints"] == [{"range": {"min": 1, "max": 512}}]
    assert found["parameters"]["salt"]["type"] == "string"
    assert set(found["outputs"]) == {"value", "show", "OS::stack_id"}
    assert found["outputs"]["value"]["value"] == {"get_attr": ["RandomString", "value"]}
    assert found["outputs"]["OS::stack_id"] == {"value": {"get_resource": "RandomString"}}
    assert found["resources"]["RandomString"]["properties"]["salt"] == {"get_param": "salt"}


@pytest.mark.parametrize(
    ("one", "kind", "cfn"),
    [
        (Property(Kind.STRING), "string", "String"),
        (Property(Kind.INTEGER), "number", "Number"),
        (Property(Kind.NUMBER), "number", "Number"),
        (Property(Kind.BOOLEAN), "boolean", "Boolean"),
        (Property(Kind.MAP), "json", "Json"),
        (Property(Kind.ANY), "json", "Json"),
        (Property(Kind.LIST), "json", "Json"),
        (Property(Kind.LIST, items=Property(Kind.MAP)), "json", "Json"),
        (
            Property(Kind.LIST, items=Property(Kind.STRING)),
            "comma_delimited_list",
            "CommaDelimitedList",
        ),
    ],
)
def test_each_kind_has_a_parameter_type(one: Property, kind: str, cfn: str) -> None:
    schema = TypeSchema("My::Own::Type", {"p": one})
    hot = hot_template(schema)
    assert hot["parameters"]["p"]["type"] == kind
    parse_template(check_document(hot, "template", LIMITS))
    made = cfn_template(schema)
    assert made["Parameters"]["p"]["Type"] == cfn
    split = {"Fn::Split": [",", {"Ref": "p"}]}
    wanted = split if cfn == "CommaDelimitedList" else {"Ref": "p"}
    assert made["Resources"]["Type"]["Properties"]["p"] == wanted


def test_constraints_and_hidden_are_in_the_template() -> None:
    rules = (
        Constraint("length", min=1, max=9), Constraint("allowed_pattern", pattern="a+"),
        Constraint("allowed_values", allowed=("a", "aa")),
    )  # fmt: skip
    schema = TypeSchema("T", {"p": Property(Kind.STRING, "d", constraints=rules, hidden=True)})
    assert hot_template(schema)["parameters"]["p"] == {
        "type": "string", "description": "d", "hidden": True,
        "constraints": [{"length": {"min": 1, "max": 9}}, {"allowed_pattern": "a+"},
                        {"allowed_values": ["a", "aa"]}],
    }  # fmt: skip
    assert cfn_template(schema)["Parameters"]["p"] == {
        "Type": "String", "Description": "d", "NoEcho": "true", "MinLength": 1, "MaxLength": 9,
        "AllowedPattern": "a+", "AllowedValues": ["a", "aa"],
    }  # fmt: skip


def test_the_template_of_every_type_is_valid() -> None:
    types = built_in(random.SystemRandom(), Command(CommandSettings()), Thing(World()))
    for schema in types.schemas().values():
        parse_template(check_document(hot_template(schema), "template", LIMITS))
