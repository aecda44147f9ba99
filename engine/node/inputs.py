"""What can happen to a node. A closed union: `Input`."""

from dataclasses import dataclass
from datetime import datetime

from engine.node.node import NOBODY
from engine.words import Decision, OnTimeout, Operation


@dataclass(frozen=True, slots=True)
class Claimed:
    """A worker has taken the node up. operation: what is to be done; None: nothing changes."""

    operation: Operation | None


@dataclass(frozen=True, slots=True)
class Succeeded:
    """The operation has ended well."""


@dataclass(frozen=True, slots=True)
class MustWait:
    """The operation wants to be called again at `until`; None: when it is woken. reason: what it
    waits for, in words; "" when it does not say."""

    until: datetime | None
    reason: str = ""


@dataclass(frozen=True, slots=True)
class MustConfirm:
    """The operation wants somebody to confirm this step of it before it goes on."""

    step: str


@dataclass(frozen=True, slots=True)
class MustReplace:
    """The update cannot be done in place."""


@dataclass(frozen=True, slots=True)
class MustStop:
    """What the operation waited for was stopped, and so is the node."""

    reason: str


@dataclass(frozen=True, slots=True)
class Broke:
    """The operation has ended badly."""

    reason: str


@dataclass(frozen=True, slots=True)
class MustRetry:
    """The operation has failed in a way that trying again helps; try it at `until`."""

    until: datetime
    reason: str


@dataclass(frozen=True, slots=True)
class Denied:
    """The operation may not be done to this resource; nothing was done."""

    reason: str


@dataclass(frozen=True, slots=True)
class Answered:
    """Somebody decided the hook the node is parked at."""

    decision: Decision
    by: str
    reason: str = ""


@dataclass(frozen=True, slots=True)
class Expired:
    """Nobody did, and its deadline has come."""

    on_timeout: OnTimeout


@dataclass(frozen=True, slots=True)
class Superseded:
    """The traversal has ended before the node: in favour of a newer one, or because it was
    cancelled, stopped or out of time. by: at whose request. reason: why, in words."""

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
    | Broke
    | Denied
    | Answered
    | Expired
    | Superseded
)
