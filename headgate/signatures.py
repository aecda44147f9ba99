"""Signatures of Standard Webhooks over ID, time and body: HMAC-SHA256 with a secret (v1). Pure: the
time is an argument.
"""

import base64
import hashlib
import hmac
from collections.abc import Mapping, Sequence
from datetime import datetime, timedelta

PREFIX = "whsec_"
#: Bytes of a secret, as Standard Webhooks prescribes.
MIN_SECRET, MAX_SECRET = 24, 64
#: How far the time of a signature may be from a receiver's clock, as Standard Webhooks advises.
TOLERANCE = timedelta(minutes=5)


def is_secret(text: str) -> bool:
    """Whether a text is a valid secret."""
    if not text.startswith(PREFIX):
        return False
    try:
        return MIN_SECRET <= len(base64.b64decode(text[len(PREFIX) :], validate=True)) <= MAX_SECRET
    except ValueError:
        return False


def is_key(text: str) -> bool:
    """Whether a secret can verify requests, also if it is too short to be safe."""
    try:
        return text.startswith(PREFIX) and bool(
            base64.b64decode(text[len(PREFIX) :], validate=True)
        )
    except ValueError:
        return False


def signed_content(event_id: str, seconds: str, body: bytes) -> bytes:
    return b".".join((event_id.encode(), seconds.encode(), body))


def sign(event_id: str, sent_at: datetime, body: bytes, secrets: Sequence[str]) -> dict[str, str]:
    """The three headers; one signature for each secret, separated by spaces."""
    seconds = str(int(sent_at.timestamp()))
    content = signed_content(event_id, seconds, body)
    return {
        "webhook-id": event_id,
        "webhook-timestamp": seconds,
        "webhook-signature": " ".join(_signature(secret, content) for secret in secrets),
    }


def is_signed(headers: Mapping[str, str], body: bytes, secret: str, now: datetime) -> bool:
    """Whether a request has a signature made with the secret, at most TOLERANCE from `now`."""
    try:
        event_id, seconds = headers["webhook-id"], headers["webhook-timestamp"]
        signatures = headers["webhook-signature"].split(" ")
        age = abs(now.timestamp() - int(seconds))
    except (KeyError, ValueError):
        return False
    expected = _signature(secret, signed_content(event_id, seconds, body))
    has_signature = any(
        hmac.compare_digest(expected.encode(), one.encode(errors="replace")) for one in signatures
    )
    return has_signature and age <= TOLERANCE.total_seconds()


def _signature(secret: str, content: bytes) -> str:
    key = base64.b64decode(secret.removeprefix(PREFIX))
    return f"v1,{base64.b64encode(hmac.digest(key, content, hashlib.sha256)).decode()}"
