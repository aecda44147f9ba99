"""The plug-in interface of channels: what carries one event to one endpoint.

A channel knows nothing of stores, retries or order: it is given a message and an endpoint, tries
once, in bounded time, and says what came of it. Called by channels/attempt.py; registered by name
where the program is put together.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import datetime
from typing import Protocol
from uuid import UUID

from engine.words import Decision, Json

#: What a receiver may answer to a waiting hook right away.
RECEIVER_DECISIONS = tuple(one.value for one in Decision)


@dataclass(frozen=True, slots=True)
class EventMessage:
    """One event as it is sent.

    id: the event's, the same on every attempt. document: the CloudEvent, structured mode.
    sent_at: the database's time of this attempt. waiting: it is the notice of a waiting hook, to
    which the receiver may answer at once. traceparent: of this attempt; "" where the event is of
    no trace.
    """

    id: str
    type: str
    document: Mapping[str, Json]
    sent_at: datetime
    waiting: bool = False
    traceparent: str = ""


@dataclass(frozen=True, slots=True)
class Endpoint:
    """Where a message goes. secrets: newest first; each signs. They are in no log and no error.
    configured: the subscription is of the server's settings, not of a project."""

    subscription_id: UUID
    target: str
    secrets: tuple[str, ...]
    configured: bool = False


@dataclass(frozen=True, slots=True)
class ReceiverDecision:
    """What the receiver decided. decision: one of RECEIVER_DECISIONS. more: the rest of it, such as
    data or properties; judged by whoever takes it."""

    decision: str
    reason: str = ""
    more: Mapping[str, Json] = field(default_factory=dict, repr=False)


@dataclass(frozen=True, slots=True)
class Delivered:
    """The endpoint has it. answer: its first bytes as text. note: what was odd about the answer."""

    code: int | None
    answer: str = ""
    decision: ReceiverDecision | None = None
    note: str = ""


@dataclass(frozen=True, slots=True)
class Failed:
    """The endpoint has it not, or has not said so.

    retry_after: seconds the receiver asked for. final: trying again cannot help, and the endpoint
    is gone for good.
    """

    reason: str
    code: int | None = None
    answer: str = ""
    retry_after: float | None = None
    final: bool = False


class Channel(Protocol):
    """One way out. `deliver` raises nothing that it can foresee; it is cancelled at will."""

    @property
    def name(self) -> str: ...

    async def check_target(self, target: str) -> None:
        """Look at a target before it is stored. Raises Invalid with every finding."""
        ...

    async def deliver(self, message: EventMessage, endpoint: Endpoint) -> Delivered | Failed: ...
