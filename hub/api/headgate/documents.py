"""What Headgate's own routes give: the schemas of their documents."""

from collections.abc import Mapping

from channels.schemas.events import POINT, SHOWN_HOOK, TRACEPARENT
from channels.schemas.words import (
    ANYTHING,
    COUNT,
    FLAG,
    LIST,
    MAP,
    TEXT,
    TEXT_OR_NULL,
    TIME,
    UUID,
    fields,
    list_of,
    map_of,
    one_of,
    or_null,
)
from engine.store.stack_overview import STATES
from engine.words import Action, Direction, Json, Operation, Phase, State, TraversalState
from hub.api.shapes import Shape, page_of
from hub.auth.roles import Right

_NUMBER_OR_NULL: Json = {"type": ["integer", "null"]}
_TIME_OR_NULL: Json = or_null(TIME)

ALIVE = fields({"alive": {"const": True}})
READY = fields({"ready": {"const": True}, "missing": {"type": "array", "maxItems": 0}})
NOT_READY = fields({"ready": {"const": False}, "missing": {**list_of(TEXT), "minItems": 1}})

HOOK = Shape("Hook", SHOWN_HOOK)
HOOKS = page_of("hooks", HOOK)

_SAID: Mapping[str, Json] = {
    "number": COUNT,
    "stack_id": UUID,
    "hook_id": or_null(UUID),
    "kind": TEXT,
    "by": TEXT,
    "principal": TEXT,
    "token_id": TEXT,
    "door": TEXT,
    "address": TEXT,
    "at": TIME,
    "reason": TEXT,
    "digest": TEXT,
    "data": ANYTHING,
    "form": COUNT,
    "hash": {"type": "string", "pattern": "^[0-9a-f]{64}$"},
}
_ENTRY = Shape("TrailEntry", fields(_SAID))
DECISIONS = fields({"decisions": list_of(_ENTRY)})
TRAIL = page_of("decisions", _ENTRY, COUNT)
#: stack_name: null: the stack was purged.
_DECIDED = Shape("Decided", fields({
    **_SAID, "stack_name": TEXT_OR_NULL, "path": TEXT_OR_NULL, "point": or_null(POINT),
}))  # fmt: skip
PROJECT_TRAIL = page_of("decisions", _DECIDED, TEXT)

BREAKPOINT = Shape("Breakpoint", fields({
    "id": UUID,
    "at": TEXT,
    "on": POINT,
    "rule": MAP,
    "created_by": TEXT,
    "created_at": TIME,
}))  # fmt: skip
BREAKPOINTS = fields({"breakpoints": list_of(BREAKPOINT)})
_LATE = fields({"resource_name": TEXT_OR_NULL, "path": TEXT, "point": POINT, "reason": TEXT})
TOO_LATE = fields({"too_late": list_of(_LATE)})
ADDED = fields({"breakpoints": list_of(BREAKPOINT), "too_late": list_of(_LATE)})

_SUBSCRIPTION: Mapping[str, Json] = {
    "id": UUID,
    "channel": TEXT,
    "target": TEXT,
    "events": list_of(TEXT),
    "stacks": list_of(TEXT),
    "resources": list_of(TEXT),
    "types": list_of(TEXT),
    "points": list_of(TEXT),
    "tags": list_of(TEXT),
    "nested": FLAG,
    "ordered": FLAG,
    "state": one_of("enabled", "disabled"),
    "reason": TEXT,
    "origin": one_of("api", "configuration", "environment"),
    "name": TEXT,
    "owner": TEXT,
    "stack_id": or_null(UUID),
    "failures": COUNT,
    "created_at": TIME,
}
SUBSCRIPTION = Shape("Subscription", fields(_SUBSCRIPTION))
NEW_SUBSCRIPTION = Shape("NewSubscription", fields({**_SUBSCRIPTION, "secret": TEXT}))
SUBSCRIPTIONS = page_of("subscriptions", SUBSCRIPTION)
SECRET = fields({"id": UUID, "secret": TEXT})
TRIED = {
    "oneOf": [
        fields({"delivered": {"const": True}, "code": _NUMBER_OR_NULL, "answer": TEXT}),
        fields({"delivered": {"const": False}, "code": _NUMBER_OR_NULL, "reason": TEXT}),
    ]
}
DELIVERY = Shape("Delivery", fields({
    "id": UUID,
    "stack_id": UUID,
    "sequence": COUNT,
    "event_id": UUID,
    "type": TEXT,
    "state": one_of("pending", "delivered", "dead"),
    "attempts": COUNT,
    "next_at": _TIME_OR_NULL,
    "code": _NUMBER_OR_NULL,
    "error": TEXT_OR_NULL,
    "answer": TEXT_OR_NULL,
    "created_at": TIME,
    "settled_at": _TIME_OR_NULL,
}))  # fmt: skip
DELIVERIES = page_of("deliveries", DELIVERY)
REDELIVERED = fields({"redelivered": COUNT})

PUBLIC_KEY = fields({"public_key": TEXT_OR_NULL})
SCHEMA = fields({
    "$schema": TEXT,
    "$id": TEXT,
    "title": TEXT,
    "type": TEXT,
    "properties": MAP,
    "required": list_of(TEXT),
})  # fmt: skip
ASYNCAPI = fields({
    "asyncapi": TEXT,
    "info": MAP,
    "defaultContentType": TEXT,
    "channels": MAP,
    "operations": MAP,
    "components": MAP,
})  # fmt: skip

TRAVERSAL = Shape("Traversal", fields({
    "number": COUNT,
    "action": one_of(*Action),
    "state": one_of(*TraversalState),
    "reason": TEXT,
    "digest": TEXT,
    "version": COUNT,
    "stale": list_of(TEXT),
    "requested_by": TEXT,
    "worked_seconds": {"type": "number", "minimum": 0},
    "started_at": TIME,
    "ended_at": _TIME_OR_NULL,
}))  # fmt: skip
_LINE = Shape("StackLine", fields({
    "id": UUID,
    "name": TEXT,
    "action": one_of(*Action),
    "status": one_of(*STATES),
    "reason": TEXT,
    "tags": list_of(TEXT),
    "owner": TEXT,
    "created_at": TIME,
    "updated_at": _TIME_OR_NULL,
    "traversal": fields({
        "number": COUNT,
        "action": one_of(*Action),
        "state": one_of(*TraversalState),
        "requested_by": TEXT,
        "started_at": TIME,
        "ended_at": _TIME_OR_NULL,
    }),
    "nodes": map_of(COUNT),
    "hooks_waiting": COUNT,
    "hooks_dry": COUNT,
    "resources": COUNT,
}))  # fmt: skip
#: counts: where they were asked for.
OVERVIEW = fields({
    "stacks": list_of(_LINE),
    "next": TEXT_OR_NULL,
    "counts": or_null(fields({
        "statuses": fields(dict.fromkeys(STATES, COUNT)), "waiting": COUNT,
    })),
})  # fmt: skip
_NODE = Shape("Node", fields({
    "id": COUNT,
    "resource_name": TEXT,
    "path": TEXT,
    "type": TEXT,
    "operation": one_of(*Operation),
    "direction": one_of(*Direction),
    "state": one_of(*State),
    "phase": one_of(*Phase),
    "waiting_for": list_of(COUNT),
    "breakpoints": list_of(POINT),
    "reason": TEXT_OR_NULL,
    "inside": or_null(UUID),
    "started_at": _TIME_OR_NULL,
    "ended_at": _TIME_OR_NULL,
    "until": _TIME_OR_NULL,
}))  # fmt: skip
_GRAPH: Mapping[str, Json] = {
    "nodes": list_of(_NODE),
    "edges": list_of({**list_of(COUNT), "minItems": 2, "maxItems": 2}),
    "traversal": TRAVERSAL,
    "sequence": COUNT,
}
_GRAPH_INSIDE = fields({"stack_id": UUID, "stack_name": TEXT, "path": TEXT, **_GRAPH})
GRAPH = fields(_GRAPH, {"stacks": list_of(_GRAPH_INSIDE)})
WHY = fields({
    "stack": fields({"id": UUID, "name": TEXT, "status": TEXT, "reason": TEXT}),
    "nodes": list_of(fields({
        "resource_name": TEXT,
        "path": TEXT,
        "state": one_of(*State),
        "phase": one_of(*Phase),
        "sentence": TEXT,
        "since": _TIME_OR_NULL,
        "until": _TIME_OR_NULL,
        "told": LIST,
    })),
})  # fmt: skip

#: nodes: properties and changes are null while nobody knows them, and when the node has ended.
INSPECTED = fields({
    "name": TEXT,
    "path": TEXT,
    "type": TEXT,
    "stack": fields({"id": UUID, "name": TEXT, "traversal": COUNT}),
    "physical_id": TEXT_OR_NULL,
    "status": or_null(fields({
        "id": UUID,
        "action": TEXT,
        "status": TEXT,
        "reason": TEXT,
        "protected": FLAG,
        "deletion_policy": TEXT,
        "created_at": TIME,
        "updated_at": TIME,
    })),
    "properties": MAP,
    "attributes": MAP,
    "metadata": MAP,
    "requires": list_of(TEXT),
    "required_by": list_of(TEXT),
    "inside": or_null(fields({"id": UUID, "name": TEXT})),
    "nodes": list_of(fields({
        "id": COUNT,
        "traversal": COUNT,
        "type": TEXT,
        "operation": one_of(*Operation),
        "direction": one_of(*Direction),
        "state": one_of(*State),
        "phase": one_of(*Phase),
        "reason": TEXT_OR_NULL,
        "waiting_for": list_of(TEXT),
        "started_at": _TIME_OR_NULL,
        "ended_at": _TIME_OR_NULL,
        "until": _TIME_OR_NULL,
        "operation_key": or_null(UUID),
        "restarts": COUNT,
        "properties": or_null(MAP),
        "changes": or_null(MAP),
    })),
    "breakpoints": list_of(fields({
        "point": POINT,
        "source": one_of("operator", "live", "step", "request", "written"),
        "rule": MAP,
        "id": or_null(UUID),
        "created_by": TEXT_OR_NULL,
    })),
    "hooks": list_of(HOOK),
})  # fmt: skip

#: As every channel has it; /asyncapi.json says what is in its data.
_EVENT = Shape("CloudEvent", fields({
    "specversion": {"const": "1.0"},
    "id": UUID,
    "source": TEXT,
    "type": TEXT,
    "time": TIME,
    "datacontenttype": TEXT,
    "dataschema": TEXT,
    "sequence": COUNT,
    "rootstack": UUID,
    "data": MAP,
}, {"stackpath": TEXT, "subject": TEXT, "traceparent": TRACEPARENT}))  # fmt: skip
HISTORY = page_of("events", _EVENT, COUNT)

VERSIONS = fields({
    "versions": list_of(fields({
        "version": COUNT,
        "description": TEXT,
        "requested_by": TEXT,
        "created_at": TIME,
        "current": FLAG,
        "reached": FLAG,
    })),
    "traversals": list_of(TRAVERSAL),
})  # fmt: skip
VERSION = fields({
    "version": COUNT,
    "created_at": TIME,
    "template": MAP,
    "source": TEXT_OR_NULL,
    "environment": MAP,
    "files": map_of(TEXT),
})  # fmt: skip
KEPT = fields({"resource_snapshots": list_of(fields({
    "resource_name": TEXT,
    "type": TEXT,
    "physical_id": TEXT_OR_NULL,
    "created_at": TIME,
}))})  # fmt: skip

#: limit: null for any number.
QUOTAS = fields({"quotas": list_of(fields({
    "name": TEXT,
    "limit": _NUMBER_OR_NULL,
    "used": COUNT,
}))})  # fmt: skip

_RIGHTS = [str(right) for right in Right if right is not Right.NOTHING]
#: csrf, expires_at: of a browser's session.
SESSION = Shape("Session", fields({
    "name": TEXT,
    "project": TEXT,
    "roles": list_of(TEXT),
    "rights": list_of(one_of(*_RIGHTS)),
    "everywhere": FLAG,
    "csrf": TEXT_OR_NULL,
    "expires_at": _TIME_OR_NULL,
}))  # fmt: skip
_TOKEN: Mapping[str, Json] = {
    "id": UUID,
    "name": TEXT,
    "roles": list_of(TEXT),
    "kind": one_of("token", "password"),
    "mode": one_of("none", "tokens", "keystone"),
    "everywhere": FLAG,
    "created_by": TEXT,
    "created_at": TIME,
    "expires_at": _TIME_OR_NULL,
    "used_at": _TIME_OR_NULL,
    "revoked_at": _TIME_OR_NULL,
    "revoked_by": TEXT_OR_NULL,
}
TOKEN = Shape("Token", fields(_TOKEN))
TOKENS = fields({"tokens": list_of(TOKEN)})
#: token: shown this once; null for a password.
NEW_TOKEN = Shape("NewTokenGiven", fields({**_TOKEN, "token": TEXT_OR_NULL}))
