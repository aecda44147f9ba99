"""Heat's notifications as its listeners know them. The keys are those that a Heat server sent."""

from datetime import UTC, datetime

import pytest

from channels.amqp.notifications import notification
from channels.contract import EventMessage
from engine.words import Json

ENVELOPE = {"message_id", "publisher_id", "event_type", "priority", "payload", "timestamp",
            "_unique_id"}  # fmt: skip
PAYLOAD = {"create_at", "description", "stack_identity", "stack_name", "state", "state_reason",
           "tags", "tenant_id", "updated_at", "user_id", "user_identity", "username"}  # fmt: skip


def a_letter(kind: str, action: str, status: str) -> EventMessage:
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
def test_each_end_is_told_as_heat_tells_it(
    moment: str, status: str, end: str, priority: str, state: str
) -> None:
    told = notification(a_letter(f"headgate.stack.update.{moment}", "UPDATE", status))
    assert told is not None and told.keys() == ENVELOPE and told["payload"].keys() == PAYLOAD
    assert (told["event_type"], told["priority"]) == (f"orchestration.stack.update.{end}", priority)
    assert (told["payload"]["state"], told["payload"]["state_reason"]) == (state, "because")
    assert told["timestamp"] == "2026-11-20 20:41:23.074487"
    assert told["_unique_id"] == "10d35a5b264241c196d9d0831a883ee1"
    assert told["payload"]["create_at"] == "2026-11-20T20:41:22Z"
    assert told["payload"]["updated_at"] == "2026-11-20T20:41:23Z"


def test_a_stack_that_is_new_was_not_updated() -> None:
    told = notification(a_letter("headgate.stack.create.started", "CREATE", "IN_PROGRESS"))
    assert told is not None and told["payload"]["updated_at"] is None
    assert (told["payload"]["tenant_id"], told["payload"]["username"]) == ("demo", "ann")


@pytest.mark.parametrize("kind", ["headgate.resource.create.started", "headgate.hook.waiting"])
def test_heat_tells_of_stacks_alone(kind: str) -> None:
    assert notification(a_letter(kind, "CREATE", "IN_PROGRESS")) is None
