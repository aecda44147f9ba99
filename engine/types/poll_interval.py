"""When an operation that waits for something outside looks again: soon at first, then seldom."""

from datetime import datetime, timedelta

#: Seconds of the first pause; each later one is half as long again, up to the longest.
FIRST = 0.2
_GROWTH, _ENOUGH = 1.5, 100


def next_look(now: datetime, tries: int, longest: float) -> datetime:
    """tries: how often it was looked before. longest: seconds of the longest pause."""
    return now + timedelta(seconds=min(longest, FIRST * _GROWTH ** min(tries, _ENOUGH)))
