"""A hook as it opens: its row, and the events that say so."""

import hashlib
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from datetime import timedelta
from typing import assert_never
from uuid import UUID

import orjson

from engine.hooks.rule import Rule, encode_rule, is_confirm
from engine.store.advance import Work
from engine.words import GATES, Json, Mode, Operation

#: The first half of a resource's status while an operation runs on it, as Heat's clients know it.
ACTION_OF: Mapping[str, str] = {
    **{operation: operation.value.upper() for operation in Operation},
    Operation.REPLACE: "CREATE",
}
#: How a hook that does not wait is closed at once: state, decision, event, what the event says.
CLOSED_AT_ONCE: Mapping[Mode, tuple[str, str, str, str]] = {
    Mode.NOTIFY: ("answered", "continue", "headgate.hook.answered", "was told and went on"),
    Mode.STOP: ("expired", "stop", "headgate.hook.expired", "stopped the stack"),
}


@dataclass(slots=True)
class Notice:
    """What a person needs to decide; properties and changes are masked."""

    properties: Mapping[str, Json]
    changes: Mapping[str, Json]


@dataclass(frozen=True, slots=True)
class HookContext:
    """What the hook is about. seen: what its operation gave to look at."""

    work: Work
    operation: Operation
    physical_id: str | None
    notice: Notice
    seen: Mapping[str, Json]


def hook_row(told: HookContext, rule: Rule, hook_id: UUID, default: timedelta) -> dict[str, Json]:
    """default: how long it waits when its rule does not say."""
    work, said = told.work, _said(told)
    closed = CLOSED_AT_ONCE.get(_mode(rule))
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
        "wakes": None if closed else _wakes(rule),
        "notice": said,
        "digest": _digest(said),
        "decision": closed[1] if closed else None,
    }


def hook_events(
    operation: Operation, rule: Rule, hook_id: UUID
) -> Iterator[tuple[str, str, dict[str, Json]]]:
    """Type, reason and data of each."""
    mode = _mode(rule)
    data: dict[str, Json] = {"hook_id": hook_id, "point": rule.point, "mode": mode}
    if rule.dry:
        data["dry"] = True
    yield "headgate.hook.waiting", _reached(operation, rule, mode), data
    closed = CLOSED_AT_ONCE.get(mode)
    if closed:
        decided = {**data, "decision": closed[1], "decided_by": "rule"}
        yield closed[2], f"Hook {rule.point} {closed[3]}", decided


def action_at(point: str) -> str:
    """The action a point belongs to: ``CREATE`` for pre-create and pre-stack-create."""
    return point.rpartition("-")[2].upper()


def _mode(rule: Rule) -> Mode:
    """What is only tried out tells, and goes on."""
    return Mode.NOTIFY if rule.dry else rule.mode


def _said(told: HookContext) -> dict[str, Json]:
    work = told.work
    said: dict[str, Json] = dict(work.definition or {}) if work.operation in GATES else {
        "type": work.type,
        "operation": told.operation,
        "physical_id": told.physical_id,
        "properties": told.notice.properties,
        "changes": told.notice.changes,
        "dependents": work.dependents or [],
    }  # fmt: skip
    return said | ({"seen": told.seen} if told.seen else {})


def _reached(operation: Operation, rule: Rule, mode: Mode) -> str:
    """Heat's own words where the node waits: clients find waiting hooks by them."""
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


def _wakes(rule: Rule) -> float | None:
    """Seconds until somebody is to be reminded, or others are asked, too."""
    after = [one for one in (rule.remind, rule.escalate and rule.escalate.after) if one]
    return min(after).total_seconds() if after else None


def _digest(said: Json) -> str:
    return hashlib.sha256(orjson.dumps(said, option=orjson.OPT_SORT_KEYS)).hexdigest()
