"""Resources whose observed state differs from the recorded one."""

from collections.abc import Mapping, Sequence
from datetime import UTC, datetime
from typing import cast

from aiohttp import web

from channels.envelope import rfc3339
from engine.hooks.durations import format_duration
from engine.plan.convergence import ConvergencePolicy
from engine.service.observations import StackDrift
from engine.store.observer.converge_requests import ConvergeStatus
from engine.store.observer.drift_rows import DriftedResource
from engine.store.observer.nested_states import DriftedOwner
from engine.store.observer.observations import LastKnownDrift
from engine.store.resources.overrides import AdoptedValue
from engine.weekly_window import WeeklyWindow
from engine.words import FoundBy, Json, ObservedState
from hub.api.app_context import context_of, project_of
from hub.api.headgate import responses
from hub.api.headgate.explanations import explain_paused, path_in
from hub.api.orchestration.documents import adopted_document
from hub.api.orchestration.stacks import S
from hub.api.request_validation import stack_of
from hub.api.routes import Route, json_response


def difference_documents(found: Sequence[Mapping[str, Json]]) -> list[responses.Difference]:
    return [
        responses.Difference(path=one["path"], desired=one["desired"], observed=one["observed"])
        for one in found
    ]


def drift_document(one: DriftedResource) -> responses.DriftedResource:
    return {
        "resource_name": one.name,
        "resource_type": one.type,
        "physical_resource_id": one.physical_id,
        "stack_id": str(one.stack_id),
        "stack_name": one.stack_name,
        "path": path_in(one.path, one.name),
        "state": ObservedState(one.state),
        "differences": difference_documents(one.differences),
        "reason": one.reason,
        "since": rfc3339(one.since),
        "observed_at": rfc3339(one.observed_at),
        "unrepaired": one.unrepaired,
        "found_by": FoundBy(one.found_by) if one.found_by else None,
        "last_known": last_known_document(one.last_known),
    }


def nested_document(one: DriftedOwner) -> responses.NestedDrift:
    return {
        "resource_name": one.name,
        "resource_type": one.type,
        "physical_resource_id": one.physical_id,
        "stack_id": str(one.stack_id),
        "stack_name": one.stack_name,
        "path": path_in(one.path, one.name),
        "state": one.drift.state,
        "reason": one.drift.reason,
        "since": rfc3339(one.drift.since),
        "observed_at": rfc3339(one.drift.observed_at),
    }


def last_known_document(one: LastKnownDrift | None) -> responses.LastKnownDrift | None:
    if one is None:
        return None
    return {
        "state": ObservedState(one.state),
        "differences": difference_documents(one.differences),
        "reason": one.reason,
        "since": rfc3339(one.since),
    }


def _adopted_document(one: AdoptedValue) -> responses.AdoptedValueOfResource:
    return {
        "resource_name": one.name,
        "resource_path": path_in(one.path, one.name),
        "stack_id": str(one.stack_id),
        **adopted_document(one.override),
    }


def policy_document(policy: ConvergencePolicy, now: datetime) -> responses.ConvergencePolicy:
    """now: for its window."""
    interval: responses.ObservationInterval | None = (
        {"every": format_duration(policy.every)} if policy.every else None
    )
    return {
        "observe": interval or "never",
        "on_drift": policy.on_drift,
        "tolerate": format_duration(policy.tolerate),
        "repairs_per_day": policy.repairs,
        "window": window_document(policy.window, now) if policy.window else None,
        "ignore": {pattern: list(paths) for pattern, paths in policy.ignore.items()},
        "hold": dict(policy.hold or {}),
        "by_operator": sorted(policy.by_operator),
    }


def converge_document(one: ConvergeStatus) -> responses.Converge:
    return {
        "round": one.number.round,
        "rounds": one.number.rounds,
        "state": one.state,
        "reason": one.reason,
    }


def window_document(window: WeeklyWindow, now: datetime) -> responses.RepairWindow:
    opens = window.opens_at(now)
    return cast(
        responses.RepairWindow,
        window.as_section() | {"opens_at": rfc3339(opens) if opens else None},
    )


def next_time(drift: StackDrift) -> datetime | None:
    """When the stack is observed next; None: when that is requested, or it is observed now."""
    found = drift.find_next()
    return None if found is None else found.at or drift.status.next_at


async def show(request: web.Request) -> web.Response:
    stack = await stack_of(request)
    observations = context_of(request).engine.observations
    deleted = stack.deleted_at is not None
    drift = await observations.drift(project_of(request), stack.id, deleted=deleted)
    status, next_at = drift.status, next_time(drift)
    return json_response(
        responses.Drift(
            observed_at=rfc3339(status.observed_at) if status.observed_at else None,
            observing=status.due,
            observable_resources=status.observable,
            unobservable_resources=status.not_observable,
            policy=policy_document(drift.policy, datetime.now(UTC)) if drift.policy else None,
            next_observation_at=rfc3339(next_at) if next_at else None,
            resources=[drift_document(one) for one in drift.resources],
            nested=[nested_document(one) for one in drift.nested],
            adopted=[_adopted_document(one) for one in drift.adopted],
            paused=explain_paused(drift.paused),
            converge=converge_document(drift.converge) if drift.converge else None,
        )
    )


ROUTES = (
    Route("GET", f"{S}/drift", show,
          "Resources of a stack and its nested stacks that differ from their recorded state",
          "stacks", response=responses.Drift),
)  # fmt: skip
