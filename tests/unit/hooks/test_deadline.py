"""The deadline of a hook: when its clock starts, when the deadline moves, and when it
is reached.
"""

from collections.abc import Sequence
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from itertools import permutations

import pytest

from engine.hooks.deadline import (
    HookClock,
    NotificationDelivered,
    NotificationPending,
    NotificationReport,
    NotificationUndeliverable,
    apply_reports,
    extend,
    has_expired,
    latest_deadline,
    set_back,
)

OPENED = datetime(2026, 1, 1, tzinfo=UTC)
MINUTE, HOUR = timedelta(minutes=1), timedelta(hours=1)
NOW = OPENED + MINUTE
CLOCK = HookClock(OPENED, HOUR, OPENED + HOUR)
STARTED = replace(CLOCK, notified_at=OPENED, deadline=OPENED + 2 * HOUR)


def apply_report(clock: HookClock, *reports: NotificationReport, waiting: bool = True) -> HookClock:
    return apply_reports(clock, reports, NOW, waiting=waiting)


@pytest.mark.parametrize(("at", "expired"), [(-1, False), (0, True), (1, True)])
def test_a_deadline_is_reached_at_its_time(at: int, expired: bool) -> None:
    assert has_expired(CLOCK, CLOCK.deadline + timedelta(microseconds=at)) is expired


def test_the_first_delivery_starts_the_clock() -> None:
    assert apply_report(CLOCK, NotificationDelivered()) == replace(
        CLOCK, notified_at=NOW, deadline=NOW + HOUR
    )


def test_a_delivery_resets_an_extended_deadline() -> None:
    put_off = apply_report(CLOCK, NotificationPending(7200))
    assert apply_report(put_off, NotificationDelivered()).deadline == NOW + HOUR < put_off.deadline


@pytest.mark.parametrize(
    "reports",
    [[NotificationDelivered()], [NotificationPending(9999)], [NotificationUndeliverable()], []],
)
def test_once_the_clock_has_started_no_report_moves_the_deadline(
    reports: Sequence[NotificationReport],
) -> None:
    assert apply_report(STARTED, *reports) == STARTED


def test_a_pending_notification_extends_the_deadline_and_never_shortens_it() -> None:
    assert apply_report(CLOCK, NotificationPending(600)).deadline == NOW + HOUR + 10 * MINUTE
    late = replace(CLOCK, deadline=OPENED + 9 * HOUR)
    assert apply_report(late, NotificationPending(600)) == late


def test_the_timeout_runs_from_the_last_dead_notification() -> None:
    put_off = replace(CLOCK, deadline=OPENED + 9 * HOUR)
    assert apply_report(put_off, NotificationUndeliverable()) == replace(
        CLOCK, deadline=NOW + HOUR, undeliverable_at=NOW
    )


def test_a_second_dead_notification_keeps_the_first_time() -> None:
    before = replace(CLOCK, undeliverable_at=OPENED)
    assert apply_report(before, NotificationUndeliverable()) == replace(before, deadline=NOW + HOUR)


def test_the_best_of_concurrent_reports_counts_in_any_order() -> None:
    every: tuple[NotificationReport, ...] = (
        NotificationDelivered(),
        NotificationPending(60),
        NotificationPending(600),
        NotificationUndeliverable(),
    )
    for reports in permutations(every):
        assert apply_report(CLOCK, *reports) == apply_report(CLOCK, NotificationDelivered())
    for reports in permutations(every[1:]):
        assert apply_report(CLOCK, *reports) == apply_report(CLOCK, NotificationPending(600))


def test_a_decided_hook_keeps_its_deadline() -> None:
    assert apply_report(CLOCK, NotificationPending(600), waiting=False) == CLOCK
    assert apply_report(CLOCK, NotificationUndeliverable(), waiting=False) == CLOCK
    assert apply_report(CLOCK, NotificationDelivered(), waiting=False) == replace(
        CLOCK, notified_at=NOW
    )


@pytest.mark.parametrize(
    "report", [NotificationDelivered(), NotificationPending(9999), NotificationUndeliverable()]
)
def test_a_deadline_in_the_past_does_not_move(report: NotificationReport) -> None:
    over = replace(CLOCK, deadline=NOW)
    after = apply_report(over, report)
    assert (after.deadline, after.undeliverable_at) == (NOW, None)


def test_progress_starts_the_clock_and_a_later_delivery_does_not_reset_it() -> None:
    extended = extend(CLOCK, 5 * HOUR, 24 * HOUR, NOW)
    assert extended == replace(CLOCK, notified_at=NOW, deadline=NOW + 5 * HOUR)
    assert extended is not None
    for report in (NotificationDelivered(), NotificationUndeliverable()):
        assert apply_report(extended, report) == extended


def test_progress_keeps_the_start_of_the_clock() -> None:
    extended = extend(STARTED, 5 * HOUR, 24 * HOUR, NOW)
    assert extended == replace(STARTED, deadline=NOW + 5 * HOUR)


def test_progress_is_limited_by_the_maximum() -> None:
    assert latest_deadline(CLOCK, 3 * HOUR) == OPENED + 3 * HOUR
    extended = extend(CLOCK, timedelta.max, 3 * HOUR, NOW)
    assert extended is not None and extended.deadline == OPENED + 3 * HOUR
    assert extend(extended, HOUR, 3 * HOUR, NOW) is None


def test_the_remaining_time_stays_if_the_clock_is_set_back() -> None:
    now = OPENED - 5 * HOUR
    back = set_back(CLOCK, 5 * HOUR, now)
    assert (back.opened_at, back.deadline - now) == (now, CLOCK.deadline - OPENED)


def test_a_hook_that_opened_before_the_clock_was_set_back_to_keeps_its_deadline() -> None:
    assert set_back(CLOCK, HOUR, OPENED) == CLOCK
