"""Load balancers without a cloud: what waits, what fails, and how an interrupted create finds its
object."""

from dataclasses import replace
from datetime import timedelta
from typing import Any

import orjson
import pytest

from engine.types.contract import Done, Failed, Replace, Wait
from engine.types.openstack.octavia.octavia_type import MAX_TURN, REFUSALS_UNTIL_READ
from engine.types.operation_outcomes import CANCELLED
from tests.unit.types.calls import KEY, NOW, a_call, findings_of, run
from tests.unit.types.openstack.clouds import Answers, answer, type_with

Json = Any
BALANCER = "11111111-1111-4111-8111-111111111111"
IMMUTABLE = answer(
    409, {"faultstring": f"Load Balancer {BALANCER} is immutable and cannot be updated."}
)
LISTENER = {"loadbalancer": BALANCER, "protocol": "TCP", "protocol_port": 80}


async def create_listener(web: Answers, progress: Json = None, **more: Json) -> Any:
    type_ = type_with(web, "OS::Octavia::Listener")
    call = a_call(type_, LISTENER, credential="t", progress=progress, **more)
    return await run(type_, "create", call)


async def test_a_request_is_sent_again_while_the_load_balancer_is_immutable() -> None:
    """However often: a refused request has had no effect, so no list looks for its object."""
    web = Answers(IMMUTABLE, IMMUTABLE, answer(201, {"listener": {"id": "L"}}))
    outcome, progress = None, None
    for _ in range(2):
        outcome = await create_listener(web, progress)
        assert isinstance(outcome, Wait)
        assert outcome.until is not None
        assert NOW < outcome.until <= NOW + timedelta(seconds=MAX_TURN)
        assert outcome.public_reason == "another change of the load balancer is in progress"
        progress = outcome.progress
    assert isinstance(await create_listener(web, progress), Done)
    assert [one.method for one in web.requests] == ["POST"] * 3


def balancer_in(status: str) -> Any:
    return answer(200, {"loadbalancer": {"id": BALANCER, "provisioning_status": status}})


@pytest.mark.parametrize("operation", ["create", "update"])
async def test_a_cancelled_operation_ends_where_it_would_wait(operation: str) -> None:
    """A delete removes the load balancer that has begun."""
    web = Answers(balancer_in("PENDING_CREATE"))
    type_ = type_with(web, "OS::Octavia::LoadBalancer")
    assert type_.cancellable
    known = {"physical_id": BALANCER, "previous": {}} if operation == "update" else {}
    progress = {"id": BALANCER, "path": "/lbaas/loadbalancers"}
    call = a_call(type_, {"vip_subnet": BALANCER}, credential="t", progress=progress, **known)
    assert isinstance(await run(type_, operation, call), Wait)
    web = Answers(balancer_in("PENDING_CREATE"))
    type_ = type_with(web, "OS::Octavia::LoadBalancer")
    outcome = await run(type_, operation, replace(call, cancelled=True))
    assert isinstance(outcome, Failed) and not outcome.retry
    assert (outcome.physical_id, outcome.public_reason) == (BALANCER, CANCELLED)
    assert [one.method for one in web.requests] == ["GET"]


async def test_a_cancelled_operation_that_has_ended_keeps_its_result() -> None:
    web = Answers(answer(200, {"listener": {"id": "L", "provisioning_status": "ACTIVE"}}))
    progress = {"id": "L", "path": "/lbaas/listeners"}
    assert isinstance(await create_listener(web, progress, cancelled=True), Done)


async def test_a_cancelled_create_does_not_repeat_a_refused_request() -> None:
    web = Answers()
    outcome = await create_listener(web, {"refused": 2}, cancelled=True)
    assert isinstance(outcome, Failed) and outcome.physical_id is None
    assert not web.requests


async def test_a_cancelled_create_that_was_interrupted_finds_its_object() -> None:
    """A request after the refused one may have created it."""
    own_name = a_call(type_with(Answers(), "OS::Octavia::Listener"), LISTENER).own_name
    made = {"id": "L", "provisioning_status": "PENDING_CREATE", "name": own_name}
    web = Answers(answer(200, {"listeners": [made]}))
    outcome = await create_listener(web, {"refused": 2}, cancelled=True, repeated=True)
    assert [one.method for one in web.requests] == ["GET"]
    assert isinstance(outcome, Wait) and outcome.progress["id"] == "L"


@pytest.mark.parametrize("status", ["PENDING_UPDATE", "ERROR"])
async def test_a_load_balancer_in_error_ends_the_wait(status: str) -> None:
    balancer = answer(200, {"loadbalancer": {"id": BALANCER, "provisioning_status": status}})
    web = Answers(IMMUTABLE, balancer)
    outcome = await create_listener(web, {"refused": REFUSALS_UNTIL_READ - 1})
    assert web.requests[1].url.endswith(f"/lbaas/loadbalancers/{BALANCER}")
    if status == "ERROR":
        assert isinstance(outcome, Failed) and not outcome.retry
        assert "openstack loadbalancer failover" in outcome.reason
    else:
        assert isinstance(outcome, Wait)


TAKEN = answer(
    409, {"faultstring": "Another Listener on this Load Balancer is already using port 80"}
)
REPLACES = "It may have the place of the listener that it replaces, OLD:"


async def test_a_duplicate_is_not_tried_again() -> None:
    outcome = await create_listener(Answers(TAKEN))
    assert isinstance(outcome, Failed) and not outcome.retry
    assert "already using port 80" in outcome.reason
    assert REPLACES not in outcome.reason


async def test_a_replacement_that_conflicts_with_what_it_replaces_says_so() -> None:
    outcome = await create_listener(Answers(TAKEN), replaced="OLD")
    assert isinstance(outcome, Failed) and not outcome.retry
    assert "already using port 80" in outcome.reason
    assert REPLACES in outcome.reason
    assert isinstance(await create_listener(Answers(IMMUTABLE), replaced="OLD"), Wait)


MARKS: dict[str, tuple[Json, Json]] = {
    "name": ({}, {"name": f"s-r-{KEY.hex[:12]}"}),
    "description": ({"name": "n"}, {"description": f"Created by Headgate: operation {KEY}"}),
    "tag": ({"name": "n", "description": "d"}, {"tags": [f"headgate:{KEY}"]}),
}


@pytest.mark.parametrize("mark", MARKS)
async def test_a_repeated_create_finds_its_object(mark: str) -> None:
    given, fields = MARKS[mark]
    found = {"id": "L", **fields}
    web = Answers(answer(200, {"listeners": [{"id": "M", "name": "n"}, found]}))
    type_ = type_with(web, "OS::Octavia::Listener")
    call = a_call(type_, {**LISTENER, **given}, credential="t", repeated=True)
    outcome = await run(type_, "create", call)
    assert isinstance(outcome, Done) and outcome.physical_id == "L"
    assert [one.method for one in web.requests] == ["GET"]


async def test_a_delete_waits_until_octavia_has_ended_it() -> None:
    pending = answer(200, {"listener": {"id": "L", "provisioning_status": "PENDING_DELETE"}})
    web = Answers(answer(204), pending, pending, answer(404, {}))
    type_ = type_with(web, "OS::Octavia::Listener")
    progress = None
    for _ in range(2):
        call = a_call(type_, LISTENER, credential="t", physical_id="L", progress=progress)
        outcome = await run(type_, "delete", call)
        assert isinstance(outcome, Wait)
        progress = outcome.progress
    call = a_call(type_, LISTENER, credential="t", physical_id="L", progress=progress)
    assert isinstance(await run(type_, "delete", call), Done)
    assert [one.method for one in web.requests] == ["DELETE", "GET", "GET", "GET"]


async def test_an_update_replaces_a_load_balancer_in_error() -> None:
    web = Answers(answer(200, {"loadbalancer": {"id": "B", "provisioning_status": "ERROR"}}))
    type_ = type_with(web, "OS::Octavia::LoadBalancer")
    given = {"vip_subnet": BALANCER}
    call = a_call(type_, given, credential="t", physical_id="B", previous=given, failed=True)
    assert isinstance(await run(type_, "update", call), Replace)


@pytest.mark.parametrize(
    ("name", "given", "reason"),
    [
        (
            "OS::Octavia::L7Policy",
            {"listener": BALANCER, "action": "REJECT", "redirect_url": "http://h"},
            "action REJECT has no redirect_url",
        ),
        (
            "OS::Octavia::Pool",
            {
                "listener": BALANCER, "protocol": "TCP", "lb_algorithm": "SOURCE_IP",
                "session_persistence": {"type": "SOURCE_IP", "cookie_name": "c"},
            },
            "SOURCE_IP has no cookie",
        ),
    ],
    ids=["policy", "pool"],
)  # fmt: skip
def test_properties_that_exclude_each_other_are_refused(
    name: str, given: Json, reason: str
) -> None:
    found = findings_of(type_with(Answers(), name), given)
    assert [one.reason for one in found] == [reason]


async def test_members_of_a_deleted_pool_are_missing() -> None:
    web = Answers(answer(404, {}), answer(404, {}))
    type_ = type_with(web, "OS::Octavia::PoolMember")
    given = {"pool": BALANCER, "address": "10.0.0.9", "protocol_port": 80}
    data = {"path": f"/lbaas/pools/{BALANCER}/members"}
    call = a_call(type_, given, physical_id="M", previous=given, data=data)
    observed: Any = type_.observe([call])
    found = await observed
    assert found[call.resource_id].state == "missing"
    assert orjson.dumps([one.url for one in web.requests]).count(b"/members") == 2
