"""The rule of lockouts, with time as an argument."""

import pytest

from hub.auth.lockout import FailedAttempts, LockoutRule

RULE = LockoutRule(failures=2, seconds=60.0)


@pytest.mark.parametrize(
    ("earlier", "count", "left"),
    [
        (None, 1, 0.0),
        (FailedAttempts(1, 100.0), 2, 0.0),
        (FailedAttempts(2, 100.0), 3, 60.0),
        (FailedAttempts(2, 41.0), 3, 1.0),
        (FailedAttempts(2, 40.0), 1, 0.0),  # a lockout ago
        (FailedAttempts(2, 130.0), 3, 90.0),  # in the future: the clock was set back a little
        (FailedAttempts(2, 160.0), 1, 0.0),  # set back by more than a lockout
    ],
)
def test_attempts_count_within_a_lockout(
    earlier: FailedAttempts | None, count: int, left: float
) -> None:
    assert RULE.count(earlier, 100.0) == FailedAttempts(count, 100.0)
    assert RULE.seconds_left(earlier, 100.0) == left
