"""Parses and formats durations: ``90s``, ``30m``, ``2h`` or ``1d``.

Which time counts for a traversal is decided in engine/store/routines/1_working_time.sql.
"""

import re
from datetime import timedelta

from engine.words import Json

_DURATION = re.compile(r"(\d+)\s*([smhd])")
_UNITS = {"s": "seconds", "m": "minutes", "h": "hours", "d": "days"}
_MAX_SPAN = timedelta(days=36_500)


def parse_duration(text: Json) -> timedelta | None:
    """Read ``90s``, ``30m``, ``2h`` or ``1d``; None if the text is none of them, or zero."""
    match = _DURATION.fullmatch(text.strip()) if isinstance(text, str) else None
    if match is None or len(match[1]) > 9:
        return None
    return timedelta(**{_UNITS[match[2]]: int(match[1])}) or None


def parse_span(text: Json) -> timedelta | None:
    """Return a duration that can be added to the current time: None also above 36,500 days."""
    found = parse_duration(text)
    return found if found and found <= _MAX_SPAN else None


def format_duration(span: timedelta) -> str:
    """In the largest unit that is exact: ``2h``, ``90m`` or ``45s``."""
    seconds = span.total_seconds()
    for unit, size in (("d", 86_400), ("h", 3_600), ("m", 60)):
        if seconds >= size and seconds % size == 0:
            return f"{seconds / size:g}{unit}"
    return f"{seconds:g}s"
