"""A rate limiter: a number of events per second for each key. Pure: time is an argument.

It is the generic cell rate algorithm (GCRA, ITU-T I.371): for each key, it keeps one number, the
time at which all events counted so far conform to the rate. It behaves like a token bucket with the
size of one second's events, and at least of one event.
"""

from collections import OrderedDict
from collections.abc import Hashable
from typing import Generic, TypeVar

Key = TypeVar("Key", bound=Hashable)

#: Maximum number of tracked keys. Above it, the key that has been idle longest is removed.
MAX_KEYS = 50_000
#: Seconds, for rounding.
_TOLERANCE = 1e-9


class Rate:
    """A number of events per second; 0.0: unlimited. All times are seconds of one clock.

    ``paid`` is the number of the algorithm, of one key: the time at which all events counted so far
    conform to the rate. A time that has passed is as good as none.
    """

    __slots__ = ("burst", "per_second", "price")

    def __init__(self, per_second: float) -> None:
        self.per_second = per_second
        self.price = 1.0 / per_second if per_second > 0 else 0.0
        self.burst = max(1.0, self.price)

    def wait(self, paid: float, now: float) -> float:
        """The seconds until an event may be counted; 0.0: now."""
        wait = max(paid - now, 0.0) + self.price - self.burst
        return wait if self.per_second > 0 and wait > _TOLERANCE else 0.0

    def charge(self, paid: float, now: float, count: int = 1) -> float:
        """Count events, also beyond the limit; return the new `paid`."""
        return max(paid, now) + self.price * count

    def remaining(self, paid: float, now: float) -> int:
        """How many events may be counted now."""
        return max(int((self.burst - max(paid - now, 0.0) + _TOLERANCE) / self.price), 0)


class RateLimiter(Generic[Key]):
    """rate: events per second for each key; 0.0: unlimited. All times are seconds of one clock."""

    def __init__(self, rate: float, *, max_keys: int = MAX_KEYS) -> None:
        self._rate = Rate(rate)
        self._max_keys = max_keys
        self._paid: OrderedDict[Key, float] = OrderedDict()

    @property
    def tracked(self) -> int:
        """The number of tracked keys."""
        return len(self._paid)

    def spend(self, key: Key, now: float) -> float:
        """Count one event and return 0.0; or, if the limit is reached, return the seconds to
        wait."""
        wait = self.wait(key, now)
        if wait > 0.0:
            return wait
        self.charge(key, now)
        return 0.0

    def wait(self, key: Key, now: float) -> float:
        """The seconds until an event may be counted; 0.0: now."""
        return self._rate.wait(self._paid.get(key, now), now)

    def charge(self, key: Key, now: float, count: int = 1) -> None:
        """Count events even if the limit is reached; later events wait longer."""
        if self._rate.per_second <= 0 or count <= 0:
            return
        self._paid[key] = self._rate.charge(self._paid.get(key, now), now, count)
        self._paid.move_to_end(key)
        if len(self._paid) > self._max_keys:
            self._paid.popitem(last=False)

    def remaining(self, now: float) -> dict[Key, int]:
        """The number of events that each tracked key may spend now. Removes idle keys."""
        for key in [key for key, paid in self._paid.items() if paid <= now]:
            del self._paid[key]
        return {key: self._rate.remaining(paid, now) for key, paid in self._paid.items()}

    def seconds_until_available(self, now: float) -> float | None:
        """Seconds until the first exhausted key may spend an event. None: no key is exhausted."""
        waits = [self._rate.wait(paid, now) for paid in self._paid.values()]
        return min((wait for wait in waits if wait > 0.0), default=None)
