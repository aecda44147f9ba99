"""Compiles a regular expression, as parsed by Python's `re`, to a program for matcher.py."""

import re
from dataclasses import dataclass, field
from enum import Enum, auto
from re import _parser
from typing import Any

#: Maximum number of instructions; counted repetitions are unrolled.
MAX_PARTS = 20_000
#: Cost of compiling a new test, in instructions.
INSTRUCTIONS_PER_TEST = 12

EMPTY_TEST = re.compile("")


class PatternTooLarge(Exception):
    """The program would have more than `MAX_PARTS` instructions."""


class Opcode(Enum):
    """Effect of an instruction at a position in the text.

    - TEST: continue where `test` matched.
    - SPLIT: try `to`, then `other`.
    - JUMP: continue at `to`.
    - SAVE: store the position as a boundary of a group.
    - LOOKAROUND: continue if `inside` matches, or does not (`negated`), here or `back` characters
      before.
    - ATOMIC: continue after the first match of `inside`.
    - BACKREFERENCE: continue after the group's text.
    - IF_GROUP: continue if the group matched, else at `to`.
    - MARK_ROUND: store the position at which a round of a repetition starts.
    - REPEAT_ROUND: continue at `to` if the round consumed text, else at `other`.
    - MATCH: the program matches.
    """

    TEST = auto()
    SPLIT = auto()
    JUMP = auto()
    SAVE = auto()
    LOOKAROUND = auto()
    ATOMIC = auto()
    BACKREFERENCE = auto()
    IF_GROUP = auto()
    MARK_ROUND = auto()
    REPEAT_ROUND = auto()
    MATCH = auto()


@dataclass(slots=True)
class Instruction:
    do: Opcode
    to: int = 0
    other: int = 0
    group: int = 0
    test: re.Pattern[str] = EMPTY_TEST
    inside: "list[Instruction]" = field(default_factory=list)
    negated: bool = False
    back: int = -1
    any_case: bool = False


@dataclass(frozen=True, slots=True)
class Program:
    """refers_back: the pattern has backreferences, so that a state depends on the groups. notes:
    number of MARK_ROUND slots. names: group numbers by name. cost: of compiling, in instructions.
    """

    instructions: list[Instruction]
    groups: int
    notes: int
    refers_back: bool
    names: dict[str, int]
    cost: int


def compile_program(tree: Any, flags: int) -> Program:
    """Compile the parse tree of Python's `re`. Raises PatternTooLarge."""
    parts = _count_parts(tree)
    if parts > MAX_PARTS:
        raise PatternTooLarge
    writer = _Compiler()
    instructions: list[Instruction] = []
    writer.write(instructions, tree, flags)
    instructions.append(Instruction(Opcode.MATCH))
    names = dict(tree.state.groupdict)
    cost = parts + INSTRUCTIONS_PER_TEST * len(writer.tests)
    return Program(instructions, tree.state.groups, writer.notes, writer.refers_back, names, cost)


def _count_parts(tree: Any) -> int:
    """Return the number of instructions of a tree without compiling it."""
    count: int = len(tree)
    return count + sum(_count_inner_parts(str(op), given) for op, given in tree)


def _count_inner_parts(op: str, given: Any) -> int:
    match op:
        case "MAX_REPEAT" | "MIN_REPEAT" | "POSSESSIVE_REPEAT":
            min_rounds, max_rounds, tree = given
            rounds: int = min_rounds + 1 if max_rounds == _parser.MAXREPEAT else max_rounds
            return rounds * _count_parts(tree)
        case "SUBPATTERN":
            return _count_parts(given[-1])
        case "BRANCH":
            return sum(map(_count_parts, given[1]))
        case "ATOMIC_GROUP":
            return _count_parts(given)
        case "ASSERT" | "ASSERT_NOT":
            return _count_parts(given[1])
        case "GROUPREF_EXISTS":
            return sum(_count_parts(one) for one in given[1:] if one is not None)
        case _:
            return 0


class _Compiler:
    def __init__(self) -> None:
        self.refers_back = False
        self.notes = 0
        self.tests: dict[tuple[str, int], re.Pattern[str]] = {}

    def write(self, instructions: list[Instruction], tree: Any, flags: int) -> None:
        for op, given in tree:
            COMPILERS[str(op)](self, instructions, given, flags)

    def _inside(self, tree: Any, flags: int) -> list[Instruction]:
        instructions: list[Instruction] = []
        self.write(instructions, tree, flags)
        instructions.append(Instruction(Opcode.MATCH))
        return instructions

    def _test(self, source: str, flags: int) -> Instruction:
        """Return the test of one character or position, which Python's engine evaluates."""
        if (test := self.tests.get((source, flags))) is None:
            test = self.tests[source, flags] = re.compile(source, flags)
        return Instruction(Opcode.TEST, test=test)

    def literal(self, instructions: list[Instruction], given: Any, flags: int) -> None:
        instructions.append(self._test(re.escape(chr(given)), flags))

    def not_literal(self, instructions: list[Instruction], given: Any, flags: int) -> None:
        instructions.append(self._test(f"[^{_in_class(given)}]", flags))

    def any(self, instructions: list[Instruction], given: Any, flags: int) -> None:
        instructions.append(self._test(".", flags))

    def character_class(self, instructions: list[Instruction], given: Any, flags: int) -> None:
        instructions.append(
            self._test("[" + "".join(_class_item(*item) for item in given) + "]", flags)
        )

    def at(self, instructions: list[Instruction], given: Any, flags: int) -> None:
        instructions.append(self._test(POSITION_TESTS[str(given)], flags))

    def subpattern(self, instructions: list[Instruction], given: Any, flags: int) -> None:
        group, added, removed, tree = given
        if group is not None:
            instructions.append(Instruction(Opcode.SAVE, to=2 * group))
        self.write(instructions, tree, (flags | added) & ~removed)
        if group is not None:
            instructions.append(Instruction(Opcode.SAVE, to=2 * group + 1))

    def branch(self, instructions: list[Instruction], given: Any, flags: int) -> None:
        ends = []
        *earlier, last = given[1]
        for tree in earlier:
            either = Instruction(Opcode.SPLIT, to=len(instructions) + 1)
            instructions.append(either)
            self.write(instructions, tree, flags)
            ends.append(Instruction(Opcode.JUMP))
            instructions.append(ends[-1])
            either.other = len(instructions)
        self.write(instructions, last, flags)
        for end in ends:
            end.to = len(instructions)

    def repeat(
        self,
        instructions: list[Instruction],
        given: Any,
        flags: int,
        lazy: bool = False,
        sure: bool = False,
    ) -> None:
        """Compile a repetition. lazy: as few rounds as possible. sure: each round is atomic."""
        min_rounds, max_rounds, tree = given
        for _ in range(min_rounds):
            self._round(instructions, tree, flags, sure)
        endless = max_rounds == _parser.MAXREPEAT
        leaving: list[tuple[Instruction, Instruction]] = []
        for _ in range(1 if endless else max_rounds - min_rounds):
            either, back = (
                Instruction(Opcode.SPLIT, to=len(instructions) + 1),
                Instruction(Opcode.JUMP, to=len(instructions)),
            )
            instructions.append(either)
            self._optional_round(instructions, tree, flags, sure, back)
            back.to = back.to if endless else len(instructions) + 1
            instructions.append(back)
            leaving.append((either, back))
        for either, back in leaving:
            either.other = back.other = len(instructions)
            if lazy:
                either.to, either.other = either.other, either.to

    def _round(self, instructions: list[Instruction], tree: Any, flags: int, sure: bool) -> None:
        if sure:
            self.atomic(instructions, tree, flags)
        else:
            self.write(instructions, tree, flags)

    def _optional_round(
        self, instructions: list[Instruction], tree: Any, flags: int, sure: bool, back: Instruction
    ) -> None:
        """Compile a round that may be omitted. An empty round ends the repetition, as in `re`."""
        if tree.getwidth()[0] == 0:
            back.do, back.group = Opcode.REPEAT_ROUND, self.notes
            instructions.append(Instruction(Opcode.MARK_ROUND, to=self.notes))
            self.notes += 1
        self._round(instructions, tree, flags, sure)

    def lazy_repeat(self, instructions: list[Instruction], given: Any, flags: int) -> None:
        self.repeat(instructions, given, flags, lazy=True)

    def possessive_repeat(self, instructions: list[Instruction], given: Any, flags: int) -> None:
        inside: list[Instruction] = []
        self.repeat(inside, given, flags, sure=True)
        inside.append(Instruction(Opcode.MATCH))
        instructions.append(Instruction(Opcode.ATOMIC, inside=inside))

    def atomic(self, instructions: list[Instruction], given: Any, flags: int) -> None:
        instructions.append(Instruction(Opcode.ATOMIC, inside=self._inside(given, flags)))

    def lookaround(
        self, instructions: list[Instruction], given: Any, flags: int, negated: bool = False
    ) -> None:
        direction, tree = given
        back = -1 if direction > 0 else tree.getwidth()[0]
        inside = self._inside(tree, flags)
        instructions.append(
            Instruction(Opcode.LOOKAROUND, inside=inside, negated=negated, back=back)
        )

    def negative_lookaround(self, instructions: list[Instruction], given: Any, flags: int) -> None:
        self.lookaround(instructions, given, flags, negated=True)

    def backreference(self, instructions: list[Instruction], given: Any, flags: int) -> None:
        self.refers_back = True
        instructions.append(
            Instruction(Opcode.BACKREFERENCE, group=given, any_case=bool(flags & re.IGNORECASE))
        )

    def if_group(self, instructions: list[Instruction], given: Any, flags: int) -> None:
        self.refers_back = True
        group, yes, no = given
        test, end = Instruction(Opcode.IF_GROUP, group=group), Instruction(Opcode.JUMP)
        instructions.append(test)
        self.write(instructions, yes, flags)
        instructions.append(end)
        test.to = len(instructions)
        self.write(instructions, no or (), flags)
        end.to = len(instructions)

    def never(self, instructions: list[Instruction], given: Any, flags: int) -> None:
        instructions.append(self._test("(?!)", flags))


COMPILERS = {
    "LITERAL": _Compiler.literal,
    "NOT_LITERAL": _Compiler.not_literal,
    "ANY": _Compiler.any,
    "IN": _Compiler.character_class,
    "AT": _Compiler.at,
    "SUBPATTERN": _Compiler.subpattern,
    "BRANCH": _Compiler.branch,
    "MAX_REPEAT": _Compiler.repeat,
    "MIN_REPEAT": _Compiler.lazy_repeat,
    "POSSESSIVE_REPEAT": _Compiler.possessive_repeat,
    "ATOMIC_GROUP": _Compiler.atomic,
    "ASSERT": _Compiler.lookaround,
    "ASSERT_NOT": _Compiler.negative_lookaround,
    "GROUPREF": _Compiler.backreference,
    "GROUPREF_EXISTS": _Compiler.if_group,
    "FAILURE": _Compiler.never,
}

POSITION_TESTS = {
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
    """Return a character as an escape inside brackets."""
    return f"\\U{code:08x}"
