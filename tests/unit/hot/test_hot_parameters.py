"""Parameters: schemas, conversions, constraints, and messages about invalid ones."""

import pytest

from engine.hot.expressions.expression import is_static
from engine.hot.schema.custom_constraints import CUSTOM_CHECKS
from engine.words import Json
from tests.unit.hot.hot_support import defined, faults, thing


def value(kind: str, text: Json, **more: Json) -> Json:
    template = {"parameters": {"p": {"type": kind, **more}}}
    return defined(template, parameters={"p": text}).parameters["p"]


@pytest.mark.parametrize(
    ("kind", "text", "converted"),
    [
        ("string", 5, "5"),
        ("string", True, "True"),
        ("number", "5", 5),
        ("number", "1.0", 1.0),
        ("number", 2.5, 2.5),
        ("comma_delimited_list", "x, y", ["x", " y"]),
        ("comma_delimited_list", "", []),
        ("comma_delimited_list", ["a", 1], ["a", "1"]),
        ("json", '{"a": [1]}', {"a": [1]}),
        ("json", "[18446744073709551615, -9223372036854775808]", [2**64 - 1, -(2**63)]),
        ("json", '["18446744073709551616", 1e30]', ["18446744073709551616", 1e30]),
        ("json", [1], [1]),
        ("json", "", ""),
        ("boolean", "ON", True),
        ("boolean", 0, False),
        ("boolean", "n", False),
    ],
)
def test_values_are_converted(kind: str, text: Json, converted: Json) -> None:
    found = value(kind, text)
    assert found == converted and type(found) is type(converted)


@pytest.mark.parametrize(
    ("kind", "rule", "text", "message"),
    [
        ("number", {"range": {"min": 4, "max": 64}}, 999, "999 is out of range (min: 4, max: 64)"),
        (
            "string",
            {"length": {"min": 4, "max": 64}},
            "abc",
            "length (3) is out of range (min: 4, max: 64)",
        ),
        (
            "number",
            {"modulo": {"step": 2, "offset": 0}},
            5,
            "5 is not a multiple of 2 with an offset of 0",
        ),
        ("string", {"allowed_values": ["a", "b"]}, "x", '"x" is not an allowed value ["a", "b"]'),
        ("number", {"allowed_values": [1, "2"]}, 3, "3 is not an allowed value [1, 2]"),
        (
            "comma_delimited_list",
            {"allowed_values": ["a"]},
            "a,b",
            '["a", "b"] is not an allowed value',
        ),
        ("string", {"allowed_pattern": "[a-z]+"}, "ab1", '"ab1" does not match pattern "[a-z]+"'),
        ("string", {"allowed_pattern": "a", "description": "only a"}, "b", "only a"),
        ("string", {"custom_constraint": "ip_addr"}, "1.2.3", "Error validating value '1.2.3'"),
        ("string", {"custom_constraint": "net_cidr"}, "1.2.3.4", "Error validating value"),
        ("string", {"custom_constraint": "ip_or_cidr"}, "x/8", "Error validating value"),
        ("string", {"custom_constraint": "mac_addr"}, "00:11", "Error validating value"),
        ("string", {"custom_constraint": "json_string"}, "{", "Error validating value"),
        ("string", {"custom_constraint": "iso_8601"}, "never", "Error validating value"),
        ("number", {}, "abc", '"abc" is not a number'),
        ("number", {}, "x" * 201, f'"{"x" * 200}..." is not a number'),
        ("number", {}, "nan", "nan is too large"),
        ("number", {}, True, "true is not a number"),
        ("boolean", {}, "maybe", "Unrecognized value 'maybe'"),
        ("json", {}, "{", "Value must be valid JSON"),
        ("json", {}, f"[{2**64}]", f"Value must be valid JSON: the number {2**64} is too large"),
        (
            "json",
            {},
            f"[{-(2**63) - 1}]",
            "Value must be valid JSON: the number -9223372036854775809 is",
        ),
        (
            "json",
            {},
            "[" * 1000 + "1" * 19 + "]" * 1000,
            "Value must be valid JSON: it is nested too",
        ),
        ("string", {}, [1], "Value must be a string"),
        ("comma_delimited_list", {}, 5, "Value must be a comma-delimited list string"),
    ],
)
def test_invalid_values_are_refused(kind: str, rule: Json, text: Json, message: str) -> None:
    body = {"type": kind} | ({"constraints": [rule]} if rule else {})
    (found,) = faults({"parameters": {"p": body}}, parameters={"p": text})
    assert found.place == "" and found.reason.startswith("Parameter 'p' is invalid: " + message)


@pytest.mark.parametrize(
    ("rule", "text"),
    [
        ({"custom_constraint": "ip_addr"}, "::1"),
        ({"custom_constraint": "net_cidr"}, "10.0.0.0/8"),
        ({"custom_constraint": "mac_addr"}, "00:11:22:33:44:ff"),
        ({"custom_constraint": "nova.flavor"}, "whatever"),
        ({"allowed_pattern": "a|ab"}, "ab"),
        ({"length": {"min": 2}}, "ab"),
    ],
)
def test_valid_values_are_accepted(rule: Json, text: Json) -> None:
    assert value("string", text, constraints=[rule]) == text


@pytest.mark.parametrize(
    ("body", "message"),
    [
        ({}, "Missing parameter type"),
        ({"type": "strnig"}, "Invalid type (strnig)"),
        ("string", "expected a mapping"),
        ({"type": "string", "defualt": 1}, "Invalid key 'defualt' for parameter"),
        ({"type": "string", "constraints": {}}, "expected a list"),
        ({"type": "string", "constraints": [{}]}, "No constraint expressed"),
        (
            {"type": "string", "constraints": [{"lenght": 1}]},
            "Invalid key 'lenght' for parameter constraints",
        ),
        (
            {"type": "string", "constraints": [{"range": {"min": 1}}]},
            "Range constraint invalid for",
        ),
        ({"type": "string", "constraints": [{"length": {}}]}, "must have a min value"),
        ({"type": "string", "constraints": [{"length": {"min": 1.5}}]}, "whole numbers"),
        (
            {"type": "number", "constraints": [{"modulo": {"step": 0, "offset": 0}}]},
            "step cannot be 0",
        ),
        ({"type": "number", "constraints": [{"modulo": {"step": 2, "offset": 3}}]}, "smaller"),
        (
            {"type": "number", "constraints": [{"modulo": {"step": -2, "offset": 1}}]},
            "both positive",
        ),
        ({"type": "string", "constraints": [{"allowed_pattern": "("}]}, "not a regular expression"),
        (
            {"type": "number", "default": 5, "constraints": [{"range": {"max": 4}}]},
            "Invalid default",
        ),
        ({"type": "string", "hidden": "perhaps"}, "Unrecognized value"),
    ],
)
def test_invalid_schemas_are_refused(body: Json, message: str) -> None:
    found = faults({"parameters": {"p": body}}, parameters={"p": "x"})
    assert message in found[0].reason and found[0].code == "InvalidSchemaError"


def test_missing_and_unknown_parameters_are_reported() -> None:
    found = faults({"parameters": {"size": {"type": "string"}}}, parameters={"sise": 1})
    assert [(f.reason, f.code) for f in found] == [
        ("The Parameter (sise) was not defined in template.", "UnknownUserParameter"),
        ("The Parameter (size) was not provided.", "UserParameterMissing"),
    ]
    assert found[0].remedy == 'Did you mean "size"?'


def test_the_priority_of_values() -> None:
    template = {"parameters": {"p": {"type": "string", "default": "template"}}}
    environment: dict[str, Json] = {"parameter_defaults": {"p": "defaults", "unknown": 1}}
    assert defined(template).parameters["p"] == "template"
    assert defined(template, environment).parameters["p"] == "defaults"
    environment["parameters"] = {"p": "environment"}
    assert defined(template, environment).parameters["p"] == "environment"
    assert defined(template, environment, {"p": "request"}).parameters["p"] == "request"
    assert defined(template, {}, {"p": None}).parameters["p"] == "template"


def test_an_overridden_default_is_not_validated_with_custom_constraints() -> None:
    p = {"type": "string", "default": "here", "constraints": [{"custom_constraint": "ip_addr"}]}
    assert defined({"parameters": {"p": p}}, parameters={"p": "::1"}).parameters == {"p": "::1"}
    (one,) = faults({"parameters": {"p": p}})
    assert one.code != "InvalidSchemaError"


def test_limits_of_custom_constraints() -> None:
    longest = ".".join(["a" * 63] * 3 + ["a" * 60])
    assert CUSTOM_CHECKS["rel_dns_name"](longest) and not CUSTOM_CHECKS["rel_dns_name"](
        longest + "a"
    )
    assert CUSTOM_CHECKS["dns_name"](longest + "a")
    assert not CUSTOM_CHECKS["ip_addr"](5) and CUSTOM_CHECKS["ip_addr"]("5.0.0.1")


def test_a_delimiter_can_be_unknown() -> None:
    late = {"get_attr": ["b", "output"]}
    resources = {"a": thing(value={"list_join": [late, ["x", "y"]]}), "b": thing()}
    assert not is_static(defined({"resources": resources}).resources["a"].properties)
