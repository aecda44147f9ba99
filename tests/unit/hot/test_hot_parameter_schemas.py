"""Parameters with a `schema`, in templates of Headgate's own version."""

from typing import Any

import pytest

from engine.hot.functions.cost_budget import CostLimits
from engine.hot.syntax.positions import find_positions
from engine.words import Json
from tests.unit.hot.hot_support import defined, faults, thing

SCHEMA = {
    "type": "object",
    "required": ["host"],
    "additionalProperties": False,
    "properties": {
        "host": {"type": "string", "pattern": "^[a-z.]+$"},
        "ports": {"type": "array", "items": {"type": "integer", "maximum": 65535}},
    },
}


def template(schema: Json = SCHEMA, kind: str = "json", **more: Json) -> dict[str, Json]:
    return {
        "heat_template_version": "2026-12-01",
        "parameters": {"mail": {"type": kind, "schema": schema, **more}},
        "resources": {},
    }


def given(value: Json, **more: Any) -> dict[str, Any]:
    return {"parameters": {"mail": value}, **more}


@pytest.mark.parametrize(
    "value", [{"host": "a.b"}, '{"host": "a", "ports": [25]}'], ids=["a map", "JSON text"]
)
def test_a_value_that_matches_is_accepted(value: Json) -> None:
    assert defined(template(), **given(value)).parameters["mail"]["host"].startswith("a")


@pytest.mark.parametrize(
    ("value", "reason"),
    [
        ({"host": 5}, 'host: 5 is not of type "string"'),
        ({"host": "A"}, 'host: "A" does not match "^[a-z.]+$"'),
        ({"host": "a", "ports": [1, 70000]}, "ports[1]: 70000 is greater than"),
        ({}, '"host" is a required property'),
        ({"host": "a", "prot": 1}, "'prot' was unexpected"),
        ([], '[] is not of type "object"'),
        ("", '"" is not of type "object"'),
    ],
    ids=["type", "pattern", "inside a list", "missing", "unknown key", "list", "empty"],
)
def test_a_value_that_does_not_match_is_refused_with_its_path(value: Json, reason: str) -> None:
    (found,) = faults(template(), **given(value))
    assert found.place == "parameters.mail.schema"
    assert found.reason.startswith("Parameter 'mail' is invalid: ") and reason in found.reason
    assert found.remedy == "Correct the value that you give for the parameter."


def test_several_violations_are_reported_together() -> None:
    (found,) = faults(template(), **given({"host": 1, "ports": [0.5]}))
    assert 'host: 1 is not of type "string"; ports[0]: 0.5' in found.reason


def test_the_finding_has_the_position_of_the_schema() -> None:
    text = (
        "heat_template_version: 2026-12-01\n"
        "parameters:\n  mail:\n    type: json\n    schema: {type: object}\n"
    )
    (found,) = faults(template({"type": "object"}), **given([]))
    assert find_positions(text, [found.place])[found.place][:2] == (5, 5)


@pytest.mark.parametrize("hidden", [{"hidden": True}, {}], ids=["declared", "in the environment"])
def test_a_hidden_value_is_not_quoted(hidden: dict[str, Json]) -> None:
    environment = {} if hidden else {"encrypted_param_names": ["mail"]}
    (found,) = faults(template(**hidden), environment, **given({"s3cret": "s3cret"}))
    assert "s3cret" not in str(found)
    assert "its hidden value does not match the schema of the parameter" in found.reason


def test_a_default_is_checked() -> None:
    (found,) = faults(template(default={"host": 1}))
    assert (found.place, found.code) == ("parameters.mail.default", "InvalidSchemaError")
    assert 'host: 1 is not of type "string"' in found.reason


@pytest.mark.parametrize(
    ("schema", "reason"),
    [
        ([], "The schema must be a map."),
        ({"type": "objekt"}, '"objekt" is not a type of JSON schemas'),
        ({"pattern": "("}, "regular expression"),
        ({"$ref": "https://example.com/x"}, "only references such as"),
        ({"$defs": {"a": {"$ref": "#/$defs/a"}}}, "refers to itself"),
        ({"description": "x" * 20_000}, "longer than 16384"),
    ],
    ids=["list", "type", "pattern", "remote", "recursive", "long"],
)
def test_wrong_schemas_are_refused_at_their_place(schema: Json, reason: str) -> None:
    (found,) = faults(template(schema), **given({}))
    assert found.place.startswith("parameters.mail.schema") and reason in found.reason
    assert found.remedy in ("Write a JSON schema; see json-schema.org.", 'Did you mean "object"?')


def test_other_types_have_no_schema() -> None:
    (found,) = faults(template(kind="string"), **given("x"))
    assert found.place == "parameters.mail.schema"
    assert found.reason == "A parameter of type string cannot have a schema."


def test_earlier_versions_warn_and_name_the_version() -> None:
    older = template() | {"heat_template_version": "2021-04-16"}
    (warning,) = defined(older, **given({"x": 1})).warnings
    assert (warning.code, warning.place) == ("NoEffect", "parameters.mail.schema")
    assert "2026-12-01" in warning.remedy


# -- nested templates -----------------------------------------------------------------------------

INNER = """
heat_template_version: headgate
parameters:
  mail: {type: json, schema: {type: object, properties: {host: {type: string}}}HIDDEN}
resources: {}
"""


def outer(value: Json, hidden: str = "", **more: Any) -> dict[str, Any]:
    body = {"type": "inner.yaml", "properties": {"mail": value}}
    sections = {"resources": {"b": thing(), "n": body}, **more}
    return {"template": {"heat_template_version": "headgate", **sections},
            "files": {"inner.yaml": INNER.replace("HIDDEN", hidden)}}  # fmt: skip


def test_a_nested_template_checks_what_is_known() -> None:
    (found, *_) = faults(**outer({"host": 5}))
    assert found.place == "resources.n.properties.mail"
    assert found.reason == 'host: 5 is not of type "string"'


def test_a_value_with_an_unknown_part_is_checked_later() -> None:
    value = {"host": {"get_attr": ["b", "output"]}, "x": 1}
    assert defined(**outer(value)).nested["n"].parameters == {}


def test_secrets_in_nested_stacks_are_not_quoted() -> None:
    secret = {"p": {"type": "string", "hidden": True, "default": "s3cret"}}
    found = faults(**outer([{"get_param": "p"}], parameters=secret))
    assert found and "s3cret" not in str(found)
    found = faults(**outer(["s3cret"], ", hidden: true"))
    assert found and "s3cret" not in str(found[0])


# -- cost -----------------------------------------------------------------------------------------


def test_checks_of_large_values_spend_steps() -> None:
    schema = {"items": {"anyOf": [{"pattern": f"a{n}b+"} for n in range(20)]}}
    value = ["x" * 100] * 30
    (found,) = faults(template(schema), **given(value, limits=CostLimits(steps=100)))
    assert "more steps than are allowed" in found.reason
    (found,) = faults(template(schema), **given(value))
    assert "not valid under any of the schemas" in found.reason
    (found,) = faults(template(schema), **given(value * 10))
    assert "more than the 20000 steps" in found.reason


def test_many_regular_expressions_in_schemas_are_refused() -> None:
    names = {
        f"p{n}": {"type": "json", "default": {}, "schema": {"pattern": f"a{n}"}} for n in range(101)
    }
    found = faults({"heat_template_version": "headgate", "parameters": names, "resources": {}})
    assert found[0].place == "parameters.p99.schema" and "more steps" in found[0].reason


def test_the_message_of_a_violation_is_short() -> None:
    (found,) = faults(template(), **given({"host": "A" * 2_000}))
    assert found.reason.endswith("...") and len(found.reason) < 400


@pytest.mark.parametrize(
    ("schema", "at", "remedy"),
    [
        ({"type": "obect"}, ".type", 'Did you mean "object"?'),
        ({"properties": {"a": {"type": "strng"}}}, ".properties.a.type", '"string"?'),
        ({"items": {"type": ["string", "nul"]}}, ".items.type", '"null"?'),
        ({"anyOf": [{"type": 5}]}, ".anyOf[0].type", "Types: object, array"),
        ({"properties": {"type": 5}}, ".properties.type", "json-schema.org"),
        ({"type": ["string", "string"]}, ".type", "json-schema.org"),
        ({"required": "a"}, ".required", "json-schema.org"),
    ],
)
def test_a_fault_of_a_schema_has_its_path(schema: Json, at: str, remedy: str) -> None:
    (found,) = faults(template(schema))
    assert found.place == f"parameters.mail.schema{at}" and remedy in found.remedy
    assert at == ".type" or "anyOf" not in found.reason
