"""The lockout after wrong tokens. Pure: time is an argument.

Each process counts alone. The lockout after wrong passwords, which the database counts for all
processes, is in engine/store/access/password_lockout.py; engine/lockout.py has the rule of both.
"""

from engine.lockout import FailedAttempts, LockoutRule
from engine.ttl_cache import TtlCache

#: Maximum number of keys that are counted.
MAX_ADDRESSES = 50_000


class TokenLockout:
    """Times in seconds of one clock."""

    def __init__(self, failures: int, seconds: float) -> None:
        self._rule = LockoutRule(failures, seconds)
        self._counts: TtlCache[str, FailedAttempts] = TtlCache(max_entries=MAX_ADDRESSES)

    def count_failure(self, key: str, now: float) -> None:
        counted = self._rule.count(self._counts.get(key, now), now)
        self._counts.keep(key, counted, now + self._rule.seconds)

    def seconds_left(self, key: str, now: float) -> float:
        """Seconds until the lockout ends; 0.0: there is none."""
        return self._rule.seconds_left(self._counts.get(key, now), now)
