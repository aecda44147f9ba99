"""Records that the store returns: frozen dataclasses; times are aware, in UTC."""

from dataclasses import dataclass
from datetime import datetime
from uuid import UUID

import orjson

from engine.hooks.answers import decisions
from engine.hooks.rule import decode_rule
from engine.words import Decision, Json


@dataclass(frozen=True, slots=True)
class StackRecord:
    """A stack with its current traversal. action and status make ``stack_status``.

    Of one inside of another: parent_id is the stack around it, root_id the outermost, path the
    names of the resources that lead to it from there, as ``web/0``.
    """

    id: UUID
    project: str
    name: str
    description: str
    action: str
    status: str
    reason: str
    owner: str
    tags: list[str]
    timeout_mins: int | None
    disable_rollback: bool
    created_at: datetime
    updated_at: datetime | None
    deleted_at: datetime | None
    traversal: int
    version: int
    pinned_by: str | None = None
    pinned_at: datetime | None = None
    pinned_reason: str | None = None
    parent_id: UUID | None = None
    root_id: UUID | None = None
    path: str = ""


@dataclass(frozen=True, slots=True)
class TemplateRecord:
    """One immutable version of what a stack should be.

    parameters: as given by the request and environment (text, numbers, maps ...), by name.
    hidden: names of the parameters whose values nobody is shown. source: the template's text as it
    was sent; None: it was sent as a document.
    """

    version: int
    template: Json
    environment: Json
    files: dict[str, str]
    parameters: Json
    hidden: list[str]
    created_at: datetime
    source: str | None = None


@dataclass(frozen=True, slots=True)
class ResourceRecord:
    """A resource as it is now; action and status include the operation that runs on it.

    parent_resource: the resource that owns its stack; None: the requested stack. nested_id,
    nested_name: its nested stack, if it has one. secret: names of its secret attributes
    (engine/hot/expressions/member_attributes.py); None: those that its type declares.
    """

    stack_id: UUID
    stack_name: str
    parent_resource: str | None
    nested_id: UUID | None
    nested_name: str | None
    id: UUID
    name: str
    type: str
    physical_id: str | None
    action: str
    status: str
    reason: str
    properties: Json
    shown: Json
    secret: list[str] | None
    attributes: Json
    metadata: Json
    requires: list[str]
    deletion_policy: str
    protected: bool
    created_at: datetime
    updated_at: datetime


@dataclass(frozen=True, slots=True)
class PlannedRecord:
    """A resource's row, as far as predicting a change needs it."""

    id: UUID
    name: str
    type: str
    action: str
    status: str
    physical_id: str | None
    reference: str | None
    properties: Json
    shown: Json
    secret: list[str] | None
    attributes: Json
    data: Json
    metadata: Json
    broken: bool
    protected: bool
    deletion_policy: str
    replaced_by: UUID | None


@dataclass(frozen=True, slots=True)
class EventRecord:
    """A fact. type is the CloudEvents type; action, status and reason are what Heat's API shows.

    resource_name is None for an event of the stack itself. status is None for events that the
    Orchestration API does not list (deliveries). stack_name: only where the API lists events.
    """

    stack_id: UUID
    sequence: int
    id: UUID
    type: str
    time: datetime
    resource_name: str | None
    resource_type: str | None
    physical_id: str | None
    action: str | None
    status: str | None
    reason: str
    data: Json
    traceparent: str | None = None
    stack_name: str = ""


@dataclass(frozen=True, slots=True)
class HookRecord:
    """One occurrence of a node reaching a breakpoint.

    rule: as engine/hooks/rule.py decodes it. requested_by: who asked for the change. assigned: to
    whom it was handed over. approved_by: who let it go on; so far, while it waits. root_stack:
    the outermost one; path: from there.
    """

    id: UUID
    project: str
    stack_id: UUID
    stack_name: str
    root_stack_id: UUID
    root_stack_name: str
    traversal: int
    node: int
    resource_name: str
    path: str
    point: str
    mode: str
    state: str
    opened_at: datetime
    deadline: datetime
    on_timeout: str
    digest: str
    decision: str | None
    reason: str | None
    decided_by: str | None
    door: str | None
    decided_at: datetime | None
    notice: Json
    rule: Json
    requested_by: str
    requested_by_id: str
    assigned: str | None
    escalated_at: datetime | None
    reminders: int
    approved_by: list[str]

    @property
    def allowed(self) -> list[Decision]:
        """What may be answered while it waits."""
        return decisions(decode_rule(self.rule), self.point)

    @property
    def may_answer(self) -> list[str]:
        """Principals, as in a rule's `answer_by`; empty: everyone."""
        rule = decode_rule(self.rule)
        late = rule.escalate.to if rule.escalate and self.escalated_at else ()
        handed = (self.assigned,) if self.assigned else ()
        return [*rule.answer_by, *late, *handed] if rule.answer_by else []

    @property
    def asks_for(self) -> Json:
        """The JSON schema that an answer's data must fit, or None."""
        return orjson.loads(self.rule["ask"]) if self.rule.get("ask") else None


@dataclass(frozen=True, slots=True)
class NodeRecord:
    """A step of the current traversal. awaits: the resource whose signals it waits for, by name.
    inside: the stack that its resource holds."""

    stack_id: UUID
    id: int
    resource_name: str
    type: str
    operation: str
    direction: str
    state: str
    phase: str
    waits: int
    requirers: list[int]
    rules: Json
    reason: str | None
    wake_at: datetime | None
    started_at: datetime | None
    ended_at: datetime | None
    awaits: str | None = None
    inside: UUID | None = None


@dataclass(frozen=True, slots=True)
class VersionRecord:
    """current: the stack should be so now. reached: once it was, whole."""

    version: int
    description: str
    requested_by: str
    created_at: datetime
    current: bool
    reached: bool


@dataclass(frozen=True, slots=True)
class TraversalRecord:
    """stale: resources left other than they should be. worked: seconds, those in hooks apart."""

    number: int
    action: str
    state: str
    reason: str
    digest: str
    version: int
    stale: list[str]
    requested_by: str
    started_at: datetime
    ended_at: datetime | None
    worked: float
