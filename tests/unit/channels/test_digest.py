"""When digests are sent, and what their settings are."""

from dataclasses import replace
from datetime import UTC, datetime, timedelta
from typing import Any
from uuid import UUID

import pytest

from channels.attempt import postponement
from channels.contract import EventMessage
from channels.digest import digest_time, read_digest, stored_digest
from channels.digest_summary import MAX_ITEMS, summarize_digest
from channels.store.records import Key, PendingDelivery
from engine.digest import Digest
from engine.errors import Findings
from engine.hooks.answer_rights import Automation
from engine.store.records import HookRecord
from engine.weekly_window import WeeklyWindow
from engine.words import DRIFT
from tests.unit.channels.test_envelope import ANSWERED, EVENT, WAITING, make_event, render

NOON = datetime(2026, 3, 28, 12, 7, 30, tzinfo=UTC)
NIGHT = WeeklyWindow(frozenset(range(7)), 22 * 60, 7 * 60, "UTC")
STORED_NIGHT = NIGHT.as_section()


def at(text: str) -> datetime:
    return datetime.fromisoformat(f"{text}+00:00")


@pytest.mark.parametrize(
    ("digest", "now", "expected"),
    [
        (Digest("15m"), "2026-03-28T12:07:30", "2026-03-28T12:15:00"),
        (Digest("15m"), "2026-03-28T12:15:00", "2026-03-28T12:30:00"),
        (Digest("1h"), "2026-03-28T23:59:59.999999", "2026-03-29T00:00:00"),
        (Digest("daily"), "2026-03-28T08:59:59", "2026-03-28T09:00:00"),
        (Digest("daily"), "2026-03-28T09:00:00", "2026-03-29T09:00:00"),
        # The clocks change in the night of 29 March: 08:00 is 07:00 and then 06:00 in UTC.
        (Digest("daily", 480, "Europe/Berlin"), "2026-03-28T06:59:00", "2026-03-28T07:00:00"),
        (Digest("daily", 480, "Europe/Berlin"), "2026-03-28T07:00:00", "2026-03-29T06:00:00"),
        # In Auckland it is the next day.
        (Digest("daily", 480, "Pacific/Auckland"), "2026-03-28T19:30:00", "2026-03-29T19:00:00"),
    ],
)  # fmt: skip
def test_the_next_digest(digest: Digest, now: str, expected: str) -> None:
    assert digest.after(at(now)) == at(expected)


def test_a_digest_in_quiet_hours_is_sent_at_their_end() -> None:
    assert digest_time(Digest("1h"), NIGHT, at("2026-03-28T21:30:00")) == at("2026-03-29T07:00:00")
    assert digest_time(Digest("1h"), NIGHT, at("2026-03-28T20:30:00")) == at("2026-03-28T21:00:00")
    assert digest_time(Digest("1h"), None, at("2026-03-28T21:30:00")) == at("2026-03-28T22:00:00")


@pytest.mark.parametrize(
    ("value", "stored"),
    [
        ("15m", {"every": "15m", "at": None, "timezone": None}),
        ({"every": "1h"}, {"every": "1h", "at": None, "timezone": None}),
        ("daily", {"every": "daily", "at": "09:00", "timezone": "UTC"}),
        (
            {"every": "daily", "at": "08:30", "timezone": "Europe/Berlin"},
            {"every": "daily", "at": "08:30", "timezone": "Europe/Berlin"},
        ),
    ],
)  # fmt: skip
def test_settings_are_stored_and_read_again(value: Any, stored: Any) -> None:
    findings = Findings()
    digest = read_digest(value, "digest", "slack", findings, ordered=False)
    assert not findings.all
    assert digest is not None and digest.as_section() == stored
    assert stored_digest(stored) == digest
    assert stored_digest(None) is None


@pytest.mark.parametrize(
    ("value", "channel", "ordered", "place", "reason"),
    [
        ("15m", "webhook", False, "digest", 'for the channel "webhook"'),
        ("15m", "slack", True, "digest", "ordered deliveries"),
        ("20m", "slack", False, "digest", '"20m" is not a period'),
        ({}, "slack", False, "digest.every", "is missing"),
        (5, "slack", False, "digest", "must be a period or a map"),
        ({"every": "1h", "at": "08:00"}, "slack", False, "digest.at", "for a daily digest only"),
        ({"every": "daily", "at": "8"}, "slack", False, "digest.at", "is not a time of day"),
        ({"every": "daily", "timezone": "x"}, "slack", False, "digest.timezone", "time zone"),
        ({"every": "daily", "zone": "UTC"}, "slack", False, "digest.zone", "is not a known key"),
    ],
)  # fmt: skip
def test_refused(value: Any, channel: str, ordered: bool, place: str, reason: str) -> None:
    findings = Findings()
    assert read_digest(value, "digest", channel, findings, ordered=ordered) is None
    (found,) = findings.all
    assert found.place == place
    assert reason in found.reason


def pending(hook: HookRecord | None = WAITING, **changed: Any) -> PendingDelivery:
    values: dict[str, Any] = {
        "key": Key(UUID(int=1), 1, UUID(int=2), 1, UUID(int=3)), "id": UUID(int=3),
        "project": "demo", "stack_header": None, "hook_id": None, "attempts": 1,
        "channel": "slack", "target": "", "ordered": False, "secrets": (),
        "event": make_event("headgate.hook.waiting"), "hook": hook, "notifications": (),
        "now": NOON, "automation": Automation(UUID(int=2), ""),
        "digest": Digest("1h").as_section(),
    }  # fmt: skip
    return PendingDelivery(**(values | changed))


ONE_O_CLOCK = at("2026-03-28T13:00:00")


def expiring(deadline: datetime, **changed: Any) -> HookRecord:
    return replace(WAITING, deadline=deadline, **changed)


@pytest.mark.parametrize(
    ("hook", "held"),
    [
        (None, True),
        (expiring(ONE_O_CLOCK + timedelta(seconds=1)), True),
        (expiring(ONE_O_CLOCK), False),
        (expiring(NOON), False),
        (expiring(NOON, point=DRIFT), True),
        (expiring(NOON, state="answered"), True),
    ],
    ids=["no-hook", "later", "at-the-digest", "now", "drift", "answered"],
)
def test_what_must_be_answered_before_the_next_digest_is_sent_at_once(
    hook: HookRecord | None, held: bool
) -> None:
    found = postponement(pending(hook))
    assert (found is not None) is held
    if found is not None:
        assert (found.until, found.digest) == (ONE_O_CLOCK, True)
        assert found.reason == "held for the digest at 2026-03-28T13:00:00.000000Z"


def test_a_due_digest_is_held_by_quiet_hours_only() -> None:
    due = pending(digest_at=NOON)
    assert postponement(due) is None
    late = replace(due, now=at("2026-03-28T23:00:00"), quiet_hours=STORED_NIGHT)
    found = postponement(late)
    assert found is not None
    assert (found.until, found.digest) == (at("2026-03-29T07:00:00"), True)


def test_in_quiet_hours_a_hook_that_expires_before_the_digest_waits_for_their_end() -> None:
    """Its deadline moves with it; then it is sent at once."""
    night = at("2026-03-28T23:00:00")
    hook = expiring(night + timedelta(minutes=30))
    found = postponement(pending(hook, now=night, quiet_hours=STORED_NIGHT))
    assert found is not None
    assert (found.until, found.digest) == (at("2026-03-29T07:00:00"), False)
    fixed = pending(hook, now=night, quiet_hours=STORED_NIGHT, expires_at=hook.deadline)
    assert postponement(fixed) is None


def message(number: int = 0, hook: HookRecord = WAITING, *, waiting: bool = True) -> EventMessage:
    kind = "headgate.hook.waiting"
    return EventMessage(str(UUID(int=number)), kind, render(kind, hook), NOON, waiting=waiting)


def test_waiting_hooks_come_first() -> None:
    failed = EventMessage(
        str(EVENT), "headgate.stack.update.failed", render("headgate.stack.update.failed"), NOON
    )
    decided = message(1, ANSWERED, waiting=False)
    summary = summarize_digest([failed, decided, message(2)], "https://headgate.example")
    assert summary.title == "3 notifications, 1 waits for an answer"
    texts = [text for text, _ in summary.items]
    assert texts[0].startswith("web/db: create waits for approval, until 2026-01-02 04:04 UTC")
    assert texts[1] == "web: UPDATE_FAILED"
    assert texts[2] == "web/db: create waits for approval (decided)"
    assert summary.items[0][1].startswith("https://headgate.example/#/demo/inbox/")
    assert summary.link == "https://headgate.example/#/demo/inbox"


def test_a_long_digest_is_bounded() -> None:
    summary = summarize_digest([message(number) for number in range(MAX_ITEMS + 5)], "")
    assert len(summary.items) == MAX_ITEMS
    assert summary.changes == ["and 5 more"]
    assert summary.title == "25 notifications, 25 wait for an answer"
