"""What came from outside, made fit to be kept and to be told."""

from collections.abc import Iterable

import orjson

from engine.words import Json

#: Secrets so long or longer are masked in messages.
SHORTEST_SECRET = 6
_MASK = "******"


def as_text(value: Json) -> str:
    """A text as it is, anything else as JSON."""
    return value if isinstance(value, str) else orjson.dumps(value).decode()


def readable(raw: bytes) -> str:
    """Text that can be stored: PostgreSQL takes no NUL."""
    return raw.decode(errors="replace").replace("\0", "\ufffd")


def storable(value: Json) -> Json:
    """JSON that can be stored."""
    if isinstance(value, str):
        return value.replace("\0", "\ufffd")
    if isinstance(value, list):
        return [storable(item) for item in value]
    if isinstance(value, dict):
        return {storable(key): storable(item) for key, item in value.items()}
    return value


def without(said: str, secrets: Iterable[str]) -> str:
    """A text with the secrets in it masked, the longest first."""
    for secret in sorted(secrets, key=len, reverse=True):
        if len(secret) >= SHORTEST_SECRET:
            said = said.replace(secret, _MASK)
    return said
