"""Which requests of the observer are sent: endpoints that have failed get none for a while, and
budgets limit the others."""

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import replace
from datetime import timedelta
from uuid import UUID

from engine.plan.observation_risk import Risk, urgency
from engine.store.database import Database
from engine.store.observer import observations
from engine.types.observation import Observation
from engine.words import ObservedState
from engine.work.observer.call_groups import AdmittedGroups, CallGroup, CallResult, ListResult
from engine.work.observer.endpoint_back_off import Endpoint, FailedEndpoint, is_blocked
from engine.work.observer.observed_rows import shown_reason
from engine.work.observer.provider_endpoints import ProviderEndpoints
from engine.work.observer.stack_observation import StackObservation
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
        """The groups whose endpoints may get a request. Requested observations are made also after
        a failure, unless the provider has requested fewer requests."""
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
        return AdmittedGroups(await self._grant(pending, wanted), skipped, known)

    async def settle(
        self,
        pending: Mapping[UUID, StackObservation],
        admitted: AdmittedGroups,
        answers: Sequence[CallResult | ListResult],
    ) -> None:
        """Charge the requests of admitted groups beyond the first one of each, and judge their
        endpoints."""
        extra = Counter[str]()
        for group in admitted.groups:
            extra[group.endpoint[2]] += group.requests - 1
        await self._endpoints.charge(extra)
        await self._judge_endpoints(pending, answers, admitted.known)

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

    async def _judge_endpoints(
        self,
        pending: Mapping[UUID, StackObservation],
        answers: Sequence[CallResult | ListResult],
        known: Mapping[Endpoint, FailedEndpoint],
    ) -> None:
        """An endpoint has failed if no call to it returned a state, or if it requested fewer
        requests. known: those that had failed before."""
        by_endpoint: dict[Endpoint, list[CallResult | ListResult]] = {}
        for answer in answers:
            self._metrics.record_observation_call("failed" if answer.failure else "succeeded")
            by_endpoint.setdefault(answer.group.endpoint, []).append(answer)
        failed: dict[Endpoint, Observation] = {}
        for endpoint, found in by_endpoint.items():
            throttling = [(one.group, seen) for one in found if (seen := one.throttling)]
            failures = [(one.group, seen) for one in found if (seen := one.failure)]
            if throttling or len(failures) == len(found):
                failed[endpoint] = without_secrets(*(throttling or failures)[0])
        succeeded = [one for one in by_endpoint if one not in failed]
        pauses = await self._endpoints.record(succeeded, failed, known)
        for endpoint, pause in pauses.items():
            for answer in by_endpoint[endpoint]:
                _retry(pending, answer.group, pause)


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


def without_secrets(group: CallGroup, observation: Observation) -> Observation:
    """An observation that holds for other resources, too."""
    if not any(one.has_secrets for one in group.resources):
        return observation
    return replace(observation, reason=shown_reason(observation, hidden=True))


def _retry(pending: Mapping[UUID, StackObservation], group: CallGroup, pause: timedelta) -> None:
    """Observe the stacks of a group again after this time, when its endpoint may be."""
    for one in group.resources:
        if one.stack_id in pending:
            pending[one.stack_id].retry_after(pause)
