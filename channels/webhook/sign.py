"""Signatures of Standard Webhooks over ID, time and body: HMAC-SHA256 with a secret (v1), and
Ed25519 with the server's key (v1a), which receivers can verify but not create. Pure: the time is an
argument.
"""

import base64
from collections.abc import Sequence
from datetime import datetime

from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey

from headgate.signatures import MAX_SECRET, MIN_SECRET, PREFIX, sign, signed_content

PUBLIC_PREFIX = "whpk_"


def secret_of(random: bytes) -> str:
    """The text of a secret from 24 to 64 random bytes."""
    if not MIN_SECRET <= len(random) <= MAX_SECRET:
        raise ValueError(f"a secret has {MIN_SECRET} to {MAX_SECRET} bytes")
    return PREFIX + base64.b64encode(random).decode()


def headers(
    event_id: str,
    sent_at: datetime,
    body: bytes,
    secrets: Sequence[str],
    key: Ed25519PrivateKey | None = None,
) -> dict[str, str]:
    """The three headers; one signature for each secret and for the key, separated by spaces."""
    found = sign(event_id, sent_at, body, secrets)
    if key is not None:
        signature = key.sign(signed_content(event_id, found["webhook-timestamp"], body))
        signatures = [found["webhook-signature"], f"v1a,{base64.b64encode(signature).decode()}"]
        found["webhook-signature"] = " ".join(filter(None, signatures))
    return found


def public_key(key: Ed25519PrivateKey) -> str:
    """The public key in the notation of Standard Webhooks."""
    return PUBLIC_PREFIX + base64.b64encode(key.public_key().public_bytes_raw()).decode()
