"""The lockout after failed authentication. Pure: time is an argument. Each process counts alone."""

from math import ceil

from engine.errors import LimitReached
from engine.ttl_cache import TtlCache

#: At most this many keys are counted.
MOST = 50_000


class TooMany(LimitReached):
    """wait: seconds, whole ones."""

    def __init__(self, reason: str, remedy: str, wait: float) -> None:
        super().__init__(reason, remedy=remedy, code="TooManyRequests")
        self.wait = max(ceil(wait), 1)


class Lockout:
    """After `failures` wrong attempts, none `seconds` after the one before, a lockout of `seconds`.

    Times in seconds of one clock.
    """

    def __init__(self, failures: int, seconds: float) -> None:
        self._failures = failures
        self._seconds = seconds
        #: By key: how many failed in a row, and when the last did.
        self._counts: TtlCache[str, tuple[int, float]] = TtlCache(most=MOST)

    def failed(self, key: str, now: float) -> None:
        count, _ = self._counts.get(key, now) or (0, now)
        self._counts.keep(key, (count + 1, now), now + self._seconds)

    def left(self, key: str, now: float) -> float:
        """Seconds until the lockout ends; 0.0: there is none."""
        count, last = self._counts.get(key, now) or (0, now)
        return max(last + self._seconds - now, 0.0) if count >= self._failures else 0.0
