"""The observed state of one resource, beside its desired and its recorded state."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime

from engine.errors import NotFound
from engine.store.connection import Connection
from engine.store.observer import observations
from engine.store.observer.observations import LastObservation
from engine.store.records import ResourceRecord, StackRecord
from engine.types.registry import TypeRegistry
from engine.words import FoundBy, Json, ObservationSource, ObservedState, StackId, Status
from engine.work.observer.observed_rows import recorded_call
from engine.work.observer.observer import PAGE_BYTES


@dataclass(frozen=True, slots=True)
class ObservedResourceState:
    """since: when the state was first observed; None: it is as recorded."""

    state: ObservedState
    source: ObservationSource
    observed_at: datetime
    since: datetime | None = None
    reason: str = ""
    differences: Sequence[Mapping[str, Json]] = ()


async def read_observed_state(
    conn: Connection, stack: StackRecord, row: ResourceRecord, registry: TypeRegistry
) -> ObservedResourceState | None:
    """None: there is no physical resource, or it cannot be observed."""
    if row.physical_id is None:
        return None
    found = [(stack.id, row.id)]
    page = await observations.read_reported(conn, found, stack.project, 1, PAGE_BYTES)
    for one in page.resources:
        call = recorded_call(stack.project, StackId(stack.id), stack.name, one, one.id)
        try:
            if registry.get(row.type).observation_key(call) is None:
                return None
        except NotFound:  # the plug-in of an earlier process
            return None
    last = await observations.read_last(conn, stack.id, row.id)
    return observed_state(last, row.status, row.reason, row.updated_at)


def observed_state(
    last: LastObservation, status: str, reason: str, updated_at: datetime
) -> ObservedResourceState:
    """status, reason, updated_at: of the last operation. Pure."""
    if last.state is not None and last.observed_at is not None:
        by_event = last.found_by == FoundBy.REPORT
        source = ObservationSource.EVENT if by_event else ObservationSource.POLL
        return ObservedResourceState(
            ObservedState(last.state), source, last.observed_at, last.since, last.reason or "",
            last.differences or (),
        )  # fmt: skip
    observed_at = last.stack_observed_at
    if status != Status.COMPLETE:
        return ObservedResourceState(
            ObservedState.UNKNOWN, ObservationSource.OPERATION, updated_at, updated_at, reason
        )
    if observed_at is not None and observed_at > updated_at:
        return ObservedResourceState(ObservedState.PRESENT, ObservationSource.POLL, observed_at)
    return ObservedResourceState(ObservedState.PRESENT, ObservationSource.OPERATION, updated_at)
