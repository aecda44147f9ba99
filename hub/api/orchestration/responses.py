"""Response documents of the Orchestration API; OpenAPI components are generated from them."""

from collections.abc import Mapping
from typing import Annotated, Literal, NotRequired

from pydantic import Field, WithJsonSchema
from typing_extensions import TypedDict

from engine.hot.schema.type_schema import Kind
from engine.plan.drift import REPAIRED_AS
from engine.words import Json, Mode, OnTimeout, Operation
from hub.api.openapi_components import Count, Document, HookPoint, Uri, Uuid, one_of

#: ``2026-11-20T20:16:36Z``: UTC, without fractions.
Time = Annotated[
    str, WithJsonSchema({"type": "string", "format": "date-time", "pattern": "^[^.]*Z$"})
]
#: ``2026-11-20T20:16:36.000000``: UTC, without an offset, with fractions.
NaiveTime = Annotated[str, Field(pattern=r"^\d{4}-\d\d-\d\dT[\d:]{8}\.\d{6}$")]
FullStatus = Annotated[str, Field(pattern="^[A-Z]+_(IN_PROGRESS|COMPLETE|FAILED|STOPPED)$")]
Status = Annotated[str, one_of(("IN_PROGRESS", "COMPLETE", "FAILED", "STOPPED"))]
KindName = Annotated[str, one_of(Kind)]

Empty = Annotated[Document, WithJsonSchema({"type": "object", "maxProperties": 0})]


class Link(TypedDict):
    href: Uri
    rel: str


class Redirect(TypedDict):
    message: Uri
    code: Literal["302 Found"]
    title: Literal["Found"]


class CreatedStackReference(TypedDict):
    id: Uuid
    links: list[Link]


class Warning(TypedDict):
    """Something in a request that is accepted and has probably not the meant effect. path: the
    place in the document. file: its name in `files`, `template` or `environment`. line, column:
    from 1. quote: the line, and a caret below the column.
    """

    code: str
    message: str
    path: str
    file: str | None
    line: Count | None
    column: Count | None
    quote: str | None


class CreatedStack(TypedDict):
    stack: CreatedStackReference
    warnings: list[Warning]


class AcceptedUpdate(TypedDict):
    warnings: list[Warning]


class StackSummary(TypedDict):
    id: Uuid
    links: list[Link]
    stack_name: str
    description: str
    stack_status: FullStatus
    stack_status_reason: str
    creation_time: Time
    updated_time: Time | None
    deletion_time: Time | None
    stack_owner: str
    parent: Uuid | None
    stack_user_project_id: str
    tags: list[str] | None


class StackOfProject(StackSummary):
    """A stack in the list of stacks of all projects."""

    project: str


class Stacks(TypedDict):
    """warnings: the list is incomplete, because cells of the server are not available."""

    stacks: list[StackSummary] | list[StackOfProject]
    warnings: NotRequired[list[Warning]]
    links: NotRequired[list[Link]]
    count: NotRequired[Count]


class Pin(TypedDict):
    by: str
    at: Time
    reason: str


class PinState(TypedDict):
    pinned: Pin | None


class Output(TypedDict):
    output_key: str
    description: str
    output_value: Json
    output_error: NotRequired[str]


class Stack(StackSummary):
    template_description: str
    parameters: Mapping[str, str]
    capabilities: list[Json]
    notification_topics: list[Json]
    disable_rollback: bool
    timeout_mins: int | None
    pinned: Pin | None
    root: Uuid | None
    path: str


class StackWithOutputs(Stack):
    outputs: list[Output]


class OneStack(TypedDict):
    stack: Stack | StackWithOutputs


class OutputName(TypedDict):
    output_key: str
    description: str


class Outputs(TypedDict):
    outputs: list[OutputName]


class OneOutput(TypedDict):
    output: Output


class ResourceSummary(TypedDict):
    """A resource with `for_each` is `web-a` for Heat's clients. headgate_resource_name,
    headgate_parent_resource: the names in the template, such as `web["a"]`."""

    resource_name: str
    logical_resource_id: str
    headgate_resource_name: str
    physical_resource_id: str
    resource_type: str
    headgate_resolved_type: str
    resource_status: FullStatus
    resource_status_reason: str
    deletion_policy: Annotated[str, one_of(("Delete", "Retain", "Snapshot"))]
    creation_time: Time
    updated_time: Time
    required_by: list[str]
    links: list[Link]
    parent_resource: NotRequired[str]
    headgate_parent_resource: NotRequired[str]


class ResourceDetail(TypedDict):
    description: str
    attributes: Document


class ResourceWithDetail(ResourceSummary, ResourceDetail):
    """A resource in a list with details."""


class Resources(TypedDict):
    resources: list[ResourceSummary] | list[ResourceWithDetail]


class Resource(ResourceSummary, ResourceDetail):
    protected: bool


class OneResource(TypedDict):
    resource: Resource


class Metadata(TypedDict):
    metadata: Document


class EventInList(TypedDict):
    id: Uuid
    links: list[Link]
    event_time: Time
    resource_name: str
    logical_resource_id: str
    headgate_resource_name: str
    physical_resource_id: str | None
    resource_status: FullStatus
    resource_status_reason: str


class Events(TypedDict):
    events: list[EventInList]


class Event(EventInList):
    resource_type: str
    headgate_resolved_type: str
    resource_properties: Document


class OneEvent(TypedDict):
    event: Event


class ExportedResource(TypedDict):
    name: str
    type: str
    action: str
    status: str
    resource_id: str | None
    metadata: Document
    resource_data: Document


class Export(TypedDict):
    name: str
    id: Uuid
    action: str
    status: Status
    project_id: str
    stack_user_project_id: str
    tags: list[str]
    template: Document
    environment: Document
    files: dict[str, str]
    resources: dict[str, ExportedResource]


class Snapshot(TypedDict):
    id: Uuid
    name: str
    action: Literal["CREATE"]
    status: Status
    status_reason: str | None
    creation_time: Time
    data: Export


class Snapshots(TypedDict):
    snapshots: list[Snapshot]


class OneSnapshot(TypedDict):
    snapshot: Snapshot


PreviewedId = Annotated[
    str, WithJsonSchema({"anyOf": [{"type": "string", "format": "uuid"}, {"const": "None"}]})
]


class Identity(TypedDict):
    tenant: str
    stack_name: str
    stack_id: PreviewedId
    path: str


PropertyChange = TypedDict("PropertyChange", {"from": Json, "to": Json}, total=False)


class AdoptedValue(TypedDict):
    """An observed value that an answer to a drift hook made the desired one. `template`: the value
    that it replaces."""

    path: str
    value: Json
    template: Json
    adopted_by: str
    adopted_at: Time


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
    metadata: Document
    attributes: Document
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


class ExpectedHook(TypedDict):
    resource_name: str | None
    path: str
    point: HookPoint
    mode: Annotated[str, one_of(Mode)]
    operation: Annotated[str, one_of(Operation)]
    certain: bool
    timeout_seconds: float | None
    on_timeout: Annotated[str, one_of(OnTimeout)]
    answer_by: list[str]
    approvals: Count


class ResourceChanges(TypedDict):
    unchanged: list[PreviewedResource]
    added: list[PreviewedResource]
    updated: list[PreviewedResource]
    replaced: list[PreviewedResource]
    deleted: list[PreviewedResource]


class UnrepairedResource(TypedDict):
    """`last_known_state`: null if the resource did not differ before its state became unknown."""

    resource_name: str
    resource_type: str
    path: str
    reason: str
    since: Time
    last_known_state: Annotated[str, one_of(REPAIRED_AS)] | None


class Preview(TypedDict):
    """`unknown_states`: the resources that a converge cannot repair, because their state is
    unknown; empty without a converge."""

    resource_changes: ResourceChanges
    stops: list[ExpectedHook]
    out_of_date: list[str]
    unknown_states: list[UnrepairedResource]
    plan_digest: str
    warnings: list[Warning]


class PreviewedOutput(TypedDict):
    output_key: str
    description: str
    output_value: Json
    unknown: bool


class PreviewedStack(Preview):
    """A resource with a nested stack is a list of its resources."""

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


class Property(TypedDict):
    type: KindName
    description: str
    required: bool
    update_allowed: bool
    immutable: bool
    default: NotRequired[Json]
    constraints: NotRequired[list[Document]]
    former_names: NotRequired[list[str]]
    schema: NotRequired[dict[str, "Property"]]


class Attribute(TypedDict):
    type: KindName
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


class ParameterConstraint(TypedDict, total=False):
    AllowedPattern: str
    AllowedValues: list[Json]
    CustomConstraint: str
    MinLength: Count
    MaxLength: Count
    MinValue: float
    MaxValue: float
    Step: float
    Offset: float
    Schema: Document


class Parameter(ParameterConstraint):
    Type: Annotated[str, one_of(("String", "Number", "CommaDelimitedList", "Json", "Boolean"))]
    Description: str
    NoEcho: Literal["true", "false"]
    Label: str
    ConstraintDescription: NotRequired[str]
    Tags: NotRequired[list[Json]]
    Default: NotRequired[Json]
    Value: NotRequired[Json]


class TemplateDescription(TypedDict):
    """headgate_resource_name: of a nested template, if Heat's clients see another name of its
    resource."""

    Description: str
    Parameters: dict[str, Parameter]
    ParameterGroups: NotRequired[list[Document]]
    NestedParameters: NotRequired[dict[str, "NestedTemplateDescription"]]
    headgate_resource_name: NotRequired[str]


class NestedTemplateDescription(TemplateDescription):
    Type: str


class ValidatedTemplate(TemplateDescription):
    Environment: Document
    warnings: list[Warning]


class ApiVersion(TypedDict):
    id: Literal["v1.0"]
    status: Literal["CURRENT"]
    links: list[Link]


class ApiVersions(TypedDict):
    versions: list[ApiVersion]


class OneApiVersion(TypedDict):
    version: ApiVersion


class Revision(TypedDict):
    revision: str


class BuildInfo(TypedDict):
    api: Revision
    engine: Revision


class Service(TypedDict):
    id: Uuid
    host: str
    hostname: str
    binary: str
    engine_id: Uuid
    topic: str
    status: Literal["up", "down"]
    version: str
    report_interval: Count
    created_at: NaiveTime
    updated_at: NaiveTime
    deleted_at: None
    labels: list[str]


class Services(TypedDict):
    services: list[Service]


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


class SoftwareConfigSummary(TypedDict):
    id: Uuid
    name: str
    group: str
    creation_time: Time


class SoftwareConfigInList(SoftwareConfigSummary):
    project: str


class SoftwareConfigs(TypedDict):
    software_configs: list[SoftwareConfigInList]


class SoftwareConfig(SoftwareConfigSummary):
    config: Json
    inputs: list[Json]
    outputs: list[Json]
    options: Document


class OneSoftwareConfig(TypedDict):
    software_config: SoftwareConfig


class DeployedConfigs(TypedDict):
    metadata: list[SoftwareConfig]


class SoftwareDeployment(TypedDict):
    id: Uuid
    config_id: Uuid
    server_id: str
    input_values: Document
    output_values: Document | None
    action: str
    status: Annotated[str, one_of(("IN_PROGRESS", "COMPLETE", "FAILED"))]
    status_reason: str
    creation_time: Time
    updated_time: NotRequired[Time]


class OneSoftwareDeployment(TypedDict):
    software_deployment: SoftwareDeployment


class SoftwareDeployments(TypedDict):
    software_deployments: list[SoftwareDeployment]
