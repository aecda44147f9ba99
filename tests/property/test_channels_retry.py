"""When a delivery is tried again: laws that hold for every policy and every chance."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from channels.retry import GiveUp, RetryPolicy, TryAgain, after_failure, horizon

seconds = st.floats(0.001, 10_000)
chances = st.floats(0, 1, exclude_max=True)
policies = st.builds(
    lambda attempts, bounds, one: RetryPolicy(attempts, min(bounds), max(bounds), one),
    st.integers(1, 200), st.tuples(seconds, seconds), seconds,
)  # fmt: skip


@given(policies, st.integers(1, 300), st.none() | st.floats(0, 1e12), st.booleans(), chances)
def test_what_follows_a_failure(
    policy: RetryPolicy, attempts: int, retry_after: float | None, final: bool, chance: float
) -> None:
    follows = after_failure(policy, attempts, retry_after=retry_after, final=final, chance=chance)
    if final or attempts >= policy.attempts:
        assert isinstance(follows, GiveUp)
        return
    assert isinstance(follows, TryAgain)
    assert policy.first / 2 <= follows.wait <= policy.max_pause
    if retry_after is not None:
        assert follows.wait == sorted((policy.first, retry_after, policy.max_pause))[1]
    else:
        ceiling = policy.back_off.ceiling(attempts)
        assert ceiling / 2 <= follows.wait <= ceiling


@given(policies, st.integers(1, 300))
def test_waits_grow_up_to_the_longest(policy: RetryPolicy, attempts: int) -> None:
    ceiling = policy.back_off.ceiling
    now, next_one = ceiling(attempts), ceiling(attempts + 1)
    assert now <= next_one <= policy.max_pause
    assert next_one == min(2 * now, policy.max_pause)


@given(policies, chances, chances)
def test_chance_spreads_the_waits(policy: RetryPolicy, one: float, other: float) -> None:
    if policy.attempts == 1:
        return
    waits = [
        after_failure(policy, 1, retry_after=None, final=False, chance=chance)
        for chance in sorted((one, other))
    ]
    assert isinstance(waits[0], TryAgain)
    assert isinstance(waits[1], TryAgain)
    assert waits[0].wait <= waits[1].wait


@given(policies, st.lists(chances, min_size=200, max_size=200))
def test_the_horizon_is_never_exceeded(policy: RetryPolicy, luck: list[float]) -> None:
    passed, attempts = 0.0, 0
    while True:
        attempts += 1
        passed += policy.attempt_timeout
        follows = after_failure(
            policy, attempts, retry_after=None, final=False, chance=luck[attempts - 1]
        )
        if isinstance(follows, GiveUp):
            break
        passed += follows.wait
        left = horizon(policy, attempts)
        assert passed - follows.wait + left <= horizon(policy) * (1 + 1e-9)
    assert attempts == policy.attempts
    assert passed <= horizon(policy) * (1 + 1e-9)


@pytest.mark.parametrize(
    ("attempts", "first", "max_pause", "attempt_timeout"),
    [(0, 1.0, 1.0, 1.0), (1, 0.0, 1.0, 1.0), (1, 2.0, 1.0, 1.0), (1, 1.0, 1.0, 0.0)],
)
def test_a_policy_makes_sense(
    attempts: int, first: float, max_pause: float, attempt_timeout: float
) -> None:
    with pytest.raises(ValueError, match="invalid retry policy"):
        RetryPolicy(attempts, first, max_pause, attempt_timeout)
