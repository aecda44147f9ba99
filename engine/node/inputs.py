"""Inputs of the node machine. A closed union: `Input`."""

from dataclasses import dataclass
from datetime import datetime

from engine.node.node import NOBODY
from engine.words import Decision, OnTimeout, Operation


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
    """The traversal has ended before the node: it was superseded, cancelled or stopped, or its
    timeout has passed. by: who requested that. reason: for people.
    """

    by: str = NOBODY
    reason: str = "superseded"


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
)
