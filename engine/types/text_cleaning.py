"""Prepares external text for storage and for messages."""

from collections.abc import Iterable

import orjson

from engine.words import Json

#: Only secrets of at least this many characters are masked in messages.
MIN_SECRET_LENGTH = 6
_MASK = "******"


def as_text(value: Json) -> str:
    """A string unchanged, any other value as JSON."""
    return value if isinstance(value, str) else orjson.dumps(value).decode()


def decode_text(raw: bytes) -> str:
    """Decode bytes and replace NUL, which PostgreSQL cannot store."""
    return raw.decode(errors="replace").replace("\0", "\ufffd")


def replace_nul(value: Json) -> Json:
    """Replace NUL in all strings of a JSON value."""
    if isinstance(value, str):
        return value.replace("\0", "\ufffd")
    if isinstance(value, list):
        return [replace_nul(item) for item in value]
    if isinstance(value, dict):
        return {replace_nul(key): replace_nul(item) for key, item in value.items()}
    return value


def decode_json(body: bytes) -> Json:
    """The JSON of another service, without NUL. Raises ValueError, also if it has so many levels
    that it cannot be processed."""
    try:
        return replace_nul(orjson.loads(body))
    except RecursionError:
        raise ValueError("it has too many levels") from None


def mask_secrets(text: str, secrets: Iterable[str]) -> str:
    """Mask the secrets in a text, the longest first."""
    for secret in sorted(secrets, key=len, reverse=True):
        if len(secret) >= MIN_SECRET_LENGTH:
            text = text.replace(secret, _MASK)
    return text
