"""The rate limiter: numbers alone, with time as an argument."""

import pytest

from engine.rate_limiter import RateLimiter


def test_a_burst_of_one_second_passes_and_then_the_rate_applies() -> None:
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
    assert (
        limiter.tracked == 0
        and limiter.remaining(0.0) == {}
        and limiter.seconds_until_available(0.0) is None
    )


def test_the_number_of_tracked_keys_is_limited_and_the_least_active_is_removed() -> None:
    limiter = RateLimiter[int](1.0, max_keys=10)
    for number in range(50):
        limiter.spend(number, 0.0)
    assert limiter.tracked == 10
    assert limiter.spend(49, 0.0) > 0 and limiter.spend(39, 0.0) == 0.0


def test_keys_without_debt_are_removed() -> None:
    limiter = RateLimiter[str](2.0)
    limiter.charge("a", 0.0)
    limiter.charge("b", 0.0)
    assert limiter.remaining(0.1) == {"a": 1, "b": 1}
    assert limiter.remaining(5.0) == {} and limiter.tracked == 0
