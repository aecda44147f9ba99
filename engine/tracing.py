"""Where a change belongs in somebody's trace: a W3C `traceparent`, carried from the request that
began it to every event and delivery. What makes spans of it is handed in; here nobody does."""

import re
from contextvars import ContextVar

#: Of the request that is being answered: "" when it is of no trace; None: this is no request, and
#: what is begun belongs where what went before belongs.
TRACE: ContextVar[str | None] = ContextVar("traceparent", default=None)

_PARENT = re.compile(r"(?!ff)[0-9a-f]{2}-(?!0{32})[0-9a-f]{32}-(?!0{16})[0-9a-f]{16}-[0-9a-f]{2}")


def read_traceparent(text: str) -> str:
    """What a request's header says, or "" where that is no context."""
    return text if _PARENT.fullmatch(text) else ""


class Span:
    """Something that takes its time. traceparent: what belongs under it says this."""

    def __init__(self, traceparent: str) -> None:
        self.traceparent = traceparent

    def end(self, **said: str | int) -> None:
        """It is over; said: what came of it."""


class Tracer:
    """Makes spans that nobody sees: what belongs under one belongs where it does."""

    def begin(self, name: str, parent: str, *, seconds_ago: float = 0.0, **said: str | int) -> Span:
        """parent: "" where there is none. seconds_ago: how long it has gone on already."""
        return Span(parent)
