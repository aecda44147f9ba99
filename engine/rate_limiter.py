"""The one rate limiter: so many per second for each key. Pure: time is an argument.

It is the generic cell rate algorithm (GCRA, ITU-T I.371): for each key it keeps one number, the
time at which everything counted so far is paid for. It behaves as a token bucket that holds one
second's worth, and at least one.
"""

from collections import OrderedDict
from collections.abc import Hashable
from typing import Generic, TypeVar

Key = TypeVar("Key", bound=Hashable)

#: At most this many keys are tracked; beyond that the key that was idle longest is forgotten.
MOST = 50_000
#: Seconds, for rounding.
_TOLERANCE = 1e-9


class RateLimiter(Generic[Key]):
    """rate: per second for each key; 0.0: unlimited. Times in seconds of one clock."""

    def __init__(self, rate: float, *, most: int = MOST) -> None:
        self._rate = rate
        self._most = most
        self._price = 1.0 / rate if rate > 0 else 0.0
        self._burst = max(1.0, self._price)
        self._paid: OrderedDict[Key, float] = OrderedDict()

    @property
    def tracked(self) -> int:
        """How many keys are tracked."""
        return len(self._paid)

    def spend(self, key: Key, now: float) -> float:
        """Count one and return 0.0; where the limit is reached, return the seconds to wait."""
        wait = self._wait(self._ahead(key, now))
        if wait > 0.0:
            return wait
        self.charge(key, now)
        return 0.0

    def charge(self, key: Key, now: float) -> None:
        """Count one that happens anyway, also beyond the limit; later ones wait for it."""
        if self._rate <= 0:
            return
        self._paid[key] = now + self._ahead(key, now) + self._price
        self._paid.move_to_end(key)
        if len(self._paid) > self._most:
            self._paid.popitem(last=False)

    def left(self, now: float) -> dict[Key, int]:
        """How many each tracked key may spend now. Keys that have paid for all are forgotten."""
        for key in [key for key, paid in self._paid.items() if paid <= now]:
            del self._paid[key]
        return {key: self._affordable(paid - now) for key, paid in self._paid.items()}

    def until_more(self, now: float) -> float | None:
        """Seconds until the first of the keys with nothing left may spend. None: no such key."""
        waits = [self._wait(max(paid - now, 0.0)) for paid in self._paid.values()]
        return min((wait for wait in waits if wait > 0.0), default=None)

    def _ahead(self, key: Key, now: float) -> float:
        return max(self._paid.get(key, now) - now, 0.0)

    def _wait(self, ahead: float) -> float:
        wait = ahead + self._price - self._burst
        return wait if self._rate > 0 and wait > _TOLERANCE else 0.0

    def _affordable(self, ahead: float) -> int:
        return max(int((self._burst - ahead + _TOLERANCE) / self._price), 0)
