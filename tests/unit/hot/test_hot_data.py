"""The section `data` in the language."""

from typing import Any

import pytest

from engine.hot.definition.model import StackDefinition
from engine.hot.expressions.expression import FunctionCall
from engine.hot.syntax.positions import find_positions
from engine.words import Json
from tests.unit.hot.hot_support import defined, faults, thing

NET = {"type": "Test::Thing", "id": "n-1"}
READ = {"get_attr": ["data.net", "output"]}


def template(data: Json, **sections: Json) -> dict[str, Json]:
    return {"heat_template_version": "headgate", "data": data, "resources": {}, **sections}


def built(data: Json, **sections: Any) -> StackDefinition:
    values = sections.pop("values", None)
    return defined(template(data, **sections), parameters=values)


def test_an_entry_is_a_resource_that_is_retained() -> None:
    found = built({"net": NET}, resources={"a": thing(value=READ)})
    net = found.resources["data.net"]
    assert (net.external_id, net.deletion_policy, net.is_data) == ("n-1", "Retain", True)
    assert found.resources["a"].requires == {"data.net"}
    assert not found.resources["a"].is_data


def test_it_is_read_by_locals_outputs_and_conditions_of_resources() -> None:
    check = [{"assert": {"equals": ["${size}", 1]}, "message": "m"}]
    body = thing(value="${size}") | {"preconditions": check, "depends_on": "data.net"}
    outputs = {"o": {"value": {"get_resource": "data.net"}}}
    found = built({"net": NET}, locals={"size": READ}, resources={"a": body}, outputs=outputs)
    assert isinstance(found.resources["a"].properties["value"], FunctionCall)
    assert isinstance(found.outputs["o"].value, FunctionCall)


def test_required_properties_may_be_missing() -> None:
    built({"net": {"type": "Test::Strict", "id": "x"}})
    (found,) = faults(
        template({"net": {"type": "Test::Strict", "id": "x", "properties": {"n": 1}}})
    )
    assert (found.place, found.reason) == ("data.net.properties", "Unknown Property n")


def test_a_condition_switches_it_off() -> None:
    found = built({"net": NET | {"condition": {"equals": [1, 2]}}})
    assert found.resources == {}


def test_an_entry_for_each_key() -> None:
    each = NET | {"for_each": {"get_param": "ids"}, "id": "${each.value}"}
    parameters = {"ids": {"type": "json", "default": {"a": "1", "b": "2"}}}
    outputs = {"o": {"value": {"get_attr": ["data.net", "output"]}}}
    found = built({"net": each}, parameters=parameters, outputs=outputs)
    assert {name: one.external_id for name, one in found.resources.items()} == {
        'data.net["a"]': "1",
        'data.net["b"]': "2",
    }
    assert [*found.outputs["o"].value] == ["a", "b"]


@pytest.mark.parametrize(
    ("entry", "place", "reason"),
    [
        ([], "data.net", "Data must be a map with type and id."),
        ({"id": "x"}, "data.net.type", "Data has no type."),
        ({"type": "Test::Thing"}, "data.net", "Data has no id"),
        (NET | {"id": ""}, "data.net.id", "must not be empty"),
        (NET | {"id": {"get_param": "none"}}, "data.net.id", "must not be empty"),
        (NET | {"id": {"get_attr": ["a", "output"]}}, "data.net.id", "must be known when"),
        (NET | {"id": {"get_param": "key"}}, "data.net.id", "must not come from a hidden"),
        (NET | {"type": "Test::Thin"}, "data.net.type", "could not be found"),
        (NET | {"depends_on": "a"}, "data.net.depends_on", "not a valid keyword inside data"),
        (NET | {"for_each": ["a"]}, "data.net.id", "would have the same id"),
        (NET | {"properties": {"size": 99}}, "data.net.properties.size", "out of range"),
    ],
    ids=["list", "no type", "no id", "empty", "empty parameter", "attribute", "hidden", "type",
         "key", "same id", "property"],
)  # fmt: skip
def test_faults_have_a_place(entry: Json, place: str, reason: str) -> None:
    parameters = {
        "none": {"type": "string", "default": ""},
        "key": {"type": "string", "hidden": True, "default": "s3cret"},
    }
    found = faults(template({"net": entry}, parameters=parameters, resources={"a": thing()}))
    assert found[0].place == place and reason in found[0].reason
    assert "s3cret" not in str(found[0])


def test_a_fault_is_at_its_line() -> None:
    text = "heat_template_version: headgate\ndata:\n  net:\n    id: ''\n    type: Test::Thing\n"
    (found,) = faults(template({"net": NET | {"id": ""}}))
    assert find_positions(text, [found.place])[found.place][:2] == (4, 5)


def test_names_are_unique_and_unknown_ones_are_reported() -> None:
    (found,) = faults(template({"net": NET}, resources={"data.net": thing()}))
    assert found.place == "data.net" and 'A resource has the name "data.net"' in found.reason
    found_, *_ = faults(
        template({"net": NET}, resources={"a": thing(value={"get_attr": ["data.nat", "output"]})})
    )
    assert found_.remedy == 'Did you mean "data.net"?'


def test_an_unreadable_entry_is_reported_once() -> None:
    found = faults(template({"net": []}, resources={"a": thing(value=READ)}))
    assert [one.place for one in found] == ["data.net"]


def test_a_nested_template_with_data_is_known() -> None:
    inner = "heat_template_version: headgate\ndata: {net: {type: 'Test::Thing', id: n}}\n"
    found = defined(
        template({}, resources={"n": {"type": "inner.yaml"}, "m": {"type": "plain.yaml"}}),
        files={"inner.yaml": inner, "plain.yaml": "heat_template_version: headgate\n"},
    )
    assert {name: one.reads_data for name, one in found.resources.items()} == {
        "n": True,
        "m": False,
    }


def test_earlier_versions_name_the_version() -> None:
    (found,) = faults({"heat_template_version": "2021-04-16", "data": {}, "resources": {}})
    assert (found.place, found.remedy) == ("data", "Use heat_template_version 2026-12-01.")
