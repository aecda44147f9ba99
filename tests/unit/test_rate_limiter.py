"""The rate limiter: numbers alone, with time as an argument."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from engine.rate_limiter import RateLimiter

RATES = st.floats(0.1, 50)
GAPS = st.lists(st.floats(0, 3), max_size=60)


def test_one_second_s_worth_passes_at_once_and_then_one_for_each_that_is_paid() -> None:
    limiter = RateLimiter[str](4.0)
    assert [limiter.spend("a", 10.0) for _ in range(5)] == [0.0] * 4 + [0.25]
    assert limiter.spend("b", 10.0) == 0.0
    assert limiter.spend("a", 10.25) == 0.0
    assert limiter.spend("a", 10.25) == pytest.approx(0.25)
    assert [limiter.spend("a", 99.0) for _ in range(5)][:4] == [0.0] * 4


def test_less_than_one_per_second_is_one_at_a_time() -> None:
    limiter = RateLimiter[str](0.5)
    assert limiter.spend("a", 0.0) == 0.0
    assert limiter.spend("a", 0.5) == pytest.approx(1.5)
    assert limiter.spend("a", 2.0) == 0.0


def test_without_a_rate_everything_passes_and_nothing_is_tracked() -> None:
    limiter = RateLimiter[str](0.0)
    assert [limiter.spend("a", 0.0) for _ in range(99)] == [0.0] * 99
    limiter.charge("a", 0.0)
    assert limiter.tracked == 0 and limiter.left(0.0) == {} and limiter.until_more(0.0) is None


def test_at_most_so_many_keys_are_tracked_and_the_idlest_is_forgotten() -> None:
    limiter = RateLimiter[int](1.0, most=10)
    for number in range(50):
        limiter.spend(number, 0.0)
    assert limiter.tracked == 10
    assert limiter.spend(49, 0.0) > 0 and limiter.spend(39, 0.0) == 0.0


def test_keys_that_have_paid_are_forgotten() -> None:
    limiter = RateLimiter[str](2.0)
    limiter.charge("a", 0.0)
    limiter.charge("b", 0.0)
    assert limiter.left(0.1) == {"a": 1, "b": 1}
    assert limiter.left(5.0) == {} and limiter.tracked == 0


@given(st.integers(1, 60))
def test_what_is_left_is_counted_exactly(rate: int) -> None:
    limiter = RateLimiter[str](rate)
    for charged in range(1, rate + 1):
        limiter.charge("a", 0.0)
        assert limiter.left(0.0) == {"a": rate - charged}


@given(GAPS, RATES)
def test_no_interval_has_more_than_its_share(gaps: list[float], rate: float) -> None:
    limiter, now, passed = RateLimiter[str](rate), 0.0, []
    for gap in gaps:
        now += gap
        if limiter.spend("a", now) == 0.0:
            passed.append(now)
    for first in range(len(passed)):
        for last in range(first, len(passed)):
            most = max(rate, 1.0) + rate * (passed[last] - passed[first])
            assert last - first + 1 <= most + 1e-6


@given(RATES, st.integers(1, 40))
def test_the_wait_that_is_returned_is_long_enough(rate: float, before: int) -> None:
    limiter = RateLimiter[str](rate)
    for _ in range(before):
        limiter.spend("a", 0.0)
    wait = limiter.spend("a", 0.0)
    assert wait == 0.0 or limiter.spend("a", wait + 1e-6) == 0.0


@given(RATES, GAPS)
def test_what_is_left_can_be_spent_and_no_more(rate: float, gaps: list[float]) -> None:
    limiter, now = RateLimiter[str](rate), 0.0
    limiter.charge("a", now)
    for gap in gaps:
        now += gap
        left = limiter.left(now).get("a")
        if left is None:
            left = int(max(rate, 1.0) + 1e-9)
        assert [limiter.spend("a", now) for _ in range(left)] == [0.0] * left
        assert limiter.spend("a", now) > 0.0


@given(RATES, st.integers(1, 100))
def test_a_debt_is_paid_before_anything_else_passes(rate: float, charged: int) -> None:
    limiter = RateLimiter[str](rate)
    for _ in range(charged):
        limiter.charge("a", 10.0)
    wait, left = limiter.until_more(10.0), limiter.left(10.0).get("a")
    assert (wait is None) == (left is None or left > 0)
    if wait is not None:
        assert wait == pytest.approx(max(charged + 1 - max(rate, 1.0), 0.0) / rate, abs=1e-6)
        assert limiter.left(10.0 + wait + 1e-6).get("a", 1) >= 1
