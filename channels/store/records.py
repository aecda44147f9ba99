"""Records of subscriptions, deliveries and published events. Times have a time zone, UTC."""

from collections.abc import Collection, Sequence
from dataclasses import dataclass
from datetime import datetime
from enum import StrEnum
from uuid import UUID

from channels.selection import Selection
from engine.hooks.answer_rights import Automation
from engine.principal import UNKNOWN_PRINCIPAL, Principal
from engine.store.records import EventRecord, HookRecord
from engine.words import Json


class SubscriptionState(StrEnum):
    ENABLED = "enabled"
    DISABLED = "disabled"


class Origin(StrEnum):
    """How a subscription was created."""

    API = "api"
    CONFIGURATION = "configuration"
    ENVIRONMENT = "environment"


class DeliveryState(StrEnum):
    PENDING = "pending"
    DELIVERED = "delivered"
    DEAD = "dead"


@dataclass(frozen=True, slots=True)
class NewSubscription:
    """A subscription to create. Its channel has validated its target.

    keeps_secret: an existing subscription keeps its secret, and `secret` is for a new one. name: in
    the settings. owner: the principal for whom it answers hooks. quiet_hours: days, from, to and
    timezone of a subscription for people. digest: every, at and timezone of one.
    """

    id: UUID
    project: str
    channel: str
    target: str
    selection: Selection
    ordered: bool
    secret: str
    origin: Origin = Origin.API
    keeps_secret: bool = False
    name: str = ""
    owner: Principal = UNKNOWN_PRINCIPAL
    quiet_hours: Json = None
    digest: Json = None


@dataclass(frozen=True, slots=True)
class SubscriptionChange:
    """The values that a PATCH changes; None: unchanged. owner: set if anything but the state
    changes: the principal of the request becomes the owner. sets_quiet_hours: `quiet_hours` is the
    new value, and None removes it; sets_digest: the same for `digest`."""

    target: str | None = None
    events: list[str] | None = None
    stacks: list[str] | None = None
    resources: list[str] | None = None
    types: list[str] | None = None
    points: list[str] | None = None
    tags: list[str] | None = None
    nested: bool | None = None
    ordered: bool | None = None
    state: SubscriptionState | None = None
    owner: Principal | None = None
    quiet_hours: Json = None
    sets_quiet_hours: bool = False
    digest: Json = None
    sets_digest: bool = False


@dataclass(frozen=True, slots=True)
class SubscriptionRecord:
    """A stored subscription without its secrets, which are read only to sign.

    failures: consecutive dead deliveries. reason: why it is disabled. named_until: of an event sink
    that the environment no longer declares: the sequence number of the event that started this
    change. name: in the settings. owner: the display name of the principal for whom it answers
    hooks.
    """

    id: UUID
    project: str
    channel: str
    target: str
    selection: Selection
    ordered: bool
    state: str
    reason: str
    origin: str
    removed_at_sequence: int | None
    failures: int
    created_at: datetime
    name: str
    owner: str
    quiet_hours: Json = None
    digest: Json = None


@dataclass(frozen=True, slots=True)
class DeliveryRecord:
    """One event on its way to one subscription."""

    id: UUID
    subscription_id: UUID
    stack_id: UUID
    sequence: int
    event_id: UUID
    type: str
    state: str
    attempts: int
    next_at: datetime | None
    code: int | None
    error: str | None
    response: str | None
    created_at: datetime
    ended_at: datetime | None


@dataclass(frozen=True, slots=True)
class NotificationRecord:
    """One delivery of a hook notification, with the subscription and the state of the delivery."""

    hook_id: UUID
    subscription_id: UUID
    channel: str
    target: str
    state: str
    attempts: int
    code: int | None
    error: str | None
    next_at: datetime | None
    ended_at: datetime | None


@dataclass(frozen=True, slots=True)
class Key:
    """A claimed delivery. claim: the fencing number of the claim. id: of the row."""

    stack_id: UUID
    sequence: int
    subscription_id: UUID
    claim: int
    id: UUID


@dataclass(frozen=True, slots=True)
class DeliveryStackHeader:
    """The description of a stack in its events.

    tags: of the root stack. path, root_id, root_name: of a nested stack; else "" and None.
    """

    name: str
    owner: str
    tags: tuple[str, ...]
    created_at: datetime
    path: str = ""
    root_id: UUID | None = None
    root_name: str | None = None


@dataclass(frozen=True, slots=True)
class PendingDelivery:
    """A claimed delivery with the data for an attempt.

    now: the database's time. stack_header: None: the event does not belong to a stack. hook: of
    events about hooks, with the deadline that applies if this attempt succeeds. secrets: newest
    first. automation: the subscription as an answerer, without the current rights of its owner.
    undecryptable: why `secrets` is empty, or "". quiet_hours: as stored. expires_at: the deadline
    of a waiting hook if this attempt cannot move it. digest: as stored. digest_at: the digest for
    which the delivery has waited.
    """

    key: Key
    id: UUID
    project: str
    stack_header: DeliveryStackHeader | None
    hook_id: UUID | None
    attempts: int
    channel: str
    target: str
    ordered: bool
    secrets: tuple[str, ...]
    event: EventRecord
    hook: HookRecord | None
    notifications: tuple[NotificationRecord, ...]
    now: datetime
    automation: Automation
    undecryptable: str = ""
    quiet_hours: Json = None
    expires_at: datetime | None = None
    digest: Json = None
    digest_at: datetime | None = None

    @property
    def in_digest(self) -> bool:
        """Whether it is a part of a digest that is due."""
        return self.digest is not None and self.digest_at is not None


@dataclass(frozen=True, slots=True)
class DeliveryResult:
    """The result of an attempt.

    state: delivered, dead, or pending with a retry after `wait` seconds. left: seconds from that
    retry until the delivery is dead if all retries fail. target: without secrets. gone: the
    endpoint reported that it is permanently gone. unattempted: there was no attempt, because an
    earlier ordered delivery failed or the run took too long. postponed: no attempt, because of
    quiet hours or a digest: it is due after `wait` seconds. digest_at: that digest.
    """

    key: Key
    id: UUID
    hook_id: UUID | None
    channel: str
    target: str
    event_id: UUID
    event_type: str
    attempts: int
    state: DeliveryState
    code: int | None
    error: str
    response: str
    wait: float = 0.0
    left: float = 0.0
    gone: bool = False
    unattempted: bool = False
    postponed: bool = False
    digest_at: datetime | None = None


@dataclass(frozen=True, slots=True, order=True)
class Cursor:
    """A position in the event stream: after the event `sequence` of the commit at `position`."""

    position: int
    sequence: int


@dataclass(frozen=True, slots=True)
class PublishedEvent:
    """An event with its stack and hook. stack_header: None: it does not belong to a stack."""

    project: str
    stack_header: DeliveryStackHeader | None
    event: EventRecord
    hook: HookRecord | None


@dataclass(frozen=True, slots=True)
class StreamEvent:
    """A published event with its position."""

    published: PublishedEvent
    cursor: Cursor


def shown_target(target: str) -> str:
    """A target without path, query and credentials, which may contain secrets."""
    scheme, separator, rest = target.partition("://")
    if not separator:
        return target
    return f"{scheme}://{rest.partition('/')[0].partition('?')[0].rpartition('@')[2]}"


@dataclass(frozen=True, slots=True)
class OutboxRows:
    """Published rows of the outbox, by column."""

    stacks: Sequence[UUID]
    projects: Sequence[str]
    first: Sequence[int]
    last: Sequence[int]

    def __len__(self) -> int:
        return len(self.stacks)

    def of_projects(self, projects: Collection[str]) -> "OutboxRows":
        columns = (self.stacks, self.projects, self.first, self.last)
        rows = [row for row in zip(*columns, strict=True) if row[1] in projects]
        return OutboxRows(*zip(*rows, strict=True)) if rows else OutboxRows((), (), (), ())
