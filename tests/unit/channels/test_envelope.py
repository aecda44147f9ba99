"""Every event type is a valid CloudEvent and matches its schema."""

from collections.abc import Iterator
from dataclasses import replace
from datetime import UTC, datetime, timedelta, timezone
from typing import Any
from uuid import UUID

import jsonschema_rs
import orjson
import pytest
from cloudevents.core.formats.json import JSONFormat
from cloudevents.core.v1.event import CloudEvent

from channels.envelope import cloud_event, hook_document, rfc3339, subscription_test_event
from channels.schemas.event_schemas import HOOK_DOCUMENT, SCHEMAS
from channels.store.records import DeliveryStackHeader, shown_target
from engine.store.records import EventRecord, HookRecord
from engine.words import ResourceAction

STACK, EVENT, HOOK_ID = UUID(int=1), UUID(int=2), UUID(int=3)
TIME = datetime(2026, 1, 2, 3, 4, 5, 678901, tzinfo=UTC)
NOTIFIED = [{"subscription": str(UUID(int=9)), "channel": "webhook", "target": "https://a.test",
         "at": rfc3339(TIME)}]  # fmt: skip
NOTIFICATIONS = [{"subscription": str(UUID(int=9)), "channel": "webhook", "target": "https://a.test",
          "state": "pending", "attempts": 1, "code": 500, "error": "it answered 500",
          "next_at": rfc3339(TIME)}]  # fmt: skip

WAITING = HookRecord(
    id=HOOK_ID, project="demo", stack_id=STACK, stack_name="web", root_stack_id=STACK,
    root_stack_name="web", traversal=1, node=0, resource_name="db", path="db", point="pre-create",
    mode="wait", state="waiting", opened_at=TIME,
    deadline=TIME + timedelta(hours=1), on_timeout="stop", digest="abc", decision=None, reason=None,
    decided_by=None, channel=None, decided_at=None,
    notification={"type": "OS::Heat::None", "operation": "create", "physical_id": None,
            "properties": {"a": 1}, "changes": {"a": {"from": 0, "to": 1}}, "dependents": ["web"]},
    rule={"point": "pre-create"}, requested_by="ann", requested_by_id="name:ann",
    assigned=None, escalated_at=None, reminders=0,
    approved_by=[],
)  # fmt: skip
ANSWERED = replace(
    WAITING, state="answered", decision="continue", reason="fine", decided_by="dba", channel="api",
    decided_at=TIME + timedelta(minutes=1),
)  # fmt: skip

WITHOUT_STACK = ("headgate.subscription.", "headgate.audit.", "headgate.usage.")

DATA: dict[str, Any] = {
    "stack": {"traversal": 1, "version": 1},
    "hook": {"hook_id": str(HOOK_ID), "point": "pre-create", "mode": "wait"},
    "delivery": {
        "subscription": str(UUID(int=4)), "channel": "webhook", "target": "https://a.test",
        "delivery": str(UUID(int=5)), "event_id": str(UUID(int=6)), "attempts": 3, "code": None,
        "event_type": "headgate.hook.waiting", "event_sequence": 7, "error": "it answered 500",
    },
    "subscription": {
        "subscription": str(UUID(int=4)), "channel": "webhook", "target": "https://a.test",
        "origin": "api", "stack_id": None, "events": ["headgate.*"], "stacks": [], "resources": [],
        "types": [], "points": [], "tags": [], "ordered": True, "by": "ann",
    },
    "audit": {
        "project": "demo", "number": 1, "at": "2026-11-23T04:05:06.000007Z", "previous": "0" * 64,
        "heads": [[str(UUID(int=7)), 2, "f" * 64]], "digest": "a" * 64, "key_id": "b" * 16,
        "signature": "c" * 128,
    },
    "usage": {
        "project": "demo", "day": "2026-11-26", "observations": 9, "provider_requests": 3,
        "drift_found": 1, "repairs": 1, "operations": 4, "hooks": 2, "hook_seconds": 90,
        "resource_hours": 240,
    },
}  # fmt: skip


def make_event(kind: str) -> EventRecord:
    _, family, middle, *_ = kind.split(".")
    data = DATA.get(family) or {"operation": middle}
    if kind.endswith(".restarted"):
        data = data | {"attempt": 2, "operation_key": str(UUID(int=8))}
    if middle == "drift":
        differences = [{"path": "$.size", "desired": 1, "observed": "******"}]
        data = data | {"drift": {
            "state": "changed", "differences": differences, "since": TIME.isoformat(),
        }}  # fmt: skip
    if family == "subscription":
        data = data | {"state": "disabled" if middle == "disabled" else "enabled"}
    of_resource = family in ("resource", "hook")
    action = middle.upper()
    if family == "resource" and action not in list(ResourceAction):
        action = ResourceAction.UPDATE
    return EventRecord(
        stack_id=STACK, sequence=5, id=EVENT, type=kind, time=TIME,
        resource_name="db" if of_resource else None,
        resource_type="OS::Heat::None" if of_resource else None,
        physical_id=None, action=action, status="FAILED", reason="because", data=data,
    )  # fmt: skip


STACK_HEADER = DeliveryStackHeader("web", "ann", ("prod",), TIME)


def render(
    kind: str, hook: HookRecord | None = None, event: EventRecord | None = None
) -> dict[str, Any]:
    if kind == "headgate.subscription.test":
        return subscription_test_event(
            event_id=EVENT, time=TIME, project="demo", subscription_id=UUID(int=4),
            channel="webhook", target="https://a.test/path?key=1",
        )  # fmt: skip
    waits = kind == "headgate.hook.waiting"
    document = cloud_event(
        event or make_event(kind),
        project="demo",
        stack_header=None if kind.startswith(WITHOUT_STACK) else STACK_HEADER,
        hook=hook if ".hook." in kind else None,
        notified=NOTIFIED,
        signal_url="https://hub.test/hooks/x/signal" if waits else None,
        token="a-token" if waits else None,
    )
    parsed: dict[str, Any] = orjson.loads(orjson.dumps(document))
    return parsed


NO_DECISION = ("approved", "progress", "handed-over", "reminder", "escalated", "undeliverable")


def hook_at(kind: str) -> HookRecord:
    state = kind.rpartition(".")[2]
    if state in ("waiting", *NO_DECISION):
        return WAITING
    return replace(ANSWERED, state=state)


@pytest.mark.parametrize("kind", SCHEMAS)
def test_every_type_matches_its_schema(kind: str) -> None:
    document = render(kind, hook_at(kind))
    jsonschema_rs.validator_for(SCHEMAS[kind], validate_formats=True).validate(document)


def test_keys_of_some_events() -> None:
    began, gone, moved = (
        "headgate.stack.update.started", "headgate.resource.delete.completed",
        "headgate.resource.move.completed",
    )  # fmt: skip

    def data(kind: str, **more: Any) -> Any:
        event = make_event(kind)
        return render(kind, event=replace(event, data={**event.data, **more}))["data"]

    assert data(began)["out_of_date"] == []
    assert data(began, out_of_date=["b"])["out_of_date"] == ["b"]
    assert data(began)["warnings"] == []
    assert data(began, warnings=["no match"])["warnings"] == ["no match"]
    assert data(gone)["resource"]["replaced"] is False
    assert data(gone, replaced=True)["resource"]["replaced"] is True
    assert data(moved)["moved"] is None and "moved" not in data(gone)
    assert data(moved, moved={"from": 1})["moved"] == {"from": 1}


@pytest.mark.parametrize("kind", SCHEMAS)
def test_every_type_is_a_cloud_event(kind: str) -> None:
    document = render(kind, hook_at(kind))
    event = JSONFormat().read(CloudEvent, orjson.dumps(document))
    assert event.get_id() == str(EVENT)
    assert event.get_type() == kind
    assert event.get_time() == TIME
    assert event.get_specversion() == "1.0"
    assert event.get_data() == document["data"]
    assert event.get_source().startswith("/v1/demo/")


def test_the_schemas_are_valid_and_refuse_wrong_documents() -> None:
    for kind, schema in SCHEMAS.items():
        jsonschema_rs.meta.validate(schema)
        check = jsonschema_rs.validator_for(schema, validate_formats=True)
        document = render(kind, hook_at(kind))
        for broken in invalid_variants(document):
            assert not check.is_valid(broken), broken


def invalid_variants(document: dict[str, Any]) -> Iterator[dict[str, Any]]:
    # A hook of a whole stack has no subject.
    of_hook = ".hook." in document["type"]
    for key in document.keys() - ({"subject"} if of_hook else set()):
        yield {name: value for name, value in document.items() if name != key}
    for key in document["data"]:
        yield document | {"data": {n: v for n, v in document["data"].items() if n != key}}
    yield document | {"type": "headgate.other"}
    yield document | {"time": "2026-01-02T03:04:05+01:00"}
    yield document | {"id": "7"}


def test_the_envelope() -> None:
    document = render("headgate.resource.create.started")
    assert {name: value for name, value in document.items() if name != "data"} == {
        "specversion": "1.0",
        "dataschema": "urn:headgate:schema:headgate.resource.create.started:1",
        "id": str(EVENT),
        "source": f"/v1/demo/stacks/web/{STACK}",
        "type": "headgate.resource.create.started",
        "subject": "db",
        "time": "2026-01-02T03:04:05.678901Z",
        "datacontenttype": "application/json",
        "sequence": 5,
        "rootstack": str(STACK),
    }


def test_the_envelope_of_a_nested_stack_has_its_path() -> None:
    inside = replace(STACK_HEADER, path="web/0", root_id=UUID(int=77), root_name="all")
    document = cloud_event(
        make_event("headgate.resource.create.started"), project="demo", stack_header=inside,
        hook=None, notified=(), signal_url=None, token=None,
    )  # fmt: skip
    assert (document["rootstack"], document["stackpath"]) == (str(UUID(int=77)), "web/0")
    assert document["subject"] == "web/0/db"
    assert document["source"] == f"/v1/demo/stacks/web/{STACK}"
    stack = document["data"]["stack"]
    assert (stack["path"], stack["root"]) == ("web/0", {"id": str(UUID(int=77)), "name": "all"})
    schema = SCHEMAS["headgate.resource.create.started"]
    jsonschema_rs.validator_for(schema, validate_formats=True).validate(document)


def test_events_of_the_stack_have_no_subject() -> None:
    assert "subject" not in render("headgate.stack.create.completed")


def test_a_stopped_stack_has_the_status_stopped() -> None:
    stack = render("headgate.stack.update.stopped")["data"]["stack"]
    assert (stack["action"], stack["status"]) == ("UPDATE", "STOPPED")


def test_special_characters_are_escaped_in_the_source() -> None:
    event = make_event("headgate.stack.create.started")
    document = cloud_event(
        event, project="a/b", stack_header=replace(STACK_HEADER, name="c d"), hook=None,
        notified=(), signal_url=None, token=None,
    )  # fmt: skip
    assert document["source"] == f"/v1/a%2Fb/stacks/c%20d/{STACK}"


def test_the_notification_contains_the_hook_at_the_time_of_the_event() -> None:
    data = render("headgate.hook.waiting", ANSWERED)["data"]
    assert data["hook"]["state"] == "waiting"
    assert data["hook"]["allowed"] == ["continue", "reject", "step", "run", "progress"]
    assert data["hook"]["approvals"] == {"needed": 1, "given": 0, "by": []}
    assert "decision" not in data["hook"]
    assert data["hook"]["told"] == NOTIFIED
    assert data["resource"]["changes"] == {"a": {"from": 0, "to": 1}}
    assert (data["signal_url"], data["token"]) == ("https://hub.test/hooks/x/signal", "a-token")


def test_events_about_answers_contain_no_token() -> None:
    assert "token" not in str(render("headgate.hook.answered", ANSWERED))


@pytest.mark.parametrize("hook", [WAITING, ANSWERED, replace(WAITING, mode="notify")])
def test_the_document_of_a_hook(hook: HookRecord) -> None:
    document = hook_document(hook, notifications=NOTIFICATIONS, notified=NOTIFIED)
    jsonschema_rs.validator_for(HOOK_DOCUMENT, validate_formats=True).validate(document)
    waits = hook.state == "waiting" and hook.mode == "wait"
    assert document["allowed"] == (
        ["continue", "reject", "step", "run", "progress"] if waits else []
    )
    assert document["asked"] == NOTIFICATIONS
    assert ("decided_by" in document) is (hook.state != "waiting")
    assert document["resource"]["properties"] == {"a": 1}


def test_an_event_about_a_hook_needs_the_hook() -> None:
    with pytest.raises(ValueError, match="needs its hook"):
        render("headgate.hook.waiting", None)


def test_times_are_in_utc() -> None:
    berlin = timezone(timedelta(hours=1))
    assert rfc3339(datetime(2026, 1, 1, 0, 30, tzinfo=berlin)) == "2025-12-31T23:30:00.000000Z"


@pytest.mark.parametrize(
    ("target", "shown"),
    [
        ("https://me:pw@a.test:1/secret?key=1", "https://a.test:1"),
        ("https://a.test?key=1", "https://a.test"),
        ("exchange.key", "exchange.key"),
    ],
)
def test_targets_are_shown_without_secrets(target: str, shown: str) -> None:
    assert shown_target(target) == shown
