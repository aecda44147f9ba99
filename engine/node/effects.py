"""What a step of the machine causes. A closed union: `Effect`. The store applies them in sets."""

from dataclasses import dataclass
from datetime import datetime
from enum import StrEnum

from engine.hooks.rule import Rule
from engine.words import Decision, Json, Operation


class Moment(StrEnum):
    """Which event of an operation; the last word of its CloudEvents type."""

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

    moment: Moment
    reason: str = ""


@dataclass(frozen=True, slots=True)
class WriteDone:
    """The resource now is as it should be."""


@dataclass(frozen=True, slots=True)
class WriteUnchanged:
    """It already was; only its definition's digest and metadata are taken over."""


@dataclass(frozen=True, slots=True)
class WriteFailed:
    """The resource is FAILED, for this reason.

    broken: its operation had begun, so nobody knows what state it is in.
    """

    reason: str
    broken: bool


@dataclass(frozen=True, slots=True)
class Remove:
    """The resource is gone, and so is its row."""


@dataclass(frozen=True, slots=True)
class WakeAt:
    """Claim the node again at this time; None: when it is woken."""

    until: datetime | None


@dataclass(frozen=True, slots=True)
class NotifyType:
    """The operation that asked for a confirmation is to go on with this answer."""

    step: str
    decision: Decision
    by: str
    reason: str = ""

    def as_json(self) -> dict[str, Json]:
        """As the node keeps it for the next call of the operation (`node.confirmed`)."""
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
