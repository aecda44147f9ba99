"""How long an endpoint of a provider is not observed by policy after it has failed. Pure."""

from dataclasses import dataclass
from datetime import timedelta

from engine.back_off import BackOff
from engine.types.observation import Observation
from engine.words import ObservedState

#: The pauses in seconds.
PAUSES = BackOff(30.0, 3600.0)
#: Seconds: the longest pause that a provider can request.
MAX_RETRY_AFTER = 86_400.0
#: By how much of itself a requested pause is longer at most.
VARIATION = 0.1
#: After a pause, its failures are counted further for this time.
REMEMBERED = timedelta(days=1)

#: The project, the resource type, and `ResourceType.observation_endpoint`.
Endpoint = tuple[str, str, str]


@dataclass(frozen=True, slots=True)
class FailedEndpoint:
    """failures: consecutive ones. remaining: of its pause, during which it is not observed by
    policy; may be negative. reason, public_reason:
    of its resources, which are unknown. throttled: it has requested this pause, so requests of
    users wait, too."""

    failures: int
    remaining: timedelta
    reason: str
    public_reason: str
    throttled: bool

    @property
    def observation(self) -> Observation:
        return Observation.unknown(self.reason, self.public_reason)


def pause_after(failures: int, retry_after: float | None, chance: float) -> timedelta:
    """The pause after this many consecutive failures. retry_after: seconds that the provider
    requested. chance: a number from 0 up to 1."""
    requested = min(retry_after or 0.0, MAX_RETRY_AFTER) * (1 + VARIATION * chance)
    return timedelta(seconds=max(PAUSES.pause(failures, chance), requested))


def is_blocked(failed: FailedEndpoint, *, requested: bool) -> bool:
    """Whether an endpoint is not observed now. requested: by a user."""
    return failed.remaining > timedelta(0) and (failed.throttled or not requested)


def is_throttled(observation: Observation) -> bool:
    """Whether the provider has requested fewer requests."""
    return observation.state is ObservedState.UNKNOWN and observation.retry_after is not None
