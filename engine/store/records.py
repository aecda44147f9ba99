"""Records that several modules of the store return. All times are in UTC."""

from dataclasses import dataclass, replace
from datetime import datetime
from uuid import UUID

import orjson

from engine.hooks.answer_rights import answerers
from engine.hooks.answers import allowed_decisions
from engine.hooks.rule import decode_rule
from engine.hot.evaluation.stack_outputs import OutputName, StackOutput, decode_stack_outputs
from engine.store.key_order import in_order
from engine.words import Decision, Json


@dataclass(frozen=True, slots=True)
class StackRecord:
    """A stack with its current traversal. ``stack_status`` is made of action and status.

    Nested stacks: parent_id is the parent stack, root_id the root stack, and path the names of the
    resources that lead from the root stack to it (``web/0``). private_outputs: a root stack that
    was nested; its secret outputs stay masked. region: as `Call.region`; "" in lists.
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
    private_outputs: bool = False
    region: str = ""


@dataclass(frozen=True, slots=True)
class TemplateRecord:
    """One immutable template version of a stack.

    parameters: values of the request and environment (text, numbers, maps ...), by name.
    hidden_parameters: names of hidden ones. source: the template's text as the client sent it;
    None: the client sent a document. key_order: of the fields, by name
    (engine/store/key_order.py). stack_outputs: of other stacks that the version has read.
    """

    version: int
    template: Json
    environment: Json
    files: dict[str, str]
    parameters: Json
    hidden_parameters: list[str]
    created_at: datetime
    source: str | None = None
    key_order: Json = None
    stack_outputs: Json = ()

    def read_outputs(self) -> dict[OutputName, StackOutput]:
        """The outputs of other stacks with the values that the version has read."""
        return decode_stack_outputs(self.stack_outputs)

    def restore_order(self) -> "TemplateRecord":
        """The record with the keys of its documents in the order in which they were sent."""
        return replace(
            self,
            template=in_order(self.template, self.order_of("template")),
            environment=self.ordered_environment(),
            parameters=self.ordered_parameters(),
        )

    def order_of(self, field_name: str) -> Json:
        return (self.key_order or {}).get(field_name)

    def ordered_environment(self) -> dict[str, Json]:
        environment: dict[str, Json] = in_order(self.environment, self.order_of("environment"))
        return environment

    def ordered_parameters(self) -> dict[str, Json]:
        parameters: dict[str, Json] = in_order(self.parameters, self.order_of("parameters"))
        return parameters


@dataclass(frozen=True, slots=True)
class ResourceRecord:
    """A resource with its current state. action and status include the operation that runs on it.

    parent_resource: the resource that owns its stack; None: of a root stack. nested_id,
    nested_name: its nested stack, if it has one. secret_attributes: names of its secret attributes
    (engine/hot/expressions/member_attributes.py); None: those that its type declares. label: of the
    workers that act on it; None: those without a label.
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
    masked_properties: Json
    secret_attributes: list[str] | None
    attributes: Json
    metadata: Json
    requires: list[str]
    deletion_policy: str
    protected: bool
    created_at: datetime
    updated_at: datetime
    label: str | None = None


@dataclass(frozen=True, slots=True)
class PlannedRecord:
    """The columns of a resource's row that the preview of a change needs."""

    id: UUID
    name: str
    type: str
    action: str
    status: str
    physical_id: str | None
    reference: str | None
    properties: Json
    masked_properties: Json
    secret_attributes: list[str] | None
    attributes: Json
    data: Json
    metadata: Json
    tainted: bool
    protected: bool
    deletion_policy: str
    replaced_by: UUID | None
    lifecycle: Json


@dataclass(frozen=True, slots=True)
class EventRecord:
    """An event. type is the CloudEvents type; action, status and reason are those of Heat's API.

    resource_name: None: an event of the stack itself. status: None: the Orchestration API does not
    list the event, for example one about deliveries. stack_name: set only in lists of the API.
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
    """One occurrence of a change at a breakpoint.

    rule: encoded (engine/hooks/rule.py). requested_by: the requester of the change. assigned: the
    principal to whom the hook was handed over. approved_by: the principals who have approved it.
    operator_approval: the point at which an operator rule has approved what an answer must not
    patch; None also if the rule allows no patch. path: from the root stack.
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
    channel: str | None
    decided_at: datetime | None
    notification: Json
    rule: Json
    requested_by: str
    requested_by_id: str
    assigned: str | None
    escalated_at: datetime | None
    reminders: int
    approved_by: list[str]
    operator_approval: str | None = None

    @property
    def allowed(self) -> list[Decision]:
        """The decisions that answers may contain while the hook waits."""
        return allowed_decisions(decode_rule(self.rule), self.point, self.operator_approval)

    @property
    def may_answer(self) -> list[str]:
        """The principals who may answer, as in a rule's `answer_by`; empty: all principals."""
        rule = decode_rule(self.rule)
        approvers = answerers(rule, escalated=self.escalated_at is not None)
        assigned = (self.assigned,) if self.assigned else ()
        return [*approvers, *assigned] if approvers else []

    @property
    def asks_for(self) -> Json:
        """The JSON schema of the answer data, or None."""
        return orjson.loads(self.rule["ask"]) if self.rule.get("ask") else None


@dataclass(frozen=True, slots=True)
class NodeRecord:
    """A node of a traversal. signal_resource_name: of the resource whose signals it waits for.
    nested_stack_id: of the nested stack that its resource owns. label: of the workers that execute
    it; None or "": those without a label."""

    stack_id: UUID
    id: int
    resource_name: str
    type: str
    operation: str
    direction: str
    state: str
    phase: str
    pending_dependencies: int
    dependents: list[int]
    rules: Json
    reason: str | None
    wake_at: datetime | None
    started_at: datetime | None
    ended_at: datetime | None
    signal_resource_name: str | None = None
    nested_stack_id: UUID | None = None
    label: str | None = None


@dataclass(frozen=True, slots=True)
class VersionRecord:
    """A template version. current: it is the stack's current one. reached: an action has applied it
    completely."""

    version: int
    description: str
    requested_by: str
    created_at: datetime
    current: bool
    reached: bool


@dataclass(frozen=True, slots=True)
class TraversalRecord:
    """out_of_date: names of resources. working_time: in seconds; it does not include waiting
    hooks."""

    number: int
    action: str
    state: str
    reason: str
    digest: str
    version: int
    out_of_date: list[str]
    requested_by: str
    started_at: datetime
    ended_at: datetime | None
    working_time: float
