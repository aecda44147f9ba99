"""The deadline of a hook: when its clock starts, when the deadline moves, when it has come."""

from collections.abc import Sequence
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from itertools import permutations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from engine.hooks.deadline import (
    Delivered,
    GivenUp,
    HookClock,
    NoticeReport,
    Pending,
    apply_reports,
    extend,
    has_expired,
    latest_deadline,
    open_clock,
    set_back,
)

OPENED = datetime(2026, 1, 1, tzinfo=UTC)
MINUTE, HOUR = timedelta(minutes=1), timedelta(hours=1)
NOW = OPENED + MINUTE
CLOCK = open_clock(OPENED, HOUR)
STARTED = replace(CLOCK, notified_at=OPENED, deadline=OPENED + 2 * HOUR)


def reported(clock: HookClock, *reports: NoticeReport, waiting: bool = True) -> HookClock:
    return apply_reports(clock, reports, NOW, waiting=waiting)


def test_a_hook_opens_with_its_timeout_left() -> None:
    assert HookClock(OPENED, HOUR, OPENED + HOUR) == CLOCK


@pytest.mark.parametrize(("at", "expired"), [(-1, False), (0, True), (1, True)])
def test_a_deadline_has_come_at_its_time(at: int, expired: bool) -> None:
    assert has_expired(CLOCK, CLOCK.deadline + timedelta(microseconds=at)) is expired


def test_the_first_delivery_starts_the_clock() -> None:
    assert reported(CLOCK, Delivered()) == replace(CLOCK, notified_at=NOW, deadline=NOW + HOUR)


def test_a_delivery_ends_what_the_deadline_was_put_off_by() -> None:
    put_off = reported(CLOCK, Pending(7200))
    assert reported(put_off, Delivered()).deadline == NOW + HOUR < put_off.deadline


@pytest.mark.parametrize("reports", [[Delivered()], [Pending(9999)], [GivenUp()], []])
def test_once_the_clock_has_started_no_report_moves_the_deadline(
    reports: Sequence[NoticeReport],
) -> None:
    assert reported(STARTED, *reports) == STARTED


def test_a_notice_that_may_be_delivered_puts_the_deadline_off_and_never_nearer() -> None:
    assert reported(CLOCK, Pending(600)).deadline == NOW + HOUR + 10 * MINUTE
    late = replace(CLOCK, deadline=OPENED + 9 * HOUR)
    assert reported(late, Pending(600)) == late


def test_from_when_the_last_notice_was_given_up_the_timeout_runs() -> None:
    put_off = replace(CLOCK, deadline=OPENED + 9 * HOUR)
    assert reported(put_off, GivenUp()) == replace(CLOCK, deadline=NOW + HOUR, undeliverable_at=NOW)


def test_given_up_again_it_keeps_the_first_time() -> None:
    before = replace(CLOCK, undeliverable_at=OPENED)
    assert reported(before, GivenUp()) == replace(before, deadline=NOW + HOUR)


def test_of_reports_that_come_together_the_best_counts_in_any_order() -> None:
    every: tuple[NoticeReport, ...] = (Delivered(), Pending(60), Pending(600), GivenUp())
    for reports in permutations(every):
        assert reported(CLOCK, *reports) == reported(CLOCK, Delivered())
    for reports in permutations(every[1:]):
        assert reported(CLOCK, *reports) == reported(CLOCK, Pending(600))


def test_a_decided_hook_keeps_its_deadline() -> None:
    assert reported(CLOCK, Pending(600), waiting=False) == CLOCK
    assert reported(CLOCK, GivenUp(), waiting=False) == CLOCK
    assert reported(CLOCK, Delivered(), waiting=False) == replace(CLOCK, notified_at=NOW)


@pytest.mark.parametrize("report", [Delivered(), Pending(9999), GivenUp()])
def test_a_deadline_that_has_come_does_not_move(report: NoticeReport) -> None:
    over = replace(CLOCK, deadline=NOW)
    after = reported(over, report)
    assert (after.deadline, after.undeliverable_at) == (NOW, None)


def test_progress_starts_the_clock_and_a_later_delivery_does_not_take_it_back() -> None:
    extended = extend(CLOCK, 5 * HOUR, 24 * HOUR, NOW)
    assert extended == replace(CLOCK, notified_at=NOW, deadline=NOW + 5 * HOUR)
    assert extended is not None
    for report in (Delivered(), GivenUp()):
        assert reported(extended, report) == extended


def test_progress_keeps_when_the_clock_started() -> None:
    extended = extend(STARTED, 5 * HOUR, 24 * HOUR, NOW)
    assert extended == replace(STARTED, deadline=NOW + 5 * HOUR)


def test_progress_ends_at_the_most() -> None:
    assert latest_deadline(CLOCK, 3 * HOUR) == OPENED + 3 * HOUR
    extended = extend(CLOCK, timedelta.max, 3 * HOUR, NOW)
    assert extended is not None and extended.deadline == OPENED + 3 * HOUR
    assert extend(extended, HOUR, 3 * HOUR, NOW) is None


def test_set_back_the_time_left_stays() -> None:
    now = OPENED - 5 * HOUR
    back = set_back(CLOCK, 5 * HOUR, now)
    assert (back.opened_at, back.deadline - now) == (now, CLOCK.deadline - OPENED)


REPORTS = st.lists(
    st.builds(Delivered) | st.builds(Pending, st.floats(0, 1e6)) | st.builds(GivenUp), max_size=4
)


@given(
    st.lists(st.tuples(REPORTS | st.timedeltas(), st.timedeltas(timedelta(0), HOUR)), max_size=15)
)
def test_whatever_comes_the_clock_starts_once_and_an_expired_hook_stays_so(
    moves: list[tuple[list[NoticeReport] | timedelta, timedelta]],
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
