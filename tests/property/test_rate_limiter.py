""""""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from engine.rate_limiter import RateLimiter
from hub.auth.shared_counts import SharedCounts
from hub.auth.shared_rate import SharedRate

RATES = st.floats(0.1, 50)


GAPS = st.lists(st.floats(0, 3), max_size=60)


@given(st.integers(1, 60))
def test_what_is_left_is_counted_exactly(rate: int) -> None:
    limiter = RateLimiter[str](rate)
    for charged in range(1, rate + 1):
        limiter.charge("a", 0.0)
        assert limiter.remaining(0.0) == {"a": rate - charged}


@given(GAPS, RATES)
def test_no_interval_exceeds_the_rate(gaps: list[float], rate: float) -> None:
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
def test_exactly_the_remaining_tokens_can_be_used(rate: float, gaps: list[float]) -> None:
    limiter, now = RateLimiter[str](rate), 0.0
    limiter.charge("a", now)
    for gap in gaps:
        now += gap
        left = limiter.remaining(now).get("a")
        if left is None:
            left = int(max(rate, 1.0) + 1e-9)
        assert [limiter.spend("a", now) for _ in range(left)] == [0.0] * left
        assert limiter.spend("a", now) > 0.0


@given(RATES, st.integers(1, 100))
def test_a_debt_blocks_until_it_is_paid(rate: float, charged: int) -> None:
    limiter = RateLimiter[str](rate)
    for _ in range(charged):
        limiter.charge("a", 10.0)
    wait, left = limiter.seconds_until_available(10.0), limiter.remaining(10.0).get("a")
    assert (wait is None) == (left is None or left > 0)
    if wait is not None:
        assert wait == pytest.approx(max(charged + 1 - max(rate, 1.0), 0.0) / rate, abs=1e-6)
        assert limiter.remaining(10.0 + wait + 1e-6).get("a", 1) >= 1


@given(RATES, st.lists(st.tuples(st.floats(0, 3), st.integers(0, 5)), max_size=40))
def test_processes_that_share_counts_limit_as_one(
    rate: float, events: list[tuple[float, int]]
) -> None:
    counts = SharedCounts(rows=8)
    shared, one, now = SharedRate(rate, counts), RateLimiter[str](rate), 0.0
    for gap, charged in events:
        now += gap
        assert shared.spend("a", now) == one.spend("a", now)
        left = one.remaining(now).get("a", shared.at_once)
        assert (shared.spend_many("a", now, charged) == 0.0) == (charged <= left)
        one.charge("a", now, charged)
        assert shared.wait("a", now) == one.wait("a", now)
    counts.close()
