"""JSON schemas whose evaluation would take hours are refused before they are accepted
or evaluated.
"""

from datetime import timedelta
from typing import Any

import orjson
import pytest

from engine.errors import Findings, Invalid
from engine.hooks.answer_data import MAX_DATA_BYTES, MAX_DATA_DEPTH, check_data, measure_data
from engine.hooks.rule import HookLimits
from engine.hooks.rule_reader import Reader
from engine.hot.schema.schema_cost import BUDGET, MIN_EXTENT, SchemaRefused, schema_cost
from engine.words import Json

DAY = timedelta(days=1)


def doubling(levels: int, keyword: str = "allOf") -> Json:
    """Each level evaluates the next one twice."""
    definitions: dict[str, Json] = {f"s{levels}": {"type": "string"}}
    for level in range(levels):
        reference = {"$ref": f"#/$defs/s{level + 1}"}
        definitions[f"s{level}"] = {keyword: [reference, dict(reference)]}
    return {"$ref": "#/$defs/s0", "$defs": definitions}


def through_children(levels: int) -> Json:
    definitions: dict[str, Json] = {f"s{levels}": {"type": "string"}}
    for level in range(levels):
        reference = {"$ref": f"#/$defs/s{level + 1}"}
        definitions[f"s{level}"] = {
            "properties": {"a": reference},
            "patternProperties": {"a": reference},
            "additionalProperties": reference,
        }
    return {"$ref": "#/$defs/s0", "$defs": definitions}


def chain(length: int) -> Json:
    """The last link is defined first, so that no reference path is long when it is checked."""
    definitions: dict[str, Json] = {"s0": {"type": "string"}}
    for link in range(1, length):
        definitions[f"s{link}"] = {"$ref": f"#/$defs/s{link - 1}"}
    return {"$defs": definitions, "$ref": f"#/$defs/s{length - 1}"}


def nested(depth: int) -> Json:
    schema: Json = {"type": "string"}
    for _ in range(depth):
        schema = {"unevaluatedProperties": schema, "allOf": [{"type": "object"}]}
    return schema


REFUSED: dict[str, Json] = {
    "two references a level": doubling(26),
    "two references a level, in anyOf": doubling(26, "anyOf"),
    "three ways into each child": through_children(16),
    "itself": {"$ref": "#"},
    "itself in a child": {"properties": {"a": {"$ref": "#"}}},
    "itself by a round": {"$defs": {"a": {"items": {"$ref": "#/$defs/b"}},
                                    "b": {"not": {"$ref": "#/$defs/a"}}}},
    "an anchor": {"$defs": {"a": {"$anchor": "x"}}, "$ref": "#x"},
    "a dynamic reference": {"$dynamicRef": "#"},
    "a reference to an $id": {"$defs": {"a": {"$id": "x"}}, "$ref": "x"},
    "an encoded pointer": {"$defs": {"a": {}}, "$ref": "#/%24defs/a"},
    "a reference to a metaschema": {"$ref": "https://json-schema.org/draft/2020-12/schema"},
    "a long chain": chain(200),
    "unevaluated on each level": nested(20),
    "a large regular expression": {"pattern": "^((([a-z]{1,100}){1,100}){1,100})$"},
    "many regular expressions": {"allOf": [{"pattern": f"a{one}"} for one in range(200)]},
    "many that are large": {"allOf": [{"pattern": f"(a|b)*a(a|b){{{700 + one}}}c"}
                                      for one in range(60)]},
    "regular expressions in answers": {"format": "regex"},
}  # fmt: skip

ACCEPTED: dict[str, Json] = {
    "one reference a level": {"$ref": "#/$defs/a", "$defs": {"a": {"$ref": "#/$defs/b"}, "b": {}}},
    "a few levels of two": doubling(6),
    "a form": {
        "$id": "https://example.org/form", "type": "object", "required": ["ticket"],
        "properties": {"ticket": {"type": "string", "pattern": r"^[A-Z]+-\d+$"},
                       "window": {"enum": ["night", "day"]},
                       "hosts": {"type": "array", "items": {"type": "string"}, "uniqueItems": True},
                       "$id": {"type": "string"}},
        "additionalProperties": False,
    },
    "lookaround": {"pattern": r"^(?=.*[A-Z])(?=.*\d)[A-Za-z\d]{8,}$"},
    "letters of all languages": {"pattern": r"^[\w ]{1,64}$"},
    "unevaluated once": nested(1),
    "unique": {"uniqueItems": True, "items": {"type": "integer"}},
}  # fmt: skip


@pytest.mark.parametrize("schema", REFUSED.values(), ids=REFUSED)
def test_a_schema_that_costs_too_much_is_refused_in_rules(schema: Json) -> None:
    assert len(orjson.dumps(schema)) < 16_384
    findings = Findings()
    rule = {"at": "a", "on": "pre-create", "ask": {"schema": schema}}
    Reader(findings, HookLimits(DAY, DAY)).read_requested([rule])
    assert [one.place for one in findings.all] == ["hooks.add[0].ask.schema"]
    assert findings.all[0].remedy


@pytest.mark.parametrize("schema", ACCEPTED.values(), ids=ACCEPTED)
def test_common_schemas_are_accepted(schema: Json) -> None:
    findings = Findings()
    rule = {"at": "a", "on": "pre-create", "ask": {"schema": schema}}
    (read,) = Reader(findings, HookLimits(DAY, DAY)).read_requested([rule])
    assert not findings.all and read.rule.ask
    assert schema_cost(schema).estimate(MIN_EXTENT) <= BUDGET


@pytest.mark.parametrize("schema", REFUSED.values(), ids=REFUSED)
def test_a_costly_schema_of_an_earlier_version_is_not_evaluated(schema: Json) -> None:
    (finding,) = check_data(orjson.dumps(schema).decode(), "x").findings
    assert finding.place == "data" and "schema" in finding.reason
    assert "Reject it" in finding.remedy


def test_the_cost_doubles_with_each_level() -> None:
    def value(levels: int) -> int:
        return schema_cost(doubling(levels)).value

    assert value(8) > 1.9 * value(7) > 3.6 * value(6)
    with pytest.raises(SchemaRefused):
        schema_cost(doubling(30))


def deep(levels: int) -> Json:
    data: Json = "x"
    for _ in range(levels):
        data = [data]
    return data


@pytest.mark.parametrize(
    "data",
    [
        "x" * MAX_DATA_BYTES,
        [0] * 60_000,
        deep(MAX_DATA_DEPTH),
        deep(500),
        {"a": "é" * MAX_DATA_BYTES},
    ],
    ids=["text", "items", "levels", "many levels", "bytes"],
)
def test_the_size_of_data_is_limited_with_every_schema(data: Json) -> None:
    with pytest.raises(Invalid) as caught:
        measure_data(data)
    assert {one.code for one in caught.value.findings} == {"DataRefused"}


@pytest.mark.parametrize(
    ("schema", "data"),
    [
        ({"uniqueItems": True}, list(range(10_000))),
        ({"items": {"allOf": [{"type": "string"}] * 1_000}}, [1] * 20_000),
        ({"pattern": r"(a|b)*a(a|b){360}c"}, "ab" * 20_000),
        ({"items": {"pattern": r"(?=(a+))a*b\1"}}, ["aaaa"] * 1_000),
    ],
    ids=["unique", "500 types", "regular expression", "lookaround"],
)
def test_data_that_is_too_large_for_its_schema_is_refused(schema: Any, data: Json) -> None:
    schema_cost(schema)
    with pytest.raises(Invalid, match="too large for the schema"):
        check_data(orjson.dumps(schema).decode(), data)


def test_of_very_many_errors_the_first_one_is_reported() -> None:
    schema = orjson.dumps({"items": {"allOf": [{"type": "string"}] * 100}}).decode()
    assert len(check_data(schema, [1, 2]).findings) == 200
    assert len(check_data(schema, [1] * 5_000).findings) == 1


def test_a_message_does_not_repeat_a_long_value() -> None:
    (finding,) = check_data('{"type":"integer"}', "x" * 10_000).findings
    assert len(finding.reason) < 400
