"""When a failed operation is retried."""

from collections.abc import Callable
from dataclasses import dataclass
from datetime import timedelta

from engine.back_off import BackOff


@dataclass(frozen=True, slots=True)
class Retrying:
    """limit: how often an operation is retried. first, longest: pauses before jitter.

    random: a number from 0 up to 1.
    """

    limit: int
    first: timedelta
    longest: timedelta
    random: Callable[[], float]

    def pause(self, attempts: int) -> timedelta:
        """The pause after a failure that `attempts` failures precede."""
        back_off = BackOff(self.first.total_seconds(), self.longest.total_seconds())
        return timedelta(seconds=back_off.pause(attempts + 1, self.random()))
