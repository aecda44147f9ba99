"""A node as the machine sees it, what a decision about it is, and in which states what holds."""

from dataclasses import dataclass

from engine.hooks.rule import Rule
from engine.node.effects import Effect
from engine.words import Operation, Phase, State

#: Operations whose failure leaves a resource of which nobody knows what state it is in.
BREAKING = frozenset(
    {Operation.CREATE, Operation.UPDATE, Operation.REPLACE, Operation.DELETE, Operation.CHECK}
)

#: Who decides when nobody does.
NOBODY = "nobody"

ENDED = frozenset({State.DONE, State.FAILED, State.STOPPED, State.DROPPED})


@dataclass(frozen=True, slots=True)
class Node:
    """What the machine needs to know of a node.

    rules: the breakpoints that match it. passed: points already asked. reason: why it ended,
    or what its operation waits for. stepping: somebody steps: it stops before its operation, rule
    or no rule.
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
    """The node after, and what to do about it."""

    node: Node
    effects: tuple[Effect, ...] = ()


@dataclass(frozen=True, slots=True)
class Refused:
    """The input does not fit the node's state; nothing changes."""

    reason: str
