"""What a provider reports about physical resources, as a type returns it from `observe`."""

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from contextvars import ContextVar
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
    it that has no value of the resource; shown in place of it if a property is secret. retry_after:
    of UNKNOWN: seconds for which the provider requests no further requests, 0.0 if it did not say
    how long; None: it did not request that.
    """

    state: ObservedState
    differences: Sequence[Difference] = ()
    reason: str = ""
    public_reason: str = ""
    retry_after: float | None = None

    @classmethod
    def unknown(
        cls, reason: str, public_reason: str = "", retry_after: float | None = None
    ) -> "Observation":
        return cls(
            ObservedState.UNKNOWN, reason=reason, public_reason=public_reason,
            retry_after=retry_after,
        )  # fmt: skip


@dataclass(slots=True)
class RequestCount:
    """How many requests were sent to providers."""

    sent: int = 0


_counts: ContextVar[RequestCount | None] = ContextVar("requests to providers", default=None)


@contextmanager
def count_requests() -> Iterator[RequestCount]:
    """Count the requests that `request_sent` reports in this context."""
    count = RequestCount()
    token = _counts.set(count)
    try:
        yield count
    finally:
        _counts.reset(token)


def request_sent() -> None:
    """Types call it for each request of an observation. Without it, each call counts as one."""
    if (count := _counts.get()) is not None:
        count.sent += 1


PRESENT = Observation(ObservedState.PRESENT)
