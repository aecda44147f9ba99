"""A breadth-first explorer: every state of a size, and the shortest way to what must not be."""

from collections import deque
from dataclasses import dataclass
from functools import cache

from tests.model.move_rules import MOVE_RULES
from tests.model.protocol import Move, is_still, moves, start
from tests.model.words import told_in_words
from tests.model.world import Size, World
from tests.model.world_rules import WORLD_RULES


@dataclass(frozen=True, slots=True)
class Violation:
    """What was broken, and the shortest sequence of moves that breaks it."""

    what: str
    sequence: tuple[Move, ...]
    world: World

    def __str__(self) -> str:
        return f"{self.what}\n{told_in_words(self.sequence, self.world)}"


#: The rule that there is a way to an end, whatever happened.
PROGRESS = "an_end_can_be_reached"


@dataclass(frozen=True, slots=True)
class Explored:
    """states: how many different worlds were reached. steps: how many moves lead among them.

    violations: of each broken rule the one with the shortest sequence, by the rule's name.
    """

    states: int
    steps: int
    ends: int
    violations: dict[str, Violation]


class TooMany(Exception):
    """A size is larger than it was thought to be."""


class _Walk:
    """The worlds in the order in which they were found, and how."""

    def __init__(self, first: World) -> None:
        self.number: dict[World, int] = {first: 0}
        self.worlds = [first]
        self.found_by: list[tuple[int, Move] | None] = [None]
        self.before: list[list[int]] = [[]]

    def add(self, world: World, parent: int, move: Move) -> int:
        at = self.number.setdefault(world, len(self.worlds))
        if at == len(self.worlds):
            self.worlds.append(world)
            self.found_by.append((parent, move))
            self.before.append([])
        if move.kind != "request":  # a stack must come to its end without one more
            self.before[at].append(parent)
        return at

    def sequence(self, at: int) -> tuple[Move, ...]:
        told: list[Move] = []
        while (found := self.found_by[at]) is not None:
            at, move = found
            told.append(move)
        return tuple(reversed(told))


def explore(size: Size, *, behind: bool = False, at_most: int = 300_000) -> Explored:
    """Look at every state; at those behind a wrong one only if told so.

    TooMany beyond `at_most` states.
    """
    walk = _Walk(start(size))
    violations: dict[str, Violation] = {}
    wrong: set[int] = set()
    steps = 0
    for at, world in enumerate(walk.worlds):
        if at > at_most:
            raise TooMany(f"{size.name} has more than {at_most} states")
        for move, after in () if at in wrong else moves(size, world):
            steps += 1
            to = walk.add(after, at, move)
            for rule, said in broken(world, move, after).items():
                if not behind:
                    wrong.add(to)
                if rule not in violations:
                    violations[rule] = Violation(said, (*walk.sequence(at), move), after)
    ends = {at for at, world in enumerate(walk.worlds) if is_still(world)}
    if stuck := _stuck(walk, ends | wrong):
        violations[PROGRESS] = stuck
    return Explored(len(walk.worlds), steps, len(ends), violations)


@cache
def explored(size: Size) -> Explored:
    """`explore`, once for each size, for those who change nothing."""
    return explore(size)


def _stuck(walk: _Walk, ends: set[int]) -> Violation | None:
    """The first state from which no end can be reached, if there is one."""
    can = set(ends)
    queue = deque(ends)
    while queue:
        for before in walk.before[queue.popleft()]:
            if before not in can:
                can.add(before)
                queue.append(before)
    if len(can) == len(walk.worlds):
        return None
    first = next(at for at in range(len(walk.worlds)) if at not in can)
    return Violation("no end can be reached from here", walk.sequence(first), walk.worlds[first])


def broken(before: World, move: Move, after: World) -> dict[str, str]:
    """What a move or the world after it breaks: a sentence for each rule, by the rule's name."""
    wrong: dict[str, str] = {}
    for of_move in MOVE_RULES:
        if said := of_move(before, move, after):
            wrong[of_move.__name__] = said
    for of_world in WORLD_RULES:
        if said := of_world(after):
            wrong[of_world.__name__] = said
    return wrong
