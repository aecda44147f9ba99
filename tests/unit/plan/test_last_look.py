"""When a resource was observed last."""

from datetime import UTC, datetime, timedelta

import pytest

from engine.plan.drift import last_look
from engine.words import ObservedState

WRITTEN = datetime(2026, 12, 1, tzinfo=UTC)
HOUR = timedelta(hours=1)
LATER = WRITTEN + HOUR


@pytest.mark.parametrize("state", [one for one in ObservedState if one != ObservedState.UNKNOWN])
@pytest.mark.parametrize(
    ("stack_observed_at", "operated_since", "expected"),
    [
        (None, None, WRITTEN),
        (WRITTEN - HOUR, None, WRITTEN),
        (LATER, None, LATER),
        (LATER, LATER + HOUR, LATER),
        (LATER, LATER, WRITTEN),
        (LATER, WRITTEN + HOUR / 2, WRITTEN),
    ],
    ids=["never", "before", "after", "before an operation", "at its start", "during an operation"],
)
def test_a_later_observation_of_the_stack_has_included_the_resource(
    state: ObservedState,
    stack_observed_at: datetime | None,
    operated_since: datetime | None,
    expected: datetime,
) -> None:
    assert last_look(state, WRITTEN, stack_observed_at, operated_since) == expected


def test_an_unknown_state_is_not_observed_with_the_stack() -> None:
    """The provider may have got no requests, while others of the stack did."""
    assert last_look(ObservedState.UNKNOWN, WRITTEN, LATER, None) == WRITTEN
