"""From errors to statuses and to what clients print."""

from datetime import UTC, datetime

import pytest

from engine.errors import (
    AnswerRefused,
    Conflict,
    Decided,
    Finding,
    Forbidden,
    HeadgateError,
    Invalid,
    LimitReached,
    NotFound,
    Unavailable,
)
from hub.api.problems import heat_form, own_form, status_of

PROPERTY = Finding("resources.a.properties", "Unknown Property lenght", 'Did you mean "length"?')
DECIDED = Decided("reject", "ann", datetime(2026, 1, 2, 3, 4, 5, tzinfo=UTC))


@pytest.mark.parametrize(
    ("error", "status"),
    [
        (Invalid([PROPERTY]), 400),
        (Invalid([Finding("", "late", code="RequestTimeout")]), 408),
        (NotFound("no"), 404),
        (Conflict("no", code="StackExists"), 409),
        (AnswerRefused("HookExpired", "no", decided=DECIDED), 409),
        (LimitReached("no", code="RequestLimitExceeded"), 400),
        (LimitReached("no", code="RequestTooLarge"), 413),
        (Forbidden("no"), 403),
        (Unavailable("no"), 503),
        (HeadgateError("of no family"), 500),
    ],
)
def test_each_family_has_its_status(error: HeadgateError, status: int) -> None:
    assert status_of(error) == status
    assert heat_form(error)["code"] == status


def test_a_fault_of_a_property_reads_as_clients_know_it_and_the_remedy_follows() -> None:
    assert heat_form(Invalid([PROPERTY])) == {
        "code": 400,
        "title": "Bad Request",
        "explanation": "The server could not comply with the request since it is either malformed "
        "or otherwise incorrect.",
        "error": {
            "type": "StackValidationFailed",
            "message": "Property error: : resources.a.properties: : Unknown Property lenght. "
            'Did you mean "length"?',
            "traceback": None,
            "findings": [
                {
                    "place": "resources.a.properties",
                    "reason": "Unknown Property lenght",
                    "remedy": 'Did you mean "length"?',
                    "type": "StackValidationFailed",
                }
            ],
        },
    }


def test_without_a_remedy_the_message_is_to_the_letter() -> None:
    bare = Invalid([Finding("resources.a.properties", "Unknown Property lenght")])
    message = heat_form(bare)["error"]["message"]
    assert message == "Property error: : resources.a.properties: : Unknown Property lenght"


def test_every_finding_has_a_line_of_its_own() -> None:
    error = Invalid([PROPERTY, Finding("resources.b", "has no type"), Finding("", "Also bad.")])
    lines = heat_form(error)["error"]["message"].split("\n")
    assert lines[1:] == ["resources.b: has no type", "Also bad."]


def test_our_own_form_has_the_parts_by_themselves() -> None:
    error = Invalid([PROPERTY, Finding("x", "y", "z", "Code")])
    said = own_form(error)["error"]
    assert said["place"] == "resources.a.properties"
    assert said["remedy"] == 'Did you mean "length"?'
    assert said["findings"][1] == {"place": "x", "reason": "y", "remedy": "z", "type": "Code"}


def test_whoever_answers_too_late_is_told_who_decided_what_and_when() -> None:
    said = own_form(AnswerRefused("HookAlreadyAnswered", "too late", decided=DECIDED))["error"]
    assert (said["type"], said["decided_by"], said["decision"]) == (
        "HookAlreadyAnswered",
        "ann",
        "reject",
    )
    assert (said["decided_at"] or "").startswith("2026-01-02T03:04:05")


def test_a_hook_that_nobody_decided_says_so() -> None:
    refused = AnswerRefused("HookExpired", "gone", decided=Decided(None, None, None))
    said = own_form(refused)["error"]
    assert (said["decided_by"], said["decided_at"], said["decision"]) == (None, None, None)
