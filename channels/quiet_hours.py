"""Quiet hours: the times at which a subscription for people holds its deliveries. Pure, apart from
the rules of time zones, which come from the system."""

from datetime import datetime

from engine.errors import Findings
from engine.weekly_window import MINUTES, WeeklyWindow, read_window
from engine.words import Json

#: The beginning of the reason of a held delivery. The time of its end follows.
HELD = "held by quiet hours until "
#: The channels that reach people.
CHANNELS = ("apprise", "email", "slack", "teams")


def read_quiet_hours(
    value: Json, place: str, channel: str, findings: Findings, *, ordered: bool
) -> WeeklyWindow | None:
    """The quiet hours, or None after a finding, and if there are none."""
    if value is None:
        return None
    before = len(findings.all)
    check_can_wait("quiet hours", place, channel, findings, ordered=ordered)
    window = read_window(value, place, findings)
    if window is not None and _is_always(window):
        findings.add(place, "never ends", "Leave out a day, or some hours of each day.")
    return window if len(findings.all) == before else None


def check_can_wait(
    what: str, place: str, channel: str, findings: Findings, *, ordered: bool
) -> None:
    """Check that deliveries of a subscription can wait: people read them, in any order. what: that
    holds them, for the remedy."""
    if channel not in CHANNELS:
        remedy = f"Remove it. Channels with {what}: {', '.join(CHANNELS)}."
        findings.add(place, f'is not possible for the channel "{channel}"', remedy)
    if ordered:
        reason = "is not possible for a subscription with ordered deliveries"
        findings.add(place, reason, "Set ordered to false.")


def stored_quiet_hours(stored: Json) -> WeeklyWindow | None:
    """The quiet hours of a stored subscription, which were valid. Raises Invalid if the system no
    longer knows the time zone."""
    findings = Findings()
    window = read_window(stored, "quiet_hours", findings)
    findings.raise_if_any()
    return window


def quiet_until(window: WeeklyWindow, now: datetime) -> datetime | None:
    """When the current quiet hours end, in UTC; None: `now` is outside of them.

    Quiet hours that begin at the end of others prolong them.
    """
    end = window.closes_at(now)
    while end is not None and (later := window.closes_at(end)) is not None:
        end = later
    return end


def _is_always(window: WeeklyWindow) -> bool:
    return len(window.days) == 7 and window.opens == 0 and window.closes == MINUTES
