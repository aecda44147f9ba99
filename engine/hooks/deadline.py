"""The deadline of a hook: when its clock starts, when the deadline moves and expires. Pure.

A hook opens with a deadline after its `timeout`. The clock restarts once, when the first
notification of the hook is delivered or an approver reports progress. Until then the deadline is
provisional: it is postponed while a notification may still be delivered, and counts from the time
at which the last notification became undeliverable. After that start, only progress moves the
deadline. A deadline that has passed never moves: the hook expires, even if its expiry is written
later.

This module decides every change of a deadline; `engine.store.hooks.deadlines` writes it. The first
deadline depends on the clock of the database: `first_deadline` computes it when a hook is inserted.
Statements that select many hooks call `hook_has_expired`, which repeats `has_expired`. Both are in
engine/store/routines/1_hook_deadline.sql, and tests compare them with this module.
"""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from datetime import datetime, timedelta


@dataclass(frozen=True, slots=True)
class HookClock:
    """The times of a hook.

    notified_at: when the clock restarted; None: no notification was delivered, and no progress
    reported. undeliverable_at: when the notifications became undeliverable for the first time;
    None: they are not.
    """

    opened_at: datetime
    timeout: timedelta
    deadline: datetime
    notified_at: datetime | None = None
    undeliverable_at: datetime | None = None


@dataclass(frozen=True, slots=True)
class NotificationDelivered:
    """A notification of the hook was delivered."""


@dataclass(frozen=True, slots=True)
class NotificationPending:
    """A notification may still be delivered. seconds: at most, until it becomes undeliverable."""

    seconds: float


@dataclass(frozen=True, slots=True)
class NotificationUndeliverable:
    """No further notification of the hook can be delivered."""


#: What a channel reports of a hook's notifications.
NotificationReport = NotificationDelivered | NotificationPending | NotificationUndeliverable


def has_expired(clock: HookClock, now: datetime) -> bool:
    """Return whether the deadline has passed. A hook may be answered strictly before it."""
    return now >= clock.deadline


def apply_reports(
    clock: HookClock, reports: Sequence[NotificationReport], now: datetime, *, waiting: bool
) -> HookClock:
    """The clock after reports of channels that arrive together, in any order.

    One delivery takes precedence over all other reports, and a pending notification over
    undeliverable ones. waiting: whether the hook is undecided; else its deadline stays.
    """
    if clock.notified_at is not None or not reports:
        return clock
    moves = waiting and not has_expired(clock, now)
    if any(isinstance(one, NotificationDelivered) for one in reports):
        return replace(
            clock, notified_at=now, deadline=now + clock.timeout if moves else clock.deadline
        )
    if not moves:
        return clock
    if left := [one.seconds for one in reports if isinstance(one, NotificationPending)]:
        put_off = now + clock.timeout + timedelta(seconds=max(left))
        return replace(clock, deadline=max(clock.deadline, put_off))
    return replace(
        clock, deadline=now + clock.timeout, undeliverable_at=clock.undeliverable_at or now
    )


def latest_deadline(clock: HookClock, at_most: timedelta) -> datetime:
    """Return the latest deadline that progress can set. at_most: since the opening."""
    return clock.opened_at + at_most


def extend(
    clock: HookClock, longer: timedelta, at_most: timedelta, now: datetime
) -> HookClock | None:
    """Return the clock after progress: the deadline is `longer` from now, not earlier than before,
    and not later than `latest_deadline`. None: the deadline is the latest already.
    """
    latest = latest_deadline(clock, at_most)
    if latest <= clock.deadline:
        return None
    # Compare spans: now + longer may exceed the last possible date.
    deadline = now + max(min(longer, latest - now), clock.deadline - now)
    return replace(clock, deadline=deadline, notified_at=clock.notified_at or now)


def set_back(clock: HookClock, by: timedelta, now: datetime) -> HookClock:
    """Return the clock of a waiting hook after the database's clock was set back to `now`.

    If the hook opened after that time, its remaining time stays the same. Other deadlines stay,
    because they are times of day that users have seen.
    """
    if clock.opened_at <= now:
        return clock
    return replace(clock, opened_at=now, deadline=clock.deadline - by)
