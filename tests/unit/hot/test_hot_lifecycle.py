"""The lifecycle of resources in templates of version 2026-12-01: its form and its faults."""

import pytest

from engine.hot.definition.lifecycle import (
    NO_LIFECYCLE,
    Lifecycle,
    decode_lifecycle,
    read_lifecycle,
)
from engine.hot.expressions.expression import FunctionCall
from engine.words import Json
from tests.unit.hot.hot_support import defined, faults, thing


def template(lifecycle: Json, **more: Json) -> Json:
    resources = {"a": thing() | {"lifecycle": lifecycle} | more, "b": thing()}
    return {
        "heat_template_version": "headgate",
        "parameters": {
            "on": {"type": "boolean", "default": True},
            "key": {"type": "string", "hidden": True, "default": "x"},
        },
        "resources": resources,
    }


def lifecycle_of(lifecycle: Json) -> Lifecycle:
    found = defined(template(lifecycle)).resources["a"].lifecycle
    assert found is not None
    return found


@pytest.mark.parametrize(
    ("lifecycle", "expected"),
    [
        ({}, NO_LIFECYCLE),
        ({"prevent_destroy": True}, Lifecycle(prevent_destroy=True)),
        ({"prevent_destroy": {"get_param": "on"}}, Lifecycle(prevent_destroy=True)),
        ({"ignore_changes": "all"}, Lifecycle(ignores_all=True)),
        ({"ignore_changes": ["size"]}, Lifecycle(ignored=frozenset({"size"}))),
        ({"replace_when": ["size"]}, Lifecycle(replace_on=frozenset({"size"}))),
    ],
)
def test_rules_are_read_and_stored(lifecycle: Json, expected: Lifecycle) -> None:
    found = lifecycle_of(lifecycle)
    assert found == expected
    assert decode_lifecycle(found.encode()) == expected


def test_causes_are_expressions_by_their_text() -> None:
    found = lifecycle_of(
        {"replace_when": ["b", {"get_param": "on"}, {"get_attr": ["b", "output"]}]}
    )
    assert found.triggers["b"] == FunctionCall("get_resource", "2026-12-01", "b")
    assert found.triggers['{"get_param": "on"}'] is True
    assert isinstance(found.triggers['{"get_attr": ["b", "output"]}'], FunctionCall)
    one = defined(template({"replace_when": ["b"]})).resources["a"]
    assert one.reads == one.requires == {"b"}


def test_a_cause_that_reads_a_secret_is_secret() -> None:
    assert lifecycle_of({"replace_when": [{"get_param": "key"}]}).secret
    assert not lifecycle_of({"replace_when": [{"get_param": "on"}]}).secret


def test_a_resource_that_is_switched_off_causes_nothing() -> None:
    written = template({"replace_when": ["b"]})
    written["resources"]["b"]["condition"] = False
    found = defined(written).resources["a"].lifecycle
    assert found == NO_LIFECYCLE


def test_the_digest_of_a_resource_covers_its_lifecycle() -> None:
    digests = {
        defined(template(one)).resources["a"].digest
        for one in (
            {"prevent_destroy": True},
            {"prevent_destroy": False},
            {"ignore_changes": ["size"]},
            {"replace_when": ["size"]},
            {"replace_when": ["b"]},
        )
    }
    assert len(digests) == 5


@pytest.mark.parametrize(
    ("lifecycle", "place", "part", "remedy"),
    [
        ([], "resources.a.lifecycle", "must be a map", "prevent_destroy"),
        ({"prevent_destory": 1}, ".prevent_destory", "not a valid keyword", '"prevent_destroy"?'),
        ({"prevent_destroy": "yes"}, ".prevent_destroy", "true or false", "boolean"),
        (
            {"prevent_destroy": {"get_attr": ["b", "output"]}},
            ".prevent_destroy", "known when the stack is defined", "parameter",
        ),
        ({"ignore_changes": "size"}, ".ignore_changes", 'must be "all" or a list', "[user_data]"),
        ({"ignore_changes": ["sise"]}, ".ignore_changes[0]", 'no property "sise"', '"size"?'),
        ({"ignore_changes": [5]}, ".ignore_changes[0]", 'no property "5"', ""),
        ({"replace_when": "size"}, ".replace_when", "must be a list", '["image", "network"]'),
        ({"replace_when": ["sise"]}, ".replace_when[0]", 'property or resource "sise"', '"size"?'),
        ({"replace_when": ["a"]}, ".replace_when[0]", 'property or resource "a"', ""),
        ({"replace_when": [True]}, ".replace_when[0]", "never changes", "get_param"),
        ({"replace_when": ["size"] * 101}, ".replace_when", "more than 100 items", ""),
    ],
)  # fmt: skip
def test_faults_have_a_place_and_a_remedy(
    lifecycle: Json, place: str, part: str, remedy: str
) -> None:
    found = faults(template(lifecycle))
    assert len(found) == 1 or "101" in str(len(lifecycle))
    assert found[0].place.endswith(place)
    assert part in found[0].reason and remedy in found[0].remedy


def test_a_name_of_a_property_and_a_resource_is_ambiguous() -> None:
    written = template({"replace_when": ["size"]})
    written["resources"]["size"] = thing()
    (fault,) = faults(written)
    assert "a resource and a property" in fault.reason
    assert fault.remedy == "For the resource, write {get_resource: size}."


def test_an_external_resource_has_no_lifecycle() -> None:
    (fault,) = faults(template({"prevent_destroy": True}, external_id="x"))
    assert fault.place == "resources.a.lifecycle" and "external_id" in fault.reason


def test_earlier_versions_refuse_the_key_and_name_the_version() -> None:
    written = template({"prevent_destroy": True}) | {"heat_template_version": "2021-04-16"}
    (fault,) = faults(written)
    assert '"lifecycle" is not a valid keyword' in fault.reason
    assert fault.remedy == "Use heat_template_version 2026-12-01."


def test_the_reader_accepts_a_type_that_does_not_exist() -> None:
    written = template({"ignore_changes": ["anything"], "replace_when": ["anything"]})
    written["resources"]["a"]["type"] = "Test::Missing"
    assert [one.code for one in faults(written)] == ["StackValidationFailed"]
    assert callable(read_lifecycle)
