"""Runs the program of a regular expression on a text, trying alternatives in the order of Python's
engine.

A state is an instruction, a position in the text and, with backreferences, the groups. A state that
was visited before cannot lead to a match, so it is not visited again.
"""

import re
from collections.abc import Callable
from dataclasses import dataclass

from engine.hot.patterns.program import Instruction, Opcode, Program

#: A group reference or an escape in a template of re.sub.
REFERENCE = re.compile(r"\\(?:g<(\w+)>|([1-9]\d?)|(.))", re.DOTALL)
ESCAPES = {"a": "\a", "f": "\f", "n": "\n", "r": "\r", "t": "\t", "v": "\v", "\\": "\\"}

#: Number of instructions after which the cost is reported.
STATES_PER_REPORT = 1_000
#: Spans copied or compared at the cost of one instruction.
SPANS_PER_INSTRUCTION = 32

#: Start and end of each group, the whole match first (-1: not matched), then the MARK_ROUND slots.
Spans = tuple[int, ...]
State = tuple[int, int, Spans]


@dataclass(frozen=True, slots=True)
class Match:
    """A match with the methods of re.Match that are used here."""

    text: str
    spans: Spans
    names: dict[str, int]

    def start(self, group: int = 0) -> int:
        return self.spans[2 * group]

    def end(self, group: int = 0) -> int:
        return self.spans[2 * group + 1]

    def group(self, group: int = 0) -> str | None:
        start, end = self.spans[2 * group : 2 * group + 2]
        return None if start < 0 or end < 0 else self.text[start:end]

    def groups(self) -> tuple[str | None, ...]:
        return tuple(self.group(one) for one in range(1, len(self.spans) // 2))

    def expand(self, template: str) -> str:
        """Expand a template of re.sub: `\\1`, `\\g<name>`."""

        def put_in(reference: re.Match[str]) -> str:
            name, number, other = reference.groups()
            if other is not None:
                return ESCAPES.get(other, "\\" + other)
            group = name or number
            known = int(group) if group.isdecimal() else self.names[group]
            return self.group(known) or ""

        return REFERENCE.sub(put_in, template)


def find_match(
    program: Program,
    text: str,
    start: int,
    spend: Callable[[int], None],
    *,
    whole: bool = False,
    not_empty: bool = False,
) -> Match | None:
    """Return the first match at or after `start`.

    whole: the match must extend from `start` to the end of the text. not_empty: an empty match at
    `start` is not accepted. spend(instructions): called with the cost.
    """
    first_note = 2 * program.groups
    none = (-1,) * (first_note + program.notes)
    known_from = 0 if program.refers_back else first_note
    costs = [1 + (len(none) - start) // SPANS_PER_INSTRUCTION for start in (known_from, 0)]
    walker = _Matcher(text, known_from, first_note, spend, *costs)
    passed: set[object] = set()
    end = len(text) if whole else None
    for at in range(start, start + 1 if whole else len(text) + 1):
        not_at = at if not_empty and at == start else None
        found = walker.match(program.instructions, at, none, passed, end, not_at)
        if found is not None:
            place, spans = found
            walker.report()
            return Match(text, (at, place, *spans[2:first_note]), program.names)
    walker.report()
    return None


@dataclass(slots=True)
class _Matcher:
    """known_from: index of the first span that is part of a state. first_note: index of the first
    MARK_ROUND slot. each, copy: cost of a state and of copying the spans, in instructions.
    """

    text: str
    known_from: int
    first_note: int
    spend: Callable[[int], None]
    each: int
    copy: int
    instructions: int = 0

    def report(self) -> None:
        self.spend(self.instructions)
        self.instructions = 0

    def match(
        self,
        instructions: list[Instruction],
        at: int,
        spans: Spans,
        passed: set[object],
        end: int | None = None,
        not_at: int | None = None,
    ) -> tuple[int, Spans] | None:
        """Return (end, spans) of the first match that begins at `at`.

        end: the required end. not_at: an end that is not accepted.
        """
        waiting: list[State] = [(0, at, spans)]
        while waiting:
            state: State | None = waiting.pop()
            while state is not None and self._is_new(state, passed):
                number, at, spans = state
                instruction = instructions[number]
                if instruction.do is Opcode.MATCH:
                    if (end is None or at == end) and at != not_at:
                        return at, spans
                    break
                if instruction.do is Opcode.SPLIT:
                    waiting.append((instruction.other, at, spans))
                state = STEPS[instruction.do](self, instruction, number + 1, at, spans)
        return None

    def _is_new(self, state: State, passed: set[object]) -> bool:
        known = (state[0], state[1], state[2][self.known_from :])
        if known in passed:
            return False
        passed.add(known)
        self.instructions += self.each
        if self.instructions >= STATES_PER_REPORT:
            self.report()
        return True

    # Each method executes one instruction: returns the next state, or None if it fails.
    # after: the number of the next instruction.

    def _test(self, instruction: Instruction, after: int, at: int, spans: Spans) -> State | None:
        found = instruction.test.match(self.text, at)
        return None if found is None else (after, found.end(), spans)

    def _jump(self, instruction: Instruction, after: int, at: int, spans: Spans) -> State | None:
        return instruction.to, at, spans

    def _save(self, instruction: Instruction, after: int, at: int, spans: Spans) -> State | None:
        self.instructions += self.copy
        return after, at, (*spans[: instruction.to], at, *spans[instruction.to + 1 :])

    def _mark_round(
        self, instruction: Instruction, after: int, at: int, spans: Spans
    ) -> State | None:
        self.instructions += self.copy
        place = self.first_note + instruction.to
        return after, at, (*spans[:place], at, *spans[place + 1 :])

    def _repeat_round(
        self, instruction: Instruction, after: int, at: int, spans: Spans
    ) -> State | None:
        is_empty = spans[self.first_note + instruction.group] == at
        return instruction.other if is_empty else instruction.to, at, spans

    def _atomic(self, instruction: Instruction, after: int, at: int, spans: Spans) -> State | None:
        found = self.match(instruction.inside, at, spans, set())
        return None if found is None else (after, *found)

    def _lookaround(
        self, instruction: Instruction, after: int, at: int, spans: Spans
    ) -> State | None:
        start, end = (at, None) if instruction.back < 0 else (at - instruction.back, at)
        found = self.match(instruction.inside, start, spans, set(), end) if start >= 0 else None
        if (found is not None) is instruction.negated:
            return None
        return after, at, spans if found is None else found[1]

    def _if_group(
        self, instruction: Instruction, after: int, at: int, spans: Spans
    ) -> State | None:
        return (instruction.to if _span(spans, instruction.group) is None else after), at, spans

    def _backreference(
        self, instruction: Instruction, after: int, at: int, spans: Spans
    ) -> State | None:
        span = _span(spans, instruction.group)
        if span is None:
            return None
        start, end = span
        self.instructions += (end - start) // 100
        wanted, there = self.text[start:end], self.text[at : at + end - start]
        if instruction.any_case:
            wanted, there = wanted.lower(), there.lower()
        return (after, at + end - start, spans) if wanted == there else None


def _span(spans: Spans, group: int) -> tuple[int, int] | None:
    start, end = spans[2 * group : 2 * group + 2]
    return None if start < 0 or end < 0 else (start, end)


STEPS = {
    Opcode.TEST: _Matcher._test,
    Opcode.SPLIT: _Matcher._jump,
    Opcode.JUMP: _Matcher._jump,
    Opcode.SAVE: _Matcher._save,
    Opcode.MARK_ROUND: _Matcher._mark_round,
    Opcode.REPEAT_ROUND: _Matcher._repeat_round,
    Opcode.ATOMIC: _Matcher._atomic,
    Opcode.LOOKAROUND: _Matcher._lookaround,
    Opcode.IF_GROUP: _Matcher._if_group,
    Opcode.BACKREFERENCE: _Matcher._backreference,
}
