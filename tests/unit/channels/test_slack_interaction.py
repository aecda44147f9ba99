"""Requests of Slack: the signature of its documentation, times, and contents."""

from typing import Any
from urllib.parse import urlencode
from uuid import UUID

import orjson
import pytest

from channels.chat.slack_interaction import (
    TOLERANCE,
    ButtonValue,
    is_current,
    is_signed,
    read_click,
    read_value,
    request_signature,
)

#: https://api.slack.com/authentication/verifying-requests-from-slack
SECRET = "8f742231b10e8888abcd99yyyzzz85a5"
TIME = "1531420618"
BODY = (
    b"token=xyzz0WbapA4vBCDEFasx0q6G&team_id=T1DC2JH3J&team_domain=testteamnow"
    b"&channel_id=G8PSS9T3V&channel_name=foobar&user_id=U2CERLKJA&user_name=roadrunner"
    b"&command=%2Fwebhook-collect&text=&response_url=https%3A%2F%2Fhooks.slack.com%2Fcommands"
    b"%2FT1DC2JH3J%2F397700885554%2F96rGlfmibIGlgcZRskXaIFfN"
    b"&trigger_id=398738663015.47445629121.803a0bc887a14d10d2c447fce8b6703c"
)
SIGNATURE = "v0=a2114d57b48eac39b9ad189dd8316235a7b4a8d21a10bd27519666489c69b503"
VALUE = ButtonValue(UUID(int=3), "abc", "t.k")


def clicked(**changed: Any) -> dict[str, Any]:
    return {
        "type": "block_actions",
        "user": {"id": "U2CERLKJA", "username": "ada", "team_id": "T1DC2JH3J"},
        "team": {"id": "T1DC2JH3J", "domain": "testteamnow"},
        "message": {"type": "message", "blocks": [{"type": "header"}]},
        "response_url": "https://hooks.slack.com/actions/T1/2/x",
        "actions": [{"type": "button", "action_id": "reject", "value": str(VALUE)}],
        **changed,
    }


def body_of(payload: Any) -> bytes:
    return urlencode({"payload": orjson.dumps(payload).decode()}).encode()


def test_the_example_of_slack_has_its_signature() -> None:
    assert request_signature(SECRET, TIME, BODY) == SIGNATURE
    assert is_signed(SECRET, TIME, BODY, SIGNATURE)


@pytest.mark.parametrize(
    ("secret", "time", "body", "signature"),
    [
        ("9" + SECRET[1:], TIME, BODY, SIGNATURE),
        (SECRET, "1531420619", BODY, SIGNATURE),
        (SECRET, TIME, BODY + b"&more=1", SIGNATURE),
        (SECRET, TIME, BODY, SIGNATURE[:-1] + "4"),
        (SECRET, TIME, BODY, SIGNATURE.removeprefix("v0=")),
        (SECRET, TIME, BODY, SIGNATURE.upper()),
        (SECRET, TIME, BODY, ""),
    ],
    ids=["secret", "time", "body", "signature", "version", "case", "none"],
)
def test_another_signature_is_refused(secret: str, time: str, body: bytes, signature: str) -> None:
    assert not is_signed(secret, time, body, signature)


@pytest.mark.parametrize(
    ("time", "current"),
    [
        (f"{1000 - TOLERANCE}", True), (f"{999 - TOLERANCE}", False),
        (f"{1000 + TOLERANCE}", True), (f"{1001 + TOLERANCE}", False),
        ("", False), ("-1000", False), ("1000.0", False), ("\u0661\u0660\u0660\u0660", False),
        ("9" * 400, False),
    ],
)  # fmt: skip
def test_the_time_may_differ_by_five_minutes(time: str, current: bool) -> None:
    assert TOLERANCE == 300
    assert is_current(time, 1000.0) is current


def test_a_click_is_read() -> None:
    click = read_click(body_of(clicked()))
    assert click is not None
    assert (click.user_id, click.team_id) == ("U2CERLKJA", "T1DC2JH3J")
    assert (click.decision, click.value) == ("reject", VALUE)
    assert click.response_url == "https://hooks.slack.com/actions/T1/2/x"
    assert click.blocks == [{"type": "header"}]


def test_the_workspace_is_that_of_the_user() -> None:
    """In a channel that workspaces share, `team` is that of the message."""
    click = read_click(body_of(clicked(user={"id": "U2CERLKJA", "team_id": "TOTHER"})))
    assert click is not None and click.team_id == "TOTHER"


@pytest.mark.parametrize(
    "changed",
    [
        {"type": "view_submission"},
        {"actions": [{"type": "button", "action_id": "Xy1", "url": "https://a.test"}]},
        {"actions": [{"type": "button", "action_id": "patch", "value": str(VALUE)}]},
    ],
    ids=["form", "link", "decision"],
)
def test_other_interactions_need_no_answer(changed: dict[str, Any]) -> None:
    assert read_click(body_of(clicked(**changed))) is None


@pytest.mark.parametrize("text", [None, 5, "", "x", f"{UUID(int=3)} abc", "a b c", "x" * 3000])
def test_the_value_of_another_button_names_no_hook(text: Any) -> None:
    assert read_value(text) is None
    assert read_value(str(VALUE)) == VALUE


@pytest.mark.parametrize(
    "body",
    [b"", b"{}", b"payload=", b"payload=%7B%7D", b"payload=1&payload=2", b"other=1", b"\xff"],
)
def test_other_bodies_raise(body: bytes) -> None:
    with pytest.raises((ValueError, KeyError, TypeError, AttributeError)):
        read_click(body)
