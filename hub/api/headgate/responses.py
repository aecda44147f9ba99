"""Response documents of Headgate's own routes; OpenAPI components are generated from them."""

from typing import Annotated, Literal, NotRequired

from pydantic import Field, WithJsonSchema
from typing_extensions import TypeAliasType, TypedDict

from engine.digest import DAILY, PERIODS
from engine.store.observer.observation_credentials import STATES as STATES_OF_CREDENTIALS
from engine.store.stacks.stack_overview import STATES
from engine.words import (
    Action,
    ConvergeState,
    Direction,
    FoundBy,
    Json,
    ObservationSource,
    ObservedState,
    OnDrift,
    Operation,
    Phase,
    State,
    TraversalState,
)
from hub.api.openapi_components import (
    Count,
    Document,
    HookDocument,
    HookOfProjectDocument,
    HookPoint,
    Time,
    TraceParent,
    Uuid,
    one_of,
)
from hub.api.orchestration.responses import AdoptedValue, Warning
from hub.auth.roles import Right

Day = Annotated[str, WithJsonSchema({"type": "string", "format": "date"})]
ActionName = Annotated[str, one_of(Action)]
OperationName = Annotated[str, one_of(Operation)]
DirectionName = Annotated[str, one_of(Direction)]
NodeState = Annotated[str, one_of(State)]
NodePhase = Annotated[str, one_of(Phase)]
TraversalStateName = Annotated[str, one_of(TraversalState)]
#: Of resources that differ.
DriftState = Annotated[
    str, one_of(state for state in ObservedState if state is not ObservedState.PRESENT)
]
StackStatus = Annotated[str, one_of(STATES)]
RightName = Annotated[str, one_of(right for right in Right if right is not Right.NOTHING)]


Hook = TypeAliasType("Hook", HookDocument)


HookOfProject = TypeAliasType("HookOfProject", HookOfProjectDocument)


class Hooks(TypedDict):
    """warnings: the list is incomplete, because cells of the server are not available."""

    hooks: list[Hook] | list[HookOfProject]
    next: Uuid | None
    warnings: NotRequired[list[Warning]]


class AuditEntry(TypedDict):
    number: Count
    stack_id: Uuid
    hook_id: Uuid | None
    kind: str
    by: str
    principal: str
    token_id: str
    channel: str
    address: str
    at: Time
    reason: str
    digest: str
    data: Json
    form: Count
    hash: Annotated[str, Field(pattern="^[0-9a-f]{64}$")]


class HookDecisions(TypedDict):
    decisions: list[AuditEntry]


class StackAuditLog(TypedDict):
    decisions: list[AuditEntry]
    next: Count | None


class ProjectAuditEntry(AuditEntry):
    """`stack_name` is null when the stack was purged."""

    stack_name: str | None
    path: str | None
    point: HookPoint | None


class ProjectAuditLog(TypedDict):
    decisions: list[ProjectAuditEntry]
    next: str | None


class Breakpoint(TypedDict):
    id: Uuid
    at: str
    on: HookPoint
    rule: Document
    created_by: str
    created_at: Time


class Breakpoints(TypedDict):
    breakpoints: list[Breakpoint]


class PassedBreakpoint(TypedDict):
    resource_name: str | None
    path: str
    point: HookPoint
    reason: str


class PassedBreakpoints(TypedDict):
    too_late: list[PassedBreakpoint]


class AddedBreakpoints(PassedBreakpoints):
    breakpoints: list[Breakpoint]


QuietHours = TypedDict("QuietHours", {"days": list[str], "from": str, "to": str, "timezone": str})


class Digest(TypedDict):
    """at, timezone: of a daily digest; else null."""

    every: Annotated[str, one_of((*PERIODS, DAILY))]
    at: str | None
    timezone: str | None


class Subscription(TypedDict):
    id: Uuid
    channel: str
    target: str
    events: list[str]
    stacks: list[str]
    resources: list[str]
    types: list[str]
    points: list[str]
    tags: list[str]
    nested: bool
    ordered: bool
    quiet_hours: QuietHours | None
    digest: Digest | None
    state: Annotated[str, one_of(("enabled", "disabled"))]
    reason: str
    origin: Annotated[str, one_of(("api", "configuration", "environment"))]
    name: str
    owner: str
    stack_id: Uuid | None
    failures: Count
    created_at: Time


class NewSubscription(Subscription):
    secret: str


class Subscriptions(TypedDict):
    subscriptions: list[Subscription]
    next: Uuid | None


class RotatedSecret(TypedDict):
    id: Uuid
    secret: str


class TestDelivered(TypedDict):
    delivered: Literal[True]
    code: int | None
    response: str


class TestFailed(TypedDict):
    delivered: Literal[False]
    code: int | None
    reason: str


class Delivery(TypedDict):
    id: Uuid
    stack_id: Uuid
    sequence: Count
    event_id: Uuid
    type: str
    state: Annotated[str, one_of(("pending", "delivered", "dead"))]
    attempts: Count
    next_at: Time | None
    code: int | None
    error: str | None
    response: str | None
    created_at: Time
    ended_at: Time | None


class Deliveries(TypedDict):
    deliveries: list[Delivery]
    next: Uuid | None


class Redelivery(TypedDict):
    redelivered: Count


class PublicKey(TypedDict):
    public_key: str | None


EventSchema = TypedDict(
    "EventSchema",
    {
        "$schema": str,
        "$id": str,
        "title": str,
        "type": str,
        "properties": Document,
        "required": list[str],
    },
)


class AsyncApi(TypedDict):
    asyncapi: str
    info: Document
    defaultContentType: str
    channels: Document
    operations: Document
    components: Document


class Traversal(TypedDict):
    number: Count
    action: ActionName
    state: TraversalStateName
    reason: str
    digest: str
    version: Count
    out_of_date: list[str]
    requested_by: str
    worked_seconds: Annotated[float, Field(ge=0)]
    started_at: Time
    ended_at: Time | None


class CurrentTraversal(TypedDict):
    number: Count
    action: ActionName
    state: TraversalStateName
    requested_by: str
    started_at: Time
    ended_at: Time | None


class StackLine(TypedDict):
    id: Uuid
    name: str
    action: ActionName
    status: StackStatus
    reason: str
    tags: list[str]
    owner: str
    created_at: Time
    updated_at: Time | None
    traversal: CurrentTraversal
    nodes: dict[str, Count]
    hooks_waiting: Count
    hooks_dry: Count
    resources: Count


class StackCounts(TypedDict):
    statuses: Annotated[dict[str, int], WithJsonSchema({
        "type": "object",
        "properties": {status: {"type": "integer", "minimum": 0} for status in STATES},
        "required": list(STATES),
    })]  # fmt: skip
    waiting: Count


class Overview(TypedDict):
    """`counts` is null unless the request asks for it."""

    stacks: list[StackLine]
    next: str | None
    counts: StackCounts | None


IdKind = Literal["stack", "hook", "subscription", "delivery"]


class IdMatch(TypedDict):
    """`name` of a hook is its place, such as `web:db:pre-create`; of a subscription its channel,
    and of a delivery the type of its event."""

    kind: IdKind
    id: Uuid
    name: str


class IdMatches(TypedDict):
    ids: list[IdMatch]


class Node(TypedDict):
    id: Count
    resource_name: str
    path: str
    type: str
    operation: OperationName
    direction: DirectionName
    state: NodeState
    phase: NodePhase
    waiting_for: list[Count]
    breakpoints: list[HookPoint]
    reason: str | None
    nested_stack_id: Uuid | None
    started_at: Time | None
    ended_at: Time | None
    until: Time | None
    label: str | None


class Graph(TypedDict):
    nodes: list[Node]
    edges: list[Annotated[list[Count], Field(min_length=2, max_length=2)]]
    traversal: Traversal
    sequence: Count


class NestedGraph(Graph):
    stack_id: Uuid
    stack_name: str
    path: str


class GraphWithNested(Graph):
    """`stacks` are the graphs of the nested stacks."""

    stacks: list[NestedGraph]


class StackProgress(TypedDict):
    id: Uuid
    name: str
    status: str
    reason: str


class NodeProgress(TypedDict):
    resource_name: str
    path: str
    state: NodeState
    phase: NodePhase
    sentence: str
    since: Time | None
    until: Time | None
    notifications: list[Json]


class UnknownState(TypedDict):
    """Resources whose state could not be observed, for the same reason. resources: their paths."""

    resources: list[str]
    reason: str
    since: Time
    next_observation_at: Time | None
    sentence: str


class PausedObservation(TypedDict):
    """Resources that are not observed until a time. resources: their number. resource_type,
    endpoint: that has failed; null: the budget of requests, or the quota of observations, is used
    up."""

    resources: Count
    resource_type: str | None
    endpoint: str | None
    until: Time
    reason: str
    sentence: str


class Difference(TypedDict):
    path: str
    desired: Json
    observed: Json


class HeldDrift(TypedDict):
    """Drift with a hook that waits for an answer. since: of the drift. opened_at: of the hook.
    allowed: the decisions that answers may contain. answer_by: empty: anyone in the project."""

    hook_id: Uuid
    resource_name: str
    path: str
    state: ObservedState
    differences: list[Difference]
    reason: str
    since: Time
    opened_at: Time
    allowed: list[str]
    answer_by: list[str]
    notifications: list[Json]
    sentence: str


class UnrepairedDrift(TypedDict):
    """Resources with drift about which no hook waits, and which are not repaired for the same
    reason. resources: their paths. since: of the oldest drift."""

    resources: list[str]
    since: Time
    reason: str
    sentence: str


class Explanation(TypedDict):
    stack: StackProgress
    nodes: list[NodeProgress]
    drift: list[HeldDrift]
    unrepaired: list[UnrepairedDrift]
    unknown: list[UnknownState]
    paused: list[PausedObservation]


class LastKnownDrift(TypedDict):
    """What was observed before the state became `unknown`. `since`: when `state` was observed
    first."""

    state: DriftState
    differences: list[Difference]
    reason: str
    since: Time


class DriftedResource(TypedDict):
    """`last_known`: null if `state` is not `unknown`, or nothing differed before. `observed_at`:
    when it was observed last."""

    resource_name: str
    resource_type: str
    physical_resource_id: str
    stack_id: Uuid
    stack_name: str
    path: str
    state: DriftState
    differences: list[Difference]
    reason: str
    since: Time
    observed_at: Time
    unrepaired: str | None
    found_by: FoundBy | None
    last_known: LastKnownDrift | None


class NestedDrift(TypedDict):
    """A resource in whose nested stack resources differ (`degraded`), or none differs and the state
    of some is not known (`unknown`). The state follows from these resources: only they are
    repaired. `reason` names them. `since`: of the oldest drift."""

    resource_name: str
    resource_type: str
    physical_resource_id: str | None
    stack_id: Uuid
    stack_name: str
    path: str
    state: Annotated[str, one_of((ObservedState.DEGRADED, ObservedState.UNKNOWN))]
    reason: str
    since: Time
    observed_at: Time


class ObservationInterval(TypedDict):
    every: str


RepairWindow = TypedDict(
    "RepairWindow",
    {"days": list[str], "from": str, "to": str, "timezone": str, "opens_at": Time | None},
)


class ConvergencePolicy(TypedDict):
    """`opens_at` of the `window` is null while it is open."""

    observe: ObservationInterval | Literal["never"]
    on_drift: OnDrift
    tolerate: str
    repairs_per_day: Count
    window: RepairWindow | None
    ignore: dict[str, list[str]]
    hold: dict[str, Json]
    by_operator: list[str]


class AdoptedValueOfResource(AdoptedValue):
    """`resource_path`: from the root stack."""

    resource_name: str
    resource_path: str
    stack_id: Uuid


class Converge(TypedDict):
    """A converge with several rounds. `round`: the current or the last one."""

    round: Count
    rounds: Count
    state: ConvergeState
    reason: str


class Drift(TypedDict):
    """`nested`: the resources that own the nested stacks of `resources`. `converge`: null if the
    last change of the stack was none with several rounds."""

    observed_at: Time | None
    observing: bool
    observable_resources: Count
    unobservable_resources: Count
    policy: ConvergencePolicy | None
    next_observation_at: Time | None
    resources: list[DriftedResource]
    nested: list[NestedDrift]
    adopted: list[AdoptedValueOfResource]
    paused: list[PausedObservation]
    converge: Converge | None


class ReportedChanges(TypedDict):
    """`resources` and `stacks` will be observed; `unknown` IDs belong to no resource of the
    project."""

    resources: Count
    stacks: Count
    unknown: Count


class ObjectDifference(TypedDict):
    """A property of an existing resource that a template cannot have as it is. desired: of the
    template; observed: of the existing resource."""

    property: str
    desired: Json
    observed: Json


class ReadResource(TypedDict):
    """An existing resource. resource_name: in the template. unread: the reasons for properties that
    could not be read."""

    resource_name: str
    resource_type: str
    physical_resource_id: str
    properties: Document
    unread: dict[str, str]
    differences: list[ObjectDifference]


class UnreadResource(TypedDict):
    """Why an existing resource could not be read."""

    place: str
    reason: str
    remedy: str
    code: str


class ImportedTemplate(TypedDict):
    """A template that imports existing resources, in YAML. parameters: those that need a value.
    findings: about the resources that it leaves out."""

    template: str
    parameters: list[str]
    resources: list[ReadResource]
    findings: list[UnreadResource]


class ReadOutput(TypedDict):
    stack_name: str | None
    stack_id: Uuid
    output: str
    secret: bool
    changed: bool


class DependentStack(TypedDict):
    stack_name: str
    stack_id: Uuid


class Dependencies(TypedDict):
    reads: list[ReadOutput]
    read_by: list[DependentStack]


class InspectedStack(TypedDict):
    id: Uuid
    name: str
    traversal: Count


class InspectedStatus(TypedDict):
    id: Uuid
    action: str
    status: str
    reason: str
    protected: bool
    deletion_policy: str
    created_at: Time
    updated_at: Time


class NestedStack(TypedDict):
    id: Uuid
    name: str | None


class InspectedNode(TypedDict):
    """`properties` and `changes` are null until they are known, and after the node ended."""

    id: Count
    traversal: Count
    type: str
    operation: OperationName
    direction: DirectionName
    state: NodeState
    phase: NodePhase
    reason: str | None
    waiting_for: list[str]
    started_at: Time | None
    ended_at: Time | None
    until: Time | None
    operation_key: Uuid | None
    restarts: Count
    properties: Document | None
    changes: Document | None
    label: str | None


class EffectiveBreakpoint(TypedDict):
    point: HookPoint
    source: Annotated[str, one_of(("operator", "live", "step", "request", "definition"))]
    rule: Document
    id: Uuid | None
    created_by: str | None


class ObservedResource(TypedDict):
    """since: when the state was observed first; null: it is as recorded. last_known: null if the
    state is not unknown, or nothing differed before."""

    state: ObservedState
    source: ObservationSource
    observed_at: Time
    since: Time | None
    reason: str
    differences: list[Difference]
    last_known: LastKnownDrift | None


class InspectedResource(TypedDict):
    """`observed`: null if it has no physical resource, or cannot be observed."""

    name: str
    path: str
    type: str
    stack: InspectedStack
    physical_id: str | None
    status: InspectedStatus | None
    properties: Document
    attributes: Document
    metadata: Document
    requires: list[str]
    required_by: list[str]
    nested_stack: NestedStack | None
    nodes: list[InspectedNode]
    breakpoints: list[EffectiveBreakpoint]
    hooks: list[Hook]
    label: str | None
    observed: ObservedResource | None


class CloudEvent(TypedDict):
    """An event as on every channel; /asyncapi.json describes its data."""

    specversion: Literal["1.0"]
    id: Uuid
    source: str
    type: str
    time: Time
    datacontenttype: str
    dataschema: str
    sequence: Count
    rootstack: Uuid
    data: Document
    stackpath: NotRequired[str]
    subject: NotRequired[str]
    traceparent: NotRequired[TraceParent]


class History(TypedDict):
    events: list[CloudEvent]
    next: Count | None


class TemplateVersion(TypedDict):
    version: Count
    description: str
    requested_by: str
    created_at: Time
    current: bool
    reached: bool


class TemplateVersions(TypedDict):
    versions: list[TemplateVersion]
    traversals: list[Traversal]


class TemplateVersionContent(TypedDict):
    version: Count
    created_at: Time
    template: Document
    source: str | None
    environment: Document
    files: dict[str, str]


class ResourceSnapshot(TypedDict):
    resource_name: str
    type: str
    physical_id: str | None
    created_at: Time


class ResourceSnapshots(TypedDict):
    resource_snapshots: list[ResourceSnapshot]


class Quota(TypedDict):
    """`limit` is null for unlimited."""

    name: str
    limit: int | None
    used: Count


class Quotas(TypedDict):
    quotas: list[Quota]


class DayUsage(TypedDict):
    """`hooks` that ended, and how long they waited; `repairs` and `operations` of changes that
    ended."""

    day: Day
    observations: Count
    provider_requests: Count
    drift_found: Count
    repairs: Count
    operations: Count
    hooks: Count
    hook_seconds: Count
    resource_hours: Count


class PausedEndpoint(TypedDict):
    """An endpoint of a provider to which the observer sends no more requests of the project until a
    time. requests_per_minute, used: of its budget, which all projects share and which is used up:
    the requests that it has not refilled yet. Null, with a resource_type: the endpoint failed, or
    requested fewer requests."""

    endpoint: str
    resource_type: str | None
    requests_per_minute: Annotated[float, Field(ge=0)] | None
    used: Count | None
    until: Time
    reason: str


class RequestedEndpoint(TypedDict):
    """An endpoint of a provider to which the observer has sent requests of the project today.
    requests_per_minute, used: of its budget, which all projects share: the requests that it has not
    refilled yet; null: it has no budget."""

    endpoint: str
    requests: Count
    requests_per_minute: Annotated[float, Field(ge=0)] | None
    used: Count | None


class Usage(TypedDict):
    """paused: now, and not of the days. endpoints: today, those with the most requests first."""

    first: Day
    last: Day
    usage: list[DayUsage]
    paused: list[PausedEndpoint]
    endpoints: list[RequestedEndpoint]


class SessionDocument(TypedDict):
    """`aliases` are the names of the user after `user:` in hook rules. `csrf` and `expires_at`
    belong to the session of a browser, and are null without one."""

    name: str
    aliases: list[str]
    project: str
    roles: list[str]
    rights: list[RightName]
    everywhere: bool
    csrf: str | None
    expires_at: Time | None


class Token(TypedDict):
    id: Uuid
    name: str
    roles: list[str]
    kind: Annotated[str, one_of(("token", "password"))]
    mode: Annotated[str, one_of(("none", "tokens", "keystone"))]
    everywhere: bool
    created_by: str
    created_at: Time
    expires_at: Time | None
    used_at: Time | None
    revoked_at: Time | None
    revoked_by: str | None


class ObservationCredential(TypedDict):
    """The application credential that the owner of the project has handed over for observations.
    used_by_observer: false if the operator has configured a reader, or no types of OpenStack.
    used_at: Keystone gave a token last. failed_at, reason: it refused the credential last.
    expires_at: null: never, or Keystone does not show it. repairs: repairs of drift act with it."""

    id: Uuid
    application_credential_id: str
    name: str
    user_id: str
    user_name: str
    roles: list[str]
    access_rules: bool
    state: Annotated[str, one_of(STATES_OF_CREDENTIALS)]
    used_by_observer: bool
    created_by: str
    created_at: Time
    expires_at: Time | None
    used_at: Time
    failed_at: Time | None
    reason: str | None
    repairs: bool


class Tokens(TypedDict):
    tokens: list[Token]


class NewToken(Token):
    """`token` is shown only in this response; it is null for a password."""

    token: str | None


class LoginCode(TypedDict):
    """`code` is exchanged for a token by the command line that began the login."""

    code: str
