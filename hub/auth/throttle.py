"""How many requests one may send, and how often one may guess. Pure: time is handed in.

Each process counts for itself. What is counted is bounded: the one that was quiet longest goes.
"""

from collections import OrderedDict
from dataclasses import dataclass, field
from math import ceil

from engine.errors import LimitReached

#: More than so many are not counted at a time.
MOST = 50_000


class TooMany(LimitReached):
    """wait: seconds, whole ones."""

    def __init__(self, reason: str, remedy: str, wait: float) -> None:
        super().__init__(reason, remedy=remedy, code="TooManyRequests")
        self.wait = max(ceil(wait), 1)


@dataclass(slots=True)
class Pace:
    """So many a second for each key, a second's worth of them at once. rate 0: any number.

    Of each key it is kept until when what it has sent is paid for: GCRA, one number a key.
    """

    rate: float
    _paid: OrderedDict[str, float] = field(default_factory=OrderedDict)

    def spend(self, key: str, now: float) -> float:
        """Seconds until this one may be sent; 0.0: now, and it is counted."""
        if self.rate <= 0:
            return 0.0
        ahead = max(self._paid.get(key, now) - now, 0.0)
        price = 1.0 / self.rate
        burst = max(1.0, price)
        if ahead + price > burst + 1e-9:
            return ahead + price - burst
        self._paid[key] = now + ahead + price
        _make_room(self._paid, key)
        return 0.0


@dataclass(slots=True)
class Lockout:
    """After `failures` wrong guesses without a pause of `seconds`, so many seconds of nothing."""

    failures: int
    seconds: float
    _seen: OrderedDict[str, tuple[int, float]] = field(default_factory=OrderedDict)

    def failed(self, key: str, now: float) -> None:
        count, last = self._seen.get(key, (0, now))
        again = count + 1 if now - last < self.seconds else 1
        self._seen[key] = again, now
        _make_room(self._seen, key)

    def left(self, key: str, now: float) -> float:
        """Seconds that it is locked out for; 0.0: it is not."""
        count, last = self._seen.get(key, (0, now))
        return max(last + self.seconds - now, 0.0) if count >= self.failures else 0.0


def _make_room(
    counted: OrderedDict[str, float] | OrderedDict[str, tuple[int, float]], key: str
) -> None:
    counted.move_to_end(key)
    if len(counted) > MOST:
        counted.popitem(last=False)
