"""Calls of resource types that observe: resources that a type observes together are one call.

Endpoints that have failed get no calls for a while, and budgets of requests limit the others.
"""

import asyncio
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import timedelta
from inspect import isawaitable
from uuid import UUID

import orjson

from engine.errors import NotFound
from engine.loop_guard import Guard
from engine.plan.observation_risk import Risk, urgency
from engine.store.database import Database
from engine.store.observer import observations
from engine.store.observer.observations import RecordedResource
from engine.types.contract import Call, ResourceType
from engine.types.observation import Observation, count_requests
from engine.types.regions import name_in_region
from engine.types.registry import TypeRegistry
from engine.words import ObservedState, ResourceId, StackId
from engine.work.observer.endpoint_back_off import (
    Endpoint,
    FailedEndpoint,
    is_blocked,
    is_throttled,
)
from engine.work.observer.observed_rows import recorded_call, shown_reason
from engine.work.observer.provider_endpoints import MAX_REASON, ProviderEndpoints
from engine.work.observer.stack_observation import StackObservation
from engine.work.worker_metrics import WorkerMetrics

#: Calls of types at the same time for each batch of stacks.
CALLS = 10
NO_ANSWER = "the type did not report a state of the resource"


class ObservationFault(Exception):
    """A type raised an error. The text is the reason to show."""


@dataclass(slots=True)
class CallGroup:
    """Resources that one call observes. requests: how many it has sent."""

    type: ResourceType
    endpoint: Endpoint
    resources: list[RecordedResource] = field(default_factory=list)
    calls: list[Call] = field(default_factory=list)
    requests: int = 0


@dataclass(frozen=True, slots=True)
class CallResult:
    """What a call returned. unknown: of the resources that it did not report, or of all."""

    group: CallGroup
    found: Mapping[ResourceId, Observation]
    unknown: Observation

    @property
    def failure(self) -> Observation | None:
        """Why it returned no state of a resource; None: it did."""
        states = list(self.found.values()) or [self.unknown]
        usable = any(one.state is not ObservedState.UNKNOWN for one in states)
        return None if usable else states[0]

    @property
    def throttling(self) -> Observation | None:
        """Why the provider requests fewer requests; None: it does not."""
        return next(filter(is_throttled, (*self.found.values(), self.unknown)), None)


class ProviderCalls:
    """timeout: for all calls of a page; resources without an answer are then unknown. new_id: of
    the calls."""

    def __init__(
        self,
        database: Database,
        registry: TypeRegistry,
        endpoints: ProviderEndpoints,
        *,
        guard: Guard,
        metrics: WorkerMetrics,
        new_id: Callable[[], UUID],
        timeout: timedelta,
    ) -> None:
        self._database = database
        self._registry = registry
        self._endpoints = endpoints
        self._guard = guard
        self._metrics = metrics
        self._new_id = new_id
        self._timeout = timeout.total_seconds()

    def group(
        self,
        pending: Mapping[UUID, StackObservation],
        page: Sequence[RecordedResource],
        credential: str,
    ) -> list[CallGroup]:
        """The groups of a page, without the resources that cannot be observed. credential: see
        `Call.observation_credential`."""
        groups: dict[tuple[str, str], CallGroup] = {}
        for recorded in page:
            progress = pending[recorded.stack_id]
            try:
                type_ = self._registry.get(recorded.type)
            except NotFound:  # the plug-in of an earlier process
                progress.not_observable += 1
                continue
            stack = progress.stack
            call = recorded_call(
                stack.project, StackId(stack.stack_id), stack.name or "", recorded, self._new_id(),
                credential, stack.region,
            )  # fmt: skip
            known = self._key(type_, call)
            if known is None:
                progress.not_observable += 1
                continue
            key, url = known
            group = groups.get((recorded.type, key))
            if group is None:
                endpoint = (progress.stack.project, recorded.type, url)
                group = groups[recorded.type, key] = CallGroup(type_, endpoint)
            group.resources.append(recorded)
            group.calls.append(call)
        return [*groups.values()]

    def _key(self, type_: ResourceType, call: Call) -> tuple[str, str] | None:
        """The key and the endpoint of the type; None also if the type raises an error."""
        try:
            key = type_.observation_key(call)
            if key is None:
                return None
            endpoint = type_.observation_endpoint(call)
            return name_in_region(key, call.region), name_in_region(endpoint, call.region)
        except Exception as error:
            self._guard.report(error, resource_type=type_.schema.name)
            return None

    async def call(
        self, pending: Mapping[UUID, StackObservation], groups: Sequence[CallGroup]
    ) -> list[CallResult]:
        """Call the types, except for endpoints that have failed before, and as far as the budgets
        of requests allow. Requested observations are made also after a failure, unless the provider
        has requested fewer requests."""
        if not groups:
            return []
        requested = any(one.stack.requested for one in pending.values())
        known = await self._endpoints.read_failed([*{one.endpoint for one in groups}])
        skipped: list[CallResult] = []
        wanted: list[CallGroup] = []
        for group in groups:
            failed = known.get(group.endpoint)
            if failed is None or not is_blocked(failed, requested=requested):
                wanted.append(group)
                continue
            self._metrics.record_observation_call("skipped")
            skipped.append(CallResult(group, {}, failed.observation))
            _retry(pending, group, failed.remaining)
        granted = await self._grant(pending, wanted)
        answers = await self._call_all(granted)
        extra = Counter[str]()
        for group in granted:
            extra[group.endpoint[2]] += group.requests - 1
        await self._endpoints.charge(extra)
        await self._judge_endpoints(pending, answers, known)
        return [*skipped, *answers]

    async def _grant(
        self, pending: Mapping[UUID, StackObservation], groups: Sequence[CallGroup]
    ) -> list[CallGroup]:
        """The groups for which the budgets have a request; the resources of the others are left
        out. A call that needs more requests uses them up for later ones."""
        by_endpoint: dict[str, list[CallGroup]] = {}
        for group in groups:
            by_endpoint.setdefault(group.endpoint[2], []).append(group)
        if not groups:
            return []
        needs = {key: len(found) for key, found in by_endpoint.items()}
        grants = await self._endpoints.take(groups[0].endpoint[0], needs)
        granted: list[CallGroup] = []
        short = [key for key, grant in grants.items() if grant.count < needs[key]]
        states = await self._read_states(pending) if short else {}
        for key, found in by_endpoint.items():
            count, wait = grants[key].count, timedelta(seconds=grants[key].wait)
            if key in short:
                found.sort(key=lambda one: -_urgency(one, pending, states))
                self._metrics.record_observation_call("delayed", len(found) - count)
            granted += found[:count]
            for one in (one for group in found[count:] for one in group.resources):
                pending[one.stack_id].defer(one.id, wait, self._endpoints.shortage(key))
        return granted

    async def _read_states(
        self, pending: Mapping[UUID, StackObservation]
    ) -> dict[tuple[UUID, UUID], ObservedState]:
        async with self._database.connection() as conn:
            return await observations.read_states(conn, [*pending])

    async def _call_all(self, groups: Sequence[CallGroup]) -> list[CallResult]:
        """Call the types. After a provider has requested fewer requests, its other groups are not
        called."""
        limit = asyncio.Semaphore(CALLS)
        end = asyncio.get_running_loop().time() + self._timeout
        throttled: dict[Endpoint, Observation] = {}

        async def call(group: CallGroup) -> CallResult:
            found: Mapping[ResourceId, Observation] = {}
            reason = NO_ANSWER
            try:
                async with asyncio.timeout_at(end), limit:
                    if stopped := throttled.get(group.endpoint):
                        return CallResult(group, {}, stopped)
                    found = await self._observe(group)
            except TimeoutError:
                reason = f"there was no answer within {self._timeout:g} s"
            except ObservationFault as fault:
                reason = str(fault)
            answer = CallResult(group, found, Observation.unknown(reason, reason))
            if answer.throttling is not None:
                throttled[group.endpoint] = _without_secrets(group, answer.throttling)
            return answer

        async with asyncio.TaskGroup() as tasks:
            running = [tasks.create_task(call(group)) for group in groups]
        return [task.result() for task in running]

    async def _judge_endpoints(
        self,
        pending: Mapping[UUID, StackObservation],
        answers: Sequence[CallResult],
        known: Mapping[Endpoint, FailedEndpoint],
    ) -> None:
        """An endpoint has failed if no call to it returned a state, or if it requested fewer
        requests. known: those that had failed before."""
        by_endpoint: dict[Endpoint, list[CallResult]] = {}
        for answer in answers:
            self._metrics.record_observation_call("failed" if answer.failure else "succeeded")
            by_endpoint.setdefault(answer.group.endpoint, []).append(answer)
        failed: dict[Endpoint, Observation] = {}
        for endpoint, found in by_endpoint.items():
            throttling = [one.throttling for one in found]
            failures = [one.failure for one in found]
            by_failure = throttling if any(throttling) else failures
            first = next((n for n, one in enumerate(by_failure) if one is not None), None)
            if first is not None and (any(throttling) or all(failures)):
                observation = by_failure[first] or found[first].unknown
                failed[endpoint] = _without_secrets(found[first].group, observation)
        succeeded = [one for one in by_endpoint if one not in failed]
        pauses = await self._endpoints.record(succeeded, failed, known)
        for endpoint, pause in pauses.items():
            for answer in by_endpoint[endpoint]:
                _retry(pending, answer.group, pause)

    async def _observe(self, group: CallGroup) -> Mapping[ResourceId, Observation]:
        """An error of the type is an internal error of this call alone, and an observation that
        cannot be stored one of its resource. Raises ObservationFault."""
        try:
            with count_requests() as count:
                try:
                    answer = group.type.observe(group.calls)
                    found = await answer if isawaitable(answer) else answer
                finally:
                    group.requests = max(count.sent, 1)
            return {call.resource_id: self._valid(group, found[call.resource_id])
                    for call in group.calls if call.resource_id in found}  # fmt: skip
        except Exception as error:
            fault = self._guard.report(error, resource_type=group.type.schema.name)
            raise ObservationFault(str(fault)) from None

    def _valid(self, group: CallGroup, observation: Observation) -> Observation:
        """The observation, or an unknown state."""
        try:
            values = [[one.path, one.desired, one.observed] for one in observation.differences]
            orjson.dumps([observation.state, values, observation.reason[:MAX_REASON],
                          observation.public_reason[:MAX_REASON]])  # fmt: skip
        except Exception as error:
            fault = str(self._guard.report(error, resource_type=group.type.schema.name))
            return Observation.unknown(fault, fault)
        return observation


def _urgency(
    group: CallGroup,
    pending: Mapping[UUID, StackObservation],
    states: Mapping[tuple[UUID, UUID], ObservedState],
) -> float:
    """That of its most urgent resource. states: of resources that differ."""
    return max(
        urgency(
            pending[one.stack_id].age,
            Risk(
                states.get((one.stack_id, one.id)),
                one.now - one.updated_at,
                pending[one.stack_id].drifted,
            ),
        )
        for one in group.resources
    )


def _without_secrets(group: CallGroup, observation: Observation) -> Observation:
    """An observation that holds for other resources, too."""
    if not any(one.has_secrets for one in group.resources):
        return observation
    return replace(observation, reason=shown_reason(observation, hidden=True))


def _retry(pending: Mapping[UUID, StackObservation], group: CallGroup, pause: timedelta) -> None:
    """Observe the stacks of a group again after this time, when its endpoint may be."""
    for one in group.resources:
        pending[one.stack_id].retry_after(pause)
