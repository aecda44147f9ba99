"""What the document of a server says about an operation on it."""

from datetime import timedelta
from typing import Any

import pytest

from engine.types.contract import Confirmation, Failed, Wait
from engine.types.openstack.cloud_operation import ObjectProgress
from engine.types.openstack.nova.server_state import (
    ResizeMove,
    ResizePhase,
    addresses_with_ports,
    fault_reason,
    first_address,
    is_deleting,
    is_gone,
    judge,
    networks_attribute,
    next_resize_move,
)
from tests.unit.types.calls import NOW, a_call, run
from tests.unit.types.openstack.clouds import Answers, answer, type_with

Json = Any
YES, NO = Confirmation("resize", True, "ann"), Confirmation("resize", False, "ann")


def server(status: str, task: str | None = None, flavor: str = "old", **more: Json) -> Json:
    return {
        "status": status,
        "OS-EXT-STS:task_state": task,
        "flavor": {"original_name": flavor},
        **more,
    }


@pytest.mark.parametrize(
    ("document", "expected"),
    [
        (server("BUILD"), ObjectProgress.PENDING),
        (server("BUILD", "spawning"), ObjectProgress.PENDING),
        (server("ACTIVE", "suspending"), ObjectProgress.PENDING),
        (server("ACTIVE"), ObjectProgress.READY),
        (server("ERROR", "spawning"), ObjectProgress.BROKEN),
        (server("SHUTOFF"), ObjectProgress.BROKEN),
    ],
    ids=lambda one: one["status"] if isinstance(one, dict) else str(one),
)
def test_the_progress_of_a_server(document: Json, expected: ObjectProgress) -> None:
    assert judge(document, {"ACTIVE"}, "create").progress is expected


@pytest.mark.parametrize(
    ("document", "gone", "deleting"),
    [
        (None, True, None),
        (server("SOFT_DELETED"), True, False),
        (server("ACTIVE", "deleting"), False, True),
        (server("DELETED"), False, True),  # still in the lists
        (server("ACTIVE"), False, False),
        (server("ERROR"), False, False),
    ],
)
def test_the_end_of_a_delete(document: Json, gone: bool, deleting: bool | None) -> None:
    assert is_gone(document) is gone
    assert document is None or is_deleting(document) is deleting


def test_the_reason_of_a_fault() -> None:
    broken = server("ERROR", fault={"message": "on fire", "code": 500})
    assert fault_reason(broken) == 'Went to status ERROR due to "Message: on fire, Code: 500"'
    crowded = server("ERROR", fault={"message": "No valid host was found. ", "code": 500})
    assert "use a smaller flavor" in fault_reason(crowded)
    assert 'due to "Message: Unknown, Code: Unknown"' in fault_reason(server("ERROR"))


@pytest.mark.parametrize("fault", [{"message": "on fire", "code": 500}, None])
async def test_nova_records_the_fault_after_the_status(fault: Json) -> None:
    """The server is read once more; a server that has no fault then fails, too."""
    web = Answers(answer(200, {"server": server("ERROR")}))
    type_ = type_with(web, "OS::Nova::Server")
    waits = await run(type_, "suspend", a_call(
        type_, {"flavor": "f", "image": "i"}, credential="t", physical_id="S",
        progress={"asked": True},
    ))  # fmt: skip
    assert isinstance(waits, Wait) and waits.until == NOW + timedelta(seconds=1)
    more = {"fault": fault} if fault else {}
    web = Answers(answer(200, {"server": server("ERROR", **more)}))
    type_ = type_with(web, "OS::Nova::Server")
    failed = await run(type_, "suspend", a_call(
        type_, {"flavor": "f", "image": "i"}, credential="t", physical_id="S",
        progress=waits.progress,
    ))  # fmt: skip
    assert isinstance(failed, Failed)
    assert ("on fire" if fault else "Message: Unknown") in failed.reason


BEGIN, ASKED = ResizePhase.BEGIN, ResizePhase.ASKED
MOVES: dict[str, tuple[ResizePhase, Json, Confirmation | None, ResizeMove]] = {
    "begin": (BEGIN, server("ACTIVE"), None, ResizeMove.RESIZE),
    "begin of a stopped server": (BEGIN, server("SHUTOFF"), None, ResizeMove.RESIZE),
    "begin of a suspended server": (BEGIN, server("SUSPENDED"), None, ResizeMove.FAIL),
    "nothing to do": (BEGIN, server("ACTIVE", flavor="new"), None, ResizeMove.DONE),
    "prepared": (ResizePhase.RESIZING, server("ACTIVE", "resize_prep"), None, ResizeMove.WAIT),
    "a lost request": (BEGIN, server("RESIZE", "resize_migrating"), None, ResizeMove.WAIT),
    "failed": (ResizePhase.RESIZING, server("ACTIVE"), None, ResizeMove.FAIL),
    "failed badly": (ResizePhase.RESIZING, server("ERROR"), None, ResizeMove.FAIL),
    "resized": (
        ResizePhase.RESIZING, server("VERIFY_RESIZE", flavor="new"), None, ResizeMove.ASK),
    "left by an unanswered hook": (
        BEGIN, server("VERIFY_RESIZE", flavor="new"), None, ResizeMove.ASK),
    "left with another flavor": (BEGIN, server("VERIFY_RESIZE", flavor="x"), None, ResizeMove.UNDO),
    "no rule": (ASKED, server("VERIFY_RESIZE", flavor="new"), None, ResizeMove.CONFIRM),
    "accepted": (ASKED, server("VERIFY_RESIZE", flavor="new"), YES, ResizeMove.CONFIRM),
    "rejected": (ASKED, server("VERIFY_RESIZE", flavor="new"), NO, ResizeMove.REVERT),
    "confirmed by another client": (ASKED, server("ACTIVE", flavor="new"), YES, ResizeMove.DONE),
    "reverted by another client": (ASKED, server("ACTIVE"), YES, ResizeMove.FAIL),
    "confirming": (
        ResizePhase.CONFIRMING, server("VERIFY_RESIZE", flavor="new"), YES, ResizeMove.WAIT),
    "confirmed": (ResizePhase.CONFIRMING, server("ACTIVE", flavor="new"), YES, ResizeMove.DONE),
    "reverting": (
        ResizePhase.REVERTING, server("REVERT_RESIZE", "resize_reverting"), NO, ResizeMove.WAIT),
    "reverted": (ResizePhase.REVERTING, server("ACTIVE"), NO, ResizeMove.REJECTED),
    "undone": (ResizePhase.UNDOING, server("ACTIVE"), None, ResizeMove.RESIZE),
    "undone to the same": (
        ResizePhase.UNDOING, server("ACTIVE", flavor="new"), None, ResizeMove.DONE),
}  # fmt: skip


@pytest.mark.parametrize("name", MOVES)
def test_the_next_move_of_a_resize(name: str) -> None:
    phase, document, confirmation, expected = MOVES[name]
    assert next_resize_move(phase, document, "new", confirmation) is expected


def test_addresses() -> None:
    address = {"addr": "10.0.0.5", "OS-EXT-IPS-MAC:mac_addr": "m"}
    document = {"addresses": {"net": [address]}}
    ports = [{"id": "p", "mac_address": "m", "network_id": "N"}]
    assert addresses_with_ports(document, ports) == {"net": [{**address, "port": "p"}]}
    assert networks_attribute(document, ports) == {"net": ["10.0.0.5"], "N": ["10.0.0.5"]}
    assert networks_attribute({"addresses": {}}, []) == {}


@pytest.mark.parametrize(
    ("addresses", "expected"),
    [
        ({}, ""),
        ({"a": []}, ""),
        (
            {"a": [{"addr": "10.0.0.1"}], "b": [{"addr": "10.0.1.1"}, {"addr": "10.0.1.2"}]},
            "10.0.1.1",
        ),
        ({"a": [{"addr": "10.0.0.1"}], "b": []}, "10.0.0.1"),
    ],
)
def test_the_first_address_is_that_of_heat(addresses: Json, expected: str) -> None:
    assert first_address({"addresses": addresses}) == expected
