"""Builds CloudEvents 1.0 in structured mode, and the hook documents of the API.

channels/schemas/ has their schemas.
"""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from functools import lru_cache
from typing import assert_never
from urllib.parse import quote
from uuid import UUID

from channels.selection import WAITING, path_of
from channels.store.records import (
    DeliveryStackHeader,
    DeliveryState,
    NotificationRecord,
    shown_target,
)
from engine.store.records import EventRecord, HookRecord
from engine.words import DRIFT, HookState, Json, Mode

CONTENT_TYPE = "application/cloudevents+json"
#: The version of the schemas of `data`. New keys in `data` do not change it.
SCHEMA_VERSION = 1
#: The status of a stack by the last segment of the event type. The stored status is the one for the
#: Orchestration API, which has no STOPPED.
STATUS_OF = {
    "started": "IN_PROGRESS",
    "completed": "COMPLETE",
    "failed": "FAILED",
    "stopped": "STOPPED",
}


#: Keys of an event's stored data that are published under `details`, beside the hook.
_HOOK_EVENT_KEYS = frozenset({"by", "missing", "deadline", "to", "reminder"})


@dataclass(frozen=True, slots=True)
class _Source:
    """The records from which the data of an event is built."""

    event: EventRecord
    project: str
    stack_header: DeliveryStackHeader | None
    hook: HookRecord | None
    notified: Sequence[Json]
    signal_url: str | None
    token: str | None

    @property
    def stack(self) -> dict[str, Json]:
        stack_header, stack_id = self.required_header, str(self.event.stack_id)
        root = {
            "id": str(stack_header.root_id or stack_id),
            "name": stack_header.root_name or stack_header.name,
        }
        named = {"id": stack_id, "name": stack_header.name, "project": self.project}
        return named | {"path": stack_header.path, "root": root}

    @property
    def required_header(self) -> DeliveryStackHeader:
        if self.stack_header is None:
            raise ValueError(f"event {self.event.id} needs the header of its stack")
        return self.stack_header


def rfc3339(time: datetime) -> str:
    """In UTC with microseconds and Z, so that texts sort like times."""
    return time.astimezone(UTC).isoformat(timespec="microseconds").replace("+00:00", "Z")


@lru_cache(maxsize=4096)
def stack_path(project: str, stack_name: str, stack_id: UUID) -> str:
    return f"/v1/{quote(project, safe='')}/stacks/{quote(stack_name, safe='')}/{stack_id}"


def subscription_path(project: str, subscription_id: UUID) -> str:
    return f"/v1/{quote(project, safe='')}/subscriptions/{subscription_id}"


def dataschema(kind: str) -> str:
    """The URN of the schema of an event's ``data``; ``GET /schemas/{type}`` returns it."""
    return f"urn:headgate:schema:{kind}:{SCHEMA_VERSION}"


def cloud_event(
    event: EventRecord,
    *,
    project: str,
    stack_header: DeliveryStackHeader | None,
    hook: HookRecord | None,
    notified: Sequence[Json],
    signal_url: str | None,
    token: str | None,
) -> dict[str, Json]:
    """The event as it is sent. ``sequence``, a JSON integer, is numbered per source without gaps.
    ``rootstack`` is the ID of the root stack; ``stackpath`` is the path from there to a nested
    stack, and ``subject`` to the resource.

    stack_header: None for events of a subscription, an audit log or usage. hook: the current hook,
    required for events about hooks. notified: see `notified_documents`. signal_url, token: of a
    hook notification; None for a receiver that cannot answer it.
    """
    source = _Source(event, project, stack_header, hook, notified, signal_url, token)
    document: dict[str, Json] = {
        "specversion": "1.0",
        "id": str(event.id),
        "source": stack_path(project, stack_header.name, event.stack_id)
        if stack_header
        else _source_without_stack(event, project),
        "type": event.type,
        "time": rfc3339(event.time),
        "datacontenttype": "application/json",
        "dataschema": dataschema(event.type),
        "sequence": event.sequence,
        "data": _DATA[event.type.split(".")[1]](source),
    }
    if stack_header is not None:
        document["rootstack"] = str(stack_header.root_id or event.stack_id)
    if stack_header is not None and stack_header.path:
        document["stackpath"] = stack_header.path
    # Reminders of hooks about drift have no resource of their own.
    resource_name = event.resource_name or (hook.resource_name if hook else None)
    subject = path_of(stack_header.path if stack_header else "", resource_name)
    if subject is not None:
        document["subject"] = subject
    if event.traceparent:
        document["traceparent"] = event.traceparent
    return document


def subscription_test_event(
    *,
    event_id: UUID,
    time: datetime,
    project: str,
    subscription_id: UUID,
    channel: str,
    target: str,
) -> dict[str, Json]:
    """The event of ``headgate.subscription.test``. It does not belong to a stack."""
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
            "reason": "This is a test event",
        },
    }


def hook_document(
    hook: HookRecord, *, notifications: Sequence[Json], notified: Sequence[Json]
) -> dict[str, Json]:
    """The current hook in the API. notifications: see `notification_documents`; notified: see
    `notified_documents`."""
    return _hook(hook, HookState(hook.state), notifications, notified) | _subject(
        hook, hook.notification.get("type")
    )


def notification_documents(notifications: Sequence[NotificationRecord]) -> list[Json]:
    """The value of `asked` of a hook: its notifications with the states of their deliveries."""
    return [
        {
            "subscription": str(notification.subscription_id),
            "channel": notification.channel,
            "target": shown_target(notification.target),
            "state": notification.state,
            "attempts": notification.attempts,
            "code": notification.code,
            "error": notification.error,
            "next_at": rfc3339(notification.next_at) if notification.next_at else None,
        }
        for notification in notifications
    ]


def notified_documents(notifications: Sequence[NotificationRecord]) -> list[Json]:
    """The value of `told` of a hook: the subscriptions that received its notification, with the
    times."""
    return [
        {
            "subscription": str(notification.subscription_id),
            "channel": notification.channel,
            "target": shown_target(notification.target),
            "at": rfc3339(notification.ended_at),
        }
        for notification in notifications
        if notification.state == DeliveryState.DELIVERED and notification.ended_at is not None
    ]


def _hook(
    hook: HookRecord, state: HookState, notifications: Sequence[Json], notified: Sequence[Json]
) -> dict[str, Json]:
    waits, rule = state is HookState.WAITING, hook.rule
    document: dict[str, Json] = {
        "id": str(hook.id),
        "stack_id": str(hook.stack_id),
        "stack_name": hook.stack_name,
        "root_stack_id": str(hook.root_stack_id),
        "root_stack_name": hook.root_stack_name,
        "traversal": hook.traversal,
        "node": _node_of(hook),
        "resource_name": hook.resource_name or None,
        "path": hook.path,
        "point": hook.point,
        "mode": hook.mode,
        "state": state.value,
        "opened_at": rfc3339(hook.opened_at),
        # A hook about drift waits until it is answered or closed.
        "deadline": None if hook.point == DRIFT else rfc3339(hook.deadline),
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
        "by_operator": rule.get("by_operator", False),
        "requested_by": hook.requested_by,
        "assigned": hook.assigned,
        "reminders": hook.reminders,
        "escalated_at": rfc3339(hook.escalated_at) if hook.escalated_at else None,
        "answers": hook.notification.get("answers") or {},
        "asked": list(notifications),
        "told": list(notified),
    }
    match state:
        case HookState.WAITING:
            return document
        case HookState.ANSWERED | HookState.EXPIRED | HookState.SUPERSEDED:
            return document | {
                "decision": hook.decision,
                "reason": hook.reason,
                "decided_by": hook.decided_by,
                "channel": hook.channel,
                "decided_at": rfc3339(hook.decided_at) if hook.decided_at else None,
            }
        case _ as never:
            assert_never(never)


def _node_of(hook: HookRecord) -> int | None:
    """None: a hook about drift, which belongs to no change."""
    return None if hook.point == DRIFT else hook.node


def _subject(hook: HookRecord, resource_type: Json) -> dict[str, Json]:
    """The subject of the hook: a resource, or the change of the whole stack."""
    if hook.resource_name:
        return {"resource": _hook_resource(hook, resource_type)}
    return {
        "resource": None,
        "change": {
            name: hook.notification.get(name)
            for name in (
                "action",
                "version",
                "requested_by",
                "parameters",
                "tags",
                "plan",
                "only",
            )
        },
    }


def _hook_resource(hook: HookRecord, resource_type: Json) -> dict[str, Json]:
    notification = hook.notification
    return {
        "name": hook.resource_name,
        "type": resource_type,
        "physical_id": notification.get("physical_id"),
        "operation": notification.get("operation"),
        "properties": notification.get("properties") or {},
        "changes": notification.get("changes") or {},
        "dependents": notification.get("dependents") or [],
        "seen": notification.get("seen") or {},
        "drift": _drift(notification["drift"]) if "drift" in notification else None,
        "renewed": notification.get("renewed"),
    }


def _drift(drift: Mapping[str, Json]) -> dict[str, Json]:
    return {**drift, "since": rfc3339(datetime.fromisoformat(drift["since"]))}


def _of_stack(source: _Source) -> dict[str, Json]:
    event = source.event
    moment = event.type.rpartition(".")[2]
    return {
        "stack": source.stack
        | {
            "action": event.action,
            "status": STATUS_OF.get(moment, event.status),
            "reason": event.reason,
            "owner": source.required_header.owner,
            "tags": list(source.required_header.tags),
            "created_at": rfc3339(source.required_header.created_at),
        },
        "traversal": event.data["traversal"],
        "version": event.data["version"],
        "out_of_date": event.data.get("out_of_date", []),
        "warnings": event.data.get("warnings", []),
        "converge": event.data.get("converge"),
    }


def _of_resource(source: _Source) -> dict[str, Json]:
    event = source.event
    operation = event.data["operation"]
    more = {"moved": event.data.get("moved")} if operation == "move" else {}
    if operation == "drift":
        drift = event.data["drift"]
        more = {"drift": _drift(drift)}
    if event.type.endswith(".restarted"):
        more = {name: event.data[name] for name in ("attempt", "operation_key")}
    return {
        "stack": source.stack,
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


def _of_hook(source: _Source) -> dict[str, Json]:
    event, hook = source.event, source.hook
    if hook is None:
        raise ValueError(f"event {event.id} needs its hook")
    if event.type == WAITING:
        return {
            # The state at the time of the event, not the current one.
            "hook": _hook(hook, HookState.WAITING, (), source.notified),
            "stack": source.stack,
            "traversal": hook.traversal,
            "node": _node_of(hook),
            **_subject(hook, event.resource_type),
            "signal_url": source.signal_url,
            "token": source.token,
        }
    name = event.resource_name or hook.resource_name
    resource_type = event.resource_type or hook.notification.get("type")
    resource = {"name": name, "type": resource_type} if name else None
    details = {name: value for name, value in event.data.items() if name in _HOOK_EVENT_KEYS}
    return {
        "hook": _hook(hook, HookState(hook.state), (), source.notified),
        "stack": source.stack,
        "resource": resource,
        "traversal": hook.traversal,
        "node": _node_of(hook),
        "details": details | {"reason": event.reason},
    }


def _of_delivery(source: _Source) -> dict[str, Json]:
    data = source.event.data
    return {
        "stack": source.stack,
        "subscription": {
            "id": data["subscription"],
            "channel": data["channel"],
            "target": data["target"],
        },
        "delivery": {name: data[name] for name in ("attempts", "code", "error")}
        | {"id": data["delivery"]},
        "event": {
            "id": data["event_id"],
            "type": data["event_type"],
            "sequence": data["event_sequence"],
        },
    }


def _of_subscription(source: _Source) -> dict[str, Json]:
    data = dict(source.event.data)
    by, subscription = data.pop("by"), {"id": data.pop("subscription"), "project": source.project}
    return {"subscription": subscription | data, "by": by, "reason": source.event.reason}


def _of_audit(source: _Source) -> dict[str, Json]:
    return {"checkpoint": source.event.data}


def _of_usage(source: _Source) -> dict[str, Json]:
    return {"usage": source.event.data}


def _source_without_stack(event: EventRecord, project: str) -> str:
    """The source of an event of an audit log, of usage or of a subscription."""
    if event.type.startswith("headgate.audit."):
        return f"/v1/{quote(project, safe='')}/decisions"
    if event.type.startswith("headgate.usage."):
        return f"/v1/{quote(project, safe='')}/usage"
    return subscription_path(project, event.stack_id)


#: By the second segment of the event type.
_DATA: Mapping[str, Callable[[_Source], dict[str, Json]]] = {
    "audit": _of_audit,
    "usage": _of_usage,
    "stack": _of_stack,
    "resource": _of_resource,
    "hook": _of_hook,
    "delivery": _of_delivery,
    "subscription": _of_subscription,
}
