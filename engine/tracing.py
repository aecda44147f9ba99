"""Distributed tracing: a W3C `traceparent`, passed from the request of a change to its events and
deliveries. `Tracer` here records nothing; hub passes in one that exports spans.
"""

import re
from contextvars import ContextVar

#: The `traceparent` of the current request: "" without one; None outside of requests, where a new
#: traversal keeps the one of the traversal before.
TRACE: ContextVar[str | None] = ContextVar("traceparent", default=None)

_PARENT = re.compile(r"(?!ff)[0-9a-f]{2}-(?!0{32})[0-9a-f]{32}-(?!0{16})[0-9a-f]{16}-[0-9a-f]{2}")


def read_traceparent(text: str) -> str:
    """Return the header's value, or "" if it is not valid."""
    return text if _PARENT.fullmatch(text) else ""


class Span:
    """A span. traceparent: the parent of spans within it."""

    def __init__(self, traceparent: str) -> None:
        self.traceparent = traceparent

    def end(self, **attributes: str | int) -> None:
        """End the span. attributes: its result."""


class Tracer:
    """Starts spans that are not recorded. Their children have the same parent as these."""

    def begin(
        self, name: str, parent: str, *, seconds_ago: float = 0.0, **attributes: str | int
    ) -> Span:
        """Start a span. parent: a `traceparent`, or "". seconds_ago: how long ago it started."""
        return Span(parent)
