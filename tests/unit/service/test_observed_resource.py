"""The observed state of a resource, from its last observation and its last operation."""

from datetime import UTC, datetime, timedelta

import pytest

from engine.plan.nested_drift import NestedDrift
from engine.service.reads.observed_resource import (
    ObservedResourceState,
    observed_state,
    with_inside,
)
from engine.store.observer.observations import LastObservation
from engine.words import ObservationSource, ObservedState

WRITTEN = datetime(2026, 12, 1, tzinfo=UTC)
HOUR = timedelta(hours=1)
LATER = WRITTEN + HOUR


@pytest.mark.parametrize(
    ("is_observed", "operated_since", "source"),
    [
        (True, None, ObservationSource.POLL),
        (False, None, ObservationSource.OPERATION),
        (True, LATER - HOUR / 2, ObservationSource.OPERATION),
    ],
    ids=["included", "suspended", "during an operation"],
)
def test_a_resource_that_an_observation_has_left_out_is_as_its_last_operation_says(
    is_observed: bool, operated_since: datetime | None, source: ObservationSource
) -> None:
    last = LastObservation(
        None, None, None, None, None, None, LATER, operated_since, is_observed
    )  # fmt: skip
    found = observed_state(last, "COMPLETE", "", WRITTEN)
    assert (found.state, found.source) == (ObservedState.PRESENT, source)
    assert found.observed_at == (LATER if source is ObservationSource.POLL else WRITTEN)


INSIDE = NestedDrift(ObservedState.DEGRADED, "1 of 2 members differs", WRITTEN, LATER)
POLL, OPERATION = ObservationSource.POLL, ObservationSource.OPERATION


@pytest.mark.parametrize(
    ("own", "inside", "observed_at", "expected"),
    [
        ("present", None, LATER, ("present", POLL, LATER)),
        ("present", None, LATER + 2 * HOUR, ("present", POLL, LATER + HOUR)),
        ("present", None, None, ("present", OPERATION, WRITTEN)),
        ("present", None, WRITTEN, ("present", OPERATION, WRITTEN)),
        ("present", INSIDE, LATER, ("degraded", POLL, LATER)),
        ("missing", INSIDE, LATER, ("missing", POLL, LATER + HOUR)),
    ],
    ids=["all observed", "inside later", "inside never", "inside before", "inside differs", "own"],
)
def test_the_owner_of_a_nested_stack_was_observed_when_all_inside_was(
    own: str,
    inside: NestedDrift | None,
    observed_at: datetime | None,
    expected: tuple[str, ObservationSource, datetime],
) -> None:
    state = ObservedResourceState(ObservedState(own), POLL, LATER + HOUR)
    found = with_inside(state, WRITTEN, inside, observed_at)
    assert (found.state, found.source, found.observed_at) == expected
