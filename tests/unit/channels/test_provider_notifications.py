"""Notifications of providers: the objects that they name, and messages that cannot be read."""

from typing import Any

import orjson
import pytest

from channels.amqp.provider_notifications import (
    MAX_BODY_BYTES,
    MAX_IDS,
    OPENSTACK,
    InvalidNotification,
    NotificationRule,
    read,
    resolve,
)
from engine.words import Json

VERSIONED = {
    "nova_object.name": "InstanceActionPayload",
    "nova_object.data": {"uuid": "s-1", "host": "h"},
    "nova_object.version": "1.8",
}


def body(event_type: Any, payload: Json) -> bytes:
    message = {
        "event_type": event_type,
        "payload": payload,
        "publisher_id": "x",
        "priority": "INFO",
    }
    envelope = {"oslo.version": "2.0", "oslo.message": orjson.dumps(message).decode()}
    return orjson.dumps(envelope)


@pytest.mark.parametrize(
    ("event_type", "payload", "ids"),
    [
        ("instance.create.end", VERSIONED, ["s-1"]),
        ("instance.update", VERSIONED, ["s-1"]),
        ("instance.resize_finish.error", VERSIONED, ["s-1"]),
        ("compute.instance.power_off.end", {"instance_id": "s-2", "state": "stopped"}, ["s-2"]),
        ("server_group.create", {"nova_object.data": {"uuid": "g"}}, ["g"]),
        ("port.update.end", {"port": {"id": "p-1", "status": "DOWN"}}, ["p-1"]),
        ("port.delete.end", {"port_id": "p-2"}, ["p-2"]),
        ("port.create.end", {"ports": [{"id": "p-3"}, {"id": "p-4"}]}, ["p-3", "p-4"]),
        ("router.interface.delete", {"router_interface": {"id": "r", "port_id": "p"}}, ["r"]),
        ("floatingip.update.end", {"floatingip": {"id": "f"}}, ["f"]),
        ("security_group_rule.create.end",
         {"security_group_rule": {"id": "rule", "security_group_id": "sg"}}, ["sg"]),
        ("volume.attach.end", {"volume_id": "v", "tenant_id": "t"}, ["v"]),
        ("snapshot.delete.end", {"snapshot_id": "sn", "volume_id": "v"}, ["sn"]),
    ],
)  # fmt: skip
def test_the_objects_of_notifications_of_openstack(
    event_type: str, payload: Json, ids: list[str]
) -> None:
    assert read(body(event_type, payload), OPENSTACK) == [(one, None) for one in ids]


@pytest.mark.parametrize(
    "event_type", ["instance.create.start", "port.update.start", "identity.user.updated", "volume"]
)
def test_events_without_a_rule_are_ignored(event_type: str) -> None:
    assert read(body(event_type, {"port_id": "p"}), OPENSTACK) is None


def test_a_message_without_an_envelope_is_read_too() -> None:
    bare = orjson.dumps({"event_type": "volume.create.end", "payload": {"volume_id": "v"}})
    assert read(bare, OPENSTACK) == [("v", None)]


def test_the_first_rule_that_matches_applies_to_each_of_its_types() -> None:
    rules = [NotificationRule(["port.*"], ["/name"], ["A", "B"]), *OPENSTACK]
    payload = {"name": "n", "port_id": "p"}
    assert read(body("port.delete.end", payload), rules) == [("n", "A"), ("n", "B")]


@pytest.mark.parametrize(
    ("sent", "reason"),
    [
        (b"", "the body is not JSON"),
        (b"[1]", "the body is not an object"),
        (b"\xff", "the body is not JSON"),
        (b"[" * 5_000, "the body is not JSON"),
        (b" " * (MAX_BODY_BYTES + 1), "it is longer than 1048576 bytes"),
        (b'{"oslo.message": "["}', "oslo.message is not JSON"),
        (b'{"oslo.message": "7"}', "oslo.message is not an object"),
        (b'{"oslo.message": 7}', "oslo.message is not JSON"),
        (b'{"oslo.message": null}', "oslo.message is not JSON"),
        (b"{}", "it has no event_type"),
        (body(None, {}), "it has no event_type"),
        (body(["volume.create.end"], {}), "it has no event_type"),
        (body("volume.create.end", None), 'the payload of "volume.create.end" has no ID'),
        (body("volume.create.end", []), "has no ID at /volume_id"),
        (body("volume.create.end", {"volume_id": ""}), "has no ID"),
        (body("volume.create.end", {"volume_id": None}), "has no ID"),
        (body("volume.create.end", {"volume_id": True}), "has no ID"),
        (body("volume.create.end", {"volume_id": {"id": "v"}}), "has no ID"),
        (body("volume.create.end", {"volume_id": "a\0b"}), "has no ID"),
        (body("volume.create.end", {"volume_id": "x" * 1_001}), "has no ID"),
        (body("port.create.end", {"ports": "many"}), "has no ID at /port/id or /port_id or"),
        (body("port.create.end", {"ports": [{"id": "p"}] * (MAX_IDS + 1)}), "more than 1000 IDs"),
    ],
)
def test_a_message_that_cannot_be_used_has_a_reason(sent: bytes, reason: str) -> None:
    with pytest.raises(InvalidNotification) as caught:
        read(sent, OPENSTACK)
    assert reason in str(caught.value)


@pytest.mark.parametrize(
    ("pointer", "values"),
    [
        ("/a/b", [1]),
        ("/list/1/id", [8]),
        ("/list/*/id", [7, 8]),
        ("/x~1y", [2]),
        ("/m~0n", [3]),
        ("/*", []),
        ("/list/2", []),
        ("/list/-1", []),
        ("/list/²", []),
        ("/list/999999999999", []),
        ("/a/b/c", []),
        ("/none", []),
    ],
)
def test_pointers(pointer: str, values: list[Json]) -> None:
    document = {"a": {"b": 1}, "list": [{"id": 7}, {"id": 8}], "x/y": 2, "m~n": 3}
    assert list(resolve(pointer, document)) == values
