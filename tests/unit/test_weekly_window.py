"""Repair windows: when they open, also across midnight and changes of the clock."""

from datetime import UTC, datetime, timedelta
from typing import Any

import pytest

from engine.errors import Findings
from engine.weekly_window import WeeklyWindow, read_window

NIGHT = {"days": ["mon-fri"], "from": "22:00", "to": "04:00", "timezone": "Europe/Berlin"}


def window(**section: Any) -> WeeklyWindow:
    findings = Findings()
    found = read_window({"from": "22:00", "to": "04:00"} | section, "window", findings)
    assert found is not None, findings.all
    return found


def at(text: str) -> datetime:
    return datetime.fromisoformat(text).replace(tzinfo=UTC)


@pytest.mark.parametrize(
    ("section", "now", "opens"),
    [
        # 2026-11-27 is a Friday; Berlin is one hour ahead of UTC in winter, two in summer.
        (NIGHT, "2026-11-27T20:59", "2026-11-27T21:00"),
        (NIGHT, "2026-11-27T21:00", None),
        (NIGHT, "2026-11-28T02:59", None),
        (NIGHT, "2026-11-28T03:00", "2026-11-30T21:00"),
        (NIGHT, "2026-07-31T19:30", "2026-07-31T20:00"),
        ({"days": ["sat-mon"], "from": "00:00", "to": "24:00"}, "2026-11-27T12:00",
         "2026-11-28T00:00"),
        ({"days": ["sat-mon"], "from": "00:00", "to": "24:00"}, "2026-11-30T23:59", None),
        ({"days": ["sat-mon"], "from": "00:00", "to": "24:00"}, "2026-12-01T00:00",
         "2026-12-05T00:00"),
        ({"days": ["wed"], "from": "08:00", "to": "10:00"}, "2026-11-25T10:00",
         "2026-12-02T08:00"),
        # Without days, every day.
        ({"from": "08:00", "to": "10:00"}, "2026-11-28T10:00", "2026-11-29T08:00"),
        # On 2026-03-29, the hour from 2 to 3 does not exist in Berlin.
        ({"days": ["sun"], "from": "02:00", "to": "03:00", "timezone": "Europe/Berlin"},
         "2026-03-28T12:00", "2026-04-05T00:00"),
    ],
)  # fmt: skip
def test_a_window_opens_next(section: dict[str, Any], now: str, opens: str | None) -> None:
    found = window(**section)
    expected = at(opens) if opens else None
    assert found.opens_at(at(now)) == expected
    assert found.opens_in(at(now)) == (expected - at(now) if expected else timedelta(0))


def test_a_window_is_shown_as_it_is_written() -> None:
    shown = window(**NIGHT).as_section()
    assert shown == NIGHT | {"days": ["mon", "tue", "wed", "thu", "fri"]}
    assert window(to="24:00").as_section()["to"] == "24:00"


@pytest.mark.parametrize(
    ("section", "place", "reason", "remedy"),
    [
        ("night", "w", "must be a map", "days: [mon-fri]"),
        ({"from": "22:00"}, "w.to", "is missing", "from"),
        ({"from": "22:00", "to": "22:00"}, "w", "never opens", "24:00"),
        ({"from": "22:00", "to": "23:00", "days": []}, "w.days", "never opens", "Add a day"),
        ({"from": "22:00", "to": "23:00", "days": "mon-fri"}, "w.days", "a list", "[mon-fri"),
        ({"from": "22:00", "to": "23:00", "days": ["mom"]}, "w.days", '"mom"', '"mon"'),
        ({"from": "22:00", "to": "23:00", "days": ["mon-fry"]}, "w.days", "neither", '"fri"'),
        ({"from": "22:00", "to": "23:00", "days": [1]}, "w.days", "neither", "Days are"),
        ({"from": "22:00", "to": "25:00"}, "w.to", '"25:00"', "22:00"),
        ({"from": "22:00", "to": "24:30"}, "w.to", '"24:30"', "22:00"),
        ({"from": 1320, "to": "23:00"}, "w.from", "1320", "in quotes"),
        ({"from": "24:00", "to": "23:00"}, "w.from", "end of a day", "00:00"),
        ({"from": "22:00", "to": "23:00", "timezone": "Berlin"}, "w.timezone", '"Berlin"',
         "Europe/Berlin"),
        ({"from": "22:00", "to": "23:00", "timezone": "../../etc/passwd"}, "w.timezone",
         "not a known time zone", "UTC"),
        ({"from": "22:00", "to": "23:00", "timezone": "Europe"}, "w.timezone", "not a",
         "UTC"),
        ({"from": "22:00", "to": "23:00", "timezone": 2}, "w.timezone", "not a known", "UTC"),
        ({"from": "22:00", "to": "23:00", "timezone": "localtime"}, "w.timezone", "not a known",
         "UTC"),
        ({"from": "22:00", "to": "23:00", "timezone": "right/UTC"}, "w.timezone", "not a known",
         "UTC"),
        ({"from": "22:00", "to": "23:00", "zone": "UTC"}, "w.zone", "not a known key", "timezone"),
    ],
)  # fmt: skip
def test_a_wrong_window_is_refused(section: Any, place: str, reason: str, remedy: str) -> None:
    findings = Findings()
    assert read_window(section, "w", findings) is None
    (found,) = findings.all
    assert found.place == place
    assert reason in found.reason and remedy in found.remedy
