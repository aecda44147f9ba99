"""Parses durations: ``90s``, ``30m``, ``2h`` or ``1d``."""

import re
from datetime import timedelta

from engine.words import Json

_DURATION = re.compile(r"(\d+)\s*([smhd])")
_UNITS = {"s": "seconds", "m": "minutes", "h": "hours", "d": "days"}
_LONGEST_SPAN = timedelta(days=36_500)


def parse_duration(text: Json) -> timedelta | None:
    """Read ``90s``, ``30m``, ``2h`` or ``1d``; None if the text is none of them, or zero."""
    match = _DURATION.fullmatch(text.strip()) if isinstance(text, str) else None
    if match is None or len(match[1]) > 9:
        return None
    return timedelta(**{_UNITS[match[2]]: int(match[1])}) or None


def parse_span(text: Json) -> timedelta | None:
    """Return a duration that can be added to the current time: None also above 36,500 days."""
    found = parse_duration(text)
    return found if found and found <= _LONGEST_SPAN else None
