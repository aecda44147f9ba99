"""CloudEvents 1.0, structured mode: how an event looks on every channel. Pure.

Also the document of a hook, which the API shows in the same words. The schemas of what is made here
are in channels/schemas/.
"""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from functools import lru_cache
from typing import assert_never
from urllib.parse import quote
from uuid import UUID

from channels.selection import WAITING, path_of
from channels.store.records import DeliveryStackHeader, DeliveryState, NoticeRecord
from channels.targets import shown_target
from engine.store.records import EventRecord, HookRecord
from engine.words import HookState, Json, Mode

CONTENT_TYPE = "application/cloudevents+json"
#: Of the schemas of `data`. Keys may come to `data` without a new one; none goes or changes.
SCHEMA_VERSION = 1
#: A stack's true status, by the last word of its event's type. (The stored status is what clients
#: of the Orchestration API are told, who know no STOPPED.)
STATUS_OF = {
    "started": "IN_PROGRESS",
    "completed": "COMPLETE",
    "failed": "FAILED",
    "stopped": "STOPPED",
}


#: What an event about a hook may say besides the hook as it is.
SAID_OF_HOOKS = frozenset({"by", "missing", "deadline", "to", "reminder"})


@dataclass(frozen=True, slots=True)
class _Scene:
    """What an event's data is made of."""

    event: EventRecord
    project: str
    plate: DeliveryStackHeader | None
    hook: HookRecord | None
    told: Sequence[Json]
    signal_url: str | None
    token: str | None

    @property
    def stack(self) -> dict[str, Json]:
        plate, stack_id = self.stack_plate, str(self.event.stack_id)
        root = {"id": str(plate.root_id or stack_id), "name": plate.root_name or plate.name}
        named = {"id": stack_id, "name": plate.name, "project": self.project}
        return named | {"path": plate.path, "root": root}

    @property
    def stack_plate(self) -> DeliveryStackHeader:
        if self.plate is None:
            raise ValueError(f"event {self.event.id} is of a stack that was not handed in")
        return self.plate


def rfc3339(time: datetime) -> str:
    """In UTC, to the microsecond, with a Z: texts sort as the times do."""
    return time.astimezone(UTC).isoformat(timespec="microseconds").replace("+00:00", "Z")


@lru_cache(maxsize=4096)
def stack_path(project: str, stack_name: str, stack_id: UUID) -> str:
    return f"/v1/{quote(project, safe='')}/stacks/{quote(stack_name, safe='')}/{stack_id}"


def subscription_path(project: str, subscription_id: UUID) -> str:
    return f"/v1/{quote(project, safe='')}/subscriptions/{subscription_id}"


def dataschema(kind: str) -> str:
    """The name of the schema of an event's ``data``; ``GET /schemas/{type}`` has it."""
    return f"urn:headgate:schema:{kind}:{SCHEMA_VERSION}"


def cloud_event(
    event: EventRecord,
    *,
    project: str,
    plate: DeliveryStackHeader | None,
    hook: HookRecord | None,
    told: Sequence[Json],
    signal_url: str | None,
    token: str | None,
) -> dict[str, Json]:
    """The event as it is sent. ``sequence``, a JSON integer, counts per source without gaps.
    ``rootstack`` is the id of the outermost stack, ``stackpath`` leads from there to a stack
    inside, and ``subject`` to the resource.

    plate: None for events of no stack: of a subscription or an audit log. hook: of events about
    hooks, as it is now; needed for these. signal_url, token: for the notice of a hook that waits,
    None for a receiver that may not answer it.
    """
    scene = _Scene(event, project, plate, hook, told, signal_url, token)
    document: dict[str, Json] = {
        "specversion": "1.0",
        "id": str(event.id),
        "source": stack_path(project, plate.name, event.stack_id)
        if plate
        else _source_of_no_stack(event, project),
        "type": event.type,
        "time": rfc3339(event.time),
        "datacontenttype": "application/json",
        "dataschema": dataschema(event.type),
        "sequence": event.sequence,
        "data": _DATA[event.type.split(".")[1]](scene),
    }
    if plate is not None:
        document["rootstack"] = str(plate.root_id or event.stack_id)
    if plate is not None and plate.path:
        document["stackpath"] = plate.path
    subject = path_of(plate.path if plate else "", event.resource_name)
    if subject is not None:
        document["subject"] = subject
    if event.traceparent:
        document["traceparent"] = event.traceparent
    return document


def trial_event(
    *,
    event_id: UUID,
    time: datetime,
    project: str,
    subscription_id: UUID,
    channel: str,
    target: str,
) -> dict[str, Json]:
    """What a subscription is sent when somebody wants to see whether it works. Of no stack."""
    return {
        "specversion": "1.0",
        "id": str(event_id),
        "source": subscription_path(project, subscription_id),
        "type": "headgate.subscription.test",
        "time": rfc3339(time),
        "datacontenttype": "application/json",
        "dataschema": dataschema("headgate.subscription.test"),
        "data": {
            "subscription": {
                "id": str(subscription_id),
                "project": project,
                "channel": channel,
                "target": shown_target(target),
            },
            "test": True,
            "reason": "This is a test: nothing happened",
        },
    }


def hook_document(
    hook: HookRecord, *, asked: Sequence[Json], told: Sequence[Json]
) -> dict[str, Json]:
    """A hook as the API shows it now, with the notice's parts under ``resource``."""
    return _hook(hook, HookState(hook.state), asked, told) | _about(hook, hook.notice.get("type"))


def asked_documents(notices: Sequence[NoticeRecord]) -> list[Json]:
    """Whom a hook's notice goes to, and how far it has come; for the ``asked`` of a hook."""
    return [
        {
            "subscription": str(notice.subscription_id),
            "channel": notice.channel,
            "target": shown_target(notice.target),
            "state": notice.state,
            "attempts": notice.attempts,
            "code": notice.code,
            "error": notice.error,
            "next_at": rfc3339(notice.next_at) if notice.next_at else None,
        }
        for notice in notices
    ]


def notified_documents(notices: Sequence[NoticeRecord]) -> list[Json]:
    """Whom a hook's notice has reached, and when; for the ``told`` of a hook."""
    return [
        {
            "subscription": str(notice.subscription_id),
            "channel": notice.channel,
            "target": shown_target(notice.target),
            "at": rfc3339(notice.settled_at),
        }
        for notice in notices
        if notice.state == DeliveryState.DELIVERED and notice.settled_at is not None
    ]


def _hook(
    hook: HookRecord, state: HookState, asked: Sequence[Json], told: Sequence[Json]
) -> dict[str, Json]:
    waits, rule = state is HookState.WAITING, hook.rule
    document: dict[str, Json] = {
        "id": str(hook.id),
        "stack_id": str(hook.stack_id),
        "stack_name": hook.stack_name,
        "root_stack_id": str(hook.root_stack_id),
        "root_stack_name": hook.root_stack_name,
        "traversal": hook.traversal,
        "node": hook.node,
        "resource_name": hook.resource_name or None,
        "path": hook.path,
        "point": hook.point,
        "mode": hook.mode,
        "state": state.value,
        "opened_at": rfc3339(hook.opened_at),
        "deadline": rfc3339(hook.deadline),
        "on_timeout": hook.on_timeout,
        "allowed": list(hook.allowed) if waits and hook.mode == Mode.WAIT else [],
        "digest": hook.digest,
        "approvals": {
            "needed": rule.get("approvals", 1),
            "given": len(hook.approved_by),
            "by": list(hook.approved_by),
        },
        "answer_by": hook.may_answer,
        "exclude": rule.get("exclude", ""),
        "ask": hook.asks_for,
        "patch": rule.get("patch", []),
        "dry": rule.get("dry", False),
        "requested_by": hook.requested_by,
        "assigned": hook.assigned,
        "reminders": hook.reminders,
        "escalated_at": rfc3339(hook.escalated_at) if hook.escalated_at else None,
        "answers": hook.notice.get("answers") or {},
        "asked": list(asked),
        "told": list(told),
    }
    match state:
        case HookState.WAITING:
            return document
        case HookState.ANSWERED | HookState.EXPIRED | HookState.SUPERSEDED:
            return document | {
                "decision": hook.decision,
                "reason": hook.reason,
                "decided_by": hook.decided_by,
                "door": hook.door,
                "decided_at": rfc3339(hook.decided_at) if hook.decided_at else None,
            }
        case _ as never:
            assert_never(never)


def _about(hook: HookRecord, resource_type: Json) -> dict[str, Json]:
    """What the hook is about: a resource, or the plan of the whole stack."""
    if hook.resource_name:
        return {"resource": _noticed_resource(hook, resource_type)}
    return {
        "resource": None,
        "change": {
            name: hook.notice.get(name)
            for name in ("action", "version", "requested_by", "parameters", "tags", "plan")
        },
    }


def _noticed_resource(hook: HookRecord, resource_type: Json) -> dict[str, Json]:
    notice = hook.notice
    return {
        "name": hook.resource_name,
        "type": resource_type,
        "physical_id": notice.get("physical_id"),
        "operation": notice.get("operation"),
        "properties": notice.get("properties") or {},
        "changes": notice.get("changes") or {},
        "dependents": notice.get("dependents") or [],
        "seen": notice.get("seen") or {},
    }


def _of_stack(scene: _Scene) -> dict[str, Json]:
    event = scene.event
    moment = event.type.rpartition(".")[2]
    return {
        "stack": scene.stack
        | {
            "action": event.action,
            "status": STATUS_OF.get(moment, event.status),
            "reason": event.reason,
            "owner": scene.stack_plate.owner,
            "tags": list(scene.stack_plate.tags),
            "created_at": rfc3339(scene.stack_plate.created_at),
        },
        "traversal": event.data["traversal"],
        "version": event.data["version"],
        "stale": event.data.get("stale", []),
        "warnings": event.data.get("warnings", []),
    }


def _of_resource(scene: _Scene) -> dict[str, Json]:
    event = scene.event
    operation = event.data["operation"]
    more = {"moved": event.data.get("moved")} if operation == "move" else {}
    if event.type.endswith(".restarted"):
        more = {name: event.data[name] for name in ("attempt", "operation_key")}
    return {
        "stack": scene.stack,
        "resource": {
            "name": event.resource_name,
            "type": event.resource_type,
            "physical_id": event.physical_id,
            "action": event.action,
            "status": event.status,
            "reason": event.reason,
            "replaced": event.data.get("replaced", False),
        },
        "operation": operation,
        "traversal": event.data.get("traversal"),
        "node": event.data.get("node"),
        **more,
    }


def _of_hook(scene: _Scene) -> dict[str, Json]:
    event, hook = scene.event, scene.hook
    if hook is None:
        raise ValueError(f"event {event.id} is about a hook that was not handed in")
    if event.type == WAITING:
        return {
            # As it was when the event happened, whatever became of it since.
            "hook": _hook(hook, HookState.WAITING, (), scene.told),
            "stack": scene.stack,
            "traversal": hook.traversal,
            "node": hook.node,
            **_about(hook, event.resource_type),
            "signal_url": scene.signal_url,
            "token": scene.token,
        }
    named = {"name": event.resource_name, "type": event.resource_type}
    said = {name: value for name, value in event.data.items() if name in SAID_OF_HOOKS}
    return {
        "hook": _hook(hook, HookState(hook.state), (), scene.told),
        "stack": scene.stack,
        "resource": named if event.resource_name else None,
        "traversal": hook.traversal,
        "node": hook.node,
        "said": said | {"reason": event.reason},
    }


def _of_delivery(scene: _Scene) -> dict[str, Json]:
    said = scene.event.data
    return {
        "stack": scene.stack,
        "subscription": {
            "id": said["subscription"],
            "channel": said["channel"],
            "target": said["target"],
        },
        "delivery": {name: said[name] for name in ("attempts", "code", "error")}
        | {"id": said["delivery"]},
        "event": {
            "id": said["event_id"],
            "type": said["event_type"],
            "sequence": said["event_sequence"],
        },
    }


def _of_subscription(scene: _Scene) -> dict[str, Json]:
    said = dict(scene.event.data)
    by, named = said.pop("by"), {"id": said.pop("subscription"), "project": scene.project}
    return {"subscription": named | said, "by": by, "reason": scene.event.reason}


#: By the second word of an event's type.
def _of_audit(scene: _Scene) -> dict[str, Json]:
    return {"checkpoint": scene.event.data}


def _source_of_no_stack(event: EventRecord, project: str) -> str:
    """Of a project's audit log, or of a subscription."""
    if event.type.startswith("headgate.audit."):
        return f"/v1/{quote(project, safe='')}/decisions"
    return subscription_path(project, event.stack_id)


_DATA: Mapping[str, Callable[[_Scene], dict[str, Json]]] = {
    "audit": _of_audit,
    "stack": _of_stack,
    "resource": _of_resource,
    "hook": _of_hook,
    "delivery": _of_delivery,
    "subscription": _of_subscription,
}
