"""Walks the program of a regular expression through a text, in the order of Python's engine.

A state (a move and a place in the text, and what groups hold where that matters) that was passed
once leads nowhere, or it would have been the end of the walk; so it is not passed again.
"""

import re
from collections.abc import Callable
from dataclasses import dataclass

from engine.hot.pattern_program import Do, Move, Program

#: What stands for a group, or for another character, in a template of re.sub.
REFERENCE = re.compile(r"\\(?:g<(\w+)>|([1-9]\d?)|(.))", re.DOTALL)
ESCAPES = {"a": "\a", "f": "\f", "n": "\n", "r": "\r", "t": "\t", "v": "\v", "\\": "\\"}

#: So many moves are told at once.
TOLD = 1_000
#: So many spans are copied, or compared, in one move.
SPANS_IN_A_MOVE = 32

#: Start and end of each group, the whole match first, -1 where it has none; then what was noted.
Spans = tuple[int, ...]
State = tuple[int, int, Spans]


@dataclass(frozen=True, slots=True)
class Found:
    """A match, read as one of re is."""

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
        """Put groups into a template of re.sub: ``\\1``, ``\\g<name>``."""

        def put_in(reference: re.Match[str]) -> str:
            name, number, other = reference.groups()
            if other is not None:
                return ESCAPES.get(other, "\\" + other)
            group = name or number
            known = int(group) if group.isdecimal() else self.names[group]
            return self.group(known) or ""

        return REFERENCE.sub(put_in, template)


def walk(
    program: Program,
    text: str,
    start: int,
    spend: Callable[[int], None],
    *,
    whole: bool = False,
    not_empty: bool = False,
) -> Found | None:
    """Return the first match from ``start`` on. whole: from ``start`` to the end, and only there.

    not_empty: it is not to be empty at ``start``. spend(moves) is told what was done.
    """
    first_note = 2 * program.groups
    none = (-1,) * (first_note + program.notes)
    known_from = 0 if program.refers_back else first_note
    costs = [1 + (len(none) - start) // SPANS_IN_A_MOVE for start in (known_from, 0)]
    walker = _Walker(text, known_from, first_note, spend, *costs)
    passed: set[object] = set()
    end = len(text) if whole else None
    for at in range(start, start + 1 if whole else len(text) + 1):
        not_at = at if not_empty and at == start else None
        found = walker.match(program.moves, at, none, passed, end, not_at)
        if found is not None:
            place, spans = found
            walker.tell()
            return Found(text, (at, place, *spans[2:first_note]), program.names)
    walker.tell()
    return None


@dataclass(slots=True)
class _Walker:
    """known_from: which of the spans are part of a state. first_note: where notes begin. each,
    copy: moves that a state, and other spans, count as."""

    text: str
    known_from: int
    first_note: int
    spend: Callable[[int], None]
    each: int
    copy: int
    moves: int = 0

    def tell(self) -> None:
        self.spend(self.moves)
        self.moves = 0

    def match(
        self,
        moves: list[Move],
        at: int,
        spans: Spans,
        passed: set[object],
        end: int | None = None,
        not_at: int | None = None,
    ) -> tuple[int, Spans] | None:
        """Return where the first match that begins at ``at`` ends, and its groups.

        end: where it has to end. not_at: where it must not.
        """
        waiting: list[State] = [(0, at, spans)]
        while waiting:
            state: State | None = waiting.pop()
            while state is not None and self._is_new(state, passed):
                number, at, spans = state
                move = moves[number]
                if move.do is Do.END:
                    if (end is None or at == end) and at != not_at:
                        return at, spans
                    break
                if move.do is Do.EITHER:
                    waiting.append((move.other, at, spans))
                state = STEPS[move.do](self, move, number + 1, at, spans)
        return None

    def _is_new(self, state: State, passed: set[object]) -> bool:
        known = (state[0], state[1], state[2][self.known_from :])
        if known in passed:
            return False
        passed.add(known)
        self.moves += self.each
        if self.moves >= TOLD:
            self.tell()
        return True

    # Each returns the state after a move, or None where it fails. after: the number of the next.

    def _test(self, move: Move, after: int, at: int, spans: Spans) -> State | None:
        found = move.test.match(self.text, at)
        return None if found is None else (after, found.end(), spans)

    def _go(self, move: Move, after: int, at: int, spans: Spans) -> State | None:
        return move.to, at, spans

    def _save(self, move: Move, after: int, at: int, spans: Spans) -> State | None:
        self.moves += self.copy
        return after, at, (*spans[: move.to], at, *spans[move.to + 1 :])

    def _note(self, move: Move, after: int, at: int, spans: Spans) -> State | None:
        self.moves += self.copy
        place = self.first_note + move.to
        return after, at, (*spans[:place], at, *spans[place + 1 :])

    def _again(self, move: Move, after: int, at: int, spans: Spans) -> State | None:
        stands = spans[self.first_note + move.group] == at
        return move.other if stands else move.to, at, spans

    def _atomic(self, move: Move, after: int, at: int, spans: Spans) -> State | None:
        found = self.match(move.inside, at, spans, set())
        return None if found is None else (after, *found)

    def _look(self, move: Move, after: int, at: int, spans: Spans) -> State | None:
        start, end = (at, None) if move.back < 0 else (at - move.back, at)
        found = self.match(move.inside, start, spans, set(), end) if start >= 0 else None
        if (found is not None) is move.negated:
            return None
        return after, at, spans if found is None else found[1]

    def _if_group(self, move: Move, after: int, at: int, spans: Spans) -> State | None:
        return (move.to if _span(spans, move.group) is None else after), at, spans

    def _same(self, move: Move, after: int, at: int, spans: Spans) -> State | None:
        span = _span(spans, move.group)
        if span is None:
            return None
        start, end = span
        self.moves += (end - start) // 100
        wanted, there = self.text[start:end], self.text[at : at + end - start]
        if move.any_case:
            wanted, there = wanted.lower(), there.lower()
        return (after, at + end - start, spans) if wanted == there else None


def _span(spans: Spans, group: int) -> tuple[int, int] | None:
    start, end = spans[2 * group : 2 * group + 2]
    return None if start < 0 or end < 0 else (start, end)


STEPS = {
    Do.TEST: _Walker._test,
    Do.EITHER: _Walker._go,
    Do.GO: _Walker._go,
    Do.SAVE: _Walker._save,
    Do.NOTE: _Walker._note,
    Do.AGAIN: _Walker._again,
    Do.ATOMIC: _Walker._atomic,
    Do.LOOK: _Walker._look,
    Do.IF_GROUP: _Walker._if_group,
    Do.SAME: _Walker._same,
}
