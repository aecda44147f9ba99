"""The lockout after failed attempts: when it starts and ends. Time is an argument.

`TokenLockout` counts wrong tokens, for all processes of a server.
`engine.store.access.password_lockout` counts wrong passwords for all processes of an installation,
by statements that tests compare with `LockoutRule`.
"""

from dataclasses import dataclass

from hub.auth.shared_counts import Count, SharedCounts


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
    """counts: of failed attempts alone; a row expires when they do not count any more. Times in
    seconds of the monotonic clock."""

    def __init__(self, failures: int, seconds: float, counts: SharedCounts) -> None:
        self._rule = LockoutRule(failures, seconds)
        self._counts = counts

    def count_failure(self, key: str, now: float) -> float:
        """Count a failed attempt and return 0.0; or, during a lockout, return the seconds until it
        ends."""

        def count(found: Count | None) -> Count | None:
            attempts = self._attempts(found)
            if self._rule.seconds_left(attempts, now) > 0:
                return None
            return Count(self._rule.count(attempts, now).count, now + self._rule.seconds)

        before = self._attempts(self._counts.change(key, now, count))
        return self._rule.seconds_left(before, now)

    def seconds_left(self, key: str, now: float) -> float:
        """Seconds until the lockout ends; 0.0: there is none."""
        return self._rule.seconds_left(self._attempts(self._counts.get(key, now)), now)

    def _attempts(self, found: Count | None) -> FailedAttempts | None:
        if found is None:
            return None
        return FailedAttempts(int(found.number), found.expires_at - self._rule.seconds)
