"""Requests in which Slack reports a click on a button: signature and content. Pure.

https://api.slack.com/authentication/verifying-requests-from-slack
https://api.slack.com/reference/interaction-payloads/block-actions
"""

import hashlib
import hmac
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Final
from urllib.parse import parse_qs
from uuid import UUID

import orjson

from engine.words import Decision, Json

#: Seconds by which the time of a request may differ from that of the server.
TOLERANCE: Final = 300
VERSION: Final = "v0"
#: The decisions that a button can have, which are its action IDs.
DECISIONS: Final = (Decision.CONTINUE, Decision.REJECT)
#: Characters of a button's value: Slack accepts 2,000.
MAX_VALUE: Final = 500


@dataclass(frozen=True, slots=True)
class ButtonValue:
    """The hook of a button. digest: of the hook that the message shows. token: proves that this
    server made the button for this hook and digest; it does not answer the hook."""

    hook_id: UUID
    digest: str
    token: str = field(repr=False)

    def __str__(self) -> str:
        return f"{self.hook_id} {self.digest} {self.token}"


@dataclass(frozen=True, slots=True)
class Click:
    """A click on a button of a message. team_id: the workspace of the user. value: None: not of a
    button of Headgate. blocks: of the message. response_url: receives messages about the click."""

    user_id: str
    team_id: str
    decision: Decision
    value: ButtonValue | None
    response_url: str = field(repr=False)
    blocks: Sequence[Json] = field(repr=False)


def request_signature(secret: str, timestamp: str, body: bytes) -> str:
    """The signature of a request, in the form of the header ``X-Slack-Signature``."""
    content = f"{VERSION}:{timestamp}:".encode() + body
    return f"{VERSION}={hmac.digest(secret.encode(), content, hashlib.sha256).hex()}"


def is_current(timestamp: str, now: float) -> bool:
    """Whether the time of a request, from ``X-Slack-Request-Timestamp``, is within TOLERANCE."""
    if not (timestamp.isascii() and timestamp.isdigit() and len(timestamp) <= 12):
        return False
    return abs(now - int(timestamp)) <= TOLERANCE


def is_signed(secret: str, timestamp: str, body: bytes, signature: str) -> bool:
    expected = request_signature(secret, timestamp, body)
    return hmac.compare_digest(expected.encode(), signature.encode())


def read_click(body: bytes) -> Click | None:
    """The click that a signed request reports. None: it is about something that needs no answer,
    such as a click on a link. Raises ValueError if it has another form than Slack documents."""
    (text,) = parse_qs(body.decode(), strict_parsing=True, max_num_fields=10)["payload"]
    payload = orjson.loads(text)
    if payload["type"] != "block_actions":
        return None
    actions = [one for one in payload["actions"] if one.get("action_id") in list(DECISIONS)]
    if not actions:
        return None
    user = payload["user"]
    team = user.get("team_id") or (payload.get("team") or {}).get("id")
    return Click(
        user_id=str(user["id"]),
        team_id=str(team or ""),
        decision=Decision(actions[0]["action_id"]),
        value=read_value(actions[0].get("value")),
        response_url=str(payload["response_url"]),
        blocks=(payload.get("message") or {}).get("blocks") or (),
    )


def read_value(text: Json) -> ButtonValue | None:
    """None: it is not the value of a button of Headgate."""
    if not isinstance(text, str) or len(text) > MAX_VALUE:
        return None
    try:
        hook_id, digest, token = text.split(" ")
        return ButtonValue(UUID(hook_id), digest, token)
    except ValueError:
        return None
