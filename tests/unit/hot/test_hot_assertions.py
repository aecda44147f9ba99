"""Preconditions and postconditions in templates of version 2026-12-01."""

import pytest

from engine.hot.definition.model import ResourceAssertions
from engine.hot.evaluation.assertions import (
    decode_assertions,
    encode_assertions,
    failed_assertion,
)
from engine.hot.evaluation.resolver import evaluate_output
from engine.hot.functions.cost_budget import resolution_budget
from engine.words import Json
from tests.unit.hot.hot_support import UniformView, defined, faults, thing

READS = {"get_attr": ["b", "output"]}


def template(**more: Json) -> Json:
    return {
        "heat_template_version": "headgate",
        "parameters": {
            "on": {"type": "boolean", "default": True},
            "key": {"type": "string", "hidden": True, "default": "hush"},
        },
        "conditions": {"yes": True, "no": {"equals": [1, 2]}},
        "resources": {"a": thing() | more, "b": thing()},
    }


def one(condition: Json, message: Json = "do it") -> list[Json]:
    return [{"assert": condition, "message": message}]


def assertions_of(**more: Json) -> ResourceAssertions | None:
    return defined(template(**more)).resources["a"].assertions


@pytest.mark.parametrize(
    "condition",
    [
        True, "yes", {"not": "no"}, {"not": ["no"]}, {"equals": [1, 1]}, {"and": ["yes", True]},
        {"or": ["no", "yes"]}, {"or": [True, {"equals": [READS, 1]}]}, {"get_param": "on"},
        {"contains": ["a", ["a"]]}, {"not": {"and": ["no", {"equals": [READS, 1]}]}},
    ],
)  # fmt: skip
def test_a_known_true_condition_is_not_stored(condition: Json) -> None:
    assert assertions_of(preconditions=one(condition)) is None


@pytest.mark.parametrize("kind", ["preconditions", "postconditions"])
@pytest.mark.parametrize("condition", [False, "no", {"equals": [{"get_param": "on"}, False]}])
def test_a_known_false_condition_is_refused_with_its_message(kind: str, condition: Json) -> None:
    (fault,) = faults(template(**{kind: one(condition)}))
    assert fault.place == f"resources.a.{kind}[0]"
    assert fault.reason == f"{kind[:-1]} failed: do it"
    assert fault.code == "ConditionFailed"


@pytest.mark.parametrize(
    ("condition", "value", "failed"),
    [
        ({"equals": [READS, 1]}, 1, False),
        ({"equals": [READS, 1]}, 2, True),
        ({"not": {"equals": [READS, 1]}}, 1, True),
        ({"and": ["yes", {"equals": [READS, 1]}]}, 2, True),
        ({"or": ["no", {"equals": [READS, 1]}, {"equals": [READS, 2]}]}, 2, False),
        ({"contains": [READS, [1, 2]]}, 2, False),
        (READS, True, False),
        (READS, False, True),
    ],
)
def test_other_conditions_are_evaluated_with_their_values(
    condition: Json, value: Json, failed: bool
) -> None:
    found = assertions_of(preconditions=one(condition))
    assert found is not None and not found.secret
    stored = decode_assertions(encode_assertions(found.preconditions), "2026-12-01")
    reason = failed_assertion("precondition", stored, UniformView(value), resolution_budget())
    assert reason == ("precondition failed: do it" if failed else None)


@pytest.mark.parametrize(
    ("condition", "part"), [(READS, "neither true nor false"), ({"not": READS}, '"not" takes')]
)
def test_a_value_that_is_no_condition_fails(condition: Json, part: str) -> None:
    found = assertions_of(preconditions=one(condition))
    assert found is not None
    reason = failed_assertion(
        "precondition", found.preconditions, UniformView("x"), resolution_budget()
    )
    assert reason is not None and part in reason and "do it" in reason


def test_what_a_condition_reads_is_required() -> None:
    found = defined(template(preconditions=one({"equals": [READS, 1]}))).resources["a"]
    assert found.reads == found.requires == {"b"}


def test_a_postcondition_may_read_its_own_resource() -> None:
    own = {"equals": [{"get_attr": ["a", "output"]}, 1]}
    found = defined(template(postconditions=one(own))).resources["a"]
    assert found.assertions and found.requires == frozenset()
    (fault,) = faults(template(preconditions=one(own)))
    assert 'cannot read "a"' in fault.reason and fault.remedy == "Write a postcondition."


def test_secrets_are_masked_in_messages_and_marked() -> None:
    message = {"str_replace": {"template": "key is K", "params": {"K": {"get_param": "key"}}}}
    reads = {"equals": [READS, {"get_param": "key"}]}
    found = assertions_of(preconditions=one(reads, message))
    assert found is not None and found.secret
    assert "hush" not in found.preconditions[0].message
    (fault,) = faults(template(preconditions=one(False, message)))
    assert "hush" not in str(fault) and "******" in fault.reason


@pytest.mark.parametrize(
    ("given", "place", "part"),
    [
        ("x", "", "must be a list"),
        ([True], "[0]", "must be a map with assert and message"),
        ([{"assert": True}], "[0].message", "message must be text"),
        ([{"assert": True, "message": READS}], "[0].message", "message must be text"),
        ([{"assert": True, "message": "m", "mesage": 1}], "[0].mesage", "not a valid keyword"),
        (one("yess"), "[0].assert", 'Invalid condition "yess"'),
        (one(5), "[0].assert", "neither true nor false"),
        (one({"equals": [1]}), "[0].assert.equals", "two values"),
        (one({"and": [True]}), "[0].assert.and", "two or more"),
        (one(True) * 51, "", "at most 50"),
    ],
)
def test_faults_have_a_place(given: Json, place: str, part: str) -> None:
    (fault,) = faults(template(preconditions=given))
    assert fault.place == f"resources.a.preconditions{place}"
    assert part in fault.reason


def with_output(**more: Json) -> Json:
    return template() | {"outputs": {"o": {"value": READS, **more}}}


def test_an_output_has_no_value_if_its_precondition_fails() -> None:
    written = with_output(preconditions=one({"equals": [READS, 1]}))
    value = defined(written).outputs["o"].value
    assert evaluate_output(value, UniformView(1)) == (1, None)
    assert evaluate_output(value, UniformView(2)) == (None, "precondition failed: do it")
    (fault,) = faults(with_output(preconditions=one("no")))
    assert fault.place == "outputs.o.preconditions[0]"


def test_an_output_that_is_switched_off_is_not_checked() -> None:
    found = defined(with_output(condition="no", preconditions=one("no")))
    assert found.outputs["o"].value is None


def test_an_output_has_no_value_if_its_postcondition_fails() -> None:
    both = {
        "preconditions": one({"equals": [READS, 1]}, message="before"),
        "postconditions": one({"equals": [{"get_attr": ["b", "show"]}, 1]}, message="after"),
    }
    value = defined(with_output(**both)).outputs["o"].value
    assert evaluate_output(value, UniformView(1)) == (1, None)
    assert evaluate_output(value, UniformView(2)) == (None, "precondition failed: before")
    only = defined(with_output(postconditions=both["postconditions"])).outputs["o"].value
    assert evaluate_output(only, UniformView(2)) == (None, "postcondition failed: after")
    (fault,) = faults(with_output(postconditions=one("no")))
    assert fault.place == "outputs.o.postconditions[0]"


def test_a_message_in_a_nested_template_may_read_a_parameter_without_a_value_yet() -> None:
    inner = """
heat_template_version: headgate
parameters: {p: {type: string}}
resources:
  x:
    type: Test::Thing
    preconditions: [{assert: {not: {equals: [{get_param: p}, bad]}}, message: "not ${p}"}]
"""

    def outer(value: Json) -> Json:
        body = {"type": "inner.yaml", "properties": {"p": value}}
        return {"heat_template_version": "headgate", "resources": {"b": thing(), "n": body}}

    defined(outer(READS), files={"inner.yaml": inner})
    (found,) = faults(outer("bad"), files={"inner.yaml": inner})
    assert found.reason == "precondition failed: not bad"


@pytest.mark.parametrize("kind", ["preconditions", "postconditions"])
def test_faults_of_messages_are_found_while_the_condition_holds(kind: str) -> None:
    (fault,) = faults(template(**{kind: one("yes", "need ${kye}")}))
    assert fault.place == f"resources.a.{kind}[0].message" and '"key"?' in fault.remedy
    (fault,) = faults(template(**{kind: one({"equals": [READS, 1]}, {"list_join": [1]})}))
    assert fault.place == f"resources.a.{kind}[0].message.list_join"
    found = defined(with_output(**{kind: one("yes", "need ${kye}")}))
    assert [one.place for one in found.warnings] == [f"outputs.o.{kind}[0].message"]


def test_a_message_adds_neither_a_dependency_nor_a_secret() -> None:
    found = defined(template(preconditions=one({"equals": [READS, 1]}, "not ${key}")))
    assertions = found.resources["a"].assertions
    assert assertions is not None and not assertions.secret
    assert [one.message for one in assertions.preconditions] == ["not ******"]
