"""The observed state of a resource, from its last observation and its last operation."""

from datetime import UTC, datetime, timedelta

import pytest

from engine.service.reads.observed_resource import observed_state
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
