"""Shell-style glob patterns for names: `*`, `?` and `[...]`, case-sensitive."""

import re
from fnmatch import translate
from functools import lru_cache

#: Maximum length of a pattern, in characters.
MAX_GLOB_LENGTH = 1_000

#: Character ranges beyond Latin-1 take milliseconds to compile, so they are refused.
WIDE_RANGE = re.compile(r"\[.*-[^\x00-\xff]", re.DOTALL)


def is_glob(text: str) -> bool:
    """Return whether the text contains a wildcard."""
    return any(character in text for character in "*?[")


def glob_problem(text: str) -> str:
    """Return why a pattern is not valid, or an empty string if it is."""
    if len(text) > MAX_GLOB_LENGTH:
        return f"has {len(text)} characters, and a pattern has at most {MAX_GLOB_LENGTH}"
    if WIDE_RANGE.search(text):
        return "has a range of characters beyond ÿ"
    return ""


def matches_glob(name: str, glob: str) -> bool:
    """Return whether a name matches a pattern. Takes time linear in both lengths."""
    return _pattern(glob).match(name) is not None if is_glob(glob) else name == glob


# fnmatch caches fewer patterns than one request may have, and would evict them repeatedly.
@lru_cache(maxsize=4096)
def _pattern(glob: str) -> re.Pattern[str]:
    return re.compile(translate(glob))
