"""Operations that end without a result: what exists in the cloud is deleted, and nothing else."""

from typing import Any
from uuid import UUID

import orjson
import pytest

from engine.types.contract import Done, Failed, Wait
from engine.types.http_client import NoResponse
from engine.types.openstack.cloud import Cloud
from engine.types.openstack.nova.server_ports import MAX_ROUNDS
from engine.words import ObservedState, ResourceId
from tests.unit.types.calls import KEY, a_call, findings_of, run
from tests.unit.types.openstack.clouds import (
    Answers,
    Renewing,
    answer,
    type_with,
    types_of_all_services,
)

Json = Any
ATTACHMENT = "OS::Cinder::VolumeAttachment"
PAIR = {"instance_uuid": "S", "volume_id": "V"}
MISSING, ACCEPTED = answer(404, {}), answer(202)
LOST = NoResponse("no answer", retry=True)


def sent(web: Answers) -> list[str]:
    """The requests: the method and the path."""
    return [f"{one.method} /{one.url.partition('//')[2].partition('/')[2]}" for one in web.requests]


async def attach(web: Answers, progress: Json, **more: Json) -> Any:
    type_ = type_with(web, ATTACHMENT)
    return await run(
        type_, "create", a_call(type_, PAIR, credential="t", progress=progress, **more)
    )


async def detach(web: Answers, failed: Failed) -> Any:
    type_ = type_with(web, ATTACHMENT)
    known = {"physical_id": failed.physical_id, "data": failed.data}
    return await run(type_, "delete", a_call(type_, PAIR, credential="t", **known))


async def test_a_cancelled_attachment_that_may_exist_is_removed() -> None:
    waits = await attach(Answers(MISSING), None)
    assert isinstance(waits, Wait)
    failed = await attach(Answers(), waits.progress, repeated=True, cancelled=True)
    assert isinstance(failed, Failed) and failed.physical_id == "V"
    web = Answers(answer(200, {"volumeAttachment": {"volumeId": "V"}}), ACCEPTED)
    assert isinstance(await detach(web, failed), Wait)
    path = "/servers/S/os-volume_attachments/V"
    assert sent(web) == [f"GET {path}", f"DELETE {path}"]


async def test_an_attachment_without_an_answer_is_removed() -> None:
    failed = await attach(Answers(MISSING, LOST), {"absent": True})
    assert isinstance(failed, Failed) and failed.retry
    assert (failed.physical_id, failed.data) == ("V", {"server": "S"})


@pytest.mark.parametrize("progress", [None, {"absent": True}], ids=["before", "refused"])
async def test_an_attachment_of_another_client_stays(progress: Json) -> None:
    there = answer(200, {"volumeAttachment": {"volumeId": "V"}})
    web = Answers(MISSING, answer(400, {})) if progress else Answers(there)
    failed = await attach(web, progress)
    assert isinstance(failed, Failed) and failed.physical_id is None and not failed.retry
    assert await detach(Answers(), failed) == Done(None)


async def test_a_moved_attachment_that_fails_is_not_that_of_another_client() -> None:
    """The volume was attached to the new server before this operation."""
    there = answer(200, {"volumeAttachment": {"volumeId": "V"}})
    type_ = type_with(Answers(there), ATTACHMENT)
    call = a_call(
        type_, PAIR, credential="t", physical_id="V", data={"server": "old"},
        previous={**PAIR, "instance_uuid": "old"}, changed=frozenset({"instance_uuid"}),
        progress={"detached": True},
    )  # fmt: skip
    failed = await run(type_, "update", call)
    assert isinstance(failed, Failed) and "already" in failed.reason
    assert await detach(Answers(), failed) == Done(None)


SERVER = "OS::Nova::Server"
SUBNET = {"subnet": "11111111-1111-4111-8111-111111111111"}
GIVEN = {"flavor": "f", "image": "i", "networks": [SUBNET, {"network": "n"}, SUBNET]}
PORTS = [f"s-r-{KEY.hex[:12]}-port-{number}" for number in (0, 2)]

#: The answer of a service that ignores the filter by name.
OWN = answer(
    200,
    {"ports": [
        {"id": "theirs", "name": "x"}, {"id": "a", "name": PORTS[0]}, {"id": "b", "name": PORTS[1]}
    ]},
)  # fmt: skip


#: Types whose operations never wait for an object, so that nothing can be cancelled.
NEVER_WAIT = {
    "AWS::EC2::InternetGateway", "AWS::EC2::VPCGatewayAttachment",
    "OS::Cinder::EncryptedVolumeType", "OS::Cinder::QoSAssociation",
    "OS::Cinder::Quota", "OS::Keystone::GroupRoleAssignment",
    "OS::Keystone::UserRoleAssignment", "OS::Neutron::RouterGateway", "OS::Nova::Flavor",
    "OS::Nova::KeyPair", "OS::Nova::Quota",
    "OS::Nova::ServerGroup", "OS::Octavia::Quota", "OS::Swift::Container",
    "OS::Zaqar::SignedQueueURL",
}  # fmt: skip


def test_all_other_types_end_when_they_are_cancelled() -> None:
    found = types_of_all_services(Cloud(Answers(), Renewing()))
    assert {
        one.schema.name for one in found if not one.cancellable and not one.supersedable
    } == NEVER_WAIT


@pytest.mark.parametrize("cancelled", [False, True])
async def test_the_ports_of_a_create_without_a_result_are_deleted(cancelled: bool) -> None:
    web = Answers(answer(200, {"servers": []})) if cancelled else Answers(LOST)
    type_ = type_with(web, SERVER)
    call = a_call(type_, GIVEN, credential="t", repeated=True, cancelled=cancelled)
    failed = await run(type_, "create", call)
    assert isinstance(failed, Failed) and failed.physical_id is None
    web = Answers(
        answer(200, {"servers": []}),
        OWN, answer(204), answer(204),
    )  # fmt: skip
    type_ = type_with(web, SERVER)
    call = a_call(type_, GIVEN, credential="t", data=failed.data)
    assert await run(type_, "delete", call) == Done(None)
    names = "&".join(f"name={one}" for one in PORTS)
    assert sent(web)[1:] == [f"GET /ports?{names}&limit=500", "DELETE /ports/a", "DELETE /ports/b"]


async def test_the_ports_of_an_update_without_a_result_are_deleted() -> None:
    type_ = type_with(Answers(), SERVER)
    known = {"physical_id": "S", "previous": GIVEN, "data": {"ports": ["old"]}}
    call = a_call(
        type_, GIVEN, credential="t", changed=frozenset({"networks"}), cancelled=True, **known
    )
    failed = await run(type_, "update", call)
    assert isinstance(failed, Failed)
    web = Answers(MISSING, OWN, answer(204), answer(204), answer(204))
    type_ = type_with(web, SERVER)
    call = a_call(type_, GIVEN, credential="t", physical_id="S", data=failed.data)
    assert await run(type_, "delete", call) == Done(None)
    assert sent(web)[2:] == ["DELETE /ports/old", "DELETE /ports/a", "DELETE /ports/b"]


#: What would hide the key by which an interrupted create finds its object.
RESERVED: dict[str, Json] = {
    "OS::Nova::Server": {**GIVEN, "metadata": {"headgate_operation": "x"}},
    "OS::Cinder::Volume": {"size": 1, "metadata": {"headgate_operation": "x"}},
    "OS::Glance::WebImage": {
        "location": "http://h/i", "disk_format": "raw", "container_format": "bare",
        "extra_properties": {"id": "x"},
    },
}  # fmt: skip
NAMED_PORT = {**SUBNET, "port_extra_properties": {"value_specs": {"name": "x"}}}


@pytest.mark.parametrize("name", [*RESERVED, "port"])
def test_what_would_hide_the_key_of_a_create_is_refused(name: str) -> None:
    given = RESERVED.get(name) or {**GIVEN, "networks": [NAMED_PORT]}
    (found,) = findings_of(type_with(Answers(), name if name in RESERVED else SERVER), given)
    assert found.reason.startswith("is reserved: Headgate") and found.remedy


async def test_the_key_of_a_create_wins_over_properties_known_late() -> None:
    """The value of a property may be known only when the create runs."""
    for name, key in (("OS::Cinder::Volume", "volume"), ("OS::Glance::WebImage", "")):
        web = Answers(answer(202, {key: {"id": "i"}} if key else {"id": "i"}))
        type_ = type_with(web, name)
        await run(type_, "create", a_call(type_, RESERVED[name], credential="t"))
        body = orjson.loads(web.requests[-1].body or b"")
        mark = body["volume"]["metadata"]["headgate_operation"] if key else body["id"]
        assert mark in (KEY.hex, str(KEY))


@pytest.mark.parametrize("name", ["OS::Cinder::Volume", SERVER])
async def test_objects_that_a_list_lacks_are_looked_for_in_a_second_list(name: str) -> None:
    key = "volumes" if name != SERVER else "servers"
    web = Answers(answer(200, {key: [{"id": "a"}]}), answer(200, {key: [{"id": "b"}]}))
    type_ = type_with(web, name)
    given = {"size": 1} if name != SERVER else GIVEN
    calls = [
        a_call(type_, given, resource_id=ResourceId(UUID(int=n)), physical_id=one)
        for n, one in enumerate("abcd")
    ]
    observed: Any = type_.observe(calls)
    found = await observed
    missing = [n.int for n, one in found.items() if one.state is ObservedState.MISSING]
    assert (missing, len(web.requests)) == ([2, 3], 2)


async def test_interfaces_that_fit_no_entry_are_not_attached_for_ever() -> None:
    network = "22222222-2222-4222-8222-222222222222"
    given = {**GIVEN, "networks": [{"network": network}]}
    known = {"physical_id": "S", "previous": GIVEN, "changed": frozenset({"networks"})}
    progress: Json = {"at": "networks", "ports": []}
    path = "/servers/S/os-interface"
    outcome: Any = None
    for number in range(MAX_ROUNDS + 1):
        web = Answers(
            answer(200, {"server": {"id": "S", "status": "ACTIVE"}}),
            answer(200, {"interfaceAttachments": []}),
            answer(200, {"interfaceAttachment": {}}),
        )
        type_ = type_with(web, SERVER)
        call = a_call(type_, given, credential="t", progress=progress, **known)
        outcome = await run(type_, "update", call)
        posts = [one for one in sent(web) if one == f"POST {path}"]
        assert len(posts) == (number < MAX_ROUNDS)
        progress = getattr(outcome, "progress", None)
    assert isinstance(outcome, Failed) and not outcome.retry
    assert f"no interface fits network {network}" in outcome.reason


ROUTER, ROUTES = "33333333-3333-4333-8333-333333333333", "OS::Neutron::ExtraRouteSet"
ROUTE, OTHER = ({"destination": f"10.{n}.0.0/24", "nexthop": "10.0.0.9"} for n in (1, 2))


def router_with(*routes: Json) -> Any:
    return answer(200, {"router": {"id": ROUTER, "routes": list(routes)}})


async def on_routes(web: Answers, operation: str, *routes: Json, **more: Json) -> Any:
    type_ = type_with(web, ROUTES)
    given = {"router": ROUTER, "routes": list(routes)}
    return await run(type_, operation, a_call(type_, given, credential="t", **more))


async def test_routes_of_a_create_without_an_answer_are_removed() -> None:
    waits = await on_routes(Answers(router_with(OTHER)), "create", ROUTE)
    assert isinstance(waits, Wait)
    failed = await on_routes(Answers(LOST), "create", ROUTE, progress=waits.progress)
    assert isinstance(failed, Failed) and failed.physical_id is None
    web = Answers(router_with())
    assert await on_routes(web, "delete", ROUTE, data=failed.data) == Done(None)
    assert sent(web) == [f"PUT /routers/{ROUTER}/remove_extraroutes"]
    again = await on_routes(
        Answers(router_with()), "create", ROUTE, progress=waits.progress, repeated=True
    )
    assert again == Done(str(KEY))


async def test_routes_of_another_client_are_neither_taken_nor_removed() -> None:
    failed = await on_routes(Answers(router_with(ROUTE)), "create", ROUTE)
    assert isinstance(failed, Failed) and "already: 10.1.0.0/24 via 10.0.0.9" in failed.reason
    assert await on_routes(Answers(), "delete", ROUTE, data=failed.data) == Done(None)
    refused = await on_routes(Answers(answer(409, {})), "create", ROUTE, progress={"absent": True})
    assert isinstance(refused, Failed)
    assert await on_routes(Answers(), "delete", ROUTE, data=refused.data) == Done(None)


async def test_routes_of_an_update_without_an_answer_are_removed() -> None:
    before = {"previous": {"router": ROUTER, "routes": [ROUTE]}, "physical_id": "key"}
    waits = await on_routes(Answers(router_with(ROUTE)), "update", ROUTE, OTHER, **before)
    assert isinstance(waits, Wait)
    failed = await on_routes(
        Answers(LOST), "update", ROUTE, OTHER, progress=waits.progress, **before
    )
    assert isinstance(failed, Failed) and failed.physical_id == "key"
    web = Answers(router_with())
    known = {"physical_id": "key", "data": failed.data}
    assert await on_routes(web, "delete", ROUTE, **known) == Done(None)
    assert orjson.loads(web.requests[0].body or b"") == {"router": {"routes": [ROUTE, OTHER]}}
    repaired = Answers(router_with())
    done = await on_routes(repaired, "update", ROUTE, OTHER, **before | known)
    assert done == Done("key") and len(repaired.requests) == 1


ADDRESS, PORT, ELSEWHERE = (f"{n}4444444-4444-4444-8444-444444444444" for n in (1, 2, 3))
ASSOCIATION = "OS::Neutron::FloatingIPAssociation"


def address_at(port: str | None) -> Any:
    return answer(200, {"floatingip": {"id": ADDRESS, "port_id": port}})


async def on_association(web: Answers, operation: str, port: str = PORT, **more: Json) -> Any:
    type_ = type_with(web, ASSOCIATION)
    given = {"floatingip_id": ADDRESS, "port_id": port}
    return await run(type_, operation, a_call(type_, given, credential="t", **more))


@pytest.mark.parametrize("operation", ["create", "update"])
async def test_an_association_without_an_answer_is_removed(operation: str) -> None:
    before: Json = {}
    if operation == "update":
        previous = {"floatingip_id": ADDRESS, "port_id": ELSEWHERE}
        before = {"previous": previous, "physical_id": ADDRESS, "data": {"port": ELSEWHERE}}
    waits = await on_association(Answers(), operation, **before)
    assert isinstance(waits, Wait)
    failed = await on_association(Answers(LOST), operation, progress=waits.progress, **before)
    assert isinstance(failed, Failed) and failed.physical_id == ADDRESS
    known = {"physical_id": ADDRESS, "data": failed.data}
    web = Answers(address_at(PORT), address_at(None))
    port = PORT if operation == "create" else ELSEWHERE  # as last applied
    assert await on_association(web, "delete", port, **known) == Done(None)
    assert [one.method for one in web.requests] == ["GET", "PUT"]


async def test_an_association_of_another_client_stays() -> None:
    web = Answers(address_at(ELSEWHERE))
    known: Json = {"physical_id": ADDRESS, "data": {"port": PORT}}
    assert await on_association(web, "delete", **known) == Done(None)
    assert [one.method for one in web.requests] == ["GET"]


async def test_an_image_of_a_create_without_an_answer_is_deleted() -> None:
    given = {"location": "http://h/i", "disk_format": "raw", "container_format": "bare"}
    type_ = type_with(Answers(LOST), "OS::Glance::WebImage")
    failed = await run(type_, "create", a_call(type_, given, credential="t"))
    assert isinstance(failed, Failed) and failed.physical_id is None
    web = Answers(answer(204))
    type_ = type_with(web, "OS::Glance::WebImage")
    call = a_call(type_, given, credential="t", data=failed.data)
    assert await run(type_, "delete", call) == Done(None)
    assert sent(web) == [f"DELETE /images/{KEY}"]


async def test_an_image_with_a_given_id_may_be_of_another_client() -> None:
    given = {
        "id": ADDRESS, "location": "http://h/i", "disk_format": "raw", "container_format": "bare"
    }  # fmt: skip
    type_ = type_with(Answers(LOST), "OS::Glance::WebImage")
    failed = await run(type_, "create", a_call(type_, given, credential="t"))
    assert isinstance(failed, Failed) and failed.data == {}


@pytest.mark.parametrize("failed", [True, False])
async def test_an_update_after_a_failure_or_drift_applies_all_properties(failed: bool) -> None:
    """A change of one property does not hide what another client has changed."""
    web = Answers(answer(200, {"network": {"id": "N"}}))
    type_ = type_with(web, "OS::Neutron::Net")
    before = {"name": "n", "shared": False}
    known: Json = {"physical_id": "N", "previous": before, "changed": frozenset({"name"})}
    call = a_call(type_, {**before, "name": "m"}, credential="t", failed=failed, **known)
    assert isinstance(await run(type_, "update", call), Done)
    (request,) = web.requests
    fields = orjson.loads(request.body or b"")["network"]
    usual = {"name": "m", "shared": False, "admin_state_up": True}
    assert fields == (usual if failed else {"name": "m"})
