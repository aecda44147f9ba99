"""Completes operations that a service has accepted: one request reads the objects of all operations
of a project, type and list.

The first requests for a list follow each other quickly, later ones at longer intervals. A claim of
a request is a lease with a fencing number: after a crash, another process sends it. One transaction
stores the objects that are complete and wakes their nodes. An object that is stored already is not
stored again, so two processes complete an operation once.
"""

import asyncio
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from datetime import timedelta
from time import monotonic

import structlog
from structlog.typing import FilteringBoundLogger

from engine.back_off import BackOff
from engine.errors import Unavailable
from engine.loop_guard import Supervisor
from engine.store.database import Database
from engine.store.fault_points import reach
from engine.store.observer import completions
from engine.store.observer.completions import ClaimedRequest, WaitingOperation
from engine.types.completion import ObjectsUnknown
from engine.types.contract import ResourceType
from engine.types.observation import Observation, count_requests
from engine.types.regions import listed_region, name_in_region
from engine.types.registry import TypeRegistry
from engine.words import Json
from engine.work.claim_loop import PATIENCE, POLL, BusyProjects, ClaimLoop, ClaimSlot, DueWork
from engine.work.observer.endpoint_back_off import (
    Endpoint,
    EndpointVerdict,
    KnownFailures,
    is_blocked,
)
from engine.work.observer.provider_endpoints import ProviderEndpoints
from engine.work.worker_metrics import WorkerMetrics

log: FilteringBoundLogger = structlog.get_logger()

#: Requests that are sent at the same time, of all projects and of one.
REQUESTS, REQUESTS_OF_PROJECT = 8, 2
#: Further requests of all projects, as long as so many wait for a service.
WAITING_REQUESTS = 24
#: Of these, those for projects whose services answer.
RESERVED_REQUESTS = 2
#: Time limit of all pages of a request, and until another process may send it.
TIMEOUT, LEASE = timedelta(seconds=60), timedelta(seconds=90)
#: Seconds until the second request; each further pause is longer, up to that of the operations.
FIRST, GROWTH = 0.5, 1.5
#: Seconds until the next request after a failure: the first ones, and the longest.
FIRST_AFTER_FAILURE, MAX_AFTER_FAILURE = 1.0, 60.0
#: By how much of itself a pause is shorter or longer at most.
VARIATION = 0.1
#: Until ended operations are looked for, if none waits.
IDLE = timedelta(seconds=10)
#: Objects that are looked up, and written, at once.
OBJECTS = 500
#: Seconds for the release of a request when the process stops.
RELEASE_TIMEOUT = 5


def next_pause(claimed: ClaimedRequest, failures: int, seconds: float, chance: float) -> timedelta:
    """Until the next request. failures: consecutive ones. seconds: that this one took; requests are
    sent at most half the time. chance: a number from 0 up to 1."""
    if failures:
        pause = BackOff(FIRST_AFTER_FAILURE, MAX_AFTER_FAILURE).ceiling(failures)
    else:
        growing = BackOff(FIRST, max(FIRST, claimed.max_pause.total_seconds()), GROWTH)
        pause = growing.ceiling(claimed.sent + 1)
    return timedelta(seconds=max(pause, seconds) * (1 + VARIATION * (2 * chance - 1)))


def endpoint_of(
    claimed: ClaimedRequest, type_: ResourceType, definition: Mapping[str, Json]
) -> Endpoint:
    """Where a request is sent: regions have budgets, and fail, of their own. definition: of an
    operation that waits."""
    service = name_in_region(type_.objects_endpoint(definition), listed_region(definition))
    return claimed.project, claimed.type, service


class RequestPostponed(Exception):
    """The budget of requests is used up, or the provider has requested fewer requests. wait: until
    the request is sent."""

    def __init__(self, wait: timedelta) -> None:
        super().__init__(f"postponed by {wait}")
        self.wait = wait


class EndpointThrottled(Exception):
    """The provider requests fewer requests. wait: until the next one."""

    def __init__(self, reason: str, wait: timedelta) -> None:
        super().__init__(reason)
        self.wait = wait


class CompletionObserver:
    """One loop. chance: a number from 0 up to 1, for jitter. endpoints: the requests that it may
    send. patience: see `ClaimSlot`."""

    def __init__(
        self,
        database: Database,
        registry: TypeRegistry,
        *,
        chance: Callable[[], float] = lambda: 0.5,
        timeout: timedelta = TIMEOUT,
        supervisor: Supervisor | None = None,
        metrics: WorkerMetrics | None = None,
        endpoints: ProviderEndpoints | None = None,
        patience: float = PATIENCE,
    ) -> None:
        self._database = database
        self._registry = registry
        self._chance = chance
        self._timeout = timeout.total_seconds()
        supervisor = supervisor or Supervisor()
        self._guard = supervisor.guard("completions", max_pause=POLL.total_seconds())
        self._metrics = metrics or WorkerMetrics()
        self._endpoints = endpoints or ProviderEndpoints(database, chance=chance)
        work = DueWork(
            claim=self._claim,
            until_next=self._until_next,
            run=self._send_or_release,
            project_of=lambda claimed: claimed.project,
            at_once=REQUESTS,
            of_project=REQUESTS_OF_PROJECT,
            waiting=WAITING_REQUESTS,
            reserved=RESERVED_REQUESTS,
            patience=patience,
        )
        self._loop = ClaimLoop(self._guard, work)

    def wake(self) -> None:
        """Look at the schedule: an operation was added, or an event has arrived."""
        self._loop.wake()

    async def run(self, stop: asyncio.Event) -> None:
        """Run until `stop` is set and `wake` is called; then release the requests."""
        await self._loop.run(stop)

    async def send_due(self) -> int:
        """Send the requests that are due, one after another; return how many there were."""
        return len(await self._loop.run_due())

    async def _claim(self, limits: BusyProjects) -> ClaimedRequest | None:
        async with self._database.transaction() as conn:
            claimed = await completions.claim(conn, LEASE, limits.busy)
            if claimed is not None:
                reach("look.before")
        if claimed is not None:
            reach("look.after")
        return claimed

    async def _until_next(self, except_projects: Sequence[str]) -> timedelta | None:
        async with self._database.connection() as conn:
            return await completions.until_next(conn, except_projects)

    async def _send_or_release(self, claimed: ClaimedRequest, slot: ClaimSlot) -> None:
        """Without the database, the lease expires."""
        try:
            await self._send(claimed, slot)
        except asyncio.CancelledError:
            with suppress(Unavailable, TimeoutError):
                async with asyncio.timeout(RELEASE_TIMEOUT), self._database.connection() as conn:
                    await completions.release(conn, claimed)
            raise
        except Exception as error:
            self._guard.report(error, request=str(claimed.id))

    async def _send(self, claimed: ClaimedRequest, slot: ClaimSlot) -> None:
        began = monotonic()
        sent, reason, wait = True, "", timedelta(0)
        try:
            async with asyncio.timeout(self._timeout):
                sent = await self._complete_found(claimed, slot)
        except RequestPostponed as error:
            sent, wait = False, error.wait
        except EndpointThrottled as error:
            reason, wait = str(error), error.wait
        except ObjectsUnknown as error:
            reason = str(error)
        except TimeoutError:
            reason = f"there was no complete answer within {self._timeout:g} s"
        except Unavailable:
            raise
        except Exception as error:
            reason = str(self._guard.report(error, resource_type=claimed.type))
        if sent:
            self._metrics.record_observation_call("failed" if reason else "succeeded")
        failures = claimed.failures + 1 if reason else claimed.failures if wait else 0
        if reason:
            log.warning(
                "completions.unknown", project=claimed.project, resource_type=claimed.type,
                reason=reason, failures=failures,
            )  # fmt: skip
        pause = max(wait, next_pause(claimed, failures, monotonic() - began, self._chance()))
        async with self._database.transaction("looked") as conn:
            await completions.end_request(
                conn, claimed, pause, failures=failures, sent=sent, idle=IDLE
            )

    async def _complete_found(self, claimed: ClaimedRequest, slot: ClaimSlot) -> bool:
        """Send the request, and complete the operations whose objects it finds complete. Returns
        whether it was sent: an operation waits. Raises RequestPostponed, EndpointThrottled,
        ObjectsUnknown, and what the type raises."""
        async with self._database.connection() as conn:
            definition = await completions.read_definition(conn, claimed)
        if definition is None:
            return False
        type_ = self._registry.get(claimed.type)
        endpoint = endpoint_of(claimed, type_, definition)
        known = await self._endpoints.read_failed(endpoint)
        await self._take(endpoint, known)
        try:
            with count_requests() as count:
                try:
                    objects = type_.read_objects(claimed.project, definition)
                    async for page in slot.waiting_for(objects):
                        ids = list(page)
                        for start in range(0, len(ids), OBJECTS):
                            await self._complete(claimed, type_, page, ids[start : start + OBJECTS])
                finally:
                    await self._endpoints.charge(endpoint[0], {endpoint[2]: count.sent - 1})
        except ObjectsUnknown as error:
            if error.retry_after is None:
                raise
            failure = Observation.unknown(str(error), str(error), error.retry_after)
            verdict = EndpointVerdict(failure, works=False)
            pauses = await self._endpoints.record({endpoint: verdict}, known, requested=False)
            raise EndpointThrottled(str(error), pauses[endpoint]) from None
        await self._endpoints.record({endpoint: EndpointVerdict(None)}, known, requested=False)
        return True

    async def _take(self, endpoint: Endpoint, known: KnownFailures) -> None:
        """Take a request from the budget of the endpoint. Raises RequestPostponed."""
        failed = known.endpoints.get(endpoint)
        if failed is not None and is_blocked(failed, requested=True):
            raise RequestPostponed(failed.remaining)
        grant = (await self._endpoints.take(endpoint[0], {endpoint[2]: 1}))[endpoint[2]]
        if not grant.count:
            self._metrics.record_observation_call("delayed")
            raise RequestPostponed(timedelta(seconds=grant.wait))

    async def _complete(
        self,
        claimed: ClaimedRequest,
        type_: ResourceType,
        page: Mapping[str, Json],
        object_ids: list[str],
    ) -> None:
        async with self._database.connection() as conn:
            waiting = await completions.find_waiting(conn, claimed, object_ids)
        found = [
            (one, page[one.object_id])
            for one in waiting
            if self._is_complete(type_, one, page[one.object_id])
        ]
        if found:
            async with self._database.transaction("complete") as conn:
                await completions.complete(conn, claimed.project, found)

    def _is_complete(self, type_: ResourceType, waiting: WaitingOperation, found: Json) -> bool:
        """An error of the type is one of this operation alone, which waits on."""
        try:
            return type_.is_complete(waiting.definition, found)
        except Exception as error:
            self._guard.report(error, resource_type=type_.schema.name)
            return False
