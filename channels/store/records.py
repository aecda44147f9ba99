"""What is read from and written to the channels' tables; times aware and in UTC."""

from dataclasses import dataclass
from datetime import datetime
from enum import StrEnum
from uuid import UUID

from channels.selection import Selection
from engine.hooks.automation import Automation
from engine.principal import NOBODY, Principal
from engine.store.records import EventRecord, HookRecord


class SubscriptionState(StrEnum):
    ENABLED = "enabled"
    DISABLED = "disabled"


class Origin(StrEnum):
    """Who made a subscription."""

    API = "api"
    CONFIGURATION = "configuration"
    ENVIRONMENT = "environment"


class DeliveryState(StrEnum):
    PENDING = "pending"
    DELIVERED = "delivered"
    DEAD = "dead"


@dataclass(frozen=True, slots=True)
class NewSubscription:
    """A subscription that is to be. Its target was checked by its channel.

    keeps_secret: `secret` is for a new one; one that is there keeps its own. name: of the
    settings. owner: with whose rights it answers hooks.
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
    owner: Principal = NOBODY


@dataclass(frozen=True, slots=True)
class SubscriptionChange:
    """What a PATCH changes; None keeps. owner: who changes more than the state, and answers for it
    from then on."""

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


@dataclass(frozen=True, slots=True)
class SubscriptionRecord:
    """A subscription as it is; without its secrets, which are read only to sign.

    failures: deliveries given up since the last one that arrived. reason: why it is disabled.
    named_until: number of its stack's event from which on the environment names it no more.
    name: of the settings. owner: the display name of the principal for whom it answers hooks.
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
    named_until: int | None
    failures: int
    created_at: datetime
    name: str
    owner: str


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
    answer: str | None
    created_at: datetime
    settled_at: datetime | None


@dataclass(frozen=True, slots=True)
class NoticeRecord:
    """One delivery of the notice of a waiting hook: who was asked, and whether that arrived."""

    hook_id: UUID
    subscription_id: UUID
    channel: str
    target: str
    state: str
    attempts: int
    code: int | None
    error: str | None
    next_at: datetime | None
    settled_at: datetime | None


@dataclass(frozen=True, slots=True)
class Key:
    """Which delivery, and under which fencing number one has it. id: finds its row."""

    stack_id: UUID
    sequence: int
    subscription_id: UUID
    claim: int
    id: UUID


@dataclass(frozen=True, slots=True)
class DeliveryStackHeader:
    """What is told of a stack with its events, besides what they are about.

    tags: of the outermost stack. path, root_id, root_name: where it is, if inside of another.
    """

    name: str
    owner: str
    tags: tuple[str, ...]
    created_at: datetime
    path: str = ""
    root_id: UUID | None = None
    root_name: str | None = None


@dataclass(frozen=True, slots=True)
class Due:
    """A claimed delivery, with all that is needed to try it.

    now: the database's time. plate: None: the event is of no stack. hook: of events about hooks;
    its deadline is what it will be when this attempt arrives. secrets: newest first. automation:
    the subscription as an answerer; whether its owner may answer is to be looked up.
    undecryptable: why there are no secrets, or "".
    """

    key: Key
    id: UUID
    project: str
    plate: DeliveryStackHeader | None
    hook_id: UUID | None
    attempts: int
    channel: str
    target: str
    ordered: bool
    secrets: tuple[str, ...]
    event: EventRecord
    hook: HookRecord | None
    notices: tuple[NoticeRecord, ...]
    now: datetime
    automation: Automation
    undecryptable: str = ""


@dataclass(frozen=True, slots=True)
class Settlement:
    """What came of an attempt.

    state: delivered, dead, or pending, to be tried again after `wait` seconds. left: seconds until
    it will be given up if it goes on failing, counted from then. target: as people may see it.
    gone: the endpoint said that it is gone for good. untried: there was no attempt: it stands
    behind what failed, or time was up.
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
    answer: str
    wait: float = 0.0
    left: float = 0.0
    gone: bool = False
    untried: bool = False


@dataclass(frozen=True, slots=True, order=True)
class Cursor:
    """A place in the stream: after the event `sequence` of the commit at `position`."""

    position: int
    sequence: int


@dataclass(frozen=True, slots=True)
class PublishedEvent:
    """An event with all that is told of it. plate: None: it is of no stack."""

    project: str
    plate: DeliveryStackHeader | None
    event: EventRecord
    hook: HookRecord | None


@dataclass(frozen=True, slots=True)
class StreamEvent:
    """A published event, with its place."""

    told: PublishedEvent
    cursor: Cursor
