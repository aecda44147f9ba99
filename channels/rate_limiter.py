"""How many deliveries a second one subscription gets from one dispatcher. Pure: time is handed in.

A bucket for each: it fills at the rate, holds a second's worth, and each attempt takes one out. At
first as many begin as may be under way; a bucket that owes is paid back.
"""

from collections.abc import Callable, Iterable
from dataclasses import dataclass
from uuid import UUID


@dataclass(slots=True)
class _Bucket:
    rate: float
    holds: float
    filled_at: float

    def fill(self, now: float) -> None:
        most = max(self.rate, 1.0)
        self.holds = min(self.holds + (now - self.filled_at) * self.rate, most)
        self.filled_at = now


class Paces:
    """rate_of: a channel's rate; 0: as fast as it goes. Times in seconds, of any clock."""

    def __init__(self, rate_of: Callable[[str], float]) -> None:
        self._rate_of = rate_of
        self._buckets: dict[UUID, _Bucket] = {}

    def spend(self, attempts: Iterable[tuple[UUID, str]], now: float) -> None:
        """Attempts that begin: subscription and channel of each."""
        for subscription, channel in attempts:
            rate = self._rate_of(channel)
            if rate <= 0:
                continue
            fresh = _Bucket(rate, max(rate, 1.0), now)
            bucket = self._buckets.setdefault(subscription, fresh)
            bucket.fill(now)
            bucket.holds -= 1

    def left(self, now: float) -> dict[UUID, int]:
        """Of those that have spent something: how many attempts may begin now."""
        for bucket in self._buckets.values():
            bucket.fill(now)
        full = [name for name, one in self._buckets.items() if one.holds >= max(one.rate, 1.0)]
        for name in full:
            del self._buckets[name]
        return {name: max(int(one.holds), 0) for name, one in self._buckets.items()}

    def until_more(self, now: float) -> float | None:
        """Seconds until one that has nothing left may begin again; None: there is none such."""
        waits = [
            (1.0 - one.holds) / one.rate - (now - one.filled_at)
            for one in self._buckets.values()
            if one.holds < 1.0
        ]
        return max(min(waits), 0.0) if waits else None
