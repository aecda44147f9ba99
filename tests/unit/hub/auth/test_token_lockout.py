"""The lockout after wrong tokens, with time as an argument."""

import pytest

from hub.auth.lockout import TokenLockout


def test_an_address_is_locked_out_after_some_failures_for_some_time() -> None:
    lockout = TokenLockout(3, 60.0)
    for at in (0.0, 1.0):
        lockout.count_failure("a", at)
        assert lockout.seconds_left("a", at) == 0.0
    lockout.count_failure("a", 2.0)
    assert lockout.seconds_left("a", 2.0) == 60.0
    assert lockout.seconds_left("a", 61.0) == pytest.approx(1.0)
    assert lockout.seconds_left("a", 62.0) == 0.0
    assert lockout.seconds_left("b", 2.0) == 0.0


def test_failures_far_apart_cause_no_lockout() -> None:
    lockout = TokenLockout(3, 60.0)
    for at in range(0, 600, 60):
        lockout.count_failure("a", float(at))
        assert lockout.seconds_left("a", float(at)) == 0.0


def test_the_number_of_counted_addresses_is_limited(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("hub.auth.lockout.MAX_ADDRESSES", 10)
    lockout = TokenLockout(1, 60.0)
    for number in range(50):
        lockout.count_failure(str(number), 0.0)
    assert lockout.seconds_left("49", 1.0) > 0
    assert sum(lockout.seconds_left(str(number), 1.0) > 0 for number in range(50)) == 10
