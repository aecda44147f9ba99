"""Effects of a step of the node machine, a closed union: `Effect`. The store applies them."""

from dataclasses import dataclass
from datetime import datetime
from enum import StrEnum

from engine.hooks.rule import Rule
from engine.words import Decision, Json, Operation


class EventKind(StrEnum):
    """The kind of an operation's event; the last part of its CloudEvents type."""

    STARTED = "started"
    COMPLETED = "completed"
    FAILED = "failed"
    RETRYING = "retrying"


@dataclass(frozen=True, slots=True)
class Call:
    """Call the resource type's operation, once the step is durable."""

    operation: Operation


@dataclass(frozen=True, slots=True)
class OpenHook:
    """The node has reached a breakpoint: write the hook and its notice."""

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
    """Set the resource to FAILED. broken: it is tainted, because its operation had begun."""

    reason: str
    broken: bool


@dataclass(frozen=True, slots=True)
class Remove:
    """The resource was deleted: delete its row."""


@dataclass(frozen=True, slots=True)
class WakeAt:
    """Claim the node again at this time; None: only when it is woken."""

    until: datetime | None


@dataclass(frozen=True, slots=True)
class NotifyType:
    """Resume the operation that asked for a confirmation, with this answer."""

    step: str
    decision: Decision
    by: str
    reason: str = ""

    def as_json(self) -> dict[str, Json]:
        """Return the column `node.confirmed`, for the next call of the operation."""
        accepted = self.decision is not Decision.REJECT
        return {"step": self.step, "accepted": accepted, "by": self.by, "reason": self.reason}


Effect = (
    Call
    | OpenHook
    | Record
    | WriteDone
    | WriteUnchanged
    | WriteFailed
    | Remove
    | WakeAt
    | NotifyType
)
