"""How often one may ask and guess: numbers alone, time handed in."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from hub.auth import throttle
from hub.auth.throttle import Lockout, Pace, TooMany

GAPS = st.lists(st.floats(0, 3), max_size=60)


def test_a_second_s_worth_at_once_and_then_one_for_each_that_is_paid() -> None:
    pace = Pace(4.0)
    assert [pace.spend("a", 10.0) for _ in range(5)] == [0.0] * 4 + [0.25]
    assert pace.spend("b", 10.0) == 0.0
    assert pace.spend("a", 10.25) == 0.0
    assert pace.spend("a", 10.25) == pytest.approx(0.25)
    assert [pace.spend("a", 99.0) for _ in range(5)][:4] == [0.0] * 4


def test_less_than_one_a_second_is_one_at_a_time() -> None:
    pace = Pace(0.5)
    assert pace.spend("a", 0.0) == 0.0
    assert pace.spend("a", 0.5) == pytest.approx(1.5)
    assert pace.spend("a", 2.0) == 0.0


def test_no_rate_lets_everything_through_and_keeps_nothing() -> None:
    pace = Pace(0.0)
    assert [pace.spend("a", 0.0) for _ in range(99)] == [0.0] * 99
    assert not pace._paid


@given(GAPS, st.floats(0.2, 20))
def test_never_more_than_was_allowed_in_any_stretch(gaps: list[float], rate: float) -> None:
    pace, now, passed = Pace(rate), 0.0, []
    for gap in gaps:
        now += gap
        wait = pace.spend("a", now)
        assert wait >= 0.0
        if wait == 0.0:
            passed.append(now)
    for first in range(len(passed)):
        for last in range(first, len(passed)):
            most = max(rate, 1.0) + rate * (passed[last] - passed[first])
            assert last - first + 1 <= most + 1e-6


@given(st.floats(0.2, 20), st.integers(1, 40))
def test_whoever_waits_as_long_as_was_said_gets_in(rate: float, before: int) -> None:
    pace = Pace(rate)
    for _ in range(before):
        pace.spend("a", 0.0)
    wait = pace.spend("a", 0.0)
    assert wait == 0.0 or pace.spend("a", wait + 1e-6) == 0.0


def test_locked_out_after_so_many_and_for_so_long() -> None:
    lockout = Lockout(3, 60.0)
    for at in (0.0, 1.0):
        lockout.failed("a", at)
        assert lockout.left("a", at) == 0.0
    lockout.failed("a", 2.0)
    assert lockout.left("a", 2.0) == 60.0
    assert lockout.left("a", 61.0) == pytest.approx(1.0)
    assert lockout.left("a", 62.0) == 0.0
    assert lockout.left("b", 2.0) == 0.0


def test_failures_that_lie_far_apart_are_no_guessing() -> None:
    lockout = Lockout(3, 60.0)
    for at in range(0, 600, 60):
        lockout.failed("a", float(at))
        assert lockout.left("a", float(at)) == 0.0


def test_what_is_counted_is_bounded(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(throttle, "MOST", 10)
    pace, lockout = Pace(1.0), Lockout(1, 60.0)
    for number in range(50):
        pace.spend(str(number), 0.0)
        lockout.failed(str(number), 0.0)
    assert len(pace._paid) == len(lockout._seen) == 10
    assert lockout.left("49", 1.0) > 0


def test_the_wait_is_told_in_whole_seconds() -> None:
    assert [TooMany("", "", wait).wait for wait in (0.01, 1.0, 1.2)] == [1, 1, 2]
