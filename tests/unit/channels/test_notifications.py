"""Heat's notifications. The keys are those of a Heat server."""

from datetime import UTC, datetime

import pytest

from channels.amqp.notifications import notification
from channels.contract import EventMessage
from engine.words import Json

ENVELOPE = {"message_id", "publisher_id", "event_type", "priority", "payload", "timestamp",
            "_unique_id"}  # fmt: skip
PAYLOAD = {"create_at", "description", "stack_identity", "stack_name", "state", "state_reason",
           "tags", "tenant_id", "updated_at", "user_id", "user_identity", "username"}  # fmt: skip


def make_message(kind: str, action: str, status: str) -> EventMessage:
    stack = {
        "id": "an-id", "name": "web", "project": "demo", "action": action, "status": status,
        "reason": "because", "owner": "ann", "tags": ["prod"],
        "created_at": "2026-11-20T20:41:22.123456Z",
    }  # fmt: skip
    document: Json = {"time": "2026-11-20T20:41:23.074487Z", "data": {"stack": stack}}
    event = "10d35a5b-2642-41c1-96d9-d0831a883ee1"
    return EventMessage(event, kind, document, datetime(2026, 11, 20, tzinfo=UTC))


@pytest.mark.parametrize(
    ("moment", "status", "end", "priority", "state"),
    [
        ("started", "IN_PROGRESS", "start", "INFO", "UPDATE_IN_PROGRESS"),
        ("completed", "COMPLETE", "end", "INFO", "UPDATE_COMPLETE"),
        ("failed", "FAILED", "error", "ERROR", "UPDATE_FAILED"),
        ("stopped", "STOPPED", "error", "ERROR", "UPDATE_FAILED"),
    ],
)
def test_each_event_has_the_notification_of_heat(
    moment: str, status: str, end: str, priority: str, state: str
) -> None:
    sent = notification(make_message(f"headgate.stack.update.{moment}", "UPDATE", status))
    assert sent is not None and sent.keys() == ENVELOPE and sent["payload"].keys() == PAYLOAD
    assert (sent["event_type"], sent["priority"]) == (f"orchestration.stack.update.{end}", priority)
    assert (sent["payload"]["state"], sent["payload"]["state_reason"]) == (state, "because")
    assert sent["timestamp"] == "2026-11-20 20:41:23.074487"
    assert sent["_unique_id"] == "10d35a5b264241c196d9d0831a883ee1"
    assert sent["payload"]["create_at"] == "2026-11-20T20:41:22Z"
    assert sent["payload"]["updated_at"] == "2026-11-20T20:41:23Z"


def test_a_new_stack_has_no_update_time() -> None:
    sent = notification(make_message("headgate.stack.create.started", "CREATE", "IN_PROGRESS"))
    assert sent is not None and sent["payload"]["updated_at"] is None
    assert (sent["payload"]["tenant_id"], sent["payload"]["username"]) == ("demo", "ann")


@pytest.mark.parametrize("kind", ["headgate.resource.create.started", "headgate.hook.waiting"])
def test_only_stack_events_have_notifications(kind: str) -> None:
    assert notification(make_message(kind, "CREATE", "IN_PROGRESS")) is None
