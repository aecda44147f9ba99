"""What a provider reports about physical resources, as a type returns it from `observe`."""

from collections.abc import Sequence
from dataclasses import dataclass, field

import orjson

from engine.words import Json, ObservedState

#: Characters of an observed value: a string, or another value as JSON. Longer ones are shortened.
MAX_VALUE = 1_000


def shorten(value: Json) -> Json:
    """Return the value, or the beginning of its text."""
    text = value if isinstance(value, str) else orjson.dumps(value, default=str).decode()
    return value if len(text) <= MAX_VALUE else f"{text[:MAX_VALUE].removesuffix('...')}..."


@dataclass(frozen=True, slots=True)
class Difference:
    """A property that the provider reports with another value. path: such as ``size``."""

    path: str
    desired: Json = field(repr=False)
    observed: Json = field(repr=False)


@dataclass(frozen=True, slots=True)
class Observation:
    """differences: of CHANGED. reason: of DEGRADED, MISSING and UNKNOWN. public_reason: the part of
    it that has no value of the resource; shown in place of it if a property is secret.
    """

    state: ObservedState
    differences: Sequence[Difference] = ()
    reason: str = ""
    public_reason: str = ""

    @classmethod
    def unknown(cls, reason: str, public_reason: str = "") -> "Observation":
        return cls(ObservedState.UNKNOWN, reason=reason, public_reason=public_reason)


PRESENT = Observation(ObservedState.PRESENT)
