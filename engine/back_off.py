"""Exponential back-off: the pauses between repeated attempts. Pure: randomness is an argument."""

from dataclasses import dataclass

#: Maximum exponent: it exceeds every useful pause, and is far below a float's overflow.
_MAX_STEPS = 60


@dataclass(frozen=True, slots=True)
class BackOff:
    """Pauses in seconds that grow by `factor` from `first` to `max_pause`."""

    first: float
    max_pause: float
    factor: float = 2.0

    def ceiling(self, failures: int) -> float:
        """The longest pause after this many consecutive failures (from 1)."""
        steps = min(max(failures - 1, 0), _MAX_STEPS)
        return min(self.first * self.factor**steps, self.max_pause)

    def pause(self, failures: int, chance: float) -> float:
        """A pause between half of the ceiling and the ceiling. chance: 0 <= chance < 1."""
        return self.ceiling(failures) * (0.5 + chance / 2)
