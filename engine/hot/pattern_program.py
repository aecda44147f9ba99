"""From a regular expression as Python reads it to a program that pattern_walk.py walks."""

import re
from dataclasses import dataclass, field
from enum import Enum, auto
from re import _parser
from typing import Any

#: So many parts of a pattern are written; counted repetitions are written out.
LARGEST = 20_000
#: Moves that it takes to make one test that is not there yet.
MOVES_FOR_A_TEST = 12

NOTHING = re.compile("")


class TooLarge(Exception):
    """More than `LARGEST` parts would be written."""


class Do(Enum):
    """What is done at a place in the text.

    TEST: go on where ``test`` has matched. EITHER: try ``to``, then ``other``. SAVE: keep the place
    for a group. LOOK: go on if ``inside`` matches, or does not (``negated``), here or ``back``
    characters before. ATOMIC: go on after the first match of ``inside``. SAME: go on after the
    group's text. IF_GROUP: go on if the group matched, else to ``to``. NOTE: keep the place, where
    a round begins. AGAIN: go ``to`` if the round came further, else to ``other``. END: it matches.
    """

    TEST = auto()
    EITHER = auto()
    GO = auto()
    SAVE = auto()
    LOOK = auto()
    ATOMIC = auto()
    SAME = auto()
    IF_GROUP = auto()
    NOTE = auto()
    AGAIN = auto()
    END = auto()


@dataclass(slots=True)
class Move:
    do: Do
    to: int = 0
    other: int = 0
    group: int = 0
    test: re.Pattern[str] = NOTHING
    inside: "list[Move]" = field(default_factory=list)
    negated: bool = False
    back: int = -1
    any_case: bool = False


@dataclass(frozen=True, slots=True)
class Program:
    """refers_back: what was tried depends on what groups hold. notes: how many NOTE keeps.
    names: of groups, with numbers. cost: of making it, in moves."""

    moves: list[Move]
    groups: int
    notes: int
    refers_back: bool
    names: dict[str, int]
    cost: int


def make_program(tree: Any, flags: int) -> Program:
    """tree: of re's own reader. Raises TooLarge."""
    parts = _parts(tree)
    if parts > LARGEST:
        raise TooLarge
    writer = _Writer()
    moves: list[Move] = []
    writer.write(moves, tree, flags)
    moves.append(Move(Do.END))
    names = dict(tree.state.groupdict)
    cost = parts + MOVES_FOR_A_TEST * len(writer.tests)
    return Program(moves, tree.state.groups, writer.notes, writer.refers_back, names, cost)


def _parts(tree: Any) -> int:
    """How many are written, without writing them."""
    count: int = len(tree)
    return count + sum(_parts_inside(str(op), given) for op, given in tree)


def _parts_inside(op: str, given: Any) -> int:
    match op:
        case "MAX_REPEAT" | "MIN_REPEAT" | "POSSESSIVE_REPEAT":
            least, most, tree = given
            rounds: int = least + 1 if most == _parser.MAXREPEAT else most
            return rounds * _parts(tree)
        case "SUBPATTERN":
            return _parts(given[-1])
        case "BRANCH":
            return sum(map(_parts, given[1]))
        case "ATOMIC_GROUP":
            return _parts(given)
        case "ASSERT" | "ASSERT_NOT":
            return _parts(given[1])
        case "GROUPREF_EXISTS":
            return sum(_parts(one) for one in given[1:] if one is not None)
        case _:
            return 0


class _Writer:
    def __init__(self) -> None:
        self.refers_back = False
        self.notes = 0
        self.tests: dict[tuple[str, int], re.Pattern[str]] = {}

    def write(self, moves: list[Move], tree: Any, flags: int) -> None:
        for op, given in tree:
            WRITERS[str(op)](self, moves, given, flags)

    def _inside(self, tree: Any, flags: int) -> list[Move]:
        moves: list[Move] = []
        self.write(moves, tree, flags)
        moves.append(Move(Do.END))
        return moves

    def _test(self, source: str, flags: int) -> Move:
        """A test of one character, or of a place, which Python's engine makes."""
        if (test := self.tests.get((source, flags))) is None:
            test = self.tests[source, flags] = re.compile(source, flags)
        return Move(Do.TEST, test=test)

    def literal(self, moves: list[Move], given: Any, flags: int) -> None:
        moves.append(self._test(re.escape(chr(given)), flags))

    def not_literal(self, moves: list[Move], given: Any, flags: int) -> None:
        moves.append(self._test(f"[^{_in_class(given)}]", flags))

    def any(self, moves: list[Move], given: Any, flags: int) -> None:
        moves.append(self._test(".", flags))

    def in_class(self, moves: list[Move], given: Any, flags: int) -> None:
        moves.append(self._test("[" + "".join(_class_item(*item) for item in given) + "]", flags))

    def at(self, moves: list[Move], given: Any, flags: int) -> None:
        moves.append(self._test(PLACES[str(given)], flags))

    def subpattern(self, moves: list[Move], given: Any, flags: int) -> None:
        group, added, removed, tree = given
        if group is not None:
            moves.append(Move(Do.SAVE, to=2 * group))
        self.write(moves, tree, (flags | added) & ~removed)
        if group is not None:
            moves.append(Move(Do.SAVE, to=2 * group + 1))

    def branch(self, moves: list[Move], given: Any, flags: int) -> None:
        ends = []
        *earlier, last = given[1]
        for tree in earlier:
            either = Move(Do.EITHER, to=len(moves) + 1)
            moves.append(either)
            self.write(moves, tree, flags)
            ends.append(Move(Do.GO))
            moves.append(ends[-1])
            either.other = len(moves)
        self.write(moves, last, flags)
        for end in ends:
            end.to = len(moves)

    def repeat(
        self, moves: list[Move], given: Any, flags: int, lazy: bool = False, sure: bool = False
    ) -> None:
        """lazy: as seldom as possible. sure: the first match of each round is kept."""
        least, most, tree = given
        for _ in range(least):
            self._round(moves, tree, flags, sure)
        endless = most == _parser.MAXREPEAT
        leaving: list[tuple[Move, Move]] = []
        for _ in range(1 if endless else most - least):
            either, back = Move(Do.EITHER, to=len(moves) + 1), Move(Do.GO, to=len(moves))
            moves.append(either)
            self._optional_round(moves, tree, flags, sure, back)
            back.to = back.to if endless else len(moves) + 1
            moves.append(back)
            leaving.append((either, back))
        for either, back in leaving:
            either.other = back.other = len(moves)
            if lazy:
                either.to, either.other = either.other, either.to

    def _round(self, moves: list[Move], tree: Any, flags: int, sure: bool) -> None:
        if sure:
            self.atomic(moves, tree, flags)
        else:
            self.write(moves, tree, flags)

    def _optional_round(
        self, moves: list[Move], tree: Any, flags: int, sure: bool, back: Move
    ) -> None:
        """A round that may be left out. After one that was empty there is no other, as in re."""
        if tree.getwidth()[0] == 0:
            back.do, back.group = Do.AGAIN, self.notes
            moves.append(Move(Do.NOTE, to=self.notes))
            self.notes += 1
        self._round(moves, tree, flags, sure)

    def lazy_repeat(self, moves: list[Move], given: Any, flags: int) -> None:
        self.repeat(moves, given, flags, lazy=True)

    def possessive_repeat(self, moves: list[Move], given: Any, flags: int) -> None:
        inside: list[Move] = []
        self.repeat(inside, given, flags, sure=True)
        inside.append(Move(Do.END))
        moves.append(Move(Do.ATOMIC, inside=inside))

    def atomic(self, moves: list[Move], given: Any, flags: int) -> None:
        moves.append(Move(Do.ATOMIC, inside=self._inside(given, flags)))

    def look(self, moves: list[Move], given: Any, flags: int, negated: bool = False) -> None:
        direction, tree = given
        back = -1 if direction > 0 else tree.getwidth()[0]
        inside = self._inside(tree, flags)
        moves.append(Move(Do.LOOK, inside=inside, negated=negated, back=back))

    def look_not(self, moves: list[Move], given: Any, flags: int) -> None:
        self.look(moves, given, flags, negated=True)

    def same(self, moves: list[Move], given: Any, flags: int) -> None:
        self.refers_back = True
        moves.append(Move(Do.SAME, group=given, any_case=bool(flags & re.IGNORECASE)))

    def if_group(self, moves: list[Move], given: Any, flags: int) -> None:
        self.refers_back = True
        group, yes, no = given
        asked, end = Move(Do.IF_GROUP, group=group), Move(Do.GO)
        moves.append(asked)
        self.write(moves, yes, flags)
        moves.append(end)
        asked.to = len(moves)
        self.write(moves, no or (), flags)
        end.to = len(moves)

    def never(self, moves: list[Move], given: Any, flags: int) -> None:
        moves.append(self._test("(?!)", flags))


WRITERS = {
    "LITERAL": _Writer.literal,
    "NOT_LITERAL": _Writer.not_literal,
    "ANY": _Writer.any,
    "IN": _Writer.in_class,
    "AT": _Writer.at,
    "SUBPATTERN": _Writer.subpattern,
    "BRANCH": _Writer.branch,
    "MAX_REPEAT": _Writer.repeat,
    "MIN_REPEAT": _Writer.lazy_repeat,
    "POSSESSIVE_REPEAT": _Writer.possessive_repeat,
    "ATOMIC_GROUP": _Writer.atomic,
    "ASSERT": _Writer.look,
    "ASSERT_NOT": _Writer.look_not,
    "GROUPREF": _Writer.same,
    "GROUPREF_EXISTS": _Writer.if_group,
    "FAILURE": _Writer.never,
}

PLACES = {
    "AT_BEGINNING": "^",
    "AT_BEGINNING_STRING": r"\A",
    "AT_BOUNDARY": r"\b",
    "AT_NON_BOUNDARY": r"\B",
    "AT_END": "$",
    "AT_END_STRING": r"\Z",
}

CATEGORIES = {
    "CATEGORY_DIGIT": r"\d",
    "CATEGORY_NOT_DIGIT": r"\D",
    "CATEGORY_SPACE": r"\s",
    "CATEGORY_NOT_SPACE": r"\S",
    "CATEGORY_WORD": r"\w",
    "CATEGORY_NOT_WORD": r"\W",
}


def _class_item(op: object, given: Any) -> str:
    match str(op):
        case "NEGATE":
            return "^"
        case "RANGE":
            return f"{_in_class(given[0])}-{_in_class(given[1])}"
        case "CATEGORY":
            return CATEGORIES[str(given)]
        case _:
            return _in_class(given)


def _in_class(code: int) -> str:
    """A character as it is written inside brackets."""
    return f"\\U{code:08x}"
