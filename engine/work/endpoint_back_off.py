"""Which endpoints of providers have failed, and until when they are not observed by policy."""

from collections.abc import Callable
from dataclasses import dataclass

from engine.back_off import BackOff
from engine.ttl_cache import TtlCache
from engine.types.observation import Observation

#: The pauses in seconds.
PAUSES = BackOff(30.0, 3600.0)
#: Seconds after a pause for which its failures are counted further.
REMEMBERED = 86_400.0
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
        self._failed: TtlCache[Endpoint, FailedEndpoint] = TtlCache(max_entries=MAX_ENDPOINTS)

    def __len__(self) -> int:
        """The number of endpoints that are not observed now."""
        now = self._clock()
        return sum(one.until > now for one in self._failed.values(now))

    def get(self, endpoint: Endpoint) -> FailedEndpoint | None:
        """None: it may be observed."""
        now = self._clock()
        found = self._failed.get(endpoint, now)
        return found if found and found.until > now else None

    def fail(self, endpoint: Endpoint, observation: Observation) -> float:
        """All calls to an endpoint have failed; return the seconds until the next one."""
        now = self._clock()
        earlier = self._failed.get(endpoint, now)
        failures = earlier.failures + 1 if earlier else 1
        seconds = PAUSES.pause(failures, self._chance())
        until = now + seconds
        failed = FailedEndpoint(failures, until, observation)
        self._failed.keep(endpoint, failed, until + REMEMBERED)
        return seconds

    def remaining(self, failed: FailedEndpoint) -> float:
        """Seconds until it may be observed."""
        return max(failed.until - self._clock(), 0.0)

    def succeed(self, endpoint: Endpoint) -> None:
        self._failed.drop(endpoint)
