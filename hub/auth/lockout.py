"""The lockout after failed attempts: when it starts and ends. Pure: time is an argument.

`TokenLockout` counts wrong tokens, in each process alone. `engine.store.access.password_lockout`
counts wrong passwords for all processes, by statements that tests compare with `LockoutRule`.
"""

from dataclasses import dataclass

from engine.ttl_cache import TtlCache

#: Maximum number of keys that are counted.
MAX_ADDRESSES = 50_000


@dataclass(frozen=True, slots=True)
class FailedAttempts:
    """last_at: in seconds."""

    count: int
    last_at: float


@dataclass(frozen=True, slots=True)
class LockoutRule:
    """After `failures` attempts, each within `seconds` of the previous one, a key is locked out for
    `seconds`. All times are seconds of one clock."""

    failures: int
    seconds: float

    def count(self, earlier: FailedAttempts | None, now: float) -> FailedAttempts:
        """Count one more attempt. earlier: those so far."""
        counted = earlier.count if earlier and self._is_current(earlier, now) else 0
        return FailedAttempts(counted + 1, now)

    def seconds_left(self, earlier: FailedAttempts | None, now: float) -> float:
        """Seconds until the lockout ends; 0.0: there is none."""
        if earlier is None or earlier.count < self.failures or not self._is_current(earlier, now):
            return 0.0
        return earlier.last_at + self.seconds - now

    def _is_current(self, attempts: FailedAttempts, now: float) -> bool:
        """Whether they count: the last one is recent, and not in the future by more than a lockout
        because the clock was set back."""
        return abs(now - attempts.last_at) < self.seconds


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
