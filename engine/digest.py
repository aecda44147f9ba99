"""When a subscription sends the notifications of a period in one message. Pure, apart from the
rules of time zones, which come from the system."""

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import UTC, datetime, time, timedelta
from typing import Final
from zoneinfo import ZoneInfo

from engine.errors import Findings, nearest, quote_value
from engine.weekly_window import read_time, read_timezone
from engine.words import Json

DAILY: Final = "daily"
#: The periods, from the start of each hour in UTC.
PERIODS: Final = {"15m": timedelta(minutes=15), "1h": timedelta(hours=1)}
KEYS: Final = ("every", "at", "timezone")
EXAMPLE: Final = 'Write "15m", "1h", or {every: daily, at: "08:00", timezone: Europe/Berlin}.'
#: Of a daily digest, in minutes of the day.
DEFAULT_AT: Final = 9 * 60
_EPOCH = datetime.fromtimestamp(0, UTC)


@dataclass(frozen=True, slots=True)
class Digest:
    """every: of PERIODS, or DAILY. at: minutes of the day. timezone: an IANA name."""

    every: str
    at: int = DEFAULT_AT
    timezone: str = "UTC"

    def after(self, now: datetime) -> datetime:
        """The time of the next digest, in UTC."""
        if self.every != DAILY:
            period = PERIODS[self.every]
            return _EPOCH + ((now - _EPOCH) // period + 1) * period
        zone = ZoneInfo(self.timezone)
        at = time(self.at // 60, self.at % 60)
        today = now.astimezone(zone).date()
        days = (today + timedelta(days=ahead) for ahead in range(3))
        moments = (datetime.combine(day, at, zone).astimezone(UTC) for day in days)
        return next(one for one in moments if one > now)

    def as_section(self) -> dict[str, Json]:
        """As it is stored; a period has no time of day."""
        if self.every != DAILY:
            return {"every": self.every, "at": None, "timezone": None}
        at = f"{self.at // 60:02}:{self.at % 60:02}"
        return {"every": DAILY, "at": at, "timezone": self.timezone}


def read_digest_period(value: Json, place: str, findings: Findings) -> Digest | None:
    """The digest; None after a finding, and if the value is null."""
    if value is None:
        return None
    section = {"every": value} if isinstance(value, str) else value
    place_of_period = place if isinstance(value, str) else f"{place}.every"
    if not isinstance(section, Mapping):
        findings.add(place, "must be a period or a map", EXAMPLE)
        return None
    before = len(findings.all)
    for key in section:
        if key not in KEYS:
            remedy = nearest(str(key), KEYS) or f"Known: {', '.join(KEYS)}."
            findings.add(f"{place}.{key}", "is not a known key", remedy)
    every = section.get("every")
    known = [*PERIODS, DAILY]
    if every not in known:
        reason = "is missing" if every is None else f"{quote_value(every)} is not a period"
        findings.add(place_of_period, reason, f"Write one of {', '.join(known)}.")
        return None
    given = [key for key in ("at", "timezone") if section.get(key) is not None]
    if every != DAILY and given:
        reason = "is for a daily digest only"
        findings.add(f"{place}.{given[0]}", reason, "Remove it, or write every: daily.")
    at: int | None = DEFAULT_AT
    if "at" in given:
        at = read_time(section["at"], f"{place}.at", findings)
    timezone = read_timezone(section.get("timezone"), f"{place}.timezone", findings)
    if at is None or len(findings.all) > before:
        return None
    return Digest(every, at % (24 * 60), timezone)
