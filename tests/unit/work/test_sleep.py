"""How long an idle lane sleeps."""

import pytest

from engine.work.nodes.worker import OVERDUE_SLEEP, sleep_seconds


@pytest.mark.parametrize(
    ("due", "seconds"), [(None, 30.0), (100.0, 30.0), (5.0, 5.0), (0.001, OVERDUE_SLEEP.first)]
)
def test_a_lane_sleeps_until_work_is_due_but_no_longer_than_the_poll_interval(
    due: float | None, seconds: float
) -> None:
    assert sleep_seconds(due, 0, 30.0) == seconds


def test_sleeps_grow_while_overdue_work_is_locked() -> None:
    slept = [sleep_seconds(-1.0, times, 30.0) for times in range(1, 2000)]
    assert slept[:3] == [0.02, 0.04, 0.08]
    assert slept[-1] == OVERDUE_SLEEP.max_pause
    assert sleep_seconds(-1.0, 1000, 0.1) == 0.1
