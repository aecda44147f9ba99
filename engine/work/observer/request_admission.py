"""Which requests of the observer are sent: what has failed is not repeated for a while, and budgets
limit the others."""

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import replace
from datetime import timedelta
from uuid import UUID

from engine.errors import Unavailable
from engine.plan.observation_risk import Risk, urgency
from engine.store.database import Database
from engine.store.observer import observations
from engine.store.observer.observations import RecordedResource
from engine.types.failure_scope import FailureScope
from engine.types.observation import Observation
from engine.words import ObservedState
from engine.work.observer.batch_outcomes import BatchOutcomes
from engine.work.observer.call_groups import AdmittedGroups, CallGroup, CallResult, ListResult
from engine.work.observer.call_time_limit import CallTimeLimit
from engine.work.observer.endpoint_back_off import (
    Endpoint,
    EndpointVerdict,
    RequestOutcome,
    judge,
)
from engine.work.observer.observed_rows import without_secrets
from engine.work.observer.provider_endpoints import ProviderEndpoints
from engine.work.observer.stack_observation import StackObservation
from engine.work.observer.type_faults import NO_ANSWER
from engine.work.worker_metrics import WorkerMetrics


class RequestAdmission:
    def __init__(
        self, database: Database, endpoints: ProviderEndpoints, metrics: WorkerMetrics
    ) -> None:
        self._database = database
        self._endpoints = endpoints
        self._metrics = metrics

    async def admit(
        self, pending: Mapping[UUID, StackObservation], groups: Sequence[CallGroup]
    ) -> AdmittedGroups:
        """The groups that may send a request. Requested observations are made also after a failure,
        unless the provider has requested fewer requests."""
        requested = any(one.stack.requested for one in pending.values())
        known = await self._endpoints.read_failures(groups)
        skipped: list[CallResult] = []
        wanted: list[CallGroup] = []
        for group in groups:
            pause = known.find_pause(
                group.endpoint, group.request, group.stacks, requested=requested
            )
            if pause is None:
                wanted.append(group)
                continue
            scope, failed = pause
            self._metrics.record_observation_call("skipped")
            skipped.append(CallResult(group, {}, failed.observation))
            if scope is FailureScope.ENDPOINT:
                _retry(pending, group, failed.remaining)
        return AdmittedGroups(await self._grant(pending, wanted), skipped, known, requested)

    async def settle(
        self,
        pending: Mapping[UUID, StackObservation],
        admitted: AdmittedGroups,
        answers: Sequence[CallResult | ListResult],
        outcomes: BatchOutcomes,
    ) -> None:
        """Charge the requests of admitted groups beyond those granted, and judge their
        failures. outcomes: of the requests of the batch, with these ones later."""
        extra = Counter[str]()
        for group in admitted.groups:
            extra[group.endpoint[2]] += group.requests - group.granted - group.charged
        if admitted.groups:
            await self._endpoints.charge(admitted.groups[0].endpoint[0], extra)
        await self._judge(pending, answers, admitted, outcomes)

    def skip(self, groups: Sequence[CallGroup], outcomes: BatchOutcomes) -> list[CallResult]:
        """The results of admitted groups that are not called: their endpoint answers nothing."""
        if groups:
            self._metrics.record_observation_call("skipped", len(groups))
        return [
            CallResult(group, {}, outcomes.failure_of(group.endpoint) or NO_ANSWER)
            for group in groups
        ]

    async def finish(self, outcomes: BatchOutcomes) -> None:
        """Record what was withheld until the end of a batch."""
        verdicts = {key: judge(one.outcomes) for key, one in outcomes.withheld.items()}
        requested = any(one.requested for one in outcomes.withheld.values())
        known = outcomes.take([*verdicts])
        await self._endpoints.record(verdicts, known, requested=requested)

    async def admit_further(self, group: CallGroup, wanted: int, sent: int) -> int:
        """How many of so many requests of an admitted group may be sent now, each about some of its
        resources alone. sent: by the group.

        At least one if the budget has left out the resources before, which later requests wait for:
        else a list could use up every turn, and what it lacks would never be read.
        """
        if sent and not group.admitted:
            group.admitted = 1
        count = min(max(group.granted - group.admitted, 0), wanted)
        if count < wanted:
            project, _, key = group.endpoint
            try:
                grants = await self._endpoints.take(project, {key: wanted - count})
            except (Unavailable, TimeoutError):
                return 0  # not known; nothing is written without the database either
            group.granted += grants[key].count
            group.wait = timedelta(seconds=grants[key].wait)
            count += grants[key].count
        if wanted and not count and group.continues:
            count = 1
        group.continues = group.continues and not count
        group.admitted += count
        return count

    async def pace(self, group: CallGroup, limit: CallTimeLimit, sent: int) -> None:
        """Wait until a group that has sent so many requests may read the next page of its list."""
        further = sent - group.granted - group.charged
        project, _, key = group.endpoint
        charged, pause = await self._endpoints.pace(project, key, further)
        group.charged += charged
        if pause:
            await limit.pause(pause)

    def leave_out(
        self,
        pending: Mapping[UUID, StackObservation],
        group: CallGroup,
        resources: Sequence[RecordedResource],
    ) -> None:
        """Leave out resources of a group for which the budget has no request now."""
        if not resources:
            return
        self._metrics.record_observation_call("delayed", len(resources))
        shortage = self._endpoints.shortage(group.endpoint[2])
        for one in resources:
            if one.stack_id in pending:
                pending[one.stack_id].defer(one.id, group.wait, shortage)

    async def _grant(
        self, pending: Mapping[UUID, StackObservation], groups: Sequence[CallGroup]
    ) -> list[CallGroup]:
        """The groups for which the budgets have a request; the resources of the others are left
        out. A call that needs more requests to read a list uses them up for later ones. Groups that
        were left out before share the rest of the project's turn; see `admit_further`."""
        by_endpoint: dict[str, list[CallGroup]] = {}
        for group in groups:
            by_endpoint.setdefault(group.endpoint[2], []).append(group)
        if not groups:
            return []
        needs, spares = {key: len(found) for key, found in by_endpoint.items()}, Counter[str]()
        for group in groups:
            group.continues = bool(group.resources) and all(
                pending[one].stack.deferred for one in group.stacks
            )
            spares[group.endpoint[2]] += group.spare
        grants = await self._endpoints.take(groups[0].endpoint[0], needs, spares)
        granted: list[CallGroup] = []
        short = [key for key, grant in grants.items() if grant.count < needs[key]]
        states = await self._read_states(pending) if short else {}
        for key, found in by_endpoint.items():
            count, wait = grants[key].count, timedelta(seconds=grants[key].wait)
            if key in short:
                found.sort(key=lambda one: -_urgency(one, pending, states))
                self._metrics.record_observation_call("delayed", len(found) - count)
            granted += found[:count]
            _divide(count - needs[key], found)
            for one in (one for group in found[count:] for one in group.resources):
                pending[one.stack_id].defer(one.id, wait, self._endpoints.shortage(key))
        return granted

    async def _read_states(
        self, pending: Mapping[UUID, StackObservation]
    ) -> dict[tuple[UUID, UUID], ObservedState]:
        async with self._database.connection() as conn:
            return await observations.read_states(conn, [*pending])

    async def _judge(
        self,
        pending: Mapping[UUID, StackObservation],
        answers: Sequence[CallResult | ListResult],
        admitted: AdmittedGroups,
        outcomes: BatchOutcomes,
    ) -> None:
        """Record what has failed and what works; see `BatchOutcomes`. A stack is observed again
        when the pause of its endpoint ends, but not sooner than its policy says because of a
        request: a wrong one is sent at most as often as a right one."""
        by_endpoint: dict[Endpoint, list[CallResult | ListResult]] = {}
        for answer in answers:
            self._metrics.record_observation_call("failed" if answer.failure else "succeeded")
            if answer.group.requests:
                by_endpoint.setdefault(answer.group.endpoint, []).append(answer)
        known, requested = admitted.known, admitted.requested
        verdicts: dict[Endpoint, EndpointVerdict] = {}
        for endpoint, found in by_endpoint.items():
            verdict = outcomes.judge(
                endpoint, [_outcome(one) for one in found], known, requested=requested
            )
            if verdict is not None:
                verdicts[endpoint] = verdict
        before = outcomes.take([*verdicts])
        known = replace(known, requests={**before.requests, **known.requests})
        pauses = await self._endpoints.record(verdicts, known, requested=requested)
        pauses |= {
            key: self._endpoints.expect_pause(failed) for key, failed in outcomes.failing().items()
        }
        for group in admitted.groups:
            if group.endpoint in pauses:
                _retry(pending, group, pauses[group.endpoint])


def _divide(count: int, groups: Sequence[CallGroup]) -> None:
    """Grant further requests to the groups that can use them."""
    for group in groups:
        further = max(min(count, group.spare), 0)
        group.granted += further
        count -= further


def _outcome(answer: CallResult | ListResult) -> RequestOutcome:
    """What is recorded of an answer has no secret: it is shown with other resources, too."""
    outcome, group = answer.outcome, answer.group
    failure = outcome.failure and public_observation(group, outcome.failure)
    throttling = outcome.throttling and public_observation(group, outcome.throttling)
    return replace(outcome, failure=failure, throttling=throttling)


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


def public_observation(group: CallGroup, observation: Observation) -> Observation:
    """An observation of the resources of a group that holds for others, too."""
    return without_secrets(observation, group.resources, group.type.schema)


def _retry(pending: Mapping[UUID, StackObservation], group: CallGroup, pause: timedelta) -> None:
    """Observe the stacks of a group again after this time, when its endpoint may be."""
    for one in group.resources:
        if one.stack_id in pending:
            pending[one.stack_id].retry_after(pause)
