"""Which endpoints of providers have failed, and until when they are not observed by policy."""

from collections.abc import Callable
from dataclasses import dataclass

from engine.back_off import BackOff
from engine.types.observation import Observation

#: Seconds of the first pause, and of the longest one.
FIRST_PAUSE, MAX_PAUSE = 30.0, 3600.0
#: Maximum number of endpoints that are remembered.
MAX_ENDPOINTS = 10_000

#: The project, the resource type, and `ResourceType.observation_endpoint`.
Endpoint = tuple[str, str, str]


@dataclass(frozen=True, slots=True)
class FailedEndpoint:
    """until: by the clock. observation: of its resources, with the reason."""

    failures: int
    until: float
    observation: Observation


class EndpointBackOff:
    """Of one process. clock: seconds. chance: a number from 0 up to 1, for jitter."""

    def __init__(self, clock: Callable[[], float], chance: Callable[[], float]) -> None:
        self._clock = clock
        self._chance = chance
        self._back_off = BackOff(FIRST_PAUSE, MAX_PAUSE)
        self._failed: dict[Endpoint, FailedEndpoint] = {}

    def __len__(self) -> int:
        """The number of endpoints that are not observed now."""
        return sum(one.until > self._clock() for one in self._failed.values())

    def get(self, endpoint: Endpoint) -> FailedEndpoint | None:
        """None: it may be observed."""
        found = self._failed.get(endpoint)
        return found if found and found.until > self._clock() else None

    def fail(self, endpoint: Endpoint, observation: Observation) -> float:
        """All calls to an endpoint have failed; return the seconds until the next one."""
        earlier = self._failed.pop(endpoint, None)
        failures = earlier.failures + 1 if earlier else 1
        seconds = self._back_off.pause(failures, self._chance())
        self._failed[endpoint] = FailedEndpoint(failures, self._clock() + seconds, observation)
        if len(self._failed) > MAX_ENDPOINTS:
            del self._failed[next(iter(self._failed))]
        return seconds

    def remaining(self, failed: FailedEndpoint) -> float:
        """Seconds until it may be observed."""
        return max(failed.until - self._clock(), 0.0)

    def succeed(self, endpoint: Endpoint) -> None:
        self._failed.pop(endpoint, None)
