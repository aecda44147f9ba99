"""Regular expressions with Python's meaning and a bounded cost.

Python's own engine runs a pattern if the form of the pattern and the length of the text guarantee
that it is fast. All others run in matcher.py, which remembers failed states: it tries the same
alternatives in the same order and none of them twice, so `(a+)+$` takes time linear in the text.
Only patterns with backreferences can still be expensive; the cost budget limits them.
"""

import re
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from functools import lru_cache
from math import inf
from re import _parser
from typing import Any

from engine.errors import beginning_of
from engine.hot.functions.cost_budget import CostBudget
from engine.hot.patterns.matcher import Match, find_match
from engine.hot.patterns.program import PatternTooLarge, Program, compile_program

#: Maximum length of a pattern, in characters.
MAX_PATTERN_LENGTH = 10_000

#: Maximum number of paths through a text that Python's engine may try: a few milliseconds.
MAX_PYTHON_PATHS = 200_000

#: Paths of Python's engine, and instructions of matcher.py, in one step of a CostBudget.
PATHS_PER_STEP = 2_000
INSTRUCTIONS_PER_STEP = 8

#: Parse tree nodes parsed and compiled in one step, and inspected in one step.
COMPILED_PER_STEP = 5
INSPECTED_PER_STEP = 200

#: Flags that affect matching; the others affect only the syntax.
MATCH_FLAGS = re.UNICODE | re.ASCII | re.IGNORECASE | re.MULTILINE | re.DOTALL


class InvalidPattern(Exception):
    """Not a regular expression, or too large; the message has the reason."""


@dataclass(frozen=True, slots=True)
class Pattern:
    """A parsed pattern. size: number of nodes of the tree. Its methods raise BudgetExceeded."""

    text: str
    compiled: re.Pattern[str]
    tree: Any
    flags: int
    size: int
    #: The compiled program, created when it is first needed.
    _programs: list[Program] = field(default_factory=list, compare=False, repr=False)

    def fullmatch(self, text: str, budget: CostBudget) -> bool:
        """Return whether the whole text matches."""
        if self._is_cheap(len(text), 1, budget):
            return self.compiled.fullmatch(text) is not None
        return self._find_match(text, 0, budget, whole=True) is not None

    def search(self, text: str, budget: CostBudget) -> "re.Match[str] | Match | None":
        return next(self.find_all(text, budget), None)

    def find_all(self, text: str, budget: CostBudget) -> "Iterator[re.Match[str] | Match]":
        """Yield all non-overlapping matches from the left, as re.finditer does."""
        if self._is_cheap(len(text), len(text) + 1, budget):
            yield from self.compiled.finditer(text)
            return
        start, found = 0, None
        while start <= len(text):
            empty = found is not None and found.start() == found.end()
            found = self._find_match(text, start, budget, not_empty=empty)
            if found is None:
                return
            yield found
            start = found.end()

    def _find_match(
        self,
        text: str,
        start: int,
        budget: CostBudget,
        *,
        whole: bool = False,
        not_empty: bool = False,
    ) -> Match | None:
        def spend(instructions: int) -> None:
            budget.spend_steps(1 + instructions // INSTRUCTIONS_PER_STEP)

        if not self._programs:
            self._programs.append(_program(self.text, self.flags, spend))
        return find_match(self._programs[0], text, start, spend, whole=whole, not_empty=not_empty)

    def _is_cheap(self, length: int, starts: int, budget: CostBudget) -> bool:
        """Return whether Python's engine may run the pattern, and spend the cost if so."""
        budget.spend_steps(self.size // INSPECTED_PER_STEP)
        try:
            ways = _count_paths(self.tree, length) * starts
        except RecursionError:
            return False
        if ways > MAX_PYTHON_PATHS:
            return False
        budget.spend_steps(1 + int(ways) // PATHS_PER_STEP)
        return True


def read_pattern(text: str, budget: CostBudget, flags: int = 0) -> Pattern:
    """Parse a regular expression. flags: those of `re`. Raises InvalidPattern, BudgetExceeded."""
    if len(text) > MAX_PATTERN_LENGTH:
        raise InvalidPattern(f"A regular expression has at most {MAX_PATTERN_LENGTH} characters.")
    try:
        tree = _parse(text, flags)
        size = _tree_size(tree)
        budget.spend_steps(size // COMPILED_PER_STEP)
        compiled = _compile(text, flags)
    except (re.error, RecursionError, OverflowError) as error:
        raise InvalidPattern(
            f'The pattern "{beginning_of(text)}" is not a regular expression: {error}'
        ) from None
    return Pattern(text, compiled, tree, compiled.flags & MATCH_FLAGS, size)


@lru_cache(maxsize=256)
def _parse(text: str, flags: int) -> Any:
    return _parser.parse(text, flags)


@lru_cache(maxsize=256)
def _compile(text: str, flags: int) -> re.Pattern[str]:
    return re.compile(text, flags)


def _tree_size(tree: Any) -> int:
    """Return the size of a parse tree. Python compiles every character of a wide class."""
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
    """Return the compiled program. spend(instructions) is called with the cost of compiling also if
    the program is cached, so that the cost does not depend on earlier calls.
    """
    try:
        program = _cached_program(text, flags)
    except (PatternTooLarge, RecursionError):
        raise InvalidPattern(
            f'The pattern "{beginning_of(text)}" is too large for the text.'
        ) from None
    spend(program.cost)
    return program


@lru_cache(maxsize=64)
def _cached_program(text: str, flags: int) -> Program:
    return compile_program(_parse(text, flags), flags)


def _count_paths(tree: Any, length: int) -> float:
    """Return the maximum number of paths through a tree from one position in a text of this
    length.
    """
    ways = 1.0
    for op, given in tree:
        ways *= _count_node_paths(str(op), given, length)
    return ways


def _count_node_paths(op: str, given: Any, length: int) -> float:
    match op:
        case "MAX_REPEAT" | "MIN_REPEAT" | "POSSESSIVE_REPEAT":
            min_rounds, max_rounds, tree = given
            return _count_repeat_paths(
                min_rounds, min(int(max_rounds), length + 1), _count_paths(tree, length)
            )
        case "SUBPATTERN":
            return _count_paths(given[-1], length)
        case "BRANCH":
            return sum(_count_paths(one, length) for one in given[1])
        case "ATOMIC_GROUP":
            return _count_paths(given, length)
        case "ASSERT" | "ASSERT_NOT":
            return _count_paths(given[1], length) + 1
        case "GROUPREF":
            return length + 1
        case "GROUPREF_EXISTS":
            return sum(_count_paths(one, length) for one in given[1:] if one is not None) + 1
        case _:
            return 1


def _count_repeat_paths(min_rounds: int, max_rounds: int, inside: float) -> float:
    if inside == 1 or max_rounds <= 1:
        return inside * max(1, max_rounds - min_rounds + 1)
    return inf if max_rounds > 8 or inside > MAX_PYTHON_PATHS else inside**max_rounds
