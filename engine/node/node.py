"""The data of the node machine: a node and the result of a decision."""

from dataclasses import dataclass

from engine.hooks.rule import Rule
from engine.node.effects import Effect
from engine.words import Operation, Phase, State

#: Operations whose failure leaves the resource tainted.
BREAKING = frozenset(
    {Operation.CREATE, Operation.UPDATE, Operation.REPLACE, Operation.DELETE, Operation.CHECK}
)

#: The name recorded for decisions of deadlines and rules.
NOBODY = "nobody"

ENDED = frozenset({State.DONE, State.FAILED, State.STOPPED, State.DROPPED})


@dataclass(frozen=True, slots=True)
class Node:
    """A node, as far as decisions depend on it.

    rules: those that match it. passed: points whose hook has opened. reason: why it ended, or what
    its operation waits for. stepping: it stops before its operation even without a rule.
    """

    operation: Operation
    state: State
    phase: Phase
    rules: tuple[Rule, ...] = ()
    passed: tuple[str, ...] = ()
    reason: str | None = None
    stepping: bool = False


@dataclass(frozen=True, slots=True)
class Step:
    """The node after the decision, and the effects to apply."""

    node: Node
    effects: tuple[Effect, ...] = ()


@dataclass(frozen=True, slots=True)
class Refused:
    """The input is not valid in the node's state; nothing changes."""

    reason: str
