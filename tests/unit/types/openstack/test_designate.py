"""The rules of the types of Designate, and how a repeated create finds its own object."""

from typing import Any

import orjson
import pytest

from engine.plan.resource_change import ResourceState, forward_change
from engine.types.contract import Done, Failed, Outcome, Replace, Wait
from engine.types.http_client import Response
from engine.words import Operation, ResourceAction, Status
from tests.unit.types.calls import a_call, findings_of, run
from tests.unit.types.openstack.clouds import Answers, answer, type_with

Json = Any
ZONE, RECORDS = "OS::Designate::Zone", "OS::Designate::RecordSet"
ID = "11111111-1111-4111-8111-111111111111"
RECORD = {"zone": ID, "type": "A", "records": ["10.0.0.1"]}
MINE = {"name": "example.org.", "email": "dns@example.org", "description": "mine"}


def zone(**fields: Json) -> Json:
    return {"id": ID, **MINE, "status": "ACTIVE", "action": "NONE", "serial": 7, **fields}


def listed(*found: Json) -> Response:
    return answer(200, {"zones": list(found)})


async def outcome(
    operation: str, web: Answers, name: str, properties: Json, **more: Json
) -> Outcome:
    type_ = type_with(web, name)
    return await run(type_, operation, a_call(type_, properties, credential="t", **more))


def sent(web: Answers) -> list[str]:
    return [f"{one.method} {one.url.partition('//')[2].partition('/')[2]}" for one in web.requests]


@pytest.mark.parametrize(
    ("name", "properties", "places"),
    [
        (ZONE, {"name": "example.org", "email": "a@b.org"}, ["name"]),
        (ZONE, {"name": "example.org."}, ["email"]),
        (ZONE, {"name": "example.org.", "type": "SECONDARY"}, ["primaries"]),
        (ZONE, {"name": "example.org.", "type": "SECONDARY", "masters": ["10.0.0.1"]}, []),
        (RECORDS, {**RECORD, "name": "www"}, []),
        (RECORDS, {**RECORD, "records": []}, ["records"]),
        (RECORDS, RECORD, []),
    ],
)
def test_what_designate_refuses_is_found_before(
    name: str, properties: Json, places: list[str]
) -> None:
    found = findings_of(type_with(Answers(), name), properties)
    assert [one.place.rpartition("properties.")[2] for one in found] == places


@pytest.mark.parametrize(
    ("name", "whole"),
    [("www", "www.example.org."), ("a.b", "a.b.example.org."), ("www.example.org.", None)],
)
async def test_a_record_name_without_a_dot_at_its_end_is_relative_to_the_zone(
    name: str, whole: str | None
) -> None:
    """As in Heat, whose client asks Designate for the name of the zone."""
    created = {"id": ID, "name": whole or name, "type": "A", "status": "ACTIVE", "action": "NONE"}
    web = Answers(*([answer(200, zone())] if whole else []), answer(201, created))
    done = await outcome("create", web, RECORDS, {**RECORD, "name": name})
    assert isinstance(done, Done) and not web.answers
    assert orjson.loads(web.requests[-1].body or b"")["name"] == (whole or name)


@pytest.mark.parametrize(
    ("desired", "observed", "same"),
    [
        ("www", "www.example.org.", True),
        ("WWW", "www.example.org.", True),
        ("www", "www2.example.org.", False),
        ("www.example.org.", "www.example.org.", True),
        ("www.example.org.", "web.example.org.", False),
    ],
)
def test_a_relative_name_is_no_drift(desired: str, observed: str, same: bool) -> None:
    type_: Any = type_with(Answers(), RECORDS)
    assert type_.is_same("name", desired, observed) is same


async def test_a_zone_that_exists_is_not_taken() -> None:
    found = await outcome("create", Answers(listed(zone())), ZONE, MINE)
    assert isinstance(found, Failed) and found.physical_id is None
    assert "already" in found.reason and ID in found.reason


async def test_a_repeated_create_finds_its_zone() -> None:
    """After the progress has recorded that there was none."""
    first = await outcome("create", Answers(listed()), ZONE, MINE)
    assert isinstance(first, Wait)
    web = Answers(listed(zone()))
    found = await outcome("create", web, ZONE, MINE, progress=first.progress, repeated=True)
    assert isinstance(found, Done) and found.physical_id == ID
    assert found.attributes["serial"] == "7"
    assert [one.split("?")[0] for one in sent(web)] == ["GET zones"]


async def test_a_duplicate_is_final() -> None:
    refused = answer(409, {"code": 409, "type": "duplicate_zone", "message": "Duplicate Zone"})
    found = await outcome("create", Answers(refused), ZONE, {**MINE, "description": None})
    assert isinstance(found, Failed) and not found.retry


async def test_a_removed_time_to_live_stays_and_a_description_is_cleared() -> None:
    """Designate answers 500 to a zone without a time to live."""
    web = Answers(answer(202, zone()))
    now = {"name": "example.org.", "email": "dns@example.org"}
    changed = frozenset({"ttl", "description"})
    known = {"previous": {**MINE, "ttl": 60}, "changed": changed, "physical_id": ID}
    assert isinstance(await outcome("update", web, ZONE, now, **known), Done)
    assert orjson.loads(web.requests[0].body or b"") == {"description": ""}
    assert web.requests[0].method == "PATCH"


@pytest.mark.parametrize(
    "action", [ResourceAction.CREATE, ResourceAction.UPDATE, ResourceAction.CHECK]
)
@pytest.mark.parametrize(
    ("name", "properties"), [(ZONE, MINE), (RECORDS, RECORD)], ids=["zone", "records"]
)
def test_a_failed_object_is_updated(name: str, properties: Json, action: ResourceAction) -> None:
    """A replacement could not get its name."""
    type_ = type_with(Answers(), name)
    failed = ResourceState(name, action, Status.FAILED, ID, properties, True, False)
    repairs, tainted = type_.repairs, type_.replaces_tainted
    change = forward_change(
        failed, name, type_.schema, properties, replaces_tainted=tainted, repairs=repairs
    )
    assert change.operation is Operation.UPDATE


async def test_a_repair_sends_all_that_an_update_can_change() -> None:
    web = Answers(answer(202, zone()))
    known = {"previous": MINE, "failed": True, "physical_id": ID}
    assert isinstance(await outcome("update", web, ZONE, MINE, **known), Done)
    assert sent(web) == [f"PATCH zones/{ID}"]
    body = orjson.loads(web.requests[0].body or b"")
    assert body == {"email": "dns@example.org", "description": "mine"}


@pytest.mark.parametrize("physical_id", [ID, None], ids=["deleted", "never-created"])
async def test_a_repair_replaces_what_does_not_exist(physical_id: str | None) -> None:
    web = Answers(answer(404, {}), answer(404, {}))
    known = {"previous": MINE, "failed": True, "physical_id": physical_id}
    assert isinstance(await outcome("update", web, ZONE, MINE, **known), Replace)
    assert len(sent(web)) == (2 if physical_id else 0)


@pytest.mark.parametrize(
    ("changed", "replaces"), [("email", False), ("name", True), ("type", True)]
)
def test_a_repair_changes_no_property_that_is_fixed(changed: str, replaces: bool) -> None:
    type_ = type_with(Answers(), ZONE)
    call = a_call(type_, MINE, previous=MINE, changed=frozenset({changed}), physical_id=ID)
    assert type_.needs_replace(call) is replaces


@pytest.mark.parametrize(
    ("given", "masters"),
    [
        ({"primaries": ["10.0.0.1"]}, ["10.0.0.1"]),
        ({"masters": ["10.0.0.2"]}, ["10.0.0.2"]),
        ({"masters": ["10.0.0.2"], "primaries": ["10.0.0.1"]}, ["10.0.0.1"]),
    ],
    ids=["primaries", "masters", "both"],
)
async def test_primaries_replace_masters(given: Json, masters: Json) -> None:
    web = Answers(answer(202, zone()))
    properties = {"name": "example.org.", "type": "SECONDARY", **given}
    assert isinstance(await outcome("create", web, ZONE, properties), Done)
    body = orjson.loads(web.requests[0].body or b"")
    assert body["masters"] == masters and "primaries" not in body


async def test_a_record_set_gets_a_name_in_its_zone() -> None:
    record = {"id": ID, "status": "ACTIVE"}
    web = Answers(answer(200, zone()), answer(202, record))
    assert isinstance(await outcome("create", web, RECORDS, RECORD), Done)
    name = orjson.loads(web.requests[1].body or b"")["name"]
    assert name.endswith(".example.org.") and len(name.split(".")[0]) <= 63


async def test_a_delete_is_sent_once_and_waits() -> None:
    deleting = answer(200, zone(status="PENDING", action="DELETE"))
    web = Answers(answer(200, zone()), answer(202), deleting)
    waits = await outcome("delete", web, ZONE, MINE, physical_id=ID)
    assert isinstance(waits, Wait) and sent(web)[1] == f"DELETE zones/{ID}"
    web = Answers(deleting, deleting)
    waits = await outcome("delete", web, ZONE, MINE, physical_id=ID, progress=waits.progress)
    assert isinstance(waits, Wait) and {one.method for one in web.requests} == {"GET"}
    web = Answers(answer(404, {}))
    done = await outcome("delete", web, ZONE, MINE, physical_id=ID, progress=waits.progress)
    assert isinstance(done, Done)


async def test_a_delete_that_the_servers_refuse_fails() -> None:
    refused = answer(200, zone(status="ERROR", action="DELETE"))
    web = Answers(refused, answer(202), refused)
    failed = await outcome("delete", web, ZONE, MINE, physical_id=ID)
    assert isinstance(failed, Failed) and "servers refuse" in failed.reason
