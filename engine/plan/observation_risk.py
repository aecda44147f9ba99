"""Which resources are observed first if not all of them can be, and how soon stacks are observed
again: by age, weighted by risk. Pure."""

from dataclasses import dataclass
from datetime import timedelta

from engine.words import ObservedState

#: What is added to the weight 1: for drift, for a failure, for a change just now, and for drift
#: before.
DRIFTED, FAILING, CHANGED, DRIFTED_BEFORE = 1.0, 0.5, 1.0, 0.5
MAX_WEIGHT = 1.0 + max(DRIFTED, FAILING) + CHANGED + DRIFTED_BEFORE
#: The risk of a change, and of drift before, fades to none within these times.
FADING, FADING_DRIFT = timedelta(days=1), timedelta(days=7)
#: The age of what was never observed.
NEVER = timedelta(days=30)
#: By how much of itself an interval is shorter or longer at random, and shorter at the highest
#: risk.
VARIATION, SOONER = 0.1, 0.1


@dataclass(frozen=True, slots=True)
class Risk:
    """Of a resource, or of a stack. state: observed last; None: as recorded. changed: time since
    its last change. drifted: time since drift in its stack was last found or ended; None: there
    was none."""

    state: ObservedState | None
    changed: timedelta
    drifted: timedelta | None = None

    @property
    def weight(self) -> float:
        """From 1 to MAX_WEIGHT."""
        changed = CHANGED * _remaining_share(self.changed, FADING)
        before = 0.0 if self.drifted is None else _remaining_share(self.drifted, FADING_DRIFT)
        return 1.0 + _of_state(self.state) + changed + DRIFTED_BEFORE * before


def _remaining_share(age: timedelta, fading: timedelta) -> float:
    """From 1 just now to 0."""
    return min(max(1 - age / fading, 0.0), 1.0)


def _of_state(state: ObservedState | None) -> float:
    match state:
        case None | ObservedState.PRESENT:
            return 0.0
        case ObservedState.UNKNOWN | ObservedState.DEGRADED:
            return FAILING
        case _:
            return DRIFTED


def urgency(age: timedelta | None, risk: Risk) -> float:
    """The highest is observed first. age: since the last observation; None: there was none."""
    return (NEVER if age is None else age).total_seconds() * risk.weight


def next_interval(every: timedelta, risk: Risk, chance: float) -> timedelta:
    """The time until the next observation. chance: a number from 0 up to 1; the same for stacks
    that are observed together, so that they stay together."""
    sooner = SOONER * (risk.weight - 1.0) / (MAX_WEIGHT - 1.0)
    return every * (1 + VARIATION * (2 * chance - 1) - sooner)
