"""Functions of Headgate's own template version: results, unknown values, secrets, and messages."""

from typing import Any

import pytest

from engine.hot.definition.model import ResourceDefinition
from engine.hot.evaluation.resolver import resolve
from engine.hot.expressions.expression import FunctionCall
from engine.hot.expressions.masking import MASK
from engine.hot.language.versions import VERSIONS, template_functions
from engine.hot.schema.type_schema import Kind, Property, TypeSchema
from engine.words import Json
from tests.unit.hot.hot_support import UniformView, defined, fault_of, faults, thing, value_of

VERSION = "headgate"
READ: Json = {"get_attr": ["b", "output"]}
RESULTS: list[tuple[Json, Json]] = [
    ({"length": "é€"}, 2),
    ({"length": [1, [2, 3]]}, 2),
    ({"length": {}}, 0),
    ({"to_json": {"b": [1, None], "a": "é"}}, '{"a": "\\u00e9", "b": [1, null]}'),
    ({"from_json": '{"a": [1, 2.5, true]}'}, {"a": [1, 2.5, True]}),
    ({"first": ["a", "b"]}, "a"),
    ({"first": []}, None),
    ({"distinct": ["b", "a", "b", {"x": 1}, {"x": 1}]}, ["b", "a", {"x": 1}]),
    ({"distinct": [1, True, "1", [1], [True]]}, [1, True, "1", [1], [True]]),
    ({"coalesce": [None, "", 0, "a"]}, 0),
    ({"coalesce": [{"first": []}, "none"]}, "none"),
    ({"lower": "ÀB"}, "àb"),
    ({"upper": "straße"}, "STRASSE"),
    ({"lookup": [{"a": None}, "a", 1]}, None),
    ({"lookup": [{"a": 2}, "b", 1]}, 1),
    ({"lookup": [["x", "y"], -1]}, "y"),
    ({"lookup": [["x", "y"], 2, None]}, None),
    ({"add": [1, "2", -4]}, -1),
    ({"subtract": [1, 3]}, -2),
    ({"multiply": [3, "4", 2]}, 24),
    ({"divide": [-7, 2]}, -4),
    ({"modulo": [-7, 2]}, 1),
    ({"add": [{"length": ["a"]}, 1]}, 2),
]


@pytest.mark.parametrize(("snippet", "result"), RESULTS, ids=[str(one) for one, _ in RESULTS])
def test_results(snippet: Json, result: Json) -> None:
    found = value_of(snippet, VERSION)
    assert (found, type(found)) == (result, type(result))


WRONG: list[tuple[Json, str]] = [
    ({"length": 5}, '"length" takes a string, a list or a map, not 5'),
    ({"from_json": [1]}, '"from_json" takes a string with JSON, not [1]'),
    ({"from_json": "{"}, '"from_json" takes valid JSON: '),
    ({"from_json": "[" * 200 + "]" * 200}, "it is nested too deeply: more than 128 levels"),
    ({"first": "abc"}, '"first" takes a list, not "abc"'),
    ({"distinct": {}}, '"distinct" takes a list, not {}'),
    ({"coalesce": []}, 'Incorrect arguments to "coalesce"'),
    ({"coalesce": [None, ""]}, 'All values of "coalesce" are null or empty strings'),
    ({"lower": True}, '"lower" takes a string, not true'),
    ({"upper": None}, '"upper" takes a string, not null'),
    ({"lookup": [{"medium": 1}, "medum"]}, 'Did you mean "medium"?'),
    ({"lookup": [["a"], 3]}, 'finds no item 3 in a list of 1'),
    ({"lookup": [["a"], "0"]}, "takes an integer as the index in a list"),
    ({"lookup": [["a"], True]}, "takes an integer as the index in a list"),
    ({"lookup": [{}, 1]}, "takes a string as the key of a map"),
    ({"lookup": ["abc", 1]}, "takes a map or a list first"),
    ({"lookup": [{}]}, 'Incorrect arguments to "lookup"'),
    ({"add": [1, 2.5]}, '"add" calculates with integers, not 2.5'),
    ({"add": [1, True]}, '"add" calculates with integers, not true'),
    ({"add": [1, "1_0"]}, '"add" calculates with integers, not "1_0"'),
    ({"add": [1]}, 'Incorrect arguments to "add"'),
    ({"subtract": [1, 2, 3]}, 'Incorrect arguments to "subtract"'),
    ({"divide": [1, 0]}, '"divide" divides by zero'),
    ({"modulo": [1, "0"]}, '"modulo" divides by zero'),
    ({"multiply": [2**62, 2, 2]}, 'The result of "multiply" does not fit into 64 bits'),
    ({"add": [1, "9" * 5000]}, '"add" calculates with integers'),
]  # fmt: skip


@pytest.mark.parametrize(("snippet", "reason"), WRONG, ids=[str(one)[:60] for one, _ in WRONG])
def test_wrong_arguments_have_place_reason_and_remedy(snippet: Json, reason: str) -> None:
    fault = fault_of(snippet, VERSION)
    assert fault.startswith(f"resources.a.properties.value.{next(iter(snippet))}")
    assert reason in fault


@pytest.mark.parametrize(
    ("snippet", "reason"),
    [
        ({"divide": [READ, 0]}, "divides by zero"),
        ({"add": [READ, "x"]}, "calculates with integers"),
        ({"lookup": [READ, "a", 1, 2]}, "Incorrect arguments"),
        ({"lookup": [5, READ]}, "takes a map or a list first"),
    ],
    ids=["divide", "add", "arguments", "lookup"],
)
def test_what_is_known_is_checked_beside_unknown_values(snippet: Json, reason: str) -> None:
    assert reason in fault_of(snippet, VERSION)


@pytest.mark.parametrize(
    ("snippet", "value", "result"),
    [
        ({"length": READ}, [1, 2], 2),
        ({"add": [READ, 1]}, "41", 42),
        ({"multiply": [2**62, READ, READ]}, 0, 0),
        ({"coalesce": ["", READ]}, "x", "x"),
        ({"lookup": [READ, "k"]}, {"k": "v"}, "v"),
        ({"lookup": [{"k": "v"}, READ, "d"]}, "z", "d"),
        ({"from_json": READ}, "[1]", [1]),
        ({"to_json": {"a": READ}}, 1, '{"a": 1}'),
        ({"upper": READ}, "x", "X"),
        ({"distinct": [READ, "x"]}, "x", ["x"]),
        ({"first": [READ]}, "x", "x"),
    ],
)
def test_functions_of_attributes_are_evaluated_later(
    snippet: Json, value: Json, result: Json
) -> None:
    found = value_of(snippet, VERSION)
    assert isinstance(found, FunctionCall)
    assert resolve(found, UniformView(value)) == result


@pytest.mark.parametrize(
    "snippet",
    [
        {"length": {"get_param": "p"}},
        {"add": [{"length": {"get_param": "p"}}, 1]},
        {"upper": {"get_param": "p"}},
        {"lookup": [{"hunter2": 1}, {"get_param": "p"}]},
        {"coalesce": ["", {"get_param": "p"}]},
        {"first": [{"get_param": "p"}]},
        {"to_json": [{"get_param": "p"}]},
    ],
)
def test_values_computed_from_a_secret_are_secret(snippet: Json) -> None:
    parameters = {"p": {"type": "string", "hidden": True, "default": "hunter2"}}
    template = {
        "heat_template_version": VERSION,
        "parameters": parameters,
        "resources": {"a": thing(value=snippet)},
        "outputs": {"o": {"value": snippet}},
    }
    definition = defined(template)
    assert definition.outputs["o"].secret
    masked = definition.resources["a"].masked_properties
    assert masked is not None and "******" in str(masked["value"])


@pytest.mark.parametrize(
    "snippet",
    [
        {"add": [{"get_param": "p"}, 1]},
        {"from_json": {"get_param": "p"}},
        {"lookup": [{"a": 1}, {"get_param": "p"}]},
        {"lookup": [{"get_param": "p"}, "a"]},
    ],
)
def test_messages_never_show_a_secret(snippet: Json) -> None:
    parameters = {"p": {"type": "string", "hidden": True, "default": "hunter2"}}
    (found,) = faults(
        {
            "heat_template_version": VERSION,
            "parameters": parameters,
            "resources": {"a": thing(value=snippet)},
        }
    )
    assert "hunter2" not in str(found)


def test_conditions_call_the_functions() -> None:
    condition = {"equals": [{"modulo": [{"length": {"get_param": "p"}}, 2]}, 0]}
    template = {
        "heat_template_version": VERSION,
        "parameters": {"p": {"type": "string"}},
        "resources": {"a": thing() | {"condition": condition}},
    }
    assert "a" in defined(template, parameters={"p": "ab"}).resources
    assert "a" not in defined(template, parameters={"p": "abc"}).resources


def test_a_text_that_doubles_again_and_again_is_refused() -> None:
    bomb: Json = "x" * 1_000
    for _ in range(12):
        bomb = {"to_json": [bomb, bomb]}
    assert "The text would have more than 1048576 characters" in fault_of(bomb, VERSION)


def test_many_values_exceed_the_cost_budget() -> None:
    bomb: Json = {"from_json": str([1] * 1_000)}
    assert "larger than 16777216 characters" in fault_of([bomb] * 1_100, VERSION)


def test_older_versions_do_not_have_the_functions() -> None:
    new = set(template_functions(VERSION)) - set(template_functions("2021-04-16"))
    assert {"length", "add", "lookup", "to_json"} <= new
    assert value_of({"length": "abc"}) == {"length": "abc"}
    data = {"resources": {"a": thing(value={"length": 8, "first": ["x"]})}}
    assert defined({"resources": {"a": thing(value={"length": "abc"})}}).warnings == ()
    assert defined(data).warnings == ()
    (warned,) = defined({"resources": {"a": thing(value={"to_json": [1]})}}).warnings
    assert warned.remedy == "Use heat_template_version 2026-12-01 or later."


def test_the_newest_version_has_all_functions_of_the_one_before() -> None:
    assert VERSIONS["2021-04-16"].functions.items() <= VERSIONS["2026-12-01"].functions.items()


def _yaql(expression: str, data: Json) -> Json:
    return {"yaql": {"expression": expression, "data": data}}


@pytest.mark.parametrize(
    ("here", "in_heat"),
    [
        ({"length": ["a", "b"]}, _yaql("$.data.len()", ["a", "b"])),
        ({"first": ["a"]}, _yaql("$.data.first(null)", ["a"])),
        ({"first": []}, _yaql("$.data.first(null)", [])),
        ({"distinct": ["a", "a"]}, _yaql("$.data.distinct()", ["a", "a"])),
        ({"distinct": ["a", "a"]}, {"list_concat_unique": [["a", "a"]]}),
        ({"coalesce": [None, 1]}, _yaql("coalesce($.data.x, $.data.y)", {"x": None, "y": 1})),
        (
            {"lookup": [{"a": 1}, "b", 2]},
            _yaql("$.data.x.get($.data.k, $.data.d)", {"x": {"a": 1}, "k": "b", "d": 2}),
        ),
        ({"lower": "Ab"}, _yaql("$.data.toLower()", "Ab")),
        ({"to_json": {"b": [1]}}, {"list_join": ["", [{"b": [1]}]]}),
        ({"add": [1, 2]}, _yaql("$.data.x + $.data.y", {"x": 1, "y": 2})),
    ],
)
def test_the_translations_of_the_reference_have_the_same_value(here: Json, in_heat: Json) -> None:
    assert value_of(here, VERSION) == value_of(in_heat)


SIZED = TypeSchema("Test::Sized", {"length": Property(Kind.STRING)})


def sized(properties: Json, **more: Any) -> ResourceDefinition:
    template = {
        "heat_template_version": VERSION,
        "parameters": {"secret": {"type": "string", "hidden": True, "default": "x"}},
        "resources": {"a": {"type": "Test::Sized", "properties": properties}},
    }
    return defined(template, types={"Test::Sized": SIZED}, **more).resources["a"]


def test_a_sole_property_with_the_name_of_a_function_is_no_call() -> None:
    assert sized({"length": "40"}).properties == {"length": "40"}
    assert sized({"length": {"lower": "A"}}).properties == {"length": "a"}
    assert sized({"length": "${secret}"}).masked_properties == {"length": MASK}


def test_properties_can_be_a_call_of_a_function_that_is_no_property() -> None:
    assert sized({"from_json": '{"length": "40"}'}).properties == {"length": "40"}
    reason = '"properties" must be a map, not the result of this function.'
    (found,) = faults({
        "heat_template_version": VERSION,
        "resources": {"a": thing() | {"properties": {"length": "abc"}}},
    })  # fmt: skip
    assert (found.place, found.reason) == ("resources.a.properties", reason)
