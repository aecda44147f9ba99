"""When an operation that failed is tried again: later each time, and never all at once."""

from collections.abc import Callable
from dataclasses import dataclass
from datetime import timedelta


@dataclass(frozen=True, slots=True)
class Retrying:
    """limit: how often an operation is tried again. first, longest: pauses before jitter.

    random: a number from 0 up to 1.
    """

    limit: int
    first: timedelta
    longest: timedelta
    random: Callable[[], float]

    def pause(self, attempts: int) -> timedelta:
        """How long to wait after so many failures before this one: half of it is by chance."""
        whole = min(self.longest, self.first * 2.0 ** min(attempts, 30))
        return whole * (0.5 + self.random() / 2)
