"""What the routes of the Orchestration API give: the schemas of their documents."""

from collections.abc import Mapping

from channels.schemas.events import POINT
from channels.schemas.words import (
    ANYTHING,
    COUNT,
    FLAG,
    LIST,
    MAP,
    NOTHING,
    NUMBER,
    TEXT,
    TEXT_OR_NULL,
    UUID,
    fields,
    list_of,
    map_of,
    one_of,
    or_null,
)
from engine.hot.schema.type_schema import Kind
from engine.words import Json, Mode, OnTimeout, Operation
from hub.api.shapes import Shape, inside, texts

EMPTY: Json = {"type": "object", "maxProperties": 0}
#: In UTC, without fractions.
TIME: Json = {"type": "string", "format": "date-time", "pattern": "^[^.]*Z$"}
#: In UTC, without saying so, with fractions.
_MOMENT: Json = {"type": "string", "pattern": r"^\d{4}-\d\d-\d\dT[\d:]{8}\.\d{6}$"}
_TIME_OR_NULL: Json = or_null(TIME)
_MINUTES: Json = {"type": ["integer", "null"]}
_STATUS: Json = {"type": "string", "pattern": "^[A-Z]+_(IN_PROGRESS|COMPLETE|FAILED|STOPPED)$"}
_HALF: Json = one_of("IN_PROGRESS", "COMPLETE", "FAILED", "STOPPED")
LINK = Shape("Link", fields({"href": {"type": "string", "format": "uri"}, "rel": TEXT}))
_LINKS = list_of(LINK)

FOUND = fields({
    "message": {"type": "string", "format": "uri"},
    "code": {"const": "302 Found"},
    "title": {"const": "Found"},
})  # fmt: skip
MADE = fields({"stack": fields({"id": UUID, "links": _LINKS})})

_STACK: Mapping[str, Json] = {
    "id": UUID,
    "links": _LINKS,
    "stack_name": TEXT,
    "description": TEXT,
    "stack_status": _STATUS,
    "stack_status_reason": TEXT,
    "creation_time": TIME,
    "updated_time": _TIME_OR_NULL,
    "deletion_time": _TIME_OR_NULL,
    "stack_owner": TEXT,
    "parent": or_null(UUID),
    "stack_user_project_id": TEXT,
    "tags": or_null(list_of(TEXT)),
}
#: What a stack that is there and one that is thought of have in common.
_MORE: Mapping[str, Json] = {
    "template_description": TEXT,
    "parameters": map_of(TEXT),
    "capabilities": LIST,
    "notification_topics": LIST,
    "disable_rollback": FLAG,
    "timeout_mins": _MINUTES,
    "tags": list_of(TEXT),
}
_OUTPUT_NAME: Mapping[str, Json] = {"output_key": TEXT, "description": TEXT}
OUTPUT = Shape("Output", fields({**_OUTPUT_NAME, "output_value": ANYTHING}, {"output_error": TEXT}))
STACKS = fields(
    {"stacks": list_of(Shape("StackInList", fields(_STACK, {"project": TEXT})))},
    {"links": _LINKS, "count": COUNT},
)
PINNED = or_null(fields({"by": TEXT, "at": TIME, "reason": TEXT}))
STACK = fields({"stack": Shape("Stack", fields(
    {**_STACK, **_MORE, "pinned": PINNED, "root": or_null(UUID), "path": TEXT},
    {"outputs": list_of(OUTPUT)},
))})  # fmt: skip
OUTPUTS = fields({"outputs": list_of(fields(_OUTPUT_NAME))})
ONE_OUTPUT = fields({"output": OUTPUT})

_RESOURCE: Mapping[str, Json] = {
    "resource_name": TEXT,
    "logical_resource_id": TEXT,
    "physical_resource_id": TEXT,
    "resource_type": TEXT,
    "resource_status": _STATUS,
    "resource_status_reason": TEXT,
    "creation_time": TIME,
    "updated_time": TIME,
    "required_by": list_of(TEXT),
    "links": _LINKS,
}
_DETAIL: Mapping[str, Json] = {"description": TEXT, "attributes": MAP}
RESOURCES = fields({"resources": list_of(Shape("ResourceInList", fields(
    _RESOURCE, {**_DETAIL, "parent_resource": TEXT},
)))})  # fmt: skip
RESOURCE = fields({"resource": Shape("Resource", fields({
    **_RESOURCE,
    **_DETAIL,
    "protected": FLAG,
    "deletion_policy": one_of("Delete", "Retain", "Snapshot"),
}))})  # fmt: skip
METADATA = fields({"metadata": MAP})

_EVENT: Mapping[str, Json] = {
    "id": UUID,
    "links": _LINKS,
    "event_time": TIME,
    "resource_name": TEXT,
    "logical_resource_id": TEXT,
    "physical_resource_id": TEXT_OR_NULL,
    "resource_status": _STATUS,
    "resource_status_reason": TEXT,
}
EVENTS = fields({"events": list_of(Shape("EventInList", fields(_EVENT)))})
EVENT = fields({"event": Shape("Event", fields({
    **_EVENT, "resource_type": TEXT, "resource_properties": MAP,
}))})  # fmt: skip

_KEPT = texts(("name", "type", "action", "status"))
_CARRIED = fields({**_KEPT, "resource_id": TEXT_OR_NULL, "metadata": MAP, "resource_data": MAP})
_WHOLE: Mapping[str, Json] = {
    "name": TEXT,
    "id": UUID,
    "action": TEXT,
    "status": _HALF,
    "project_id": TEXT,
    "stack_user_project_id": TEXT,
    "tags": list_of(TEXT),
    "template": MAP,
    "environment": MAP,
    "files": map_of(TEXT),
    "resources": map_of(_CARRIED),
}
EXPORT = Shape("Export", fields(_WHOLE))
SNAPSHOT = Shape("Snapshot", fields({
    "id": UUID,
    "name": TEXT,
    "action": {"const": "CREATE"},
    "status": _HALF,
    "status_reason": TEXT_OR_NULL,
    "creation_time": TIME,
    "data": EXPORT,
}))  # fmt: skip
SNAPSHOTS = fields({"snapshots": list_of(SNAPSHOT)})
ONE_SNAPSHOT = fields({"snapshot": SNAPSHOT})

_ID: Json = {"anyOf": [UUID, {"const": "None"}]}
_IDENTITY = fields({"tenant": TEXT, "stack_name": TEXT, "stack_id": _ID, "path": TEXT})
_PREVIEWED = Shape("PreviewedResource", fields({
    "resource_name": TEXT,
    "path": TEXT,
    "resource_type": TEXT,
    "physical_resource_id": TEXT,
    "resource_action": one_of("INIT", "CREATE"),
    "resource_status": {"const": "COMPLETE"},
    "resource_status_reason": TEXT,
    "resource_identity": _IDENTITY,
    "stack_identity": _IDENTITY,
    "stack_name": TEXT,
    "creation_time": NOTHING,
    "updated_time": NOTHING,
    "description": TEXT,
    "metadata": MAP,
    "attributes": MAP,
    "required_by": list_of(TEXT),
    "changes": map_of(fields({}, {"from": ANYTHING, "to": ANYTHING})),
    "unknown": list_of(TEXT),
    "certain": FLAG,
    "denied": TEXT_OR_NULL,
}, {"parent_resource": TEXT}))  # fmt: skip
_STOP = Shape("Stop", fields({
    "resource_name": TEXT_OR_NULL,
    "path": TEXT,
    "point": POINT,
    "mode": one_of(*Mode),
    "operation": one_of(*Operation),
    "certain": FLAG,
    "timeout_seconds": {"type": ["number", "null"]},
    "on_timeout": one_of(*OnTimeout),
    "answer_by": list_of(TEXT),
    "approvals": COUNT,
}))  # fmt: skip
_PLAN: Mapping[str, Json] = {
    "stops": list_of(_STOP), "stale": list_of(TEXT), "plan_digest": TEXT,
}  # fmt: skip
_KINDS = ("unchanged", "added", "updated", "replaced", "deleted")
_CHANGES = fields(dict.fromkeys(_KINDS, list_of(_PREVIEWED)))
PREVIEW = fields({"resource_changes": _CHANGES, **_PLAN})
THOUGHT_OF = fields({"stack": Shape("PreviewedStack", fields({
    **{name: schema for name, schema in _STACK.items() if not name.startswith("stack_status")},
    **_MORE,
    "id": {"const": "None"},
    "creation_time": NOTHING,
    "stack_user_project_id": NOTHING,
    "outputs": list_of(fields({**_OUTPUT_NAME, "output_value": ANYTHING, "unknown": FLAG})),
    "resources": list_of({"oneOf": [_PREVIEWED, LIST]}),
    "resource_changes": _CHANGES,
    **_PLAN,
}))})  # fmt: skip

_PROPERTY = Shape("Property", fields(
    {
        "type": one_of(*Kind),
        "description": TEXT,
        "required": FLAG,
        "update_allowed": FLAG,
        "immutable": FLAG,
    },
    {
        "default": ANYTHING,
        "constraints": list_of(MAP),
        "former_names": list_of(TEXT),
        "schema": map_of(inside("Property")),
    },
))  # fmt: skip
TYPE = Shape("ResourceType", fields({
    "resource_type": TEXT,
    "description": TEXT,
    "properties": map_of(_PROPERTY),
    "attributes": map_of(fields({"type": one_of(*Kind), "description": TEXT})),
    "support_status": fields({
        "status": {"const": "SUPPORTED"},
        "message": NOTHING,
        "version": NOTHING,
        "previous_status": NOTHING,
    }),
}))  # fmt: skip
_DESCRIBED = fields({"resource_type": TEXT, "description": TEXT})
TYPES = fields({"resource_types": {"anyOf": [list_of(TEXT), list_of(_DESCRIBED)]}})

_PARAMETER = Shape("Parameter", fields(
    {
        "Type": one_of("String", "Number", "CommaDelimitedList", "Json", "Boolean"),
        "Description": TEXT,
        "NoEcho": one_of("true", "false"),
        "Label": TEXT,
    },
    {
        **texts(("AllowedPattern", "CustomConstraint", "ConstraintDescription")),
        **dict.fromkeys(("MinLength", "MaxLength"), COUNT),
        **dict.fromkeys(("MinValue", "MaxValue", "Step", "Offset"), NUMBER),
        **dict.fromkeys(("Tags", "AllowedValues"), LIST),
        **dict.fromkeys(("Default", "Value"), ANYTHING),
    },
))  # fmt: skip
_DESCRIBED = {"Description": TEXT, "Parameters": map_of(_PARAMETER)}
_NESTED = {"ParameterGroups": list_of(MAP), "NestedParameters": map_of(MAP)}
VALIDATED = fields(
    _DESCRIBED | {"Environment": MAP},
    _NESTED | {"NestedParameters": map_of(fields(_DESCRIBED | {"Type": TEXT}, _NESTED))},
)

_VERSION = Shape("ApiVersion", fields({
    "id": {"const": "v1.0"}, "status": {"const": "CURRENT"}, "links": _LINKS,
}))  # fmt: skip
VERSIONS = fields({"versions": list_of(_VERSION)})
VERSION = fields({"version": _VERSION})
_REVISION = fields({"revision": TEXT})
BUILD = fields({"api": _REVISION, "engine": _REVISION})
SERVICES = fields({"services": list_of(fields({
    **texts(("host", "hostname", "binary", "topic")),
    **dict.fromkeys(("created_at", "updated_at"), _MOMENT),
    "report_interval": COUNT,
    "deleted_at": NOTHING,
    "id": UUID,
    "engine_id": UUID,
    "status": one_of("up", "down"),
}))})  # fmt: skip
TEMPLATE_VERSIONS = fields({"template_versions": list_of(fields({
    "version": TEXT, "type": {"enum": ["hot", "cfn"]}, "aliases": list_of(TEXT),
}))})  # fmt: skip
FUNCTIONS = fields({"template_functions": list_of(fields(texts(("functions", "description"))))})
