"""The row and the events of a hook that opens."""

import hashlib
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from datetime import timedelta
from typing import assert_never
from uuid import UUID

import orjson

from engine.hooks.reminders import first_wait
from engine.hooks.rule import Rule, encode_rule, is_confirm
from engine.store.traversals.advance import Work
from engine.words import GATES, Json, Mode, Operation

#: The first part of a resource's status during an operation, as in Heat.
ACTION_OF: Mapping[str, str] = {
    **{operation: operation.value.upper() for operation in Operation},
    Operation.REPLACE: "CREATE",
}
#: The same for the resource on which the operation runs: a replacement updates it.
CURRENT_ACTION_OF: Mapping[str, str] = {**ACTION_OF, Operation.REPLACE: "UPDATE"}
#: How a hook that does not wait is closed at once: state, decision, event type, end of the reason.
CLOSED_AT_ONCE: Mapping[Mode, tuple[str, str, str, str]] = {
    Mode.NOTIFY: ("answered", "continue", "headgate.hook.answered", "notified and continued"),
    Mode.STOP: ("expired", "stop", "headgate.hook.expired", "stopped the stack"),
}


@dataclass(slots=True)
class NotificationData:
    """Properties and changes for the person who decides, with secrets masked."""

    properties: Mapping[str, Json]
    changes: Mapping[str, Json]


@dataclass(frozen=True, slots=True)
class HookContext:
    """The node at which a hook opens. seen: the preview that its operation returned."""

    work: Work
    operation: Operation
    physical_id: str | None
    notification: NotificationData
    seen: Mapping[str, Json]


def hook_row(
    context: HookContext, rule: Rule, hook_id: UUID, default: timedelta
) -> dict[str, Json]:
    """Return the row of a new hook. default: its timeout if the rule has none."""
    work, document = context.work, _notification_document(context)
    closed, first = CLOSED_AT_ONCE.get(_mode(rule)), first_wait(rule)
    return {
        "id": hook_id,
        "resource_name": work.name,
        "path": work.place,
        "point": rule.point,
        "mode": rule.mode,
        "state": closed[0] if closed else "waiting",
        "on_timeout": rule.on_timeout,
        "timeout": (rule.timeout or default).total_seconds(),
        "rule": encode_rule(rule),
        "wake_after": None if closed or first is None else first.total_seconds(),
        "notification": document,
        "digest": digest_of(document),
        "decision": closed[1] if closed else None,
    }


def hook_events(
    operation: Operation, rule: Rule, hook_id: UUID
) -> Iterator[tuple[str, str, dict[str, Json]]]:
    """Yield type, reason and data of each event."""
    mode = _mode(rule)
    data: dict[str, Json] = {"hook_id": hook_id, "point": rule.point, "mode": mode}
    if rule.dry:
        data["dry"] = True
    yield "headgate.hook.waiting", _reason(operation, rule, mode), data
    closed = CLOSED_AT_ONCE.get(mode)
    if closed:
        decided = {**data, "decision": closed[1], "decided_by": "rule"}
        yield closed[2], f"Hook {rule.point} {closed[3]}", decided


def action_at(point: str) -> str:
    """Return the action of a point: ``CREATE`` for pre-create and pre-stack-create."""
    return point.rpartition("-")[2].upper()


def _mode(rule: Rule) -> Mode:
    """Return the effective mode. Dry-run rules only notify."""
    return Mode.NOTIFY if rule.dry else rule.mode


def _notification_document(context: HookContext) -> dict[str, Json]:
    work = context.work
    document: dict[str, Json] = dict(work.definition or {}) if work.operation in GATES else {
        "type": work.type,
        "operation": context.operation,
        "physical_id": context.physical_id,
        "properties": context.notification.properties,
        "changes": context.notification.changes,
        "dependents": work.dependents or [],
    }  # fmt: skip
    return document | ({"seen": context.seen} if context.seen else {})


def _reason(operation: Operation, rule: Rule, mode: Mode) -> str:
    """Return the event's reason. Clients find waiting hooks by Heat's text."""
    action = ACTION_OF[operation] if is_confirm(rule.point) else action_at(rule.point)
    match mode:
        case Mode.WAIT:
            return f"{action} paused until Hook {rule.point} is cleared"
        case Mode.STOP:
            return f"{action} stopped at Hook {rule.point}"
        case Mode.NOTIFY:
            return f"{action} reached Hook {rule.point}"
        case _ as never:
            assert_never(never)


def digest_of(document: Json) -> str:
    """The digest of the data of a notification, by which an answer names what its author read."""
    return hashlib.sha256(orjson.dumps(document, option=orjson.OPT_SORT_KEYS)).hexdigest()
