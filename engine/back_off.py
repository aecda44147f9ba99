"""Exponential back-off: the one schedule of repeated attempts. Pure: randomness is an argument."""

from dataclasses import dataclass

#: More doublings than this exceed every useful bound, and would overflow a float much later.
_MOST_STEPS = 60


@dataclass(frozen=True, slots=True)
class BackOff:
    """Pauses in seconds that grow by `factor` from `first` to `longest`."""

    first: float
    longest: float
    factor: float = 2.0

    def ceiling(self, failures: int) -> float:
        """The longest pause after this many failures in a row (from 1)."""
        steps = min(max(failures - 1, 0), _MOST_STEPS)
        return min(self.first * self.factor**steps, self.longest)

    def pause(self, failures: int, chance: float) -> float:
        """A pause between half of the ceiling and the ceiling. chance: 0 <= chance < 1."""
        return self.ceiling(failures) * (0.5 + chance / 2)
