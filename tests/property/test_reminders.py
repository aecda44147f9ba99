"""Reminders and escalations at arbitrary times."""

from dataclasses import replace
from datetime import datetime, timedelta

from hypothesis import given
from hypothesis import strategies as st

from engine.hooks.reminders import first_wait, next_time
from engine.work.timers import reminder
from tests.unit.work.test_reminders import next_in, waiting_hook

hours = st.timedeltas(timedelta(seconds=1), timedelta(days=3))


@given(hours, hours, st.none() | hours, st.booleans())
def test_reminders_keep_to_the_times_of_the_rule_however_late_one_comes(
    waited: timedelta, remind: timedelta, escalate: timedelta | None, escalated: bool
) -> None:
    one = waiting_hook(waited, remind=remind, escalate=escalate, escalated=escalated)
    wait = next_in(one)
    assert wait is not None and timedelta(0) < wait <= remind
    due = waited + wait
    assert due % remind == timedelta(0) or due == escalate


@given(hours, hours | st.none(), hours)
def test_a_hook_is_escalated_once_and_not_early(
    waited: timedelta, remind: timedelta | None, after: timedelta
) -> None:
    one = waiting_hook(waited, remind=remind, escalate=after)
    for _ in range(50):
        reminded = reminder(one)
        assert reminded.row["escalated"] is (one.now >= one.clock.opened_at + after)
        if reminded.row["escalated"]:
            assert not reminder(replace(one, escalated=True)).row["escalated"]
            return
        wake: datetime = reminded.row["wake_at"]
        assert one.now < wake <= one.clock.opened_at + after
        one = replace(one, now=wake, reminders=one.reminders + 1)


@given(hours | st.none(), hours | st.none())
def test_the_first_wait_ends_when_the_first_reminder_or_escalation_is_due(
    remind: timedelta | None, escalate: timedelta | None
) -> None:
    """The database adds it to its own time, when it writes the hook."""
    one = waiting_hook(timedelta(0), remind=remind, escalate=escalate)
    opened_at, first = one.clock.opened_at, first_wait(one.rule)
    due = next_time(one.rule, opened_at, opened_at, escalated=False)
    assert due == (None if first is None else opened_at + first)
