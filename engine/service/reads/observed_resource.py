"""The observed state of one resource, beside its desired and its recorded state."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import datetime

from engine.errors import NotFound
from engine.plan.drift import in_observation, last_look
from engine.plan.nested_drift import NestedDrift
from engine.store.connection import Connection
from engine.store.observer import nested_states, observations
from engine.store.observer.observations import LastKnownDrift, LastObservation
from engine.store.records import ResourceRecord, StackRecord
from engine.types.registry import TypeRegistry
from engine.words import FoundBy, Json, ObservationSource, ObservedState, StackId, Status
from engine.work.observer.batch_observer import PAGE_BYTES
from engine.work.observer.observed_rows import recorded_call


@dataclass(frozen=True, slots=True)
class ObservedResourceState:
    """since: when the state was first observed; None: it is as recorded. last_known: of state
    unknown: the drift that was known before; None: there was none."""

    state: ObservedState
    source: ObservationSource
    observed_at: datetime
    since: datetime | None = None
    reason: str = ""
    differences: Sequence[Mapping[str, Json]] = ()
    last_known: LastKnownDrift | None = None


async def read_observed_state(
    conn: Connection, stack: StackRecord, row: ResourceRecord, registry: TypeRegistry
) -> ObservedResourceState | None:
    """None: there is no physical resource, or it cannot be observed."""
    if row.physical_id is None:
        return None
    if registry.has_nested_stack(row.type):
        return await _read_owner(conn, stack, row)
    found = [(stack.id, row.id)]
    page = await observations.read_some(conn, found, stack.project, 1, PAGE_BYTES)
    for one in page.resources:
        call = recorded_call(stack.project, StackId(stack.id), stack.name, one, one.id)
        try:
            if registry.get(row.type).observation_key(call) is None:
                return None
        except NotFound:  # the plug-in of an earlier process
            return None
    last = await observations.read_last(conn, stack.id, row.id)
    return observed_state(last, row.status, row.reason, row.updated_at)


async def _read_owner(
    conn: Connection, stack: StackRecord, row: ResourceRecord
) -> ObservedResourceState | None:
    last = await observations.read_last(conn, stack.id, row.id)
    own = observed_state(last, row.status, row.reason, row.updated_at)
    inside = await nested_states.read_inside(conn, stack.id, row.id)
    if inside is None:
        # Without an observation of it: the stack does not own it, or it has just gone.
        return own if last.state is not None else None
    return with_inside(own, row.updated_at, *inside)


def with_inside(
    own: ObservedResourceState,
    updated_at: datetime,
    inside: NestedDrift | None,
    observed_at: datetime | None,
) -> ObservedResourceState:
    """The state of a resource that owns a nested stack. own: without what is inside. updated_at: of
    its last operation. inside: what differs there; None: nothing. observed_at: the last observation
    of all that is inside; None: something was never observed. Pure."""
    if own.state is not ObservedState.PRESENT:
        return own
    if inside is not None:
        return ObservedResourceState(
            inside.state, ObservationSource.POLL, inside.observed_at, inside.since, inside.reason
        )
    if own.source is not ObservationSource.POLL:
        return own
    if observed_at is None or observed_at <= updated_at:
        return replace(own, source=ObservationSource.OPERATION, observed_at=updated_at)
    return replace(own, observed_at=min(own.observed_at, observed_at))


def observed_state(
    last: LastObservation, status: str, reason: str, updated_at: datetime
) -> ObservedResourceState:
    """status, reason, updated_at: of the last operation. Pure."""
    if last.state is not None and last.observed_at is not None:
        by_event = last.found_by == FoundBy.REPORT
        source = ObservationSource.EVENT if by_event else ObservationSource.POLL
        state = ObservedState(last.state)
        observed_at = last_look(
            state, last.observed_at, last.stack_observed_at, last.operated_since
        )  # fmt: skip
        return ObservedResourceState(
            state, source, observed_at, last.since, last.reason or "", last.differences or (),
            last.last_known,
        )  # fmt: skip
    if status != Status.COMPLETE:
        return ObservedResourceState(
            ObservedState.UNKNOWN, ObservationSource.OPERATION, updated_at, updated_at, reason
        )
    polled_at = last.stack_observed_at
    is_included = last.is_observed and in_observation(polled_at, last.operated_since)
    if is_included and polled_at is not None and polled_at > updated_at:
        return ObservedResourceState(ObservedState.PRESENT, ObservationSource.POLL, polled_at)
    return ObservedResourceState(ObservedState.PRESENT, ObservationSource.OPERATION, updated_at)
