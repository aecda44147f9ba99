"""When a stack and its resources are observed next, and what pauses that. Pure.

`headgate why`, `headgate stack drift` and the API say the same, because they use these functions.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime

from engine.plan.convergence import ConvergencePolicy
from engine.store.observer.drift_rows import DriftedResource
from engine.store.observer.observation_schedule import ObservationStatus
from engine.store.observer.provider_endpoints import PausedObservation


@dataclass(frozen=True, slots=True)
class NextObservation:
    """at: None: it runs or starts soon. paused: it is not before `at`."""

    at: datetime | None
    paused: bool = False


def is_observed(status: ObservationStatus, policy: ConvergencePolicy | None) -> bool:
    """Return whether a stack is observed again without another request. A policy that has ended
    leaves a time in the schedule, at which nothing is observed."""
    return status.due or (policy is not None and policy.every is not None)


def find_pauses(
    status: ObservationStatus,
    policy: ConvergencePolicy | None,
    waiting: Sequence[PausedObservation],
    quota: PausedObservation | None,
) -> list[PausedObservation]:
    """Return what pauses the observations of a stack, longest last. waiting: failed endpoints, and
    resources that a budget has left out. quota: of the project, which is used up; None: it is not.

    A request of a user tries an endpoint that has failed at once, unless that has requested fewer
    requests: this pauses also a stack that is observed on request only. The quota stops all
    observations, so that only what lasts longer counts beside it.
    """
    if not is_observed(status, policy):
        return [one for one in waiting if one.throttled]
    found = [
        one for one in waiting if not (one.has_failed and status.requested and not one.throttled)
    ]
    if quota is None:
        return found
    return [quota, *(one for one in found if one.has_failed and one.until > quota.until)]


def find_next(
    status: ObservationStatus,
    policy: ConvergencePolicy | None,
    paused: Sequence[PausedObservation],
    resource: DriftedResource | None = None,
) -> NextObservation | None:
    """Return when a stack is observed next, or one of its resources; None: when that is requested.
    paused: by `find_pauses`."""
    if not is_observed(status, policy) or (resource is not None and resource.operating):
        return None
    delays = [
        one.until
        for one in paused
        if one.of_quota
        or (resource and one.has_failed and not one.of_requests
            and (one.type, one.endpoint) == (resource.type, resource.endpoint))
    ]  # fmt: skip
    if resource and resource.paused_until and not status.requested:
        delays.append(resource.paused_until)
    scheduled = None if status.starting else status.next_at
    if delays and (scheduled is None or max(delays) > scheduled):
        return NextObservation(max(delays), paused=True)
    return NextObservation(scheduled)
