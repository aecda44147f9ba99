"""Patterns of names, as a shell has them: ``*``, ``?`` and ``[...]``. Case counts."""

import re
from fnmatch import translate
from functools import lru_cache

#: The longest pattern, in characters.
LONGEST = 1_000

#: To make a set of letters beyond these takes milliseconds, each time.
WIDE_RANGE = re.compile(r"\[.*-[^\x00-\xff]", re.DOTALL)


def is_glob(text: str) -> bool:
    """Whether a text may mean another name than itself."""
    return any(letter in text for letter in "*?[")


def bad_glob(text: str) -> str:
    """Return why a pattern cannot be used, or an empty text."""
    if len(text) > LONGEST:
        return f"has {len(text)} characters, and a pattern has at most {LONGEST}"
    if WIDE_RANGE.search(text):
        return "has a range of letters beyond ÿ"
    return ""


def matches(name: str, glob: str) -> bool:
    """Whether a name is meant by a pattern. Takes as long as both together, whatever they are."""
    return _pattern(glob).match(name) is not None if is_glob(glob) else name == glob


# fnmatch itself keeps fewer than one change may have, and would turn them over all the time.
@lru_cache(maxsize=4096)
def _pattern(glob: str) -> re.Pattern[str]:
    return re.compile(translate(glob))
