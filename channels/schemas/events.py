"""The schemas of the events as sent, written once as a table from types to the parts of ``data``.

Read by the AsyncAPI document and by tests, which hold real traffic against them. New keys may be
added to ``data``; keys that are here stay.
"""

from collections.abc import Mapping

from engine.words import Json

DIALECT = "https://json-schema.org/draft/2020-12/schema"

TEXT: Json = {"type": "string"}
TEXT_OR_NULL: Json = {"type": ["string", "null"]}
COUNT: Json = {"type": "integer", "minimum": 0}
MAP: Json = {"type": "object"}
LIST: Json = {"type": "array"}
UUID: Json = {"type": "string", "format": "uuid"}
TIME: Json = {"type": "string", "format": "date-time", "pattern": "Z$"}


def _one_of(*values: str) -> Json:
    return {"enum": list(values)}


def _object(properties: Mapping[str, Json], optional: Mapping[str, Json] | None = None) -> Json:
    return {
        "type": "object",
        "properties": {**properties, **(optional or {})},
        "required": list(properties),
    }


POINT: Json = {"type": "string", "pattern": "^(pre|post|confirm)-[a-z].*$"}
TOLD = _object({"subscription": UUID, "channel": TEXT, "target": TEXT, "at": TIME})

STACK = {"id": UUID, "name": TEXT, "project": TEXT}
STACK_STATUS = _one_of("IN_PROGRESS", "COMPLETE", "FAILED", "STOPPED")

_HOOK: Mapping[str, Json] = {
    "id": UUID,
    "stack_id": UUID,
    "stack_name": TEXT,
    "resource_name": TEXT_OR_NULL,
    "path": TEXT,
    "point": POINT,
    "mode": _one_of("notify", "wait", "stop"),
    "opened_at": TIME,
    "deadline": TIME,
    "on_timeout": _one_of("stop", "continue", "reject"),
    "allowed": {
        "type": "array",
        "items": _one_of("continue", "reject", "step", "run", "patch", "progress"),
    },
    "digest": TEXT,
    "approvals": _object({"needed": COUNT, "given": COUNT, "by": LIST}),
    "answer_by": LIST,
    "exclude": TEXT,
    "ask": {"type": ["object", "null"]},
    "patch": LIST,
    "dry": {"type": "boolean"},
    "requested_by": TEXT,
    "assigned": TEXT_OR_NULL,
    "reminders": COUNT,
    "escalated_at": {"anyOf": [TIME, {"type": "null"}]},
    "answers": MAP,
    "asked": LIST,
    "told": {"type": "array", "items": TOLD},
}
_DECIDED: Mapping[str, Json] = {
    "decision": TEXT_OR_NULL,
    "reason": TEXT_OR_NULL,
    "decided_by": TEXT_OR_NULL,
    "door": TEXT_OR_NULL,
    "decided_at": {"anyOf": [TIME, {"type": "null"}]},
}
#: A hook as ``GET /v1/{project}/hooks`` shows it, apart from ``resource``.
HOOK = _object(
    {**_HOOK, "state": _one_of("waiting", "answered", "expired", "superseded")}, _DECIDED
)
NOTICED = _object({
    "name": TEXT,
    "type": TEXT_OR_NULL,
    "physical_id": TEXT_OR_NULL,
    "operation": TEXT_OR_NULL,
    "properties": MAP,
    "changes": MAP,
    "dependents": {"type": "array", "items": TEXT},
    "seen": MAP,
})  # fmt: skip
_SUBSCRIPTION: Mapping[str, Json] = {"id": UUID, "channel": TEXT, "target": TEXT}
SUBSCRIPTION = _object(_SUBSCRIPTION)
_WANTED = {
    name: {"type": "array", "items": TEXT}
    for name in ("events", "stacks", "resources", "types", "points", "tags")
}


def _of_stack(action: str, moment: str) -> Json:
    status = {"started": "IN_PROGRESS", "completed": "COMPLETE", "failed": "FAILED"}
    return {
        "stack": _object({
            **STACK,
            "action": {"const": action.upper()},
            "status": {"const": status.get(moment, "STOPPED")},
            "reason": TEXT,
            "owner": TEXT,
            "tags": {"type": "array", "items": TEXT},
            "created_at": TIME,
        }),
        "traversal": COUNT,
        "version": COUNT,
    }  # fmt: skip


def _of_resource(operation: str) -> Json:
    return {
        "stack": _object(STACK),
        "resource": _object({
            "name": TEXT,
            "type": TEXT,
            "physical_id": TEXT_OR_NULL,
            "action": TEXT,
            "status": TEXT,
            "reason": TEXT,
        }),
        "operation": {"const": operation},
    }  # fmt: skip


def _of_hook(state: str | None) -> Json:
    """state: None: any, for the hook is shown as it is when the event is sent."""
    hook = HOOK if state is None else _object({**_HOOK, "state": {"const": state}, **_DECIDED})
    return {
        "hook": hook,
        "stack": _object(STACK),
        "resource": _or_null(_object({"name": TEXT, "type": TEXT_OR_NULL})),
        "said": _object({"reason": TEXT}),
    }


def _of_subscription(state: str | None) -> Json:
    return {
        "subscription": _object({
            **_SUBSCRIPTION,
            "project": TEXT,
            "state": {"const": state} if state else _one_of("enabled", "disabled"),
            "origin": _one_of("api", "configuration", "environment"),
            "stack_id": {"anyOf": [UUID, {"type": "null"}]},
            **_WANTED,
            "ordered": {"type": "boolean"},
        }),
        "by": TEXT,
        "reason": TEXT,
    }  # fmt: skip


def _or_null(schema: Json) -> Json:
    """Null where the hook is one of the whole stack."""
    return {"anyOf": [schema, {"type": "null"}]}


_WAITING: Json = {
    "hook": _object({**_HOOK, "state": {"const": "waiting"}}),
    "stack": _object(STACK),
    "resource": _or_null(NOTICED),
    "signal_url": {"type": ["string", "null"], "format": "uri"},
    "token": TEXT_OR_NULL,
}
_DEAD: Json = {
    "stack": _object(STACK),
    "subscription": SUBSCRIPTION,
    "delivery": _object({
        "id": UUID,
        "attempts": COUNT,
        "code": {"type": ["integer", "null"]},
        "error": TEXT,
    }),
    "event": _object({"id": UUID, "type": TEXT, "sequence": COUNT}),
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
            "A stack was abandoned: nothing real was deleted", _of_stack("abandon", "completed"),
            False,
        ),
    }
    | {
        f"headgate.resource.{operation}.{moment}": (
            f"{operation} of a resource: {moment}", _of_resource(operation), True,
        )
        for operation in (
            "create", "update", "replace", "delete", "adopt", "check", "suspend", "resume",
            "snapshot",
        )
        for moment in ("started", "completed", "failed", "retrying")
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
            ("unheard", "Nobody could be told: no notice has arrived, and none will"),
        )
    }
    | {
        "headgate.hook.waiting": ("A node has reached a breakpoint", _WAITING, False),
        "headgate.delivery.dead": ("A delivery was given up", _DEAD, False),
        "headgate.subscription.test": (
            "A test, sent because somebody asked for it",
            {
                "subscription": _object({**_SUBSCRIPTION, "project": TEXT}),
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
            ("changed", None, "What a subscription asks for was changed"),
            ("rotated", None, "A subscription has a new secret, beside the one before"),
            ("deleted", None, "A subscription was removed"),
        )
    }
)  # fmt: skip

#: Nothing happened, so it is not counted.
_UNCOUNTED = frozenset({"headgate.subscription.test"})


def _schema(kind: str, title: str, data: Json, of_resource: bool) -> Json:
    required: dict[str, Json] = {
        "specversion": {"const": "1.0"},
        "id": UUID,
        "source": {"type": "string", "format": "uri-reference", "pattern": "^/v1/"},
        "type": {"const": kind},
        "time": TIME,
        "datacontenttype": {"const": "application/json"},
        "data": _object(data),
    }
    if kind not in _UNCOUNTED:
        # An Integer of CloudEvents' JSON format: a number, so that 10 comes after 9.
        required["sequence"] = {"type": "integer", "minimum": 1}
    if of_resource:
        required["subject"] = {"type": "string", "minLength": 1}
    return {"$schema": DIALECT, "title": title, **_object(required)}


SCHEMAS: Mapping[str, Json] = {
    kind: _schema(kind, title, data, of_resource)
    for kind, (title, data, of_resource) in _TABLE.items()
}
