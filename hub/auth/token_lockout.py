"""The lockout after wrong tokens: when it starts and ends. Pure: time is an argument.

Each process counts alone. The lockout after wrong passwords, which the database counts for all
processes, is in engine/store/password_lockout.py.
"""

from engine.ttl_cache import TtlCache

#: Maximum number of keys that are counted.
MAX_ADDRESSES = 50_000


class TokenLockout:
    """After `failures` wrong attempts, each within `seconds` of the previous one, a key is locked
    out for `seconds`. Times in seconds of one clock.
    """

    def __init__(self, failures: int, seconds: float) -> None:
        self._failures = failures
        self._seconds = seconds
        #: By key: the number of consecutive failures, and the time of the last one.
        self._counts: TtlCache[str, tuple[int, float]] = TtlCache(max_entries=MAX_ADDRESSES)

    def failed(self, key: str, now: float) -> None:
        count, _ = self._counts.get(key, now) or (0, now)
        self._counts.keep(key, (count + 1, now), now + self._seconds)

    def seconds_left(self, key: str, now: float) -> float:
        """Seconds until the lockout ends; 0.0: there is none."""
        count, last = self._counts.get(key, now) or (0, now)
        return max(last + self._seconds - now, 0.0) if count >= self._failures else 0.0
