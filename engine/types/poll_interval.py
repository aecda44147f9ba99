"""The poll interval of an operation that waits for an external service."""

from datetime import datetime, timedelta

#: Seconds before the first poll; each further interval is 1.5 times as long, up to the longest.
FIRST = 0.2
_GROWTH, _ENOUGH = 1.5, 100


def next_poll(now: datetime, tries: int, longest: float) -> datetime:
    """The time of the next poll. tries: polls so far. longest: the longest interval in seconds."""
    return now + timedelta(seconds=min(longest, FIRST * _GROWTH ** min(tries, _ENOUGH)))
