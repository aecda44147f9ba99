"""The deadline of a hook: when its clock starts, when the deadline moves, when it has come. Pure.

A hook opens with its `timeout` as the time that is left. The clock starts anew, once, when the
first notice of the hook is delivered or an approver reports progress. Until then the deadline is
provisional: it is put off while a notice may still be delivered, and runs from the moment when the
last notice was given up. Once the clock has started, only progress moves the deadline. A deadline
that has come never moves: the hook expires, even if its expiry is written later.

Every change of a deadline is decided here and written by `engine.store.hook_deadlines`. Two
statements follow these functions where the hook is one row of many: `advance` inserts what
`open_clock` gives, and `engine.store.clock_correction` writes what `set_back` gives.
"""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from datetime import datetime, timedelta


@dataclass(frozen=True, slots=True)
class HookClock:
    """The times of a hook.

    notified_at: when the clock started; None: no notice was delivered, no progress reported.
    undeliverable_at: when the last notice was given up for the first time; None: it was not.
    """

    opened_at: datetime
    timeout: timedelta
    deadline: datetime
    notified_at: datetime | None = None
    undeliverable_at: datetime | None = None


@dataclass(frozen=True, slots=True)
class Delivered:
    """A notice of the hook was delivered."""


@dataclass(frozen=True, slots=True)
class Pending:
    """A notice of the hook may still be delivered. seconds: until it is given up, at most."""

    seconds: float


@dataclass(frozen=True, slots=True)
class GivenUp:
    """No notice of the hook can be delivered any more."""


#: What a channel reports of a hook's notices.
NoticeReport = Delivered | Pending | GivenUp


def open_clock(now: datetime, timeout: timedelta) -> HookClock:
    """The clock of a hook that opens."""
    return HookClock(now, timeout, now + timeout)


def has_expired(clock: HookClock, now: datetime) -> bool:
    """Whether the deadline has come. A hook may be answered strictly before it."""
    return now >= clock.deadline


def apply_reports(
    clock: HookClock, reports: Sequence[NoticeReport], now: datetime, *, waiting: bool
) -> HookClock:
    """The clock after reports of channels that arrive together, in any order.

    One delivery outweighs everything else, and one notice that may still be delivered outweighs
    those that were given up. waiting: whether the hook is undecided; else its deadline stays.
    """
    if clock.notified_at is not None or not reports:
        return clock
    moves = waiting and not has_expired(clock, now)
    if any(isinstance(one, Delivered) for one in reports):
        return replace(
            clock, notified_at=now, deadline=now + clock.timeout if moves else clock.deadline
        )
    if not moves:
        return clock
    if left := [one.seconds for one in reports if isinstance(one, Pending)]:
        put_off = now + clock.timeout + timedelta(seconds=max(left))
        return replace(clock, deadline=max(clock.deadline, put_off))
    return replace(
        clock, deadline=now + clock.timeout, undeliverable_at=clock.undeliverable_at or now
    )


def latest_deadline(clock: HookClock, at_most: timedelta) -> datetime:
    """Until when progress may extend the deadline. at_most: from the opening on."""
    return clock.opened_at + at_most


def extend(
    clock: HookClock, longer: timedelta, at_most: timedelta, now: datetime
) -> HookClock | None:
    """The clock after progress: the deadline is `longer` from now, never nearer than it was, and
    never later than `latest_deadline`. None: the deadline has reached that already."""
    latest = latest_deadline(clock, at_most)
    if latest <= clock.deadline:
        return None
    # As spans: now + longer may be after the last date that exists.
    deadline = now + max(min(longer, latest - now), clock.deadline - now)
    return replace(clock, deadline=deadline, notified_at=clock.notified_at or now)


def set_back(clock: HookClock, by: timedelta, now: datetime) -> HookClock:
    """The clock of a waiting hook that opened after `now`, when the database's clock was set back:
    the time that is left stays the same."""
    return replace(clock, opened_at=now, deadline=clock.deadline - by)
