"""The documents of responses and events, as the API describes them in /openapi.json.

Generated from the server's response classes by `make client-documents`; do not edit.
"""

from typing import Any, Literal, NotRequired, TypedDict

Json = Any


class Warning(TypedDict):
    """Something in a request that is accepted and has probably not the meant effect. path: the
    place in the document. file: its name in `files`, `template` or `environment`. line, column:
    from 1. quote: the line, and a caret below the column."""

    code: str
    message: str
    path: str
    file: str | None
    line: int | None
    column: int | None
    quote: str | None


class AcceptedUpdate(TypedDict):
    warnings: list[Warning]


class PassedBreakpoint(TypedDict):
    resource_name: str | None
    path: str
    point: str
    reason: str


class Breakpoint(TypedDict):
    id: str
    at: str
    on: str
    rule: dict[str, Json]
    created_by: str
    created_at: str


class AddedBreakpoints(TypedDict):
    too_late: list[PassedBreakpoint]
    breakpoints: list[Breakpoint]


class Link(TypedDict):
    href: str
    rel: str


class ApiVersion(TypedDict):
    id: Literal["v1.0"]
    status: Literal["CURRENT"]
    links: list[Link]


class ApiVersions(TypedDict):
    versions: list[ApiVersion]


class AsyncApi(TypedDict):
    asyncapi: str
    info: dict[str, Json]
    defaultContentType: str
    channels: dict[str, Json]
    operations: dict[str, Json]
    components: dict[str, Json]


class Breakpoints(TypedDict):
    breakpoints: list[Breakpoint]


class Revision(TypedDict):
    revision: str


class BuildInfo(TypedDict):
    api: Revision
    engine: Revision


class CloudEvent(TypedDict):
    """An event as on every channel; /asyncapi.json describes its data."""

    specversion: Literal["1.0"]
    id: str
    source: str
    type: str
    time: str
    datacontenttype: str
    dataschema: str
    sequence: int
    rootstack: str
    data: dict[str, Json]
    stackpath: NotRequired[str]
    subject: NotRequired[str]
    traceparent: NotRequired[str]


class CreatedStackReference(TypedDict):
    id: str
    links: list[Link]


class CreatedStack(TypedDict):
    stack: CreatedStackReference
    warnings: list[Warning]


class Delivery(TypedDict):
    id: str
    stack_id: str
    sequence: int
    event_id: str
    type: str
    state: Literal["pending", "delivered", "dead"]
    attempts: int
    next_at: str | None
    code: int | None
    error: str | None
    response: str | None
    created_at: str
    ended_at: str | None


class Deliveries(TypedDict):
    deliveries: list[Delivery]
    next: str | None


class ReadOutput(TypedDict):
    stack_name: str | None
    stack_id: str
    output: str
    secret: bool
    changed: bool


class DependentStack(TypedDict):
    stack_name: str
    stack_id: str


class Dependencies(TypedDict):
    reads: list[ReadOutput]
    read_by: list[DependentStack]


class SoftwareConfig(TypedDict):
    id: str
    name: str
    group: str
    creation_time: str
    config: Json
    inputs: list[Json]
    outputs: list[Json]
    options: dict[str, Json]


class DeployedConfigs(TypedDict):
    metadata: list[SoftwareConfig]


class ObservationInterval(TypedDict):
    every: str


RepairWindow = TypedDict(
    "RepairWindow",
    {
        "days": "list[str]",
        "from": "str",
        "to": "str",
        "timezone": "str",
        "opens_at": "str | None",
    },
)


class ConvergencePolicy(TypedDict):
    """`opens_at` of the `window` is null while it is open."""

    observe: ObservationInterval | Literal["never"]
    on_drift: Literal["ignore", "notify", "hold", "repair"]
    tolerate: str
    repairs_per_day: int
    window: RepairWindow | None
    ignore: dict[str, list[str]]
    hold: dict[str, Json]
    by_operator: list[str]


class Difference(TypedDict):
    path: str
    desired: Json
    observed: Json


class LastKnownDrift(TypedDict):
    """What was observed before the state became `unknown`. `since`: when `state` was observed
    first."""

    state: Literal["missing", "changed", "degraded", "unknown"]
    differences: list[Difference]
    reason: str
    since: str


class DriftedResource(TypedDict):
    """`last_known`: null if `state` is not `unknown`, or nothing differed before. `observed_at`:
    when it was observed last."""

    resource_name: str
    resource_type: str
    physical_resource_id: str
    stack_id: str
    stack_name: str
    path: str
    state: Literal["missing", "changed", "degraded", "unknown"]
    differences: list[Difference]
    reason: str
    since: str
    observed_at: str
    unrepaired: str | None
    found_by: Literal["request", "policy", "report"] | None
    last_known: LastKnownDrift | None


class NestedDrift(TypedDict):
    """A resource in whose nested stack resources differ (`degraded`), or none differs and the state
    of some is not known (`unknown`). The state follows from these resources: only they are
    repaired. `reason` names them. `since`: of the oldest drift."""

    resource_name: str
    resource_type: str
    physical_resource_id: str | None
    stack_id: str
    stack_name: str
    path: str
    state: Literal["degraded", "unknown"]
    reason: str
    since: str
    observed_at: str


class AdoptedValueOfResource(TypedDict):
    """`resource_path`: from the root stack."""

    path: str
    value: Json
    template: Json
    adopted_by: str
    adopted_at: str
    resource_name: str
    resource_path: str
    stack_id: str


class PausedObservation(TypedDict):
    """Resources that are not observed until a time. resources: their number. resource_type,
    endpoint: that has failed; null: the budget of requests, or the quota of observations, is used
    up."""

    resources: int
    resource_type: str | None
    endpoint: str | None
    until: str
    reason: str
    sentence: str


class Converge(TypedDict):
    """A converge with several rounds. `round`: the current or the last one."""

    round: int
    rounds: int
    state: Literal["running", "observing", "complete", "incomplete", "ended"]
    reason: str


class Drift(TypedDict):
    """`nested`: the resources that own the nested stacks of `resources`. `converge`: null if the
    last change of the stack was none with several rounds."""

    observed_at: str | None
    observing: bool
    observable_resources: int
    unobservable_resources: int
    policy: ConvergencePolicy | None
    next_observation_at: str | None
    resources: list[DriftedResource]
    nested: list[NestedDrift]
    adopted: list[AdoptedValueOfResource]
    paused: list[PausedObservation]
    converge: Converge | None


EventSchema = TypedDict(
    "EventSchema",
    {
        "$schema": "str",
        "$id": "str",
        "title": "str",
        "type": "str",
        "properties": "dict[str, Json]",
        "required": "list[str]",
    },
)


class EventInList(TypedDict):
    id: str
    links: list[Link]
    event_time: str
    resource_name: str
    logical_resource_id: str
    headgate_resource_name: str
    physical_resource_id: str | None
    resource_status: str
    resource_status_reason: str


class Events(TypedDict):
    events: list[EventInList]


class StackProgress(TypedDict):
    id: str
    name: str
    status: str
    reason: str


class NodeProgress(TypedDict):
    resource_name: str
    path: str
    state: Literal["waiting", "ready", "running", "parked", "done", "failed", "stopped", "dropped"]
    phase: Literal["pre", "execute", "confirm", "post"]
    sentence: str
    since: str | None
    until: str | None
    notifications: list[Json]


class HeldDrift(TypedDict):
    """Drift with a hook that waits for an answer. since: of the drift. opened_at: of the hook.
    allowed: the decisions that answers may contain. answer_by: empty: anyone in the project."""

    hook_id: str
    resource_name: str
    path: str
    state: Literal["present", "missing", "changed", "degraded", "unknown"]
    differences: list[Difference]
    reason: str
    since: str
    opened_at: str
    allowed: list[str]
    answer_by: list[str]
    notifications: list[Json]
    sentence: str


class UnrepairedDrift(TypedDict):
    """Resources with drift about which no hook waits, and which are not repaired for the same
    reason. resources: their paths. since: of the oldest drift."""

    resources: list[str]
    since: str
    reason: str
    sentence: str


class UnknownState(TypedDict):
    """Resources whose state could not be observed, for the same reason. resources: their paths."""

    resources: list[str]
    reason: str
    since: str
    next_observation_at: str | None
    sentence: str


class Explanation(TypedDict):
    stack: StackProgress
    nodes: list[NodeProgress]
    drift: list[HeldDrift]
    unrepaired: list[UnrepairedDrift]
    unknown: list[UnknownState]
    paused: list[PausedObservation]


class ExportedResource(TypedDict):
    name: str
    type: str
    action: str
    status: str
    resource_id: str | None
    metadata: dict[str, Json]
    resource_data: dict[str, Json]


class Export(TypedDict):
    name: str
    id: str
    action: str
    status: Literal["IN_PROGRESS", "COMPLETE", "FAILED", "STOPPED"]
    project_id: str
    stack_user_project_id: str
    tags: list[str]
    template: dict[str, Json]
    environment: dict[str, Json]
    files: dict[str, str]
    resources: dict[str, ExportedResource]


class Node(TypedDict):
    id: int
    resource_name: str
    path: str
    type: str
    operation: Literal[
        "create",
        "update",
        "replace",
        "delete",
        "adopt",
        "check",
        "suspend",
        "resume",
        "snapshot",
        "begin",
        "finish",
    ]
    direction: Literal["forward", "cleanup"]
    state: Literal["waiting", "ready", "running", "parked", "done", "failed", "stopped", "dropped"]
    phase: Literal["pre", "execute", "confirm", "post"]
    waiting_for: list[int]
    breakpoints: list[str]
    reason: str | None
    nested_stack_id: str | None
    started_at: str | None
    ended_at: str | None
    until: str | None
    label: str | None


class Traversal(TypedDict):
    number: int
    action: Literal[
        "CREATE",
        "UPDATE",
        "DELETE",
        "ROLLBACK",
        "ADOPT",
        "CHECK",
        "SUSPEND",
        "RESUME",
        "SNAPSHOT",
        "RESTORE",
    ]
    state: Literal["running", "ending", "complete", "failed", "stopped", "superseded"]
    reason: str
    digest: str
    version: int
    out_of_date: list[str]
    requested_by: str
    worked_seconds: float
    started_at: str
    ended_at: str | None


class Graph(TypedDict):
    nodes: list[Node]
    edges: list[list[int]]
    traversal: Traversal
    sequence: int


class NestedGraph(TypedDict):
    nodes: list[Node]
    edges: list[list[int]]
    traversal: Traversal
    sequence: int
    stack_id: str
    stack_name: str
    path: str


class GraphWithNested(TypedDict):
    """`stacks` are the graphs of the nested stacks."""

    nodes: list[Node]
    edges: list[list[int]]
    traversal: Traversal
    sequence: int
    stacks: list[NestedGraph]


class FindingDocument(TypedDict):
    """One of the errors in a request. file: a name in `files`, `template` or `environment`. line,
    column: from 1. quote: the line, and a caret below the column. These are null if they are
    unknown."""

    place: str
    reason: str
    remedy: str
    type: str
    file: str | None
    line: int | None
    column: int | None
    quote: str | None


class HeatError(TypedDict):
    """message: Heat's sentence, where it has one; `place` and `remedy` are then separate.
    warnings: also found in the request that is refused. help: the page about the type; absent if
    the request could not be read, or its host is not one of this server."""

    type: str
    message: str
    traceback: None
    place: NotRequired[str]
    remedy: NotRequired[str]
    findings: NotRequired[list[FindingDocument]]
    warnings: NotRequired[list[Warning]]
    help: NotRequired[str]


class HeatProblem(TypedDict):
    """The error response of the routes of the Orchestration API."""

    code: int
    title: str
    explanation: str
    error: HeatError


class History(TypedDict):
    events: list[CloudEvent]
    next: int | None


class HookApprovals(TypedDict):
    needed: int
    given: int
    by: list[Json]


class HookAsked(TypedDict):
    subscription: str
    channel: str
    target: str
    state: Literal["pending", "delivered", "dead", "disabled"]
    attempts: int
    code: int | None
    error: str | None
    next_at: str | None


class HookTold(TypedDict):
    subscription: str
    channel: str
    target: str
    at: str


class HookResourceDriftDifferences(TypedDict):
    path: str
    desired: Json
    observed: Json


class HookResourceDrift(TypedDict):
    state: Literal["present", "missing", "changed", "degraded", "unknown"]
    differences: list[HookResourceDriftDifferences]
    since: str
    reason: str


class HookResourceRenewed(TypedDict):
    times: int
    previous: str
    reason: str


class HookResource(TypedDict):
    name: str
    type: str | None
    physical_id: str | None
    operation: str | None
    properties: dict[str, Json]
    changes: dict[str, Json]
    dependents: list[str]
    seen: dict[str, Json]
    drift: HookResourceDrift | None
    renewed: HookResourceRenewed | None


class HookChange(TypedDict):
    action: str
    version: int
    requested_by: str
    parameters: dict[str, Json]
    tags: list[str]
    plan: list[dict[str, Json]]
    only: list[str] | None


class Hook(TypedDict):
    id: str
    stack_id: str
    stack_name: str
    root_stack_id: str
    root_stack_name: str
    traversal: int
    node: int | None
    resource_name: str | None
    path: str
    point: str
    mode: Literal["notify", "wait", "stop"]
    opened_at: str
    deadline: str | None
    on_timeout: Literal["stop", "continue", "reject"]
    allowed: list[
        Literal[
            "continue", "reject", "step", "run", "patch", "progress", "adopt", "repair", "ignore"
        ]
    ]
    digest: str
    approvals: HookApprovals
    answer_by: list[Json]
    exclude: str
    ask: dict[str, Json] | None
    patch: list[Json]
    dry: bool
    by_operator: bool
    requested_by: str
    assigned: str | None
    reminders: int
    escalated_at: str | None
    answers: dict[str, Json]
    asked: list[HookAsked]
    told: list[HookTold]
    state: Literal["waiting", "answered", "expired", "superseded"]
    resource: HookResource | None
    decision: NotRequired[str | None]
    reason: NotRequired[str | None]
    decided_by: NotRequired[str | None]
    channel: NotRequired[str | None]
    decided_at: NotRequired[str | None]
    change: NotRequired[HookChange]


class AuditEntry(TypedDict):
    number: int
    stack_id: str
    hook_id: str | None
    kind: str
    by: str
    principal: str
    token_id: str
    channel: str
    address: str
    at: str
    reason: str
    digest: str
    data: Json
    form: int
    hash: str


class HookDecisions(TypedDict):
    decisions: list[AuditEntry]


class HookOfProject(TypedDict):
    id: str
    stack_id: str
    stack_name: str
    root_stack_id: str
    root_stack_name: str
    traversal: int
    node: int | None
    resource_name: str | None
    path: str
    point: str
    mode: Literal["notify", "wait", "stop"]
    opened_at: str
    deadline: str | None
    on_timeout: Literal["stop", "continue", "reject"]
    allowed: list[
        Literal[
            "continue", "reject", "step", "run", "patch", "progress", "adopt", "repair", "ignore"
        ]
    ]
    digest: str
    approvals: HookApprovals
    answer_by: list[Json]
    exclude: str
    ask: dict[str, Json] | None
    patch: list[Json]
    dry: bool
    by_operator: bool
    requested_by: str
    assigned: str | None
    reminders: int
    escalated_at: str | None
    answers: dict[str, Json]
    asked: list[HookAsked]
    told: list[HookTold]
    state: Literal["waiting", "answered", "expired", "superseded"]
    resource: HookResource | None
    project: str
    answer_url: str
    decision: NotRequired[str | None]
    reason: NotRequired[str | None]
    decided_by: NotRequired[str | None]
    channel: NotRequired[str | None]
    decided_at: NotRequired[str | None]
    change: NotRequired[HookChange]


class Hooks(TypedDict):
    """warnings: the list is incomplete, because cells of the server are not available."""

    hooks: list[Hook] | list[HookOfProject]
    next: str | None
    warnings: NotRequired[list[Warning]]


class IdMatch(TypedDict):
    """`name` of a hook is its place, such as `web:db:pre-create`; of a subscription its channel,
    and of a delivery the type of its event."""

    kind: Literal["stack", "hook", "subscription", "delivery"]
    id: str
    name: str


class IdMatches(TypedDict):
    ids: list[IdMatch]


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
    properties: dict[str, Json]
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


class InspectedStack(TypedDict):
    id: str
    name: str
    traversal: int


class InspectedStatus(TypedDict):
    id: str
    action: str
    status: str
    reason: str
    protected: bool
    deletion_policy: str
    created_at: str
    updated_at: str


class NestedStack(TypedDict):
    id: str
    name: str | None


class InspectedNode(TypedDict):
    """`properties` and `changes` are null until they are known, and after the node ended."""

    id: int
    traversal: int
    type: str
    operation: Literal[
        "create",
        "update",
        "replace",
        "delete",
        "adopt",
        "check",
        "suspend",
        "resume",
        "snapshot",
        "begin",
        "finish",
    ]
    direction: Literal["forward", "cleanup"]
    state: Literal["waiting", "ready", "running", "parked", "done", "failed", "stopped", "dropped"]
    phase: Literal["pre", "execute", "confirm", "post"]
    reason: str | None
    waiting_for: list[str]
    started_at: str | None
    ended_at: str | None
    until: str | None
    operation_key: str | None
    restarts: int
    properties: dict[str, Json] | None
    changes: dict[str, Json] | None
    label: str | None


class EffectiveBreakpoint(TypedDict):
    point: str
    source: Literal["operator", "live", "step", "request", "definition"]
    rule: dict[str, Json]
    id: str | None
    created_by: str | None


class ObservedResource(TypedDict):
    """since: when the state was observed first; null: it is as recorded. last_known: null if the
    state is not unknown, or nothing differed before."""

    state: Literal["present", "missing", "changed", "degraded", "unknown"]
    source: Literal["poll", "event", "operation"]
    observed_at: str
    since: str | None
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
    properties: dict[str, Json]
    attributes: dict[str, Json]
    metadata: dict[str, Json]
    requires: list[str]
    required_by: list[str]
    nested_stack: NestedStack | None
    nodes: list[InspectedNode]
    breakpoints: list[EffectiveBreakpoint]
    hooks: list[Hook]
    label: str | None
    observed: ObservedResource | None


class Liveness(TypedDict):
    alive: Literal[True]


class LoginCode(TypedDict):
    """`code` is exchanged for a token by the command line that began the login."""

    code: str


class Metadata(TypedDict):
    metadata: dict[str, Json]


QuietHours = TypedDict(
    "QuietHours",
    {
        "days": "list[str]",
        "from": "str",
        "to": "str",
        "timezone": "str",
    },
)


class Digest(TypedDict):
    """at, timezone: of a daily digest; else null."""

    every: Literal["15m", "1h", "daily"]
    at: str | None
    timezone: str | None


class NewSubscription(TypedDict):
    id: str
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
    state: Literal["enabled", "disabled"]
    reason: str
    origin: Literal["api", "configuration", "environment"]
    name: str
    owner: str
    stack_id: str | None
    failures: int
    created_at: str
    secret: str


class NewToken(TypedDict):
    """`token` is shown only in this response; it is null for a password."""

    id: str
    name: str
    roles: list[str]
    kind: Literal["token", "password"]
    mode: Literal["none", "tokens", "keystone"]
    everywhere: bool
    created_by: str
    created_at: str
    expires_at: str | None
    used_at: str | None
    revoked_at: str | None
    revoked_by: str | None
    token: str | None


class ObservationCredential(TypedDict):
    """The application credential that the owner of the project has handed over for observations.
    used_by_observer: false if the operator has configured a reader, or no types of OpenStack.
    used_at: Keystone gave a token last. failed_at, reason: it refused the credential last.
    expires_at: null: never, or Keystone does not show it. repairs: repairs of drift act with it."""

    id: str
    application_credential_id: str
    name: str
    user_id: str
    user_name: str
    roles: list[str]
    access_rules: bool
    state: Literal["valid", "refused", "expired"]
    used_by_observer: bool
    created_by: str
    created_at: str
    expires_at: str | None
    used_at: str
    failed_at: str | None
    reason: str | None
    repairs: bool


class OneApiVersion(TypedDict):
    version: ApiVersion


class Event(TypedDict):
    id: str
    links: list[Link]
    event_time: str
    resource_name: str
    logical_resource_id: str
    headgate_resource_name: str
    physical_resource_id: str | None
    resource_status: str
    resource_status_reason: str
    resource_type: str
    headgate_resolved_type: str
    resource_properties: dict[str, Json]


class OneEvent(TypedDict):
    event: Event


class Output(TypedDict):
    output_key: str
    description: str
    output_value: Json
    output_error: NotRequired[str]


class OneOutput(TypedDict):
    output: Output


class Identity(TypedDict):
    tenant: str
    stack_name: str
    stack_id: str | Literal["None"]
    path: str


PropertyChange = TypedDict(
    "PropertyChange",
    {
        "from": "NotRequired[Json]",
        "to": "NotRequired[Json]",
    },
)


class AdoptedValue(TypedDict):
    """An observed value that an answer to a drift hook made the desired one. `template`: the value
    that it replaces."""

    path: str
    value: Json
    template: Json
    adopted_by: str
    adopted_at: str


class PreviewedResource(TypedDict):
    """path, moved_from: with the names in the template, as headgate_resource_name."""

    resource_name: str
    headgate_resource_name: str
    path: str
    resource_type: str
    headgate_resolved_type: str
    physical_resource_id: str
    resource_action: Literal["INIT", "CREATE"]
    resource_status: Literal["COMPLETE"]
    resource_status_reason: str
    resource_identity: Identity
    stack_identity: Identity
    stack_name: str
    creation_time: None
    updated_time: None
    description: str
    metadata: dict[str, Json]
    attributes: dict[str, Json]
    required_by: list[str]
    changes: dict[str, PropertyChange]
    unknown: list[str]
    certain: bool
    denied: str | None
    replace_reason: str | None
    moved_from: str | None
    imported_id: str | None
    adopted: list[AdoptedValue]
    label: str | None
    parent_resource: NotRequired[str]
    headgate_parent_resource: NotRequired[str]


class ResourceChanges(TypedDict):
    unchanged: list[PreviewedResource]
    added: list[PreviewedResource]
    updated: list[PreviewedResource]
    replaced: list[PreviewedResource]
    deleted: list[PreviewedResource]


class ExpectedHook(TypedDict):
    resource_name: str | None
    path: str
    point: str
    mode: Literal["notify", "wait", "stop"]
    operation: Literal[
        "create",
        "update",
        "replace",
        "delete",
        "adopt",
        "check",
        "suspend",
        "resume",
        "snapshot",
        "begin",
        "finish",
    ]
    certain: bool
    timeout_seconds: float | None
    on_timeout: Literal["stop", "continue", "reject"]
    answer_by: list[str]
    approvals: int


class UnrepairedResource(TypedDict):
    """`last_known_state`: null if the resource did not differ before its state became unknown."""

    resource_name: str
    resource_type: str
    path: str
    reason: str
    since: str
    last_known_state: Literal["missing", "changed", "degraded"] | None


class PreviewedOutput(TypedDict):
    output_key: str
    description: str
    output_value: Json
    unknown: bool


class PreviewedStack(TypedDict):
    """A resource with a nested stack is a list of its resources."""

    resource_changes: ResourceChanges
    stops: list[ExpectedHook]
    out_of_date: list[str]
    unknown_states: list[UnrepairedResource]
    plan_digest: str
    warnings: list[Warning]
    id: Literal["None"]
    stack_name: str
    links: list[Link]
    description: str
    template_description: str
    parameters: dict[str, str]
    capabilities: list[Json]
    notification_topics: list[Json]
    creation_time: None
    updated_time: None
    deletion_time: None
    disable_rollback: bool
    timeout_mins: int | None
    stack_owner: str
    parent: None
    stack_user_project_id: None
    tags: list[str]
    outputs: list[PreviewedOutput]
    resources: list[PreviewedResource | list[Json]]


class OnePreviewedStack(TypedDict):
    stack: PreviewedStack


class Resource(TypedDict):
    resource_name: str
    logical_resource_id: str
    headgate_resource_name: str
    physical_resource_id: str
    resource_type: str
    headgate_resolved_type: str
    resource_status: str
    resource_status_reason: str
    deletion_policy: Literal["Delete", "Retain", "Snapshot"]
    creation_time: str
    updated_time: str
    required_by: list[str]
    links: list[Link]
    parent_resource: NotRequired[str]
    headgate_parent_resource: NotRequired[str]
    description: str
    attributes: dict[str, Json]
    protected: bool


class OneResource(TypedDict):
    resource: Resource


class Snapshot(TypedDict):
    id: str
    name: str
    action: Literal["CREATE"]
    status: Literal["IN_PROGRESS", "COMPLETE", "FAILED", "STOPPED"]
    status_reason: str | None
    creation_time: str
    data: Export


class OneSnapshot(TypedDict):
    snapshot: Snapshot


class OneSoftwareConfig(TypedDict):
    software_config: SoftwareConfig


class SoftwareDeployment(TypedDict):
    id: str
    config_id: str
    server_id: str
    input_values: dict[str, Json]
    output_values: dict[str, Json] | None
    action: str
    status: Literal["IN_PROGRESS", "COMPLETE", "FAILED"]
    status_reason: str
    creation_time: str
    updated_time: NotRequired[str]


class OneSoftwareDeployment(TypedDict):
    software_deployment: SoftwareDeployment


class Pin(TypedDict):
    by: str
    at: str
    reason: str


class Stack(TypedDict):
    id: str
    links: list[Link]
    stack_name: str
    description: str
    stack_status: str
    stack_status_reason: str
    creation_time: str
    updated_time: str | None
    deletion_time: str | None
    stack_owner: str
    parent: str | None
    stack_user_project_id: str
    tags: list[str] | None
    template_description: str
    parameters: dict[str, str]
    capabilities: list[Json]
    notification_topics: list[Json]
    disable_rollback: bool
    timeout_mins: int | None
    pinned: Pin | None
    root: str | None
    path: str


class StackWithOutputs(TypedDict):
    id: str
    links: list[Link]
    stack_name: str
    description: str
    stack_status: str
    stack_status_reason: str
    creation_time: str
    updated_time: str | None
    deletion_time: str | None
    stack_owner: str
    parent: str | None
    stack_user_project_id: str
    tags: list[str] | None
    template_description: str
    parameters: dict[str, str]
    capabilities: list[Json]
    notification_topics: list[Json]
    disable_rollback: bool
    timeout_mins: int | None
    pinned: Pin | None
    root: str | None
    path: str
    outputs: list[Output]


class OneStack(TypedDict):
    stack: Stack | StackWithOutputs


class OutputName(TypedDict):
    output_key: str
    description: str


class Outputs(TypedDict):
    outputs: list[OutputName]


class CurrentTraversal(TypedDict):
    number: int
    action: Literal[
        "CREATE",
        "UPDATE",
        "DELETE",
        "ROLLBACK",
        "ADOPT",
        "CHECK",
        "SUSPEND",
        "RESUME",
        "SNAPSHOT",
        "RESTORE",
    ]
    state: Literal["running", "ending", "complete", "failed", "stopped", "superseded"]
    requested_by: str
    started_at: str
    ended_at: str | None


class StackLine(TypedDict):
    id: str
    name: str
    action: Literal[
        "CREATE",
        "UPDATE",
        "DELETE",
        "ROLLBACK",
        "ADOPT",
        "CHECK",
        "SUSPEND",
        "RESUME",
        "SNAPSHOT",
        "RESTORE",
    ]
    status: Literal["IN_PROGRESS", "COMPLETE", "FAILED", "STOPPED"]
    reason: str
    tags: list[str]
    owner: str
    created_at: str
    updated_at: str | None
    traversal: CurrentTraversal
    nodes: dict[str, int]
    hooks_waiting: int
    hooks_dry: int
    resources: int


class StackCountsStatuses(TypedDict):
    IN_PROGRESS: int
    COMPLETE: int
    FAILED: int
    STOPPED: int


class StackCounts(TypedDict):
    statuses: StackCountsStatuses
    waiting: int


class Overview(TypedDict):
    """`counts` is null unless the request asks for it."""

    stacks: list[StackLine]
    next: str | None
    counts: StackCounts | None


class OwnError(TypedDict):
    """`decided_by`, `decided_at` and `decision` are present when another answer came first. help:
    the page about the type; absent if the request could not be read, or its host is not one of
    this server."""

    type: str
    message: str
    place: str
    remedy: str
    findings: NotRequired[list[FindingDocument]]
    decided_by: NotRequired[str | None]
    decided_at: NotRequired[str | None]
    decision: NotRequired[str | None]
    help: NotRequired[str]


class OwnProblem(TypedDict):
    """The error response of Headgate's own routes."""

    error: OwnError


class PassedBreakpoints(TypedDict):
    too_late: list[PassedBreakpoint]


class PinState(TypedDict):
    pinned: Pin | None


class Preview(TypedDict):
    """`unknown_states`: the resources that a converge cannot repair, because their state is
    unknown; empty without a converge."""

    resource_changes: ResourceChanges
    stops: list[ExpectedHook]
    out_of_date: list[str]
    unknown_states: list[UnrepairedResource]
    plan_digest: str
    warnings: list[Warning]


class ProjectAuditEntry(TypedDict):
    """`stack_name` is null when the stack was purged."""

    number: int
    stack_id: str
    hook_id: str | None
    kind: str
    by: str
    principal: str
    token_id: str
    channel: str
    address: str
    at: str
    reason: str
    digest: str
    data: Json
    form: int
    hash: str
    stack_name: str | None
    path: str | None
    point: str | None


class ProjectAuditLog(TypedDict):
    decisions: list[ProjectAuditEntry]
    next: str | None


class PublicKey(TypedDict):
    public_key: str | None


class Quota(TypedDict):
    """`limit` is null for unlimited."""

    name: str
    limit: int | None
    used: int


class Quotas(TypedDict):
    quotas: list[Quota]


class ReadyServer(TypedDict):
    ready: Literal[True]
    missing: list[str]


class Redelivery(TypedDict):
    redelivered: int


class Redirect(TypedDict):
    message: str
    code: Literal["302 Found"]
    title: Literal["Found"]


class ReportedChanges(TypedDict):
    """`resources` and `stacks` will be observed; `unknown` IDs belong to no resource of the
    project."""

    resources: int
    stacks: int
    unknown: int


class ResourceSnapshot(TypedDict):
    resource_name: str
    type: str
    physical_id: str | None
    created_at: str


class ResourceSnapshots(TypedDict):
    resource_snapshots: list[ResourceSnapshot]


class Property(TypedDict):
    type: Literal["string", "integer", "number", "boolean", "list", "map", "any"]
    description: str
    required: bool
    update_allowed: bool
    immutable: bool
    default: NotRequired[Json]
    constraints: NotRequired[list[dict[str, Json]]]
    former_names: NotRequired[list[str]]
    schema: "NotRequired[dict[str, Property]]"


class Attribute(TypedDict):
    type: Literal["string", "integer", "number", "boolean", "list", "map", "any"]
    description: str


class SupportStatus(TypedDict):
    status: Literal["SUPPORTED"]
    message: None
    version: None
    previous_status: None


class ResourceType(TypedDict):
    resource_type: str
    description: str
    properties: dict[str, Property]
    attributes: dict[str, Attribute]
    support_status: SupportStatus


class ResourceTypeDescription(TypedDict):
    resource_type: str
    description: str


class ResourceTypes(TypedDict):
    resource_types: list[str] | list[ResourceTypeDescription]


class ResourceSummary(TypedDict):
    """A resource with `for_each` is `web-a` for Heat's clients. headgate_resource_name,
    headgate_parent_resource: the names in the template, such as `web["a"]`."""

    resource_name: str
    logical_resource_id: str
    headgate_resource_name: str
    physical_resource_id: str
    resource_type: str
    headgate_resolved_type: str
    resource_status: str
    resource_status_reason: str
    deletion_policy: Literal["Delete", "Retain", "Snapshot"]
    creation_time: str
    updated_time: str
    required_by: list[str]
    links: list[Link]
    parent_resource: NotRequired[str]
    headgate_parent_resource: NotRequired[str]


class ResourceWithDetail(TypedDict):
    """A resource in a list with details."""

    resource_name: str
    logical_resource_id: str
    headgate_resource_name: str
    physical_resource_id: str
    resource_type: str
    headgate_resolved_type: str
    resource_status: str
    resource_status_reason: str
    deletion_policy: Literal["Delete", "Retain", "Snapshot"]
    creation_time: str
    updated_time: str
    required_by: list[str]
    links: list[Link]
    parent_resource: NotRequired[str]
    headgate_parent_resource: NotRequired[str]
    description: str
    attributes: dict[str, Json]


class Resources(TypedDict):
    resources: list[ResourceSummary] | list[ResourceWithDetail]


class RotatedSecret(TypedDict):
    id: str
    secret: str


class Service(TypedDict):
    id: str
    host: str
    hostname: str
    binary: str
    engine_id: str
    topic: str
    status: Literal["up", "down"]
    version: str
    report_interval: int
    created_at: str
    updated_at: str
    deleted_at: None
    labels: list[str]


class Services(TypedDict):
    services: list[Service]


class SessionDocument(TypedDict):
    """`aliases` are the names of the user after `user:` in hook rules. `csrf` and `expires_at`
    belong to the session of a browser, and are null without one."""

    name: str
    aliases: list[str]
    project: str
    roles: list[str]
    rights: list[Literal["read", "write", "report", "answer", "monitor", "operate", "administer"]]
    everywhere: bool
    csrf: str | None
    expires_at: str | None


class Snapshots(TypedDict):
    snapshots: list[Snapshot]


class SoftwareConfigInList(TypedDict):
    id: str
    name: str
    group: str
    creation_time: str
    project: str


class SoftwareConfigs(TypedDict):
    software_configs: list[SoftwareConfigInList]


class SoftwareDeployments(TypedDict):
    software_deployments: list[SoftwareDeployment]


class StackAuditLog(TypedDict):
    decisions: list[AuditEntry]
    next: int | None


class StackSummary(TypedDict):
    id: str
    links: list[Link]
    stack_name: str
    description: str
    stack_status: str
    stack_status_reason: str
    creation_time: str
    updated_time: str | None
    deletion_time: str | None
    stack_owner: str
    parent: str | None
    stack_user_project_id: str
    tags: list[str] | None


class StackOfProject(TypedDict):
    """A stack in the list of stacks of all projects."""

    id: str
    links: list[Link]
    stack_name: str
    description: str
    stack_status: str
    stack_status_reason: str
    creation_time: str
    updated_time: str | None
    deletion_time: str | None
    stack_owner: str
    parent: str | None
    stack_user_project_id: str
    tags: list[str] | None
    project: str


class Stacks(TypedDict):
    """warnings: the list is incomplete, because cells of the server are not available."""

    stacks: list[StackSummary] | list[StackOfProject]
    warnings: NotRequired[list[Warning]]
    links: NotRequired[list[Link]]
    count: NotRequired[int]


class Subscription(TypedDict):
    id: str
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
    state: Literal["enabled", "disabled"]
    reason: str
    origin: Literal["api", "configuration", "environment"]
    name: str
    owner: str
    stack_id: str | None
    failures: int
    created_at: str


class Subscriptions(TypedDict):
    subscriptions: list[Subscription]
    next: str | None


class SupportedTemplateVersion(TypedDict):
    version: str
    type: Literal["hot", "cfn"]
    aliases: list[str]


class SupportedTemplateVersions(TypedDict):
    template_versions: list[SupportedTemplateVersion]


class TemplateFunction(TypedDict):
    functions: str
    description: str


class TemplateFunctions(TypedDict):
    template_functions: list[TemplateFunction]


class TemplateVersionContent(TypedDict):
    version: int
    created_at: str
    template: dict[str, Json]
    source: str | None
    environment: dict[str, Json]
    files: dict[str, str]


class TemplateVersion(TypedDict):
    version: int
    description: str
    requested_by: str
    created_at: str
    current: bool
    reached: bool


class TemplateVersions(TypedDict):
    versions: list[TemplateVersion]
    traversals: list[Traversal]


class TestDelivered(TypedDict):
    delivered: Literal[True]
    code: int | None
    response: str


class TestFailed(TypedDict):
    delivered: Literal[False]
    code: int | None
    reason: str


class Token(TypedDict):
    id: str
    name: str
    roles: list[str]
    kind: Literal["token", "password"]
    mode: Literal["none", "tokens", "keystone"]
    everywhere: bool
    created_by: str
    created_at: str
    expires_at: str | None
    used_at: str | None
    revoked_at: str | None
    revoked_by: str | None


class Tokens(TypedDict):
    tokens: list[Token]


class UnreadyServer(TypedDict):
    ready: Literal[False]
    missing: list[str]


class DayUsage(TypedDict):
    """`hooks` that ended, and how long they waited; `repairs` and `operations` of changes that
    ended."""

    day: str
    observations: int
    provider_requests: int
    drift_found: int
    repairs: int
    operations: int
    hooks: int
    hook_seconds: int
    resource_hours: int


class PausedEndpoint(TypedDict):
    """An endpoint of a provider to which the observer sends no more requests of the project until a
    time. requests_per_minute, used: of its budget, which all projects share and which is used up:
    the requests that it has not refilled yet. Null, with a resource_type: the endpoint failed, or
    requested fewer requests."""

    endpoint: str
    resource_type: str | None
    requests_per_minute: float | None
    used: int | None
    until: str
    reason: str


class RequestedEndpoint(TypedDict):
    """An endpoint of a provider to which the observer has sent requests of the project today.
    requests_per_minute, used: of its budget, which all projects share: the requests that it has not
    refilled yet; null: it has no budget."""

    endpoint: str
    requests: int
    requests_per_minute: float | None
    used: int | None


class Usage(TypedDict):
    """paused: now, and not of the days. endpoints: today, those with the most requests first."""

    first: str
    last: str
    usage: list[DayUsage]
    paused: list[PausedEndpoint]
    endpoints: list[RequestedEndpoint]


class Parameter(TypedDict):
    AllowedPattern: NotRequired[str]
    AllowedValues: NotRequired[list[Json]]
    CustomConstraint: NotRequired[str]
    MinLength: NotRequired[int]
    MaxLength: NotRequired[int]
    MinValue: NotRequired[float]
    MaxValue: NotRequired[float]
    Step: NotRequired[float]
    Offset: NotRequired[float]
    Schema: NotRequired[dict[str, Json]]
    Type: Literal["String", "Number", "CommaDelimitedList", "Json", "Boolean"]
    Description: str
    NoEcho: Literal["true", "false"]
    Label: str
    ConstraintDescription: NotRequired[str]
    Tags: NotRequired[list[Json]]
    Default: NotRequired[Json]
    Value: NotRequired[Json]


class NestedTemplateDescription(TypedDict):
    Description: str
    Parameters: dict[str, Parameter]
    ParameterGroups: NotRequired[list[dict[str, Json]]]
    NestedParameters: "NotRequired[dict[str, NestedTemplateDescription]]"
    headgate_resource_name: NotRequired[str]
    Type: str


class ValidatedTemplate(TypedDict):
    Description: str
    Parameters: dict[str, Parameter]
    ParameterGroups: NotRequired[list[dict[str, Json]]]
    NestedParameters: NotRequired[dict[str, NestedTemplateDescription]]
    headgate_resource_name: NotRequired[str]
    Environment: dict[str, Json]
    warnings: list[Warning]


class NotificationHook(TypedDict):
    id: str
    stack_id: str
    stack_name: str
    root_stack_id: str
    root_stack_name: str
    traversal: int
    node: int | None
    resource_name: str | None
    path: str
    point: str
    mode: Literal["notify", "wait", "stop"]
    opened_at: str
    deadline: str | None
    on_timeout: Literal["stop", "continue", "reject"]
    allowed: list[
        Literal[
            "continue", "reject", "step", "run", "patch", "progress", "adopt", "repair", "ignore"
        ]
    ]
    digest: str
    approvals: HookApprovals
    answer_by: list[Json]
    exclude: str
    ask: dict[str, Json] | None
    patch: list[Json]
    dry: bool
    by_operator: bool
    requested_by: str
    assigned: str | None
    reminders: int
    escalated_at: str | None
    answers: dict[str, Json]
    asked: list[HookAsked]
    told: list[HookTold]
    state: Literal["waiting"]


class NotificationStackRoot(TypedDict):
    id: str
    name: str


class NotificationStack(TypedDict):
    id: str
    name: str
    project: str
    path: str
    root: NotificationStackRoot


class Notification(TypedDict):
    hook: NotificationHook
    stack: NotificationStack
    traversal: int
    node: int | None
    resource: HookResource | None
    signal_url: str | None
    token: str | None
    change: NotRequired[HookChange]
