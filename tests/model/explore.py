"""A breadth-first model checker: it visits every state of a scenario and reports the shortest trace
to each violated invariant."""

from collections import deque
from collections.abc import Callable, Hashable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from typing import Any, Generic, Protocol, TypeVar

from tests.model import nested, protocol, stack_tree, tree_invariants
from tests.model.descriptions import describe, describe_move, describe_state
from tests.model.move_invariants import MOVE_INVARIANTS
from tests.model.protocol import Move
from tests.model.state_invariants import STATE_INVARIANTS
from tests.model.system_state import Scenario, SystemState


class HasKind(Protocol):
    """A move of any model. Liveness must hold without moves of kind "request"."""

    @property
    def kind(self) -> str: ...


#: A scenario of any model.
AnyScenario = Scenario | nested.NestedScenario | stack_tree.TreeScenario
S = TypeVar("S", bound=Hashable)
M = TypeVar("M", bound=HasKind)


@dataclass(frozen=True, slots=True)
class Model(Generic[S, M]):
    """A model. moves: the enabled moves of a state, each with the state after it.
    check_move and check_state: messages by the name of the violated invariant. is_idle: no work is
    left. describe: formats a trace and the state after it.
    """

    name: str
    initial: S
    moves: Callable[[S], Iterable[tuple[M, S]]]
    check_move: Callable[[S, M, S], Mapping[str, str]]
    check_state: Callable[[S], Mapping[str, str]]
    is_idle: Callable[[S], bool]
    describe: Callable[[Sequence[M], S], str]


@dataclass(frozen=True, slots=True)
class Counterexample:
    """The shortest trace that violates an invariant."""

    message: str
    trace: tuple[Any, ...]
    description: str

    def __str__(self) -> str:
        return f"{self.message}\n{self.description}"


#: The liveness property: from every state, a terminal state is reachable without a further request.
LIVENESS = "an_end_is_always_reachable"


@dataclass(frozen=True, slots=True)
class Exploration:
    """The numbers of distinct states, of transitions between them and of terminal (idle) states.
    counterexamples: the shortest, by the name of the invariant.
    """

    states: int
    transitions: int
    terminal_states: int
    counterexamples: dict[str, Counterexample]


class TooManyStates(Exception):
    """A scenario has more states than expected."""


class _Search(Generic[S, M]):
    """The states in breadth-first order, and the moves that reached them."""

    def __init__(self, model: Model[S, M]) -> None:
        self.model = model
        self.number: dict[S, int] = {model.initial: 0}
        self.states = [model.initial]
        self.reached_by: list[tuple[int, M] | None] = [None]
        self.predecessors: list[list[int]] = [[]]

    def add(self, state: S, parent: int, move: M) -> int:
        at = self.number.setdefault(state, len(self.states))
        if at == len(self.states):
            self.states.append(state)
            self.reached_by.append((parent, move))
            self.predecessors.append([])
        if move.kind != "request":  # see LIVENESS
            self.predecessors[at].append(parent)
        return at

    def counterexample(self, message: str, at: int, state: S, *last: M) -> Counterexample:
        trace = [*last]
        while (found := self.reached_by[at]) is not None:
            at, move = found
            trace.insert(0, move)
        return Counterexample(message, tuple(trace), self.model.describe(trace, state))


def search(
    model: Model[S, M], *, past_violations: bool = False, until: str = "", at_most: int = 300_000
) -> Exploration:
    """Explore every state; states after a violation only if `past_violations`.

    until: the search ends when this invariant is violated. Raises TooManyStates.
    """
    visited = _Search(model)
    counterexamples: dict[str, Counterexample] = {}
    violating: set[int] = set()
    transitions = 0
    for at, state in enumerate(visited.states):
        if until in counterexamples:
            return Exploration(len(visited.states), transitions, 0, counterexamples)
        if at > at_most:
            raise TooManyStates(f"{model.name} has more than {at_most} states")
        for move, after in () if at in violating else model.moves(state):
            transitions += 1
            known = len(visited.states)
            to = visited.add(after, at, move)
            messages = {**model.check_move(state, move, after)}
            if to == known:  # A state that was reached before has been checked.
                messages |= model.check_state(after)
            for invariant, message in messages.items():
                if not past_violations:
                    violating.add(to)
                if invariant not in counterexamples:
                    counterexamples[invariant] = visited.counterexample(message, at, after, move)
    terminal_states = {at for at, state in enumerate(visited.states) if model.is_idle(state)}
    if stuck_state := _find_stuck_state(visited, terminal_states | violating):
        counterexamples[LIVENESS] = stuck_state
    return Exploration(len(visited.states), transitions, len(terminal_states), counterexamples)


def _find_stuck_state(visited: _Search[S, M], terminal_states: set[int]) -> Counterexample | None:
    """The first state from which no terminal state is reachable, if there is one."""
    reaching = set(terminal_states)
    queue = deque(terminal_states)
    while queue:
        for predecessor in visited.predecessors[queue.popleft()]:
            if predecessor not in reaching:
                reaching.add(predecessor)
                queue.append(predecessor)
    if len(reaching) == len(visited.states):
        return None
    stuck = next(at for at in range(len(visited.states)) if at not in reaching)
    return visited.counterexample(
        "no terminal state is reachable from here", stuck, visited.states[stuck]
    )


def explore(
    scenario: AnyScenario, *, past_violations: bool = False, until: str = ""
) -> Exploration:
    """`search` in the model of a scenario."""
    if isinstance(scenario, stack_tree.TreeScenario):
        return search(tree_model(scenario), past_violations=past_violations, until=until)
    if isinstance(scenario, nested.NestedScenario):
        return search(nested_model(scenario), past_violations=past_violations, until=until)
    return search(stack_model(scenario), past_violations=past_violations, until=until)


@cache
def explore_once(scenario: AnyScenario) -> Exploration:
    """`explore`, once for each scenario, for tests that change nothing."""
    return explore(scenario)


def stack_model(scenario: Scenario) -> Model[SystemState, Move]:
    return Model(
        scenario.name,
        protocol.initial_state(scenario),
        lambda system: protocol.moves(scenario, system),
        _violated_by_move,
        _violated_by_state,
        protocol.is_idle,
        describe,
    )


def nested_model(
    scenario: nested.NestedScenario,
) -> Model[nested.NestedSystemState, nested.NestedMove]:
    return Model(
        scenario.name,
        nested.initial_state(scenario),
        lambda system: nested.moves(scenario, system),
        nested.violated_invariants,
        _no_invariants_of_states,
        nested.is_idle,
        lambda trace, system: "\n".join([*map(str, trace), str(system)]),
    )


def tree_model(
    scenario: stack_tree.TreeScenario,
) -> Model[stack_tree.TreeState, stack_tree.TreeMove]:
    return Model(
        scenario.name,
        stack_tree.initial_state(scenario),
        lambda tree: stack_tree.moves(scenario, tree),
        tree_invariants.violated_invariants,
        _no_invariants_of_states,
        stack_tree.is_idle,
        describe_tree,
    )


def describe_tree(trace: Sequence[stack_tree.TreeMove], tree: stack_tree.TreeState) -> str:
    """The numbered moves, each with the number of its stack, and the state they lead to."""
    lines = [
        f"{at:3}. stack {one.stack}: {describe_move(one.move, tree.stacks[one.stack])}"
        for at, one in enumerate(trace, 1)
    ]
    for number, system in enumerate(tree.stacks):
        lines += [f"stack {number}:", *describe_state(system)]
    return "\n".join([*lines, str(tree.expected)])


def _violated_by_move(before: SystemState, move: Move, after: SystemState) -> dict[str, str]:
    found = {rule.__name__: rule(before, move, after) for rule in MOVE_INVARIANTS}
    return {name: message for name, message in found.items() if message}


def _violated_by_state(system: SystemState) -> dict[str, str]:
    found = {rule.__name__: rule(system) for rule in STATE_INVARIANTS}
    return {name: message for name, message in found.items() if message}


def _no_invariants_of_states(_: object) -> dict[str, str]:
    """The invariants of nested stacks are all checked for each move."""
    return {}
