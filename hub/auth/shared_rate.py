"""The limit on the rate of requests of each client, counted for all processes of a server."""

from engine.rate_limiter import Rate
from hub.auth.shared_counts import Count, SharedCounts


class SharedRate:
    """rate: events per second for each key; 0.0: unlimited. counts: of this limit alone; a row
    expires when all its events conform to the rate. Times are seconds of the monotonic clock."""

    def __init__(self, rate: float, counts: SharedCounts) -> None:
        self._rate = Rate(rate)
        self._counts = counts

    def spend(self, key: str, now: float) -> float:
        """Count one event and return 0.0; or, if the limit is reached, return the seconds to
        wait."""
        if self._rate.per_second <= 0:
            return 0.0

        def count(found: Count | None) -> Count | None:
            paid = _read_paid(found, now)
            waits = self._rate.wait(paid, now) > 0
            return None if waits else Count(0.0, self._rate.charge(paid, now))

        return self._rate.wait(_read_paid(self._counts.change(key, now, count), now), now)

    def wait(self, key: str, now: float) -> float:
        """The seconds until an event may be counted; 0.0: now."""
        if self._rate.per_second <= 0:
            return 0.0
        return self._rate.wait(_read_paid(self._counts.get(key, now), now), now)

    def spend_many(self, key: str, now: float, count: int) -> float:
        """Count events, also if the limit does not allow all of them. Returns 0.0 if it does, else
        the seconds until another one may be counted."""
        if self._rate.per_second <= 0 or count <= 0:
            return 0.0

        def add(found: Count | None) -> Count:
            return Count(0.0, self._rate.charge(_read_paid(found, now), now, count))

        paid = _read_paid(self._counts.change(key, now, add), now)
        if count <= self._rate.remaining(paid, now):
            return 0.0
        return self._rate.wait(self._rate.charge(paid, now, count), now)

    @property
    def at_once(self) -> int:
        """How many events may be counted at once."""
        return self._rate.remaining(0.0, 0.0)


def _read_paid(found: Count | None, now: float) -> float:
    return now if found is None else found.expires_at
