"""Shell-style glob patterns for names: `*`, `?` and `[...]`, case-sensitive."""

import re
from collections.abc import Iterable, Sequence
from fnmatch import translate
from functools import lru_cache

from engine.errors import Findings
from engine.hot.syntax.keyed_names import other_names

#: Maximum length of a pattern, in characters.
MAX_GLOB_LENGTH = 1_000
#: Maximum number of patterns in one list, repetitions included.
MAX_GLOBS = 200

#: Character ranges beyond Latin-1 take milliseconds to compile, so they are refused.
WIDE_RANGE = re.compile(r"\[.*-[^\x00-\xff]", re.DOTALL)

#: The key in `web["a"]`, which is not a range of characters.
_KEY = re.compile(r'\["([^*?\[\]"]+)"\]')


def is_glob(text: str) -> bool:
    """Return whether the text contains a wildcard. The name `web["a"]` has none."""
    if not any(character in text for character in "*?["):
        return False
    return any(character in _KEY.sub("", text) for character in "*?[")


def glob_problem(text: str) -> str:
    """Return why a pattern is not valid, or an empty string if it is."""
    if len(text) > MAX_GLOB_LENGTH:
        return f"has {len(text)} characters, and a pattern has at most {MAX_GLOB_LENGTH}"
    if WIDE_RANGE.search(text):
        return "has a range of characters beyond ÿ"
    return ""


def matches_glob(name: str, glob: str) -> bool:
    """Return whether a name matches a pattern, or `web` or `web-a` does for `web["a"]`. Takes time
    linear in both lengths.
    """
    names = (name, *other_names(name))
    if not is_glob(glob):
        return glob in names
    pattern = _pattern(glob)
    return any(pattern.match(one) is not None for one in names)


def globs_overlap(first: str, second: str) -> bool:
    """Return whether a name can match both patterns. A range counts as any character, so the result
    can be True for patterns that no name matches together.
    """
    ones, others = _TOKEN.findall(first), _TOKEN.findall(second)
    pending, seen = [(0, 0)], {(0, 0)}
    while pending:
        here, there = pending.pop()
        if here == len(ones) and there == len(others):
            return True
        for following in _steps(ones[here : here + 1], others[there : there + 1]):
            place = (here + following[0], there + following[1])
            if place not in seen:
                seen.add(place)
                pending.append(place)
    return False


#: One wildcard, range or character of a pattern.
_TOKEN = re.compile(r"\[[!^]?\]?[^\]]*\]|.", re.DOTALL)


def _steps(one: Sequence[str], other: Sequence[str]) -> list[tuple[int, int]]:
    """Return by how many tokens each pattern can advance. one, other: the next token, or none."""
    steps = []
    if one == ["*"]:
        steps += [(1, 0), *([(0, 1)] if other else [])]
    if other == ["*"]:
        steps += [(0, 1), *([(1, 0)] if one else [])]
    if one and other and (one == other or is_glob(one[0]) or is_glob(other[0])):
        steps.append((1, 1))
    return steps


# fnmatch caches fewer patterns than one request may have, and would evict them repeatedly.
@lru_cache(maxsize=4096)
def _pattern(glob: str) -> re.Pattern[str]:
    return re.compile(translate(_KEY.sub(r'[[]"\1"[]]', glob)))


class NamePatterns:
    """Names and patterns. A name is found by one look-up; patterns are matched one by one."""

    def __init__(self, texts: Iterable[str]) -> None:
        texts = list(texts)
        self._names = frozenset(text for text in texts if not is_glob(text))
        self._globs = tuple(dict.fromkeys(text for text in texts if is_glob(text)))

    def __bool__(self) -> bool:
        return bool(self._names or self._globs)

    def matches(self, name: str) -> bool:
        if not self._names.isdisjoint((name, *other_names(name))):
            return True
        return any(matches_glob(name, glob) for glob in self._globs)


def check_globs(
    texts: Iterable[tuple[str, str]], what: str, place: str, findings: Findings
) -> None:
    """Add findings for patterns that are too long or too many: each is matched against each name.

    texts: (place, text) of each pattern or name. what: what the patterns are of, in the plural.
    """
    globs = [(where, text) for where, text in texts if is_glob(text)]
    for where, text in globs[:MAX_GLOBS]:
        if reason := glob_problem(text):
            findings.add(where, f"the pattern {reason}", "Write a shorter one.")
    if len(globs) > MAX_GLOBS:
        reason = f"There are {len(globs)} patterns of {what}; the maximum is {MAX_GLOBS}."
        findings.add(place, reason, f"Use fewer patterns, or the names of the {what}.")
