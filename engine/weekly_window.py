"""Windows of a week: on which days and between which times repairs may start, or messages are held.
Pure, apart from the rules of time zones, which come from the system."""

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, date, datetime, time, timedelta
from zoneinfo import ZoneInfo

from engine.errors import Findings, nearest, one_of, quote_value
from engine.words import Json

DAYS = ("mon", "tue", "wed", "thu", "fri", "sat", "sun")
KEYS = ("days", "from", "to", "timezone")
EXAMPLE = 'Write {days: [mon-fri], from: "22:00", to: "04:00", timezone: Europe/Berlin}.'
MINUTES = 24 * 60
_TIME = re.compile(r"([01]\d|2[0-4]):([0-5]\d)", re.ASCII)
#: Files among those of time zones that mean something else on each machine, or count leap seconds.
_NOT_IANA = re.compile(r"(localtime|posixrules)$|(posix|right)/")


@dataclass(frozen=True, slots=True)
class WeeklyWindow:
    """days: on which it opens; 0 is Monday. opens, closes: minutes of the day; it closes on the
    next day if `closes` is not after `opens`. timezone: an IANA name."""

    days: frozenset[int]
    opens: int
    closes: int
    timezone: str

    def opens_in(self, now: datetime) -> timedelta:
        """The time until it opens; zero: it is open."""
        return max(self._next(now)[0] - now, timedelta(0))

    def opens_at(self, now: datetime) -> datetime | None:
        """When it opens next; None: it is open."""
        opens = self._next(now)[0]
        return opens if opens > now else None

    def closes_at(self, now: datetime) -> datetime | None:
        """When the current opening ends; None: it is closed."""
        opens, closes = self._next(now)
        return closes if opens <= now else None

    def _next(self, now: datetime) -> tuple[datetime, datetime]:
        """Start and end of the current or next opening, in UTC."""
        zone = ZoneInfo(self.timezone)
        today = now.astimezone(zone).date()
        for ahead in range(-1, 15):  # a change of the clock can swallow one opening
            day = today + timedelta(days=ahead)
            later = self.closes + (0 if self.closes > self.opens else MINUTES)
            opens, closes = _moment(day, self.opens, zone), _moment(day, later, zone)
            if day.weekday() in self.days and now < closes and opens < closes:
                return opens, closes
        raise ValueError("the window never opens")

    def as_section(self) -> dict[str, Json]:
        """In the form in which environments have it."""
        return {
            "days": [name for number, name in enumerate(DAYS) if number in self.days],
            "from": _clock(self.opens),
            "to": _clock(self.closes),
            "timezone": self.timezone,
        }


def _moment(day: date, minutes: int, zone: ZoneInfo) -> datetime:
    days, rest = divmod(minutes, MINUTES)
    at = time(rest // 60, rest % 60)
    return datetime.combine(day + timedelta(days=days), at, zone).astimezone(UTC)


def _clock(minutes: int) -> str:
    return f"{minutes // 60:02}:{minutes % 60:02}"


def read_window(value: Json, place: str, findings: Findings) -> WeeklyWindow | None:
    """The window, or None after a finding, and if there is none."""
    if value is None:
        return None
    if not isinstance(value, Mapping):
        findings.add(place, "must be a map", EXAMPLE)
        return None
    before = len(findings.all)
    for key in value:
        if key not in KEYS:
            remedy = nearest(str(key), KEYS) or f"Known: {', '.join(KEYS)}."
            findings.add(f"{place}.{key}", "is not a known key", remedy)
    days = _read_days(value.get("days"), f"{place}.days", findings)
    opens = read_time(value.get("from"), f"{place}.from", findings)
    closes = read_time(value.get("to"), f"{place}.to", findings)
    timezone = read_timezone(value.get("timezone"), f"{place}.timezone", findings)
    if opens == MINUTES:
        findings.add(f"{place}.from", '"24:00" is the end of a day', 'Write "00:00".')
    if opens is not None and opens == closes:
        remedy = 'Write another time; for the whole day, from: "00:00" and to: "24:00".'
        findings.add(place, "never opens, because from and to are the same", remedy)
    if len(findings.all) > before or opens is None or closes is None:
        return None
    return WeeklyWindow(days, opens, closes, timezone)


def _read_days(value: Json, place: str, findings: Findings) -> frozenset[int]:
    if value is None:
        return frozenset(range(7))
    if not isinstance(value, Sequence) or isinstance(value, str):
        findings.add(place, "must be a list of days", "Write a list such as [mon-fri, sun].")
        return frozenset()
    if not value:
        findings.add(place, "is empty, so the window never opens", "Add a day, or remove it.")
    found: set[int] = set()
    for one in value:
        first, _, last = str(one).partition("-")
        wrong = [day for day in (first, last or first) if day not in DAYS]
        if wrong or not isinstance(one, str):
            reason = f"{quote_value(one)} is neither a day nor a range of days"
            findings.add(place, reason, one_of(str(wrong[0] if wrong else one), DAYS, "Days are"))
            continue
        start = DAYS.index(first)
        count = (DAYS.index(last or first) - start) % 7
        found |= {(start + number) % 7 for number in range(count + 1)}
    return frozenset(found)


def read_time(value: Json, place: str, findings: Findings) -> int | None:
    """Minutes of the day, or None after a finding."""
    if value is None:
        findings.add(place, "is missing", EXAMPLE)
        return None
    match = _TIME.fullmatch(value) if isinstance(value, str) else None
    minutes = int(match[1]) * 60 + int(match[2]) if match else MINUTES + 1
    if minutes > MINUTES:
        reason = f"{quote_value(value)} is not a time of day"
        findings.add(place, reason, 'Write hours and minutes in quotes, such as "22:00".')
        return None
    return minutes


def read_timezone(value: Json, place: str, findings: Findings) -> str:
    """An IANA name; UTC by default, and after a finding."""
    if value is None:
        return "UTC"
    try:
        if not isinstance(value, str) or _NOT_IANA.match(value):
            raise ValueError
        ZoneInfo(value)
    except (KeyError, ValueError, OSError):
        reason = f"{quote_value(value)} is not a known time zone"
        findings.add(place, reason, "Write a name such as Europe/Berlin or UTC.")
        return "UTC"
    return value
