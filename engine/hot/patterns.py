"""Regular expressions with Python's meaning, and with a bound on what a match may cost.

Python's own engine is asked wherever the form of a pattern and the length of the text say that it
cannot take long. The others are walked here with a memory of the states that have failed: it tries
the same ways in the same order, and none of them twice, so ``(a+)+$`` takes as many steps as the
text has letters. Only patterns that refer back to groups can still be costly; steps bound them.
"""

import re
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from functools import lru_cache
from math import inf
from re import _parser
from typing import Any

from engine.hot.effort import Effort
from engine.hot.pattern_program import Program, TooLarge, make_program
from engine.hot.pattern_walk import Found, walk

#: The longest pattern, in characters.
LONGEST = 10_000

#: So many ways through a text are left to Python's own engine: a few milliseconds.
FEW_WAYS = 200_000

#: Ways of Python's engine, and moves of ours, that count as one step of an `Effort`.
WAYS_IN_A_STEP = 2_000
MOVES_IN_A_STEP = 8

#: So much of a pattern is read and compiled in one step, and looked through in another.
READ_IN_A_STEP = 5
SEEN_IN_A_STEP = 200

#: Flags that say what matches; the others say how a pattern is written.
MATCHING = re.UNICODE | re.ASCII | re.IGNORECASE | re.MULTILINE | re.DOTALL


class BadPattern(Exception):
    """It is not a regular expression, or too large; the text says why."""


@dataclass(frozen=True, slots=True)
class Pattern:
    """A pattern that was read. text: as written. size: of the tree. Its methods raise TooMuch."""

    text: str
    compiled: re.Pattern[str]
    tree: Any
    flags: int
    size: int
    #: Once it was needed.
    _programs: list[Program] = field(default_factory=list, compare=False, repr=False)

    def fullmatch(self, text: str, effort: Effort) -> bool:
        """Whether the whole text matches."""
        if self._is_cheap(len(text), 1, effort):
            return self.compiled.fullmatch(text) is not None
        return self._walk(text, 0, effort, whole=True) is not None

    def search(self, text: str, effort: Effort) -> "re.Match[str] | Found | None":
        return next(self.each(text, effort), None)

    def each(self, text: str, effort: Effort) -> "Iterator[re.Match[str] | Found]":
        """The matches that do not overlap, from the left; an empty one is not at the end of an
        empty one."""
        if self._is_cheap(len(text), len(text) + 1, effort):
            yield from self.compiled.finditer(text)
            return
        start, found = 0, None
        while start <= len(text):
            empty = found is not None and found.start() == found.end()
            found = self._walk(text, start, effort, not_empty=empty)
            if found is None:
                return
            yield found
            start = found.end()

    def _walk(
        self, text: str, start: int, effort: Effort, *, whole: bool = False, not_empty: bool = False
    ) -> Found | None:
        def spend(moves: int) -> None:
            effort.step(1 + moves // MOVES_IN_A_STEP)

        if not self._programs:
            self._programs.append(_program(self.text, self.flags, spend))
        return walk(self._programs[0], text, start, spend, whole=whole, not_empty=not_empty)

    def _is_cheap(self, length: int, starts: int, effort: Effort) -> bool:
        """Whether Python's engine may be asked; what that costs is counted."""
        effort.step(self.size // SEEN_IN_A_STEP)
        try:
            ways = _ways(self.tree, length) * starts
        except RecursionError:
            return False
        if ways > FEW_WAYS:
            return False
        effort.step(1 + int(ways) // WAYS_IN_A_STEP)
        return True


def read_pattern(text: str, effort: Effort, flags: int = 0) -> Pattern:
    """Read a regular expression of Python; flags are those of re. Raises BadPattern, TooMuch."""
    if len(text) > LONGEST:
        raise BadPattern(f"A regular expression has at most {LONGEST} characters.")
    try:
        tree = _parsed(text, flags)
        size = _size(tree)
        effort.step(size // READ_IN_A_STEP)
        compiled = _compiled(text, flags)
    except (re.error, RecursionError, OverflowError) as error:
        shown = text if len(text) <= 200 else text[:200] + "..."
        raise BadPattern(f'The pattern "{shown}" is not a regular expression: {error}') from None
    return Pattern(text, compiled, tree, compiled.flags & MATCHING, size)


@lru_cache(maxsize=256)
def _parsed(text: str, flags: int) -> Any:
    return _parser.parse(text, flags)


@lru_cache(maxsize=256)
def _compiled(text: str, flags: int) -> re.Pattern[str]:
    return re.compile(text, flags)


def _size(tree: Any) -> int:
    """How much there is to compile. Python writes down every letter of a wide class."""
    size, waiting = 0, [tree]
    while waiting:
        one = waiting.pop()
        size += 1
        if isinstance(one, tuple) and len(one) == 2 and str(one[0]) == "RANGE":
            size += min(one[1][1] - one[1][0], 65_536) // 64
        elif isinstance(one, tuple | list | _parser.SubPattern):
            waiting += one
    return size


def _program(text: str, flags: int, spend: Callable[[int], None]) -> Program:
    """spend(moves) is told what making it comes to, also where it is there already."""
    try:
        program = _made(text, flags)
    except (TooLarge, RecursionError):
        raise BadPattern(f'The pattern "{text[:200]}" is too large for the text.') from None
    spend(program.cost)
    return program


@lru_cache(maxsize=64)
def _made(text: str, flags: int) -> Program:
    return make_program(_parsed(text, flags), flags)


def _ways(tree: Any, length: int) -> float:
    """At most in how many ways a tree can be tried from one place in a text of this length."""
    ways = 1.0
    for op, given in tree:
        ways *= _ways_of(str(op), given, length)
    return ways


def _ways_of(op: str, given: Any, length: int) -> float:
    match op:
        case "MAX_REPEAT" | "MIN_REPEAT" | "POSSESSIVE_REPEAT":
            least, most, tree = given
            return _ways_of_rounds(least, min(int(most), length + 1), _ways(tree, length))
        case "SUBPATTERN":
            return _ways(given[-1], length)
        case "BRANCH":
            return sum(_ways(one, length) for one in given[1])
        case "ATOMIC_GROUP":
            return _ways(given, length)
        case "ASSERT" | "ASSERT_NOT":
            return _ways(given[1], length) + 1
        case "GROUPREF":
            return length + 1
        case "GROUPREF_EXISTS":
            return sum(_ways(one, length) for one in given[1:] if one is not None) + 1
        case _:
            return 1


def _ways_of_rounds(least: int, most: int, inside: float) -> float:
    if inside == 1 or most <= 1:
        return inside * max(1, most - least + 1)
    return inf if most > 8 or inside > FEW_WAYS else inside**most
