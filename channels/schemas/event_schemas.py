"""JSON schemas of the events: a table from event types to the keys of ``data``.

The AsyncAPI document contains them, and tests validate real traffic against them. Later versions
may add keys to ``data``, but never remove or change one.
"""

from collections.abc import Mapping

from channels.envelope import dataschema
from channels.selection import WAITING
from engine.digest import DAILY, PERIODS
from engine.words import Decision, Json, ObservedState, ResourceAction

TEXT: Json = {"type": "string"}
TEXT_OR_NULL: Json = {"type": ["string", "null"]}
COUNT: Json = {"type": "integer", "minimum": 0}
FLAG: Json = {"type": "boolean"}
MAP: Json = {"type": "object"}
LIST: Json = {"type": "array"}
UUID: Json = {"type": "string", "format": "uuid"}
TIME: Json = {"type": "string", "format": "date-time", "pattern": "Z$"}


def one_of(*values: str) -> Json:
    return {"enum": [str(value) for value in values]}


def fields(required: Mapping[str, Json], optional: Mapping[str, Json] | None = None) -> Json:
    """An object with these keys; later versions may add keys."""
    return {
        "type": "object",
        "properties": {**required, **(optional or {})},
        "required": list(required),
    }


def list_of(schema: Json) -> Json:
    return {"type": "array", "items": schema}


def or_null(schema: Json) -> Json:
    return {"anyOf": [schema, {"type": "null"}]}


DIALECT = "https://json-schema.org/draft/2020-12/schema"

POINT: Json = {"type": "string", "pattern": "^((pre|post|confirm)-[a-z].*|drift)$"}
_NOTIFICATION = fields({
    "subscription": UUID,
    "channel": TEXT,
    "target": TEXT,
    "state": one_of("pending", "delivered", "dead", "disabled"),
    "attempts": COUNT,
    "code": {"type": ["integer", "null"]},
    "error": TEXT_OR_NULL,
    "next_at": or_null(TIME),
})  # fmt: skip
_NOTIFIED = fields({"subscription": UUID, "channel": TEXT, "target": TEXT, "at": TIME})

#: path: from the root stack to a nested stack; "" for the root stack.
STACK = {
    "id": UUID,
    "name": TEXT,
    "project": TEXT,
    "path": TEXT,
    "root": fields({"id": UUID, "name": TEXT}),
}

#: The node of the event, as in GET .../graph. Null: a hook about drift, which belongs to no change.
_NODE_OR_NULL: Mapping[str, Json] = {"traversal": COUNT, "node": or_null(COUNT)}

_HOOK: Mapping[str, Json] = {
    "id": UUID,
    "stack_id": UUID,
    "stack_name": TEXT,
    "root_stack_id": UUID,
    "root_stack_name": TEXT,
    **_NODE_OR_NULL,
    "resource_name": TEXT_OR_NULL,
    "path": TEXT,
    "point": POINT,
    "mode": one_of("notify", "wait", "stop"),
    "opened_at": TIME,
    # Null: a hook about drift has none.
    "deadline": or_null(TIME),
    "on_timeout": one_of("stop", "continue", "reject"),
    "allowed": list_of(one_of(*(one.value for one in Decision))),
    "digest": TEXT,
    "approvals": fields({"needed": COUNT, "given": COUNT, "by": LIST}),
    "answer_by": LIST,
    "exclude": TEXT,
    "ask": {"type": ["object", "null"]},
    "patch": LIST,
    "dry": FLAG,
    "by_operator": FLAG,
    "requested_by": TEXT,
    "assigned": TEXT_OR_NULL,
    "reminders": COUNT,
    "escalated_at": or_null(TIME),
    "answers": MAP,
    "asked": list_of(_NOTIFICATION),
    "told": list_of(_NOTIFIED),
}
_DECIDED: Mapping[str, Json] = {
    "decision": TEXT_OR_NULL,
    "reason": TEXT_OR_NULL,
    "decided_by": TEXT_OR_NULL,
    "channel": TEXT_OR_NULL,
    "decided_at": or_null(TIME),
}
_STATE = one_of("waiting", "answered", "expired", "superseded")
_DRIFT: Mapping[str, Json] = {
    "state": one_of(*ObservedState),
    "differences": list_of(fields({"path": TEXT, "desired": {}, "observed": {}})),
    "since": TIME,
}
#: A hook as it is when the event is sent.
HOOK = fields({**_HOOK, "state": _STATE}, _DECIDED)
HOOK_RESOURCE = fields({
    "name": TEXT,
    "type": TEXT_OR_NULL,
    "physical_id": TEXT_OR_NULL,
    "operation": TEXT_OR_NULL,
    "properties": MAP,
    "changes": MAP,
    "dependents": list_of(TEXT),
    "seen": MAP,
    # Null: the hook is not about drift, and the resource has not changed while it waited.
    "drift": or_null(fields({**_DRIFT, "reason": TEXT})),
    # Why the hook replaces a previous one, whose resource changed while it waited.
    "renewed": or_null(fields({"times": COUNT, "previous": UUID, "reason": TEXT})),
})  # fmt: skip
_SUBSCRIPTION: Mapping[str, Json] = {"id": UUID, "channel": TEXT, "target": TEXT}
SUBSCRIPTION = fields(_SUBSCRIPTION)
_FILTERS = {
    name: list_of(TEXT) for name in ("events", "stacks", "resources", "types", "points", "tags")
}
#: The change at a hook of a whole stack, which has no resource.
CHANGE = fields({
    "action": TEXT,
    "version": COUNT,
    "requested_by": TEXT,
    "parameters": MAP,
    "tags": list_of(TEXT),
    "plan": list_of(MAP),
    "only": or_null(list_of(TEXT)),
})  # fmt: skip
#: A hook as ``GET /v1/{project}/hooks`` shows it.
_HOOK_DOCUMENT = {**_HOOK, "state": _STATE, "resource": or_null(HOOK_RESOURCE)}
_OPTIONAL = {**_DECIDED, "change": CHANGE}
HOOK_DOCUMENT = fields(_HOOK_DOCUMENT, _OPTIONAL)
#: The same in the list of all projects. answer_url: of the request that answers it.
HOOK_OF_PROJECT = fields(
    {
        **_HOOK_DOCUMENT,
        "project": TEXT,
        "answer_url": {"type": "string", "format": "uri"},
    },
    _OPTIONAL,
)
_PLACE = fields({"stack_id": UUID, "resource": TEXT})
#: Null in events of older versions.
MOVED = or_null(fields({"from": _PLACE, "to": _PLACE}))


def _of_stack(action: str, moment: str) -> Json:
    status = {"started": "IN_PROGRESS", "completed": "COMPLETE", "failed": "FAILED"}
    return {
        "stack": fields({
            **STACK,
            "action": {"const": action.upper()},
            "status": {"const": status.get(moment, "STOPPED")},
            "reason": TEXT,
            "owner": TEXT,
            "tags": list_of(TEXT),
            "created_at": TIME,
        }),
        "traversal": COUNT,
        "version": COUNT,
        "out_of_date": list_of(TEXT),
        "warnings": list_of(TEXT),
        # Null: not of a converge with several rounds.
        "converge": or_null(fields({"round": COUNT, "rounds": COUNT})),
    }  # fmt: skip


def _of_resource(operation: str, moment: str = "") -> Json:
    more = {"moved": MOVED} if operation == "move" else {}
    if moment == "restarted":
        # Services get the key as Idempotency-Key.
        more = {"attempt": COUNT, "operation_key": TEXT}
    if operation == "drift":
        more = {"drift": fields(_DRIFT)}
    return {
        **more,
        "stack": fields(STACK),
        "resource": fields({
            "name": TEXT,
            "type": TEXT,
            "physical_id": TEXT_OR_NULL,
            "action": one_of(*ResourceAction),
            "status": one_of("IN_PROGRESS", "COMPLETE", "FAILED"),
            "reason": TEXT,
            "replaced": FLAG,
        }),
        "operation": {"const": operation},
        # Null: the event belongs to no node, or is of a version without this key.
        "traversal": or_null(COUNT),
        "node": or_null(COUNT),
    }  # fmt: skip


def _of_hook(state: str | None) -> Json:
    """state: None: any, because the event shows the hook as it is when the event is sent."""
    hook = HOOK if state is None else fields({**_HOOK, "state": {"const": state}, **_DECIDED})
    return {
        "hook": hook,
        "stack": fields(STACK),
        "resource": or_null(fields({"name": TEXT, "type": TEXT_OR_NULL})),
        "details": fields({"reason": TEXT}),
        **_NODE_OR_NULL,
    }


_QUIET_HOURS: Json = fields(
    {
        "days": {"type": "array", "items": TEXT},
        "from": TEXT,
        "to": TEXT,
        "timezone": TEXT,
    }
)


_DIGEST: Json = fields(
    {"every": one_of(*PERIODS, DAILY), "at": TEXT_OR_NULL, "timezone": TEXT_OR_NULL}
)


def _of_subscription(state: str | None) -> Json:
    return {
        "subscription": fields(
            {
            **_SUBSCRIPTION,
            "project": TEXT,
            "state": {"const": state} if state else one_of("enabled", "disabled"),
            "origin": one_of("api", "configuration", "environment"),
            "stack_id": or_null(UUID),
            **_FILTERS,
            "ordered": FLAG,
            },
            {"nested": FLAG, "quiet_hours": or_null(_QUIET_HOURS), "digest": or_null(_DIGEST)},
        ),
        "by": TEXT,
        "reason": TEXT,
    }  # fmt: skip


_WAITING: Json = {
    "hook": fields({**_HOOK, "state": {"const": "waiting"}}),
    "stack": fields(STACK),
    **_NODE_OR_NULL,
    "resource": or_null(HOOK_RESOURCE),
    "signal_url": {"type": ["string", "null"], "format": "uri"},
    "token": TEXT_OR_NULL,
}
_DELIVERY: Json = {
    "stack": fields(STACK),
    "subscription": SUBSCRIPTION,
    "delivery": fields({
        "id": UUID,
        "attempts": COUNT,
        "code": {"type": ["integer", "null"]},
        "error": TEXT,
    }),
    "event": fields({"id": UUID, "type": TEXT, "sequence": COUNT}),
}  # fmt: skip

#: A signed checkpoint of a project's audit log, see engine/hooks/checkpoint.py.
_CHECKPOINT: Json = {
    "project": TEXT,
    "number": COUNT,
    "at": TIME,
    "previous": TEXT,
    "heads": {
        "type": "array",
        "items": {
            "type": "array",
            "prefixItems": [UUID, COUNT, TEXT],
            "minItems": 3,
            "maxItems": 3,
        },
    },
    "digest": TEXT,
    "key_id": TEXT,
    "signature": TEXT,
}

#: What a project used on a day, see engine/store/projects/usage.py.
_USAGE: Json = {
    "project": TEXT,
    "day": {"type": "string", "format": "date"},
    **{
        name: COUNT
        for name in (
            "observations", "provider_requests", "drift_found", "repairs", "operations", "hooks",
            "hook_seconds", "resource_hours",
        )
    },
}  # fmt: skip

#: Event type -> (title, the keys of ``data``, whether the event is of a resource).
_TABLE: Mapping[str, tuple[str, Json, bool]] = (
    {
        f"headgate.stack.{action}.{moment}": (
            f"{action} of a stack: {moment}", _of_stack(action, moment), False,
        )
        for action in (
            "create", "update", "delete", "rollback", "adopt", "check", "suspend", "resume",
            "snapshot", "restore",
        )
        for moment in ("started", "completed", "failed", "stopped")
    }
    | {
        "headgate.stack.abandon.completed": (
            "A stack was abandoned; its physical resources were kept",
            _of_stack("abandon", "completed"), False,
        ),
        "headgate.stack.converge.completed": (
            "A converge with several rounds has ended, and the stack does not differ",
            _of_stack("converge", "completed"), False,
        ),
        "headgate.stack.converge.failed": (
            "A converge with several rounds has ended, and the stack still differs",
            _of_stack("converge", "failed"), False,
        ),
    }
    | {
        f"headgate.resource.{operation}.{moment}": (
            f"{operation} of a resource: {moment}", _of_resource(operation, moment), True,
        )
        for operation in (
            "create", "update", "replace", "delete", "adopt", "check", "suspend", "resume",
            "snapshot",
        )
        for moment in ("started", "progress", "completed", "failed", "retrying", "restarted")
    }
    | {
        f"headgate.resource.{what}.completed": (title, _of_resource(what), True)
        for what, title in (
            ("move", "A resource was renamed or moved; its physical resource is unchanged"),
            ("protect", "A resource was protected from deletion and replacement"),
            ("unprotect", "The protection of a resource was removed"),
            ("signal", "A resource received a signal"),
        )
    }
    | {
        f"headgate.resource.drift.{moment}": (title, _of_resource("drift", moment), True)
        for moment, title in (
            ("detected", "A resource differs from its recorded state"),
            ("resolved", "A resource no longer differs from its recorded state"),
            ("unrepaired", "Drift of a resource is not repaired, for the reason given"),
        )
    }
    | {
        f"headgate.hook.{state}": (f"A hook was {state}", _of_hook(state), False)
        for state in ("answered", "expired", "superseded")
    }
    | {
        f"headgate.hook.{what}": (title, _of_hook(None), False)
        for what, title in (
            ("approved", "A hook was approved and needs more approvals"),
            ("progress", "The deadline of a hook was extended because an answer is in progress"),
            ("handed-over", "A hook was handed over to another user or role"),
            ("reminder", "A reminder about a hook that still waits"),
            ("escalated", "A hook was escalated to more approvers"),
            ("undeliverable", "The hook notification was not delivered and will not be retried"),
        )
    }
    | {
        "headgate.hook.waiting": ("A node has reached a breakpoint", _WAITING, False),
        "headgate.audit.signed": (
            "The newest entries of the project's audit log were signed",
            {"checkpoint": fields(_CHECKPOINT)}, False,
        ),
        "headgate.usage.recorded": (
            "A day has ended, and what the project used on it is known",
            {"usage": fields(_USAGE)}, False,
        ),
        "headgate.delivery.dead": ("A delivery failed and will not be retried", _DELIVERY, False),
        "headgate.delivery.delivered": (
            "A hook notification was delivered", _DELIVERY, False
        ),
        "headgate.subscription.test": (
            "A test event that a user requested",
            {
                "subscription": fields({**_SUBSCRIPTION, "project": TEXT}),
                "test": {"const": True},
                "reason": TEXT,
            },
            False,
        ),
    }
    | {
        f"headgate.subscription.{what}": (title, _of_subscription(state), False)
        for what, state, title in (
            ("enabled", "enabled", "A subscription was created or enabled"),
            ("disabled", "disabled", "A subscription was disabled"),
            ("changed", None, "A subscription was changed"),
            ("rotated", None, "The signing secret of a subscription was rotated"),
            ("deleted", None, "A subscription was deleted"),
            ("redelivered", None, "Deliveries of a subscription will be sent again"),
        )
    }
)  # fmt: skip

#: Event types without a sequence number.
_UNNUMBERED = frozenset({"headgate.subscription.test"})


def _data(kind: str, data: Json) -> Json:
    return fields(data, {"change": CHANGE} if kind == WAITING else {})


#: The CloudEvents extension for distributed tracing: the context of the request that caused the
#: event.
TRACEPARENT: Json = {
    "type": "string",
    "pattern": "^[0-9a-f]{2}-[0-9a-f]{32}-[0-9a-f]{16}-[0-9a-f]{2}$",
}


def _schema(kind: str, title: str, data: Json, of_resource: bool) -> Json:
    required: dict[str, Json] = {
        "specversion": {"const": "1.0"},
        "id": UUID,
        "source": {"type": "string", "format": "uri-reference", "pattern": "^/v1/"},
        "type": {"const": kind},
        "time": TIME,
        "datacontenttype": {"const": "application/json"},
        "dataschema": {"const": dataschema(kind)},
        "data": {"$id": dataschema(kind), "title": title, **_data(kind, data)},
    }
    if kind not in _UNNUMBERED:
        # A JSON number: texts would sort 10 before 9.
        required["sequence"] = {"type": "integer", "minimum": 1}
    if of_resource:
        required["subject"] = {"type": "string", "minLength": 1}
    if not kind.startswith(("headgate.subscription.", "headgate.audit.", "headgate.usage.")):
        required["rootstack"] = UUID
    more = {"traceparent": TRACEPARENT, "stackpath": TEXT}
    return {"$schema": DIALECT, "title": title, **fields(required, more)}


#: By event type: the schema of the event; ``dataschema`` names the one in ``properties.data``.
SCHEMAS: Mapping[str, Json] = {
    kind: _schema(kind, title, data, of_resource)
    for kind, (title, data, of_resource) in _TABLE.items()
}
