"""The mask that replaces secret values, its propagation through functions, and the detection of
secret values in values whose origin is unknown.
"""

from collections.abc import Iterator, Mapping
from typing import Final

from engine.words import Json

MASK: Final = "******"


def contains_mask(value: Json) -> bool:
    """Return whether a mask occurs in the value, also in map keys and inside strings."""
    if isinstance(value, str):
        return MASK in value
    if isinstance(value, Mapping):
        return any(contains_mask(key) or contains_mask(item) for key, item in value.items())
    return isinstance(value, list) and any(contains_mask(item) for item in value)


def propagate_mask(args: Json, value: Json) -> Json:
    """Return the result of a function on masked arguments.

    A function may lose the mask (a digest or a length does). A value derived from a secret is
    secret, so the mask then replaces the whole result.
    """
    return MASK if contains_mask(args) and not contains_mask(value) else value


#: Minimum length of a secret, in characters, to search for as part of a string; shorter ones match
#: only whole strings, because they occur by chance.
MIN_SUBSTRING_LENGTH = 6
#: Maximum number of secrets that are compared with an observed value.
MAX_SECRETS = 200


def iterate_texts(value: Json) -> Iterator[str]:
    """Yield all scalars in the value as strings, except null, booleans and empty strings."""
    if isinstance(value, Mapping):
        for below in value.values():
            yield from iterate_texts(below)
    elif isinstance(value, list):
        for below in value:
            yield from iterate_texts(below)
    elif value not in (None, "", True, False):
        yield str(value)


def leaks_secret(value: Json, hidden: set[str]) -> bool:
    """Return whether a string in the value equals or contains one of the secret strings."""
    if not hidden:
        return False
    if isinstance(value, Mapping):
        return any(leaks_secret(below, hidden) for below in value.values())
    if isinstance(value, list):
        return any(leaks_secret(below, hidden) for below in value)
    text = str(value)
    return text in hidden or any(len(one) >= MIN_SUBSTRING_LENGTH and one in text for one in hidden)


def secret_texts(value: Json, shown: Json) -> Iterator[str]:
    """Yield the strings in the value that differ from the masked value. shown: the masked value;
    None if all of the value is secret.
    """
    if value == shown:
        return
    if isinstance(value, Mapping):
        for name, below in value.items():
            yield from secret_texts(below, shown.get(name) if isinstance(shown, Mapping) else None)
    elif isinstance(value, list):
        known = (
            shown if isinstance(shown, list) and len(shown) == len(value) else [None] * len(value)
        )
        for below, seen in zip(value, known, strict=True):
            yield from secret_texts(below, seen)
    elif value not in (None, "", True, False):
        yield str(value)
