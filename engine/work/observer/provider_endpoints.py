"""Asks all processes' state of providers before requests of the observer: what has failed, and
whether the budget of requests allows more."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict, dataclass
from datetime import timedelta
from fnmatch import fnmatchcase
from time import monotonic
from types import MappingProxyType

from engine import request_budget
from engine.errors import Unavailable
from engine.request_budget import KEPT, BudgetGrant
from engine.store.database import Database
from engine.store.observer import failed_requests, provider_endpoints
from engine.store.observer.provider_endpoints import NewFailure
from engine.types.observation import Observation
from engine.types.regions import service_of
from engine.types.text_cleaning import replace_nul
from engine.work.observer.call_groups import CallGroup
from engine.work.observer.endpoint_back_off import (
    MAX_OF_PROJECT,
    REMEMBERED,
    Endpoint,
    EndpointVerdict,
    KnownFailure,
    KnownFailures,
    RequestKey,
    is_throttled,
    lengthens_pause,
    pause_after,
)

#: By how much of itself the wait for a budget is longer at most, and by how many seconds: far fewer
#: than a turn is kept.
VARIATION, MAX_VARIATION = 0.1, KEPT / 10
#: Seconds between two pages of lists of a project beyond its budget, if this is not faster.
MAX_PACE = 0.5
#: Projects and endpoints whose last page is known, about.
PACED = 1_000
#: Characters of a reason; longer ones are shortened.
MAX_REASON = 1_000


@dataclass(frozen=True, slots=True)
class RequestRates:
    """Requests per minute that observers may send to an endpoint; 0.0: unlimited. endpoints:
    (globs, rate); the first that matches applies. A service has a budget for each region."""

    default: float = 0.0
    endpoints: Sequence[tuple[Sequence[str], float]] = ()

    def rate_of(self, endpoint: str) -> float:
        names = {endpoint, service_of(endpoint)}
        for globs, rate in self.endpoints:
            if any(fnmatchcase(name, glob) for name in names for glob in globs):
                return rate
        return self.default


class ProviderEndpoints:
    """chance: a number from 0 up to 1, for jitter. clock: seconds, of this process."""

    def __init__(
        self,
        database: Database,
        rates: RequestRates = RequestRates(),
        chance: Callable[[], float] = lambda: 0.5,
        clock: Callable[[], float] = monotonic,
    ) -> None:
        self._database = database
        self._rates = rates
        self._chance = chance
        self._clock = clock
        self._paced = dict[tuple[str, str], float]()

    def shortage(self, endpoint: str) -> str:
        """Why no more requests are sent to an endpoint now."""
        rate = self._rates.rate_of(endpoint)
        return f"the budget of {rate:g} requests per minute to {endpoint} is used up"

    async def read_failures(self, groups: Sequence[CallGroup]) -> KnownFailures:
        """What has failed before of what these groups ask, also if the pause has ended."""
        keys = {(*one.endpoint, one.request) for one in groups}
        keys |= {(*one.endpoint, str(stack)) for one in groups for stack in one.stacks}
        return await self._read([*{one.endpoint for one in groups}], sorted(keys))

    async def read_failed(self, endpoint: Endpoint) -> KnownFailures:
        """Whether an endpoint has failed, also if its pause has ended."""
        return await self._read([endpoint], [])

    async def _read(
        self, endpoints: Sequence[Endpoint], requests: Sequence[RequestKey]
    ) -> KnownFailures:
        if not endpoints:
            return KnownFailures()
        async with self._database.connection() as conn:
            found = await provider_endpoints.read_failures(conn, endpoints, REMEMBERED)
            failed = await failed_requests.read(conn, requests, REMEMBERED) if requests else {}
        return KnownFailures(
            {key: KnownFailure(**asdict(one)) for key, one in found.items()},
            {key: KnownFailure(**asdict(one)) for key, one in failed.items()},
        )

    async def record(
        self, verdicts: Mapping[Endpoint, EndpointVerdict], known: KnownFailures, *, requested: bool
    ) -> dict[Endpoint, timedelta]:
        """Record what has failed and what works; return how long each failed endpoint is not
        observed. known: what had failed before. requested: see `lengthens_pause`."""
        failed = {key: one.endpoint for key, one in verdicts.items() if one.endpoint}
        new = {key: self._failure(one, known.endpoints.get(key)) for key, one in failed.items()}
        over = {
            key: one.until
            for key, one in known.endpoints.items()
            if key in verdicts and verdicts[key].works
        }
        works = {(*key, one) for key, verdict in verdicts.items() for one in verdict.working}
        stored = {
            key: one
            for key, one in new.items()
            if lengthens_pause(failed[key], requested=requested)
        }
        requests = {
            (*key, name): self._failure(one, known.requests.get((*key, name)))
            for key, verdict in verdicts.items()
            for name, one in verdict.requests.items()
            if lengthens_pause(one, requested=requested)
        }
        working = {key: one.until for key, one in known.requests.items() if key in works}
        if stored or over or requests or working:
            async with self._database.transaction("endpoint") as conn:
                if over:
                    await provider_endpoints.delete_failures(conn, over)
                if stored:
                    await provider_endpoints.store_failures(
                        conn, stored, REMEMBERED, MAX_OF_PROJECT
                    )
                if working:
                    await failed_requests.delete(conn, working)
                if requests:
                    await failed_requests.store(conn, requests, REMEMBERED, MAX_OF_PROJECT)
        return {key: one.pause for key, one in new.items()}

    def expect_pause(self, before: KnownFailure | None) -> timedelta:
        """About how long an endpoint that has failed again will not be observed."""
        failures = before.failures + 1 if before else 1
        return pause_after(failures, None, self._chance())

    def _failure(self, observation: Observation, before: KnownFailure | None) -> NewFailure:
        failures = before.failures + 1 if before else 1
        return NewFailure(
            failures,
            pause_after(failures, observation.retry_after, self._chance()),
            replace_nul(observation.reason[:MAX_REASON]),
            replace_nul(observation.public_reason[:MAX_REASON]),
            is_throttled(observation),
        )

    async def take(
        self,
        project: str,
        needs: Mapping[str, int],
        spares: Mapping[str, int] = MappingProxyType({}),
    ) -> dict[str, BudgetGrant]:
        """How many requests a project may send to each endpoint now. needs, spares: how many it
        wants, and how many more it can use; see `request_budget.take`."""
        grants = {key: BudgetGrant(need + spares.get(key, 0)) for key, need in needs.items()}
        limited = self._rates_of(needs)
        if not limited:
            return grants
        async with self._database.transaction("budget") as conn:
            states, now = await provider_endpoints.lock_budgets(conn, sorted(limited))
            for key, rate in limited.items():
                states[key], grants[key] = request_budget.take(
                    states[key], rate, project, needs[key], now, spare=spares.get(key, 0)
                )
            await provider_endpoints.store_budgets(conn, states, limited)
        return {key: self._with_jitter(grant) for key, grant in grants.items()}

    def _with_jitter(self, grant: BudgetGrant) -> BudgetGrant:
        more = min(grant.wait * VARIATION, MAX_VARIATION)
        return BudgetGrant(grant.count, grant.wait + more * self._chance())

    async def charge(self, project: str, counts: Mapping[str, int]) -> dict[str, int]:
        """Count requests that a project has sent in addition to those taken; negative: not sent.
        Returns how many of them are its debts; see `request_budget.charge`."""
        counts = {key: count for key, count in counts.items() if count}
        limited, debts = self._rates_of(counts), dict[str, int]()
        if not limited:
            return debts
        async with self._database.transaction("budget") as conn:
            states, now = await provider_endpoints.lock_budgets(conn, sorted(limited))
            for key, rate in limited.items():
                states[key], debts[key] = request_budget.charge(
                    states[key], rate, project, counts[key], now
                )
            await provider_endpoints.store_budgets(conn, states, limited)
        return debts

    async def pace(self, project: str, endpoint: str, count: int) -> tuple[int, float]:
        """Count requests for pages of a list that were sent in addition to those taken. Returns how
        many were counted, and seconds until the project may request the next page: what is not
        within the budget is sent in steps."""
        rate = self._rates.rate_of(endpoint) if endpoint else 0.0
        if rate <= 0 or count <= 0:
            return 0, 0.0
        try:
            debt = (await self.charge(project, {endpoint: count}))[endpoint]
        except (Unavailable, TimeoutError):
            return 0, 0.0  # they are counted after the list
        key, now = (project, endpoint), self._clock()
        if debt:
            if len(self._paced) >= PACED:
                self._paced = {one: at for one, at in self._paced.items() if at > now}
            begin = max(self._paced.get(key, 0.0), now)
            self._paced[key] = begin + debt * min(60.0 / rate, MAX_PACE)
        return count, max(self._paced.get(key, 0.0) - now, 0.0) if debt else 0.0

    def _rates_of(self, endpoints: Mapping[str, int]) -> dict[str, float]:
        rates = {key: self._rates.rate_of(key) for key in endpoints if key}
        return {key: rate for key, rate in rates.items() if rate > 0}
