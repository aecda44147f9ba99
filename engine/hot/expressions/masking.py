"""The mask that replaces secret values, and its propagation through functions."""

from collections.abc import Mapping
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
