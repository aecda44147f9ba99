"""The clock of a hook under any sequence of reports."""

from datetime import timedelta

from hypothesis import given
from hypothesis import strategies as st

from engine.hooks.deadline import (
    NotificationDelivered,
    NotificationPending,
    NotificationReport,
    NotificationUndeliverable,
    apply_reports,
    extend,
    has_expired,
)
from tests.unit.hooks.test_deadline import CLOCK, HOUR, OPENED

REPORTS = st.lists(
    st.builds(NotificationDelivered)
    | st.builds(NotificationPending, st.floats(0, 1e6))
    | st.builds(NotificationUndeliverable),
    max_size=4,
)


@given(
    st.lists(st.tuples(REPORTS | st.timedeltas(), st.timedeltas(timedelta(0), HOUR)), max_size=15)
)
def test_the_clock_starts_once_and_an_expired_hook_stays_expired(
    moves: list[tuple[list[NotificationReport] | timedelta, timedelta]],
) -> None:
    clock, now = CLOCK, OPENED
    for move, passed in moves:
        now += passed
        if isinstance(move, timedelta):
            # `judge` refuses progress at an expired hook.
            after = clock if has_expired(clock, now) else extend(clock, move, 24 * HOUR, now)
            after = after or clock
            assert after.deadline >= clock.deadline
        else:
            after = apply_reports(clock, move, now, waiting=True)
        assert has_expired(after, now) is has_expired(clock, now)
        if clock.notified_at is not None:
            assert after.notified_at == clock.notified_at
            assert after == clock or isinstance(move, timedelta)
        clock = after
