"""The plug-in interface of channels, which deliver one event to one endpoint.

A channel has no part in storage, retries or order: it gets a message and an endpoint, makes one
attempt in bounded time, and returns the result. channels/attempt.py calls it.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from typing import Protocol, runtime_checkable
from uuid import UUID

from engine.words import Decision, Json

#: The decisions that a receiver may return in its response to a hook notification.
RECEIVER_DECISIONS = tuple(one.value for one in Decision)


@dataclass(frozen=True, slots=True)
class EventMessage:
    """One event as it is sent.

    id: of the event, the same for every attempt. document: the CloudEvent in structured mode.
    sent_at: the time of this attempt by the database's clock. waiting: the event is a hook
    notification, which the receiver may answer in its response. traceparent: of this attempt; ""
    if the event belongs to no trace.
    """

    id: str
    type: str
    document: Mapping[str, Json]
    sent_at: datetime
    waiting: bool = False
    traceparent: str = ""


@dataclass(frozen=True, slots=True)
class Endpoint:
    """The target of a message. secrets: newest first; each signs. Never log them.
    configured: the settings file declares the subscription, not a project."""

    subscription_id: UUID
    target: str
    secrets: tuple[str, ...]
    configured: bool = False


@dataclass(frozen=True, slots=True)
class ReceiverDecision:
    """An answer in a response. decision: one of RECEIVER_DECISIONS. more: its other keys, such as
    data or properties, not yet validated."""

    decision: str
    reason: str = ""
    more: Mapping[str, Json] = field(default_factory=dict, repr=False)


@dataclass(frozen=True, slots=True)
class Delivered:
    """The endpoint accepted the event. response: the start of its response, as text. note: a remark
    about the response for the delivery history."""

    code: int | None
    response: str = ""
    decision: ReceiverDecision | None = None
    note: str = ""


@dataclass(frozen=True, slots=True)
class Failed:
    """The endpoint did not confirm that it accepted the event.

    retry_after: seconds that the receiver requested. final: the endpoint is gone for good, so
    retries are useless.
    """

    reason: str
    code: int | None = None
    response: str = ""
    retry_after: float | None = None
    final: bool = False


@runtime_checkable
class DigestChannel(Protocol):
    """A channel that can send the messages of a digest as one."""

    async def deliver_digest(
        self, messages: Sequence[EventMessage], endpoint: Endpoint
    ) -> Delivered | Failed:
        """messages: at least one; `waiting`: the hook of the notification still waits."""
        ...


class Channel(Protocol):
    """`deliver` returns expected failures as `Failed`; it may be cancelled at any time."""

    @property
    def name(self) -> str: ...

    async def check_target(self, target: str) -> None:
        """Validate a target before it is stored. Raises Invalid with every finding."""
        ...

    async def deliver(self, message: EventMessage, endpoint: Endpoint) -> Delivered | Failed: ...
