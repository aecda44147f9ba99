"""The schemas of the events as sent, written once as a table from types to the parts of ``data``.

Read by the AsyncAPI document and by tests, which hold real traffic against them. New keys may be
added to ``data``; keys that are here stay.
"""

from collections.abc import Mapping

from channels.envelope import dataschema
from channels.schemas.words import (
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
    one_of,
    or_null,
)
from channels.selection import WAITING
from engine.words import Json, ResourceAction

DIALECT = "https://json-schema.org/draft/2020-12/schema"

POINT: Json = {"type": "string", "pattern": "^(pre|post|confirm)-[a-z].*$"}
ASKED = fields({
    "subscription": UUID,
    "channel": TEXT,
    "target": TEXT,
    "state": one_of("pending", "delivered", "dead", "disabled"),
    "attempts": COUNT,
    "code": {"type": ["integer", "null"]},
    "error": TEXT_OR_NULL,
    "next_at": or_null(TIME),
})  # fmt: skip
TOLD = fields({"subscription": UUID, "channel": TEXT, "target": TEXT, "at": TIME})

#: path: from the outermost stack, its root, to a stack inside; "" for that itself.
STACK = {
    "id": UUID,
    "name": TEXT,
    "project": TEXT,
    "path": TEXT,
    "root": fields({"id": UUID, "name": TEXT}),
}

#: The step of the change that it is about: as GET .../graph has it.
_STEP: Mapping[str, Json] = {"traversal": COUNT, "node": COUNT}

_HOOK: Mapping[str, Json] = {
    "id": UUID,
    "stack_id": UUID,
    "stack_name": TEXT,
    "root_stack_id": UUID,
    "root_stack_name": TEXT,
    **_STEP,
    "resource_name": TEXT_OR_NULL,
    "path": TEXT,
    "point": POINT,
    "mode": one_of("notify", "wait", "stop"),
    "opened_at": TIME,
    "deadline": TIME,
    "on_timeout": one_of("stop", "continue", "reject"),
    "allowed": list_of(one_of("continue", "reject", "step", "run", "patch", "progress")),
    "digest": TEXT,
    "approvals": fields({"needed": COUNT, "given": COUNT, "by": LIST}),
    "answer_by": LIST,
    "exclude": TEXT,
    "ask": {"type": ["object", "null"]},
    "patch": LIST,
    "dry": FLAG,
    "requested_by": TEXT,
    "assigned": TEXT_OR_NULL,
    "reminders": COUNT,
    "escalated_at": or_null(TIME),
    "answers": MAP,
    "asked": list_of(ASKED),
    "told": list_of(TOLD),
}
_DECIDED: Mapping[str, Json] = {
    "decision": TEXT_OR_NULL,
    "reason": TEXT_OR_NULL,
    "decided_by": TEXT_OR_NULL,
    "door": TEXT_OR_NULL,
    "decided_at": or_null(TIME),
}
_STATE = one_of("waiting", "answered", "expired", "superseded")
#: A hook in events that tell of it as it is when they are sent.
HOOK = fields({**_HOOK, "state": _STATE}, _DECIDED)
NOTICED = fields({
    "name": TEXT,
    "type": TEXT_OR_NULL,
    "physical_id": TEXT_OR_NULL,
    "operation": TEXT_OR_NULL,
    "properties": MAP,
    "changes": MAP,
    "dependents": list_of(TEXT),
    "seen": MAP,
})  # fmt: skip
_SUBSCRIPTION: Mapping[str, Json] = {"id": UUID, "channel": TEXT, "target": TEXT}
SUBSCRIPTION = fields(_SUBSCRIPTION)
_WANTED = {
    name: list_of(TEXT) for name in ("events", "stacks", "resources", "types", "points", "tags")
}
#: What a hook of a whole stack is about, in place of a resource.
CHANGE = fields({
    "action": TEXT,
    "version": COUNT,
    "requested_by": TEXT,
    "parameters": MAP,
    "tags": list_of(TEXT),
    "plan": list_of(MAP),
})  # fmt: skip
#: A hook as ``GET /v1/{project}/hooks`` shows it.
SHOWN_HOOK = fields(
    {**_HOOK, "state": _STATE, "resource": or_null(NOTICED)}, {**_DECIDED, "change": CHANGE}
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
        "stale": list_of(TEXT),
        "warnings": list_of(TEXT),
    }  # fmt: skip


def _of_resource(operation: str, moment: str = "") -> Json:
    more = {"moved": MOVED} if operation == "move" else {}
    if moment == "restarted":
        # The key is what a service is sent as Idempotency-Key.
        more = {"attempt": COUNT, "operation_key": TEXT}
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
        # Null: of no step of a change, or from before events said so.
        "traversal": or_null(COUNT),
        "node": or_null(COUNT),
    }  # fmt: skip


def _of_hook(state: str | None) -> Json:
    """state: None: any, for the hook is shown as it is when the event is sent."""
    hook = HOOK if state is None else fields({**_HOOK, "state": {"const": state}, **_DECIDED})
    return {
        "hook": hook,
        "stack": fields(STACK),
        "resource": or_null(fields({"name": TEXT, "type": TEXT_OR_NULL})),
        "said": fields({"reason": TEXT}),
        **_STEP,
    }


def _of_subscription(state: str | None) -> Json:
    return {
        "subscription": fields(
            {
            **_SUBSCRIPTION,
            "project": TEXT,
            "state": {"const": state} if state else one_of("enabled", "disabled"),
            "origin": one_of("api", "configuration", "environment"),
            "stack_id": or_null(UUID),
            **_WANTED,
            "ordered": FLAG,
            },
            {"nested": FLAG},
        ),
        "by": TEXT,
        "reason": TEXT,
    }  # fmt: skip


_WAITING: Json = {
    "hook": fields({**_HOOK, "state": {"const": "waiting"}}),
    "stack": fields(STACK),
    **_STEP,
    "resource": or_null(NOTICED),
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

#: A checkpoint of a project's audit log: engine/hooks/checkpoint.py says what is signed.
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
            "A stack was abandoned: nothing real was deleted", _of_stack("abandon", "completed"),
            False,
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
            ("move", "A resource has another name or stack; the real thing was not touched"),
            ("protect", "A resource may neither be deleted nor replaced"),
            ("unprotect", "A resource may be deleted and replaced again"),
            ("signal", "Somebody sent a resource data that it may wait for"),
        )
    }
    | {
        f"headgate.hook.{state}": (f"A hook was {state}", _of_hook(state), False)
        for state in ("answered", "expired", "superseded")
    }
    | {
        f"headgate.hook.{what}": (title, _of_hook(None), False)
        for what, title in (
            ("approved", "Somebody approved; more people are to"),
            ("progress", "Somebody is at it: the hook waits longer"),
            ("handed-over", "Somebody else is to answer"),
            ("reminder", "A hook still waits"),
            ("escalated", "Nobody has answered: others may, too"),
            ("undeliverable", "The hook notification was not delivered and will not be retried"),
        )
    }
    | {
        "headgate.hook.waiting": ("A node has reached a breakpoint", _WAITING, False),
        "headgate.audit.signed": (
            "The heads of the project's audit log were signed", {"checkpoint": fields(_CHECKPOINT)},
            False,
        ),
        "headgate.delivery.dead": ("A delivery was given up", _DELIVERY, False),
        "headgate.delivery.delivered": (
            "The notice of a hook that waits has arrived", _DELIVERY, False
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
            ("enabled", "enabled", "A subscription was made, or delivers again"),
            ("disabled", "disabled", "A subscription was paused, or its endpoint keeps failing"),
            ("changed", None, "A subscription was changed"),
            ("rotated", None, "A subscription has a new secret, beside the one before"),
            ("deleted", None, "A subscription was removed"),
            ("redelivered", None, "Deliveries of a subscription were requested again"),
        )
    }
)  # fmt: skip

#: Nothing happened, so it is not counted.
_UNCOUNTED = frozenset({"headgate.subscription.test"})


def _data(kind: str, data: Json) -> Json:
    return fields(data, {"change": CHANGE} if kind == WAITING else {})


#: CloudEvents' extension for distributed tracing: the context of the request that began it.
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
    if kind not in _UNCOUNTED:
        # An Integer of CloudEvents' JSON format: a number, so that 10 comes after 9.
        required["sequence"] = {"type": "integer", "minimum": 1}
    if of_resource:
        required["subject"] = {"type": "string", "minLength": 1}
    if not kind.startswith(("headgate.subscription.", "headgate.audit.")):
        required["rootstack"] = UUID
    more = {"traceparent": TRACEPARENT, "stackpath": TEXT}
    return {"$schema": DIALECT, "title": title, **fields(required, more)}


#: The whole event, by its type; ``properties.data`` has the schema that ``dataschema`` names.
SCHEMAS: Mapping[str, Json] = {
    kind: _schema(kind, title, data, of_resource)
    for kind, (title, data, of_resource) in _TABLE.items()
}
