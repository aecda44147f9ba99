"""Signatures as Standard Webhooks has them: HMAC-SHA256 over id, time and body."""

import base64
import hashlib
import hmac
from collections.abc import Sequence
from datetime import datetime

PREFIX = "whsec_"
SHORTEST, LONGEST = 24, 64


def secret_of(random: bytes) -> str:
    """A secret as shown to people, of 24 to 64 random bytes."""
    if not SHORTEST <= len(random) <= LONGEST:
        raise ValueError(f"a secret is made of {SHORTEST} to {LONGEST} bytes")
    return PREFIX + base64.b64encode(random).decode()


def is_secret(text: str) -> bool:
    """Whether a text is a secret of this form; for those that people bring along."""
    if not text.startswith(PREFIX):
        return False
    try:
        return SHORTEST <= len(base64.b64decode(text[len(PREFIX) :], validate=True)) <= LONGEST
    except ValueError:
        return False


def headers(
    event_id: str, sent_at: datetime, body: bytes, secrets: Sequence[str]
) -> dict[str, str]:
    """The three headers; one signature for each secret, separated by spaces."""
    seconds = str(int(sent_at.timestamp()))
    signed = b".".join((event_id.encode(), seconds.encode(), body))
    signatures = (f"v1,{_signature(secret, signed)}" for secret in secrets)
    return {
        "webhook-id": event_id,
        "webhook-timestamp": seconds,
        "webhook-signature": " ".join(signatures),
    }


def _signature(secret: str, signed: bytes) -> str:
    key = base64.b64decode(secret.removeprefix(PREFIX))
    return base64.b64encode(hmac.digest(key, signed, hashlib.sha256)).decode()
