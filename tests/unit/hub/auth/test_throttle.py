"""The lockout after failed authentication, with time as an argument."""

import pytest

from hub.auth import throttle
from hub.auth.throttle import Lockout, TooMany


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
    lockout = Lockout(1, 60.0)
    for number in range(50):
        lockout.failed(str(number), 0.0)
    assert lockout.left("49", 1.0) > 0
    assert sum(lockout.left(str(number), 1.0) > 0 for number in range(50)) == 10


def test_the_wait_is_told_in_whole_seconds() -> None:
    assert [TooMany("", "", wait).wait for wait in (0.01, 1.0, 1.2)] == [1, 1, 2]
