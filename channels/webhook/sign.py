"""Signatures of Standard Webhooks over ID, time and body: HMAC-SHA256 with a secret (v1), and
Ed25519 with the server's key (v1a), which receivers can verify but not create. Pure: the time is an
argument.
"""

import base64
import hashlib
import hmac
from collections.abc import Mapping, Sequence
from datetime import datetime, timedelta

from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey

PREFIX, PUBLIC_PREFIX = "whsec_", "whpk_"
#: Bytes of a secret, as Standard Webhooks prescribes.
MIN_SECRET, MAX_SECRET = 24, 64
#: How far the time of a signature may be from a receiver's clock, as Standard Webhooks advises.
TOLERANCE = timedelta(minutes=5)


def secret_of(random: bytes) -> str:
    """The text of a secret from 24 to 64 random bytes."""
    if not MIN_SECRET <= len(random) <= MAX_SECRET:
        raise ValueError(f"a secret has {MIN_SECRET} to {MAX_SECRET} bytes")
    return PREFIX + base64.b64encode(random).decode()


def is_secret(text: str) -> bool:
    """Whether a text is a valid secret."""
    if not text.startswith(PREFIX):
        return False
    try:
        return MIN_SECRET <= len(base64.b64decode(text[len(PREFIX) :], validate=True)) <= MAX_SECRET
    except ValueError:
        return False


def headers(
    event_id: str,
    sent_at: datetime,
    body: bytes,
    secrets: Sequence[str],
    key: Ed25519PrivateKey | None = None,
) -> dict[str, str]:
    """The three headers; one signature for each secret and for the key, separated by spaces."""
    seconds = str(int(sent_at.timestamp()))
    signed = b".".join((event_id.encode(), seconds.encode(), body))
    signatures = [f"v1,{_signature(secret, signed)}" for secret in secrets]
    if key is not None:
        signatures.append(f"v1a,{base64.b64encode(key.sign(signed)).decode()}")
    return {
        "webhook-id": event_id,
        "webhook-timestamp": seconds,
        "webhook-signature": " ".join(signatures),
    }


def is_signed(headers: Mapping[str, str], body: bytes, secret: str, now: datetime) -> bool:
    """Whether a request has a signature made with the secret, at most TOLERANCE from `now`."""
    try:
        event_id, seconds = headers["webhook-id"], headers["webhook-timestamp"]
        signatures = headers["webhook-signature"].split(" ")
        age = abs(now.timestamp() - int(seconds))
    except (KeyError, ValueError):
        return False
    expected = f"v1,{_signature(secret, b'.'.join((event_id.encode(), seconds.encode(), body)))}"
    signed = any(
        hmac.compare_digest(expected.encode(), one.encode(errors="replace")) for one in signatures
    )
    return signed and age <= TOLERANCE.total_seconds()


def public_key(key: Ed25519PrivateKey) -> str:
    """The public key in the notation of Standard Webhooks."""
    return PUBLIC_PREFIX + base64.b64encode(key.public_key().public_bytes_raw()).decode()


def _signature(secret: str, signed: bytes) -> str:
    key = base64.b64decode(secret.removeprefix(PREFIX))
    return base64.b64encode(hmac.digest(key, signed, hashlib.sha256)).decode()
