"""Functions keep the mask of secret values."""

from collections.abc import Mapping

import pytest

from engine.hot.evaluation.resolver import resolve
from engine.hot.expressions.expression import FunctionCall
from engine.hot.expressions.masked_expressions import masks_part
from engine.hot.expressions.masking import MASK, contains_mask, propagate_mask
from engine.hot.schema.type_schema import Kind, Property, TypeSchema
from engine.words import Json
from tests.unit.hot.hot_support import faults

VERSION = "2021-04-16"
SRC = FunctionCall("get_attr", VERSION, ["src", "value"])


class Stack:
    def reference(self, resource: str) -> str:
        return "ref"

    def attribute(self, resource: str, attribute: str) -> Json:
        return self.attributes(resource).get(attribute)

    def attributes(self, resource: str) -> Mapping[str, Json]:
        return {"value": MASK, "open": {"a": ["x", "y"], "0": 1}, "mixed": [MASK, "x"]}


def shown(expression: Json) -> Json:
    return resolve(expression, Stack(), masked=True)


FUNCTIONS: dict[str, Json] = {
    "digest": FunctionCall("digest", VERSION, ["sha512", SRC]),
    "length": FunctionCall("yaql", VERSION, {"expression": "len($.data)", "data": SRC}),
    "a part": FunctionCall("yaql", VERSION, {"expression": "$.data.substring(0, 2)", "data": SRC}),
    "a path into it": FunctionCall("get_attr", VERSION, ["src", "value", "key", 0]),
    "a letter of it": FunctionCall("get_attr", VERSION, ["src", "value", 1]),
    "a secret path": FunctionCall("get_attr", VERSION, ["src", "open", SRC]),
    "a selected secret path": FunctionCall("select", VERSION, [{"a": 1}, SRC]),
    "wrong arguments": FunctionCall("str_split", VERSION, [1, SRC]),
}


@pytest.mark.parametrize("name", FUNCTIONS)
def test_the_result_of_a_function_of_a_secret_is_secret(name: str) -> None:
    assert shown(FUNCTIONS[name]) == MASK


def test_functions_that_keep_the_mask_show_the_text_around_it() -> None:
    joined = FunctionCall("list_join", VERSION, ["-", ["a", SRC]])
    assert shown({"a": [joined, SRC], "b": 1}) == {"a": [f"a-{MASK}", MASK], "b": 1}


def test_results_without_a_secret_are_shown() -> None:
    assert shown(FunctionCall("get_attr", VERSION, ["src", "open", "a", 1])) == "y"
    assert shown(FunctionCall("get_attr", VERSION, ["src", "mixed", 1])) == "x"
    assert shown(FunctionCall("get_resource", VERSION, "src")) == "ref"


@pytest.mark.parametrize(
    ("value", "holds"),
    [(MASK, True), (f"a{MASK}b", True), ({MASK: 1}, True), ({"a": [[MASK]]}, True),
     ("*****", False), (7, False), (None, False), ({"a": ["b"]}, False)],
)  # fmt: skip
def test_a_mask_is_found_at_any_depth(value: Json, holds: bool) -> None:
    assert contains_mask(value) is holds
    assert propagate_mask([value], "made") == (MASK if holds else "made")


def call(*parts: Json) -> FunctionCall:
    return FunctionCall("list_join", VERSION, ["-", [*parts, SRC]])


@pytest.mark.parametrize(
    ("masked", "plain", "expected"),
    [
        (MASK, "pw", True),
        (f"pg://{MASK}", "pg://pw", True),
        ("public", "public", False),
        ({"a": [1, MASK]}, {"a": [1, "pw"]}, True),
        ({MASK: 1}, {"pw": 1}, True),
        ([], ["pw"], True),
        (call(MASK), call("pw"), True),
        ({"a": [call(MASK)]}, {"a": [call("pw")]}, True),
        ({"a": [call("x")]}, {"a": [call("x")]}, False),
        (None, call("x"), True),
        # Plain values are converted to the type of their property.
        ("30", 30, False),
        ("a,b", ["a", "b"], False),
        (f"a,{MASK}", ["a", "pw"], True),
    ],
)
def test_a_secret_part_of_an_expression_is_found(masked: Json, plain: Json, expected: bool) -> None:
    assert masks_part(masked, plain) is expected


def test_an_error_of_a_secret_property_whose_name_begins_as_another_has_no_value() -> None:
    """The place `a.b` is of the property "a.b", and could be of a key of "a"."""
    dotted = TypeSchema("Test::Dots", {"a": Property(Kind.MAP), "a.b": Property(Kind.INTEGER)})
    hidden = {"p": {"type": "string", "default": "hush", "hidden": True}}
    body = {"type": dotted.name, "properties": {"a": {}, "a.b": {"get_param": "p"}}}
    found = faults({"parameters": hidden, "resources": {"x": body}}, types={dotted.name: dotted})
    assert [one.place for one in found] == ["resources.x.properties.a.b"]
    assert "hush" not in str(found)
