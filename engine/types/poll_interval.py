"""The poll interval of an operation that waits for an external service."""

from datetime import datetime, timedelta

from engine.back_off import BackOff

#: Seconds before the first poll; each further interval is 1.5 times as long, up to the longest.
FIRST = 0.2
_GROWTH = 1.5


def next_poll(now: datetime, tries: int, longest: float) -> datetime:
    """The time of the next poll. tries: polls so far. longest: the longest interval in seconds."""
    return now + timedelta(seconds=BackOff(FIRST, longest, _GROWTH).ceiling(tries + 1))
