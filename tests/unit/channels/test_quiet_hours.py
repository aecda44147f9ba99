"""Quiet hours across midnight and changes of the clock."""

from datetime import UTC, datetime, timedelta
from zoneinfo import ZoneInfo

import pytest
from hypothesis import given
from hypothesis import strategies as st

from channels.quiet_hours import quiet_until, read_quiet_hours, stored_quiet_hours
from engine.errors import Findings
from engine.weekly_window import DAYS, WeeklyWindow
from engine.words import Json

BERLIN = ZoneInfo("Europe/Berlin")
NIGHT = {"from": "22:00", "to": "07:00", "timezone": "Europe/Berlin"}


def window(value: Json) -> WeeklyWindow:
    found = stored_quiet_hours(value)
    assert found is not None
    return found


def berlin(year: int, month: int, day: int, hour: int, minute: int) -> datetime:
    return datetime(year, month, day, hour, minute, tzinfo=BERLIN)


@pytest.mark.parametrize(
    ("now", "end"),
    [
        (berlin(2026, 6, 1, 21, 59), None),
        (berlin(2026, 6, 1, 22, 0), berlin(2026, 6, 2, 7, 0)),
        (berlin(2026, 6, 2, 6, 59), berlin(2026, 6, 2, 7, 0)),
        (berlin(2026, 6, 2, 7, 0), None),
        (berlin(2026, 3, 28, 23, 0), berlin(2026, 3, 29, 7, 0)),
        (berlin(2026, 10, 24, 23, 0), berlin(2026, 10, 25, 7, 0)),
    ],
)
def test_a_night(now: datetime, end: datetime | None) -> None:
    assert quiet_until(window(NIGHT), now.astimezone(UTC)) == end


@pytest.mark.parametrize("days", [["sat", "sun"], ["fri", "sat", "sun"], ["tue-sun"]])
def test_adjacent_whole_days_end_together_on_monday(days: list[str]) -> None:
    whole = window({"days": days, "from": "00:00", "to": "24:00"})
    first = datetime(2026, 6, 1 + DAYS.index(days[0][:3]), 12, tzinfo=UTC)
    assert quiet_until(whole, first) == datetime(2026, 6, 8, tzinfo=UTC)


@given(
    minutes=st.integers(0, 5 * 366 * 1440),
    opens=st.integers(0, 1439),
    closes=st.integers(0, 1439),
    days=st.sets(st.sampled_from(DAYS), min_size=1, max_size=7),
    zone=st.sampled_from(["UTC", "Europe/Berlin", "America/New_York", "Australia/Lord_Howe"]),
)
def test_the_end_is_later_and_not_quiet(
    minutes: int, opens: int, closes: int, days: set[str], zone: str
) -> None:
    now = datetime(2025, 1, 1, tzinfo=UTC) + timedelta(minutes=minutes)
    if opens == closes:
        closes = (closes + 1) % 1440
    quiet = window({
        "from": f"{opens // 60:02}:{opens % 60:02}", "to": f"{closes // 60:02}:{closes % 60:02}",
        "days": sorted(days), "timezone": zone,
    })  # fmt: skip
    end = quiet_until(quiet, now)
    if end is not None:
        assert now < end <= now + timedelta(days=8)
        assert quiet_until(quiet, end) is None
        assert quiet_until(quiet, end - timedelta(microseconds=1)) == end


@pytest.mark.parametrize(
    ("value", "channel", "ordered", "place", "reason"),
    [
        (NIGHT, "webhook", False, "quiet_hours", 'not possible for the channel "webhook"'),
        (NIGHT, "email", True, "quiet_hours", "ordered deliveries"),
        (NIGHT | {"to": "25:00"}, "email", False, "quiet_hours.to", "not a time of day"),
        (NIGHT | {"timezone": "Mars"}, "slack", False, "quiet_hours.timezone", "time zone"),
        ({"from": "00:00", "to": "24:00"}, "teams", False, "quiet_hours", "never ends"),
    ],
)
def test_findings(value: Json, channel: str, ordered: bool, place: str, reason: str) -> None:
    findings = Findings()
    assert read_quiet_hours(value, "quiet_hours", channel, findings, ordered=ordered) is None
    (found,) = findings.all
    assert found.place == place
    assert reason in found.reason
    assert found.remedy
