"""The lockout after wrong tokens, with time as an argument."""

import pytest

from hub.auth.lockout import TokenLockout
from hub.auth.shared_counts import SharedCounts


def test_an_address_is_locked_out_after_some_failures_for_some_time() -> None:
    lockout = TokenLockout(3, 60.0, SharedCounts())
    for at in (0.0, 1.0):
        assert lockout.count_failure("a", at) == 0.0
        assert lockout.seconds_left("a", at) == 0.0
    assert lockout.count_failure("a", 2.0) == 0.0
    assert lockout.seconds_left("a", 2.0) == 60.0
    assert lockout.seconds_left("a", 61.0) == pytest.approx(1.0)
    assert lockout.seconds_left("a", 62.0) == 0.0
    assert lockout.seconds_left("b", 2.0) == 0.0


def test_failures_during_a_lockout_do_not_extend_it() -> None:
    lockout = TokenLockout(1, 60.0, SharedCounts())
    assert lockout.count_failure("a", 0.0) == 0.0
    assert lockout.count_failure("a", 50.0) == pytest.approx(10.0)
    assert lockout.seconds_left("a", 50.0) == pytest.approx(10.0)
    assert lockout.count_failure("a", 60.0) == 0.0


def test_failures_far_apart_cause_no_lockout() -> None:
    lockout = TokenLockout(3, 60.0, SharedCounts())
    for at in range(0, 600, 60):
        assert lockout.count_failure("a", float(at)) == 0.0
        assert lockout.seconds_left("a", float(at)) == 0.0
