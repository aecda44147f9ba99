"""How long endpoints are left alone after failures."""

from datetime import timedelta

import pytest

from engine.types.observation import PRESENT, Observation
from engine.work.observer.endpoint_back_off import (
    MAX_RETRY_AFTER,
    PAUSES,
    FailedEndpoint,
    is_blocked,
    is_throttled,
    pause_after,
)

SECOND = timedelta(seconds=1)


def test_each_failure_doubles_the_pause() -> None:
    pauses = [pause_after(failures, None, 0.0) for failures in (1, 2, 3)]
    first = timedelta(seconds=PAUSES.first)
    assert pauses == [first / 2, first, first * 2]
    assert pause_after(100, None, 0.99) <= timedelta(seconds=PAUSES.max_pause)


@pytest.mark.parametrize(
    ("requested", "seconds"),
    [(0.0, 15.0), (5.0, 15.0), (600.0, 600.0), (1e9, MAX_RETRY_AFTER)],
)
def test_a_requested_pause_is_respected(requested: float, seconds: float) -> None:
    assert pause_after(1, requested, 0.0) == timedelta(seconds=seconds)
    assert pause_after(1, requested, 0.9) >= timedelta(seconds=seconds)


@pytest.mark.parametrize(
    ("remaining", "throttled", "requested", "blocked"),
    [
        (SECOND, False, False, True),
        (SECOND, False, True, False),
        (SECOND, True, True, True),
        (-SECOND, True, False, False),
        (timedelta(0), True, False, False),
    ],
)
def test_requests_of_users_wait_only_if_the_provider_asks_for_it(
    remaining: timedelta, throttled: bool, requested: bool, blocked: bool
) -> None:
    failed = FailedEndpoint(1, remaining, "it is down", "", throttled)
    assert is_blocked(failed, requested=requested) is blocked


def test_only_an_unknown_state_can_be_throttled() -> None:
    assert is_throttled(Observation.unknown("busy", "busy", 0.0))
    assert not is_throttled(Observation.unknown("busy"))
    assert not is_throttled(PRESENT)
