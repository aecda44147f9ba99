"""Parameters of CloudFormation templates: their values, and messages about invalid ones."""

import pytest

from engine.hot.definition.stack import StackDefinition
from engine.words import Json
from tests.unit.hot.cfn_support import AWS, HEAT, cfn
from tests.unit.hot.hot_support import defined, faults


def stack(version: str = AWS, parameters: Json = None, **body: Json) -> StackDefinition:
    template = cfn(version, Parameters={"p": body}, Outputs={"o": {"Value": {"Ref": "p"}}})
    return defined(template, parameters={"p": parameters})


VALUES: list[tuple[dict[str, Json], Json]] = [
    ({"Type": "String", "Default": 5}, "5"),
    ({"Type": "Number", "Default": "1.5"}, 1.5),
    ({"Type": "Number", "Default": "5", "MinValue": "1", "MaxValue": 5}, 5),
    ({"Type": "CommaDelimitedList", "Default": "a, b"}, ["a", " b"]),
    ({"Type": "CommaDelimitedList", "Default": ["a", 1]}, ["a", "1"]),
    ({"Type": "CommaDelimitedList", "Default": "a,b", "AllowedValues": ["a", "b"]}, ["a", "b"]),
    ({"Type": "Json", "Default": {"a": 1}}, {"a": 1}),
    ({"Type": "Json", "Default": '{"a": 1}', "MinLength": 1}, {"a": 1}),
    ({"Type": "Boolean", "Default": "on"}, True),
    ({"Type": "String", "Default": "abc", "MinLength": "1", "MaxLength": 3}, "abc"),
    ({"Type": "String", "Default": "abc", "AllowedPattern": "[a-c]+"}, "abc"),
    ({"Type": "Number", "Default": "5", "AllowedValues": ["5"]}, 5),
    ({"Type": "String", "Default": "x", "ConstraintDescription": "of nothing"}, "x"),
]


@pytest.mark.parametrize("version", [AWS, HEAT])
@pytest.mark.parametrize(("body", "value"), VALUES)
def test_values_of_cloudformation_parameters(
    version: str, body: dict[str, Json], value: Json
) -> None:
    assert stack(version, **body).outputs["o"].value == value


INVALID_PARAMETERS: list[tuple[Json, str, str]] = [
    (None, "", "Invalid parameter (p), expected a mapping"),
    ({"Default": "x"}, ".Type", "Missing parameter type for parameter: p"),
    ({"Type": "string"}, ".Type", "Invalid type (string)"),
    ({"Type": "List<Number>"}, ".Type", "Invalid type (List<Number>)"),
    ({"Type": "AWS::EC2::KeyPair::KeyName"}, ".Type", "Invalid type (AWS::EC2::KeyPair::KeyName)"),
    ({"Type": "String", "Immutable": True}, "", "Invalid key 'Immutable' for parameter (p)"),
    ({"Type": "String", "Description": [1]}, ".Description", "must be text"),
    ({"Type": "Number", "Default": "x"}, ".Default", "Invalid default x ("),
    ({"Type": "Boolean", "Default": "x"}, ".Default", "Unrecognized value"),
    (
        {"Type": "String", "Default": "z", "AllowedValues": ["x"]},
        ".Default",
        'Invalid default z ("z" is not an allowed value ["x"])',
    ),
    ({"Type": "String", "AllowedValues": "xyz"}, ".AllowedValues", "AllowedValues must be a list"),
    ({"Type": "Json", "AllowedValues": ["x"]}, ".AllowedValues", "constraint invalid for Json"),
    ({"Type": "String", "AllowedPattern": 5}, ".AllowedPattern", "AllowedPattern must be a string"),
    ({"Type": "String", "AllowedPattern": "["}, ".AllowedPattern", "is not a regular expression"),
    ({"Type": "Number", "AllowedPattern": "x"}, ".AllowedPattern", "constraint invalid for Number"),
    ({"Type": "String", "MinLength": 1.5}, ".MinLength", "must be whole numbers"),
    ({"Type": "String", "MaxLength": "x"}, ".MaxLength", "must be numeric"),
    ({"Type": "String", "MinLength": None}, ".MinLength", "must have a min value and/or a max"),
    ({"Type": "Number", "MinLength": 1}, ".MinLength", "MinLength constraint invalid for Number"),
    ({"Type": "String", "MaxValue": 1}, ".MaxValue", "MaxValue constraint invalid for String"),
]


@pytest.mark.parametrize("version", [AWS, HEAT])
@pytest.mark.parametrize(("body", "place", "part"), INVALID_PARAMETERS)
def test_invalid_cloudformation_parameters_are_reported(
    version: str, body: Json, place: str, part: str
) -> None:
    (found,) = faults(cfn(version, Parameters={"p": body}))
    assert part in found.reason
    assert (found.place, found.code) == (f"Parameters.p{place}", "InvalidSchemaError")


@pytest.mark.parametrize(
    ("written", "remedy"),
    [
        ("List<Number>", 'Use "CommaDelimitedList".'),
        ("AWS::EC2::Image::Id", 'Use "String".'),
        ("Sting", 'Did you mean "String"?'),
        ("x", "One of String, Number, CommaDelimitedList, Json, Boolean."),
    ],
)
def test_an_unknown_type_has_a_remedy(written: str, remedy: str) -> None:
    assert faults(cfn(Parameters={"p": {"Type": written}}))[0].remedy == remedy


@pytest.mark.parametrize(
    ("rule", "value"),
    [
        ({"Type": "String", "MinLength": 5}, "a"),
        ({"Type": "String", "AllowedPattern": "[a-c]+"}, "abx"),
        ({"Type": "Number", "MaxValue": 5}, 6),
        ({"Type": "CommaDelimitedList", "AllowedValues": ["a"]}, "a,b"),
    ],
)
def test_a_violated_constraint_is_reported_with_its_description(
    rule: dict[str, Json], value: Json
) -> None:
    template = cfn(Parameters={"p": rule | {"ConstraintDescription": "as agreed"}})
    (found,) = faults(template, parameters={"p": value})
    assert found.reason == "Parameter 'p' is invalid: as agreed"
    assert faults(template)[0].code == "UserParameterMissing"


@pytest.mark.parametrize(("no_echo", "hidden"), [("TRUE", True), (True, True), ("yes", False)])
def test_no_echo_hides_values(no_echo: Json, hidden: bool) -> None:
    definition = stack(Type="String", Default="x", NoEcho=no_echo)
    assert definition.shown_parameters()["p"] == ("******" if hidden else "x")
