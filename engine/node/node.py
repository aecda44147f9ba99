"""The data of the node machine: a node, its inputs, and the result of a decision with its effects.

Inputs and effects are closed unions, `Input` and `Effect`. The store applies effects.
"""

from dataclasses import dataclass
from datetime import datetime
from enum import StrEnum

from engine.hooks.rule import Rule
from engine.words import Decision, Json, OnTimeout, Operation, Phase, State


class EventKind(StrEnum):
    """The kind of an operation's event; the last part of its CloudEvents type."""

    STARTED = "started"
    COMPLETED = "completed"
    FAILED = "failed"
    RETRYING = "retrying"


@dataclass(frozen=True, slots=True)
class CallOperation:
    """Call the resource type's operation, once the step is durable."""

    operation: Operation


@dataclass(frozen=True, slots=True)
class OpenHook:
    """The node has reached a breakpoint: write the hook and its notification."""

    rule: Rule


@dataclass(frozen=True, slots=True)
class Record:
    """Write the operation's event."""

    kind: EventKind
    reason: str = ""


@dataclass(frozen=True, slots=True)
class WriteDone:
    """The operation succeeded: write the resource."""


@dataclass(frozen=True, slots=True)
class WriteUnchanged:
    """Nothing differs: write only the digest and metadata of the definition."""


@dataclass(frozen=True, slots=True)
class WriteFailed:
    """Set the resource to FAILED. tainted: because its operation had begun."""

    reason: str
    tainted: bool


@dataclass(frozen=True, slots=True)
class Remove:
    """The resource was deleted: delete its row."""


@dataclass(frozen=True, slots=True)
class WakeAt:
    """Claim the node again at this time; None: only when it is woken."""

    until: datetime | None


@dataclass(frozen=True, slots=True)
class NotifyType:
    """Resume the operation with the answer to its confirmation."""

    step: str
    decision: Decision
    by: str
    reason: str = ""

    def as_json(self) -> dict[str, Json]:
        """Return the column `node.confirmation`, for the next call of the operation."""
        accepted = self.decision is not Decision.REJECT
        return {"step": self.step, "accepted": accepted, "by": self.by, "reason": self.reason}


Effect = (
    CallOperation
    | OpenHook
    | Record
    | WriteDone
    | WriteUnchanged
    | WriteFailed
    | Remove
    | WakeAt
    | NotifyType
)


#: Operations whose failure leaves the resource tainted.
BREAKING = frozenset(
    {Operation.CREATE, Operation.UPDATE, Operation.REPLACE, Operation.DELETE, Operation.CHECK}
)

#: The name recorded for decisions that the engine makes: by deadlines, rules and superseding.
DECIDED_BY_ENGINE = "engine"

ENDED = frozenset({State.DONE, State.FAILED, State.STOPPED, State.DROPPED})


@dataclass(frozen=True, slots=True)
class Node:
    """A node, as far as decisions depend on it.

    rules: those that match it. breakpoints_hit: points whose hook has opened. reason: why it ended,
    or what its operation waits for. stepping: it stops before its operation even without a rule.
    cancelled: its operation is to end early. conditional: only its claim finds out
    whether the operation is possible: it has preconditions, or an answer changed its properties.
    """

    operation: Operation
    state: State
    phase: Phase
    rules: tuple[Rule, ...] = ()
    breakpoints_hit: tuple[str, ...] = ()
    reason: str | None = None
    stepping: bool = False
    cancelled: bool = False
    conditional: bool = False

    def at(self, state: State, phase: Phase) -> "Node":
        """Return the node in another state or phase. Cheaper than `dataclasses.replace`."""
        return Node(
            self.operation, state, phase, self.rules, self.breakpoints_hit, self.reason,
            self.stepping, self.cancelled, self.conditional,
        )  # fmt: skip


@dataclass(frozen=True, slots=True)
class Step:
    """The node after the decision, and the effects to apply."""

    node: Node
    effects: tuple[Effect, ...] = ()


@dataclass(frozen=True, slots=True)
class InvalidInput:
    """The input is not valid in the node's state; nothing changes."""

    reason: str


@dataclass(frozen=True, slots=True)
class Claimed:
    """A worker has claimed the node. operation: None if nothing changes."""

    operation: Operation | None


@dataclass(frozen=True, slots=True)
class Succeeded:
    """The operation succeeded."""


@dataclass(frozen=True, slots=True)
class MustWait:
    """The operation must be called again at `until`; None: only when the node is woken. reason:
    what it waits for, or "".
    """

    until: datetime | None
    reason: str = ""


@dataclass(frozen=True, slots=True)
class MustConfirm:
    """The operation needs a confirmation of this step before it continues."""

    step: str


@dataclass(frozen=True, slots=True)
class MustReplace:
    """The update is impossible in place."""


@dataclass(frozen=True, slots=True)
class MustStop:
    """The operation waited for something that was stopped, so the node stops."""

    reason: str


@dataclass(frozen=True, slots=True)
class OperationFailed:
    """The operation failed."""

    reason: str


@dataclass(frozen=True, slots=True)
class MustRetry:
    """The operation failed temporarily; retry it at `until`."""

    until: datetime
    reason: str


@dataclass(frozen=True, slots=True)
class OperationForbidden:
    """The operation is forbidden for this resource; nothing was done."""

    reason: str


@dataclass(frozen=True, slots=True)
class Answered:
    """An answer decided the hook at which the node is parked."""

    decision: Decision
    by: str
    reason: str = ""


@dataclass(frozen=True, slots=True)
class Expired:
    """The deadline of that hook has passed without an answer."""

    on_timeout: OnTimeout


@dataclass(frozen=True, slots=True)
class Superseded:
    """The traversal has ended before the node: it was superseded, cancelled or stopped, its timeout
    has passed, or the node waits for one that did not succeed. by: who requested that. reason: for
    people.
    """

    by: str = DECIDED_BY_ENGINE
    reason: str = "superseded"


@dataclass(frozen=True, slots=True)
class Cancelled:
    """The change of the running operation was cancelled, or superseded by a delete: no change
    needs its result.
    """


@dataclass(frozen=True, slots=True)
class BreakpointAdded:
    """Another breakpoint applies to the node, which `rules` or `stepping` contain already: a rule
    was added to a live stack, or stepping began.
    """


Input = (
    Claimed
    | Succeeded
    | MustWait
    | MustRetry
    | MustConfirm
    | MustReplace
    | MustStop
    | OperationFailed
    | OperationForbidden
    | Answered
    | Expired
    | Superseded
    | Cancelled
    | BreakpointAdded
)
