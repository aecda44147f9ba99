"""Errors that Heat has too have its messages, to the letter."""

import json
from pathlib import Path

import pytest

from engine.errors import Conflict, Finding, HeadgateError, Invalid, LimitReached, NotFound
from engine.missing_objects import no_event, no_stack
from headgate.errors import response_error
from hub.api.error_middleware import heat_form
from hub.api.heat_sentences import FORMATS, InvalidTemplate, heat_sentence

#: Values for the keys of Heat's formats.
VALUES = {
    "stack_name": "s", "action": "UPDATE", "cycle": "a -> b -> a", "strategy": "merge",
    "param": "p", "env_file": "e.yaml", "entity": "Stack", "name": "s", "keys": "a, b",
    "resource": "a", "key": "b", "section": "resuorces", "explanation": '"x"', "target": "p",
    "actual": "q", "feature": "Cancelling", "message": "too many", "resource_name": "a",
    "snapshot": "n", "stack": "s",
}  # fmt: skip
PROPERTIES = "resources.a.properties"


#: `msg_fmt` of each class in heat/common/exception.py of openstack-heat 27.0.1.
HEAT = Path(__file__).parents[2] / "compat" / "heat_exception_formats.json"


def test_the_formats_are_those_of_heat() -> None:
    heat = json.loads(HEAT.read_text())
    assert {code: heat.get(code) for code in FORMATS} == dict(FORMATS)


@pytest.mark.parametrize("code", sorted(FORMATS))
def test_a_sentence_of_heat_is_the_whole_message(code: str) -> None:
    sentence = FORMATS[code] % VALUES
    error = Invalid([Finding("the.place", sentence, "Do this.", code)])
    document = heat_form(error)["error"]
    assert document["message"] == sentence
    assert (document["type"], document["place"], document["remedy"]) == (
        code, "the.place", "Do this.",
    )  # fmt: skip


@pytest.mark.parametrize(
    ("error", "message"),
    [
        (no_stack("s"),
         "The Stack (s) could not be found."),
        (no_event("e"),
         "No event e found"),
        (NotFound("No events found for resource a", place="resource", remedy="",
                  code="HTTPNotFound"),
         "No events found for resource a"),
        (Conflict("The Stack (s) already exists.", place="stack_name", remedy="Choose another.",
                  code="StackExists"),
         "The Stack (s) already exists."),
        (LimitReached("it is too long", place="template", code="RequestLimitExceeded"),
         "Request limit exceeded: it is too long"),
        (Invalid([Finding(PROPERTIES, "Unknown Property lenght", 'Did you mean "length"?')]),
         f"Property error: : {PROPERTIES}: : Unknown Property lenght"),
        (Invalid([Finding(f"{PROPERTIES}.x", "is wrong", ""), Finding(
            "parameters.p", "The Parameter (p) was not provided.", "Give it.",
            "UserParameterMissing")]),
         f"Property error: : {PROPERTIES}.x: : is wrong\nThe Parameter (p) was not provided."),
    ],
    ids=["stack", "event", "events", "exists", "limit", "property", "several"],
)  # fmt: skip
def test_places_and_remedies_are_not_in_the_message(error: HeadgateError, message: str) -> None:
    assert heat_form(error)["error"]["message"] == message


@pytest.mark.parametrize(
    ("place", "reason", "message"),
    [
        ("", "Parameter 'p' is invalid: 9 is out of range (min: 1, max: 5)", "{reason}"),
        ("resources.a", "Each resource must contain a type key.", "{reason}"),
        ("parameters.p", "Invalid type (text)", "{reason}"),
        ("resources.a.condition", 'Invalid condition "x"', "{place}{separator}{reason}"),
        ("outputs.o", "Each output definition must contain a value key.",
         "Output validation error{separator}{place}{separator}{reason}"),
        ("resources.a.properties.length", "0 is out of range (min: 1, max: 5)",
         "Property error{separator}{place}{separator}{reason}"),
        ("parameter", 'environment has wrong section "parameter"',
         "Environment not in valid format: {reason}"),
        ("outputs.o.value.Ref", "The function Ref is not supported in this version of HOT.",
         "{place}{separator}The template version is invalid: {reason}"),
    ],
)  # fmt: skip
def test_messages_have_the_form_of_the_route(place: str, reason: str, message: str) -> None:
    findings = [Finding(place, reason, "Do this.")]
    for error, separator in ((Invalid(findings), ": : "), (InvalidTemplate(findings), ": ")):
        document = heat_form(error)["error"]
        assert document["message"] == message.format(
            place=place, reason=reason, separator=separator
        )
        assert (document["place"], document["remedy"]) == (place, "Do this.")
    assert heat_form(InvalidTemplate(findings))["error"]["type"] == "HTTPBadRequest"


def test_the_place_of_a_property_has_no_functions() -> None:
    begin = "resources.a.properties"
    for place, shown in {
        f"{begin}.value.list_join": f"{begin}.value",
        f"{begin}.value.x[0].get_attr": f"{begin}.value.x[0]",
        f"{begin}.length": f"{begin}.length",  # a property, although it is also a function
        f"{begin}.repeat.for_each": f"{begin}.repeat.for_each",
    }.items():
        message = heat_sentence(Finding(place, "is wrong", ""))
        assert message == f"Property error: : {shown}: : is wrong"


def test_heat_has_another_reason() -> None:
    one = Finding(f"{PROPERTIES}.n", '"x" is not a number', "Write one.", heat_reason="not x")
    document = heat_form(Invalid([one]))["error"]
    assert document["message"] == f"Property error: : {PROPERTIES}.n: : not x"
    assert document["findings"][0]["reason"] == '"x" is not a number'
    hidden = heat_form(Invalid([one.without_values()]))["error"]["message"]
    assert "not x" not in hidden and '"x"' not in hidden


def test_among_several_errors_each_names_its_place() -> None:
    one = Finding("resources.a", "Each resource must contain a type key.", "Add one.")
    message = heat_form(Invalid([one, one]))["error"]["message"]
    assert message.splitlines()[0] == f"{one}"


def test_an_error_that_heat_does_not_have_keeps_place_and_remedy() -> None:
    one = Finding("only", "matches nothing", "Known: a.", "NoMatch")
    other = Finding("x", "Stack s is gone", "Create it.", "EntityNotFound")
    assert heat_sentence(one) is None and heat_sentence(other) is None
    document = heat_form(Invalid([one]))["error"]
    assert document["message"] == "only: matches nothing. Known: a."
    assert "remedy" not in document


def test_the_command_line_shows_place_and_remedy_of_every_error() -> None:
    reason = "The Stack (s) already exists."
    error = Conflict(reason, place="stack_name", remedy="Choose another.", code="StackExists")
    shown = response_error(409, {**heat_form(error)})
    assert str(shown) == "stack_name: The Stack (s) already exists. Choose another."
    missing = Finding("parameters.p", "The Parameter (p) was not provided.", "Give it.",
                      "UserParameterMissing")  # fmt: skip
    shown = response_error(400, {**heat_form(Invalid([missing]))})
    assert str(shown) == "parameters.p: The Parameter (p) was not provided. Give it."
