"""Error responses in both formats."""

from datetime import UTC, datetime

import pytest

from engine.errors import (
    AnswerRefused,
    Conflict,
    Finding,
    Forbidden,
    HeadgateError,
    HookDecision,
    Invalid,
    LimitReached,
    Unavailable,
)
from engine.missing_objects import no_hook
from hub.api.error_middleware import heat_form, own_form, status_of

PROPERTY = Finding("resources.a.properties", "Unknown Property lenght", 'Did you mean "length"?')
DECIDED = HookDecision("reject", "ann", datetime(2026, 1, 2, 3, 4, 5, tzinfo=UTC))


@pytest.mark.parametrize(
    ("error", "status"),
    [
        (Invalid([PROPERTY]), 400),
        (Invalid([Finding("", "late", "", code="RequestTimeout")]), 408),
        (no_hook("x"), 404),
        (Conflict("no", place="stack_name", remedy="Wait.", code="StackExists"), 409),
        (AnswerRefused("HookExpired", "no", decided=DECIDED), 409),
        (LimitReached("no", code="RequestLimitExceeded"), 400),
        (LimitReached("no", code="RequestTooLarge"), 413),
        (Forbidden("no"), 403),
        (Unavailable("no"), 503),
        (HeadgateError("of no family"), 500),
    ],
)
def test_each_error_class_has_its_status(error: HeadgateError, status: int) -> None:
    assert status_of(error) == status
    assert heat_form(error)["code"] == status


def test_an_error_of_a_property_has_heats_text_and_the_remedy() -> None:
    assert heat_form(Invalid([PROPERTY])) == {
        "code": 400,
        "title": "Bad Request",
        "explanation": "The server could not comply with the request since it is either malformed "
        "or otherwise incorrect.",
        "error": {
            "type": "StackValidationFailed",
            "message": "Property error: : resources.a.properties: : Unknown Property lenght",
            "traceback": None,
            "place": "resources.a.properties",
            "remedy": 'Did you mean "length"?',
            "findings": [
                {
                    "place": "resources.a.properties",
                    "reason": "Unknown Property lenght",
                    "remedy": 'Did you mean "length"?',
                    "type": "StackValidationFailed",
                    **dict.fromkeys(("file", "line", "column", "quote")),
                }
            ],
        },
    }


def test_without_a_remedy_the_message_is_heats() -> None:
    bare = Invalid([Finding("resources.a.properties", "Unknown Property lenght", "")])
    message = heat_form(bare)["error"]["message"]
    assert message == "Property error: : resources.a.properties: : Unknown Property lenght"


def test_every_finding_has_its_own_line() -> None:
    error = Invalid(
        [PROPERTY, Finding("resources.b", "has no type", ""), Finding("", "Also bad.", "")]
    )
    lines = heat_form(error)["error"]["message"].split("\n")
    assert lines[1:] == ["resources.b: has no type", "Also bad."]


def test_the_own_format_has_place_reason_and_remedy() -> None:
    error = Invalid([PROPERTY, Finding("x", "y", "z", "Code")])
    document = own_form(error)["error"]
    assert document["place"] == "resources.a.properties"
    assert document["remedy"] == 'Did you mean "length"?'
    unknown = dict.fromkeys(("file", "line", "column", "quote"))
    own = {"place": "x", "reason": "y", "remedy": "z", "type": "Code"}
    assert dict(document["findings"][1]) == own | unknown


def test_a_late_answer_gets_the_earlier_decision() -> None:
    document = own_form(AnswerRefused("HookAlreadyAnswered", "too late", decided=DECIDED))["error"]
    assert (document["type"], document["decided_by"], document["decision"]) == (
        "HookAlreadyAnswered",
        "ann",
        "reject",
    )
    assert (document["decided_at"] or "").startswith("2026-01-02T03:04:05")


def test_a_hook_without_a_decision_has_null_fields() -> None:
    refused = AnswerRefused("HookExpired", "gone", decided=HookDecision(None, None, None))
    document = own_form(refused)["error"]
    assert (document["decided_by"], document["decided_at"], document["decision"]) == (
        None,
        None,
        None,
    )
