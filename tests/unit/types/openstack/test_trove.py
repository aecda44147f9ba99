"""The requests of the types of Trove."""

from datetime import timedelta
from typing import Any

import orjson
import pytest

from engine.types.contract import Done, Failed, Replace, Wait
from engine.types.openstack.trove.trove_type import MAX_FAILED, MAX_STOPPED
from engine.words import ObservedState
from tests.unit.types.calls import NOW, a_call, findings_of, run
from tests.unit.types.openstack.clouds import Answers, answer, type_with

Json = Any
ID, SMALL, LARGE, NETWORK = (f"{digit * 8}-1111-4111-8111-111111111111" for digit in "1234")
INSTANCE = "OS::Trove::Instance"
ACCEPTED, MISSING = answer(202), answer(404, {"itemNotFound": {"message": "no", "code": 404}})
SECRET = "planted_71"
GIVEN: dict[str, Json] = {"flavor": SMALL, "size": 1}


def found(status: str = "ACTIVE", **fields: Json) -> Any:
    usual = {"id": ID, "name": "a", "flavor": {"id": SMALL}, "volume": {"size": 1}}
    return answer(200, {"instance": {**usual, "status": status, **fields}})


def sent(web: Answers) -> list[str]:
    """The requests: the method and the path."""
    return [f"{one.method} /{one.url.partition('//')[2].partition('/')[2]}" for one in web.requests]


def body(web: Answers, number: int = -1) -> Json:
    return orjson.loads(web.requests[number].body or b"null")


async def create(web: Answers, properties: Json, **more: Json) -> Any:
    type_ = type_with(web, INSTANCE)
    given = {**GIVEN, **properties}
    return await run(type_, "create", a_call(type_, given, credential="t", **more))


async def update(web: Answers, properties: Json, previous: Json = None, **more: Json) -> Any:
    type_, given = type_with(web, INSTANCE), {**GIVEN, **properties}
    known = {**GIVEN, **(previous or {})}
    changed = frozenset(name for name in given if given[name] != known.get(name))
    more = {"changed": changed, **more}
    call = a_call(type_, given, credential="t", physical_id=ID, previous=known, **more)
    return await run(type_, "update", call)


async def delete(web: Answers, **more: Json) -> Any:
    type_ = type_with(web, INSTANCE)
    return await run(type_, "delete", a_call(type_, GIVEN, credential="t", **more))


async def test_a_create_has_the_form_of_trove() -> None:
    subnets = [{"id": LARGE, "cidr": "10.1.0.0/24"}, {"id": SMALL, "cidr": "10.2.0.0/24"}]
    web = Answers(answer(200, {"subnets": subnets}), found("BUILD", password=SECRET))
    waits = await create(
        web,
        {
            "name": "a", "datastore_type": "mysql", "databases": [{"name": "db1"}],
            "users": [{"name": "ann", "password": SECRET, "databases": ["db1"]}],
            "networks": [{"network": NETWORK, "fixed_ip": "10.2.0.7"}],
        },
    )  # fmt: skip
    fields = body(web)["instance"]
    assert fields["flavorRef"] == SMALL and fields["volume"] == {"size": 1}
    assert fields["datastore"] == {"type": "mysql"} and fields["name"] != "a"
    (user,) = fields["users"]
    assert (user["host"], user["databases"]) == ("%", [{"name": "db1"}])
    assert fields["nics"] == [{"network_id": NETWORK, "subnet_id": SMALL, "ip_address": "10.2.0.7"}]
    assert isinstance(waits, Wait) and SECRET not in str(waits.progress)


async def test_a_replica_has_the_size_of_its_source() -> None:
    web = Answers(found("BUILD"))
    await create(web, {"replica_of": LARGE, "datastore_type": "mysql"})
    assert body(web)["instance"].keys() == {"name", "replica_of"}


async def test_an_instance_is_renamed_when_it_is_ready() -> None:
    progress = {"id": ID, "path": "/instances", "renames": True}
    web = Answers(found("BUILD"))
    waits = await create(web, {"name": "web"}, progress=progress)
    assert isinstance(waits, Wait) and waits.progress["renames"]
    web = Answers(found(), ACCEPTED, found(name="web", links=[{"rel": "self", "href": "u"}]))
    done = await create(web, {"name": "web"}, progress=waits.progress)
    assert sent(web)[1] == f"PATCH /instances/{ID}"
    assert isinstance(done, Done) and done.attributes["href"] == "u"


async def test_a_failure_has_the_fault_and_no_stack_trace() -> None:
    fault = {"message": "no host", "details": "Traceback"}
    progress = {"id": ID, "path": "/instances"}
    waits = await create(Answers(found("ERROR")), {}, progress=progress)  # it follows
    assert isinstance(waits, Wait)
    failed = await create(Answers(found("ERROR", fault=fault)), {}, progress=waits.progress)
    assert isinstance(failed, Failed)
    assert failed.reason == "the database instance has failed: ERROR: no host"


async def test_an_update_changes_one_thing_after_the_other() -> None:
    given = {"flavor": LARGE, "size": 2, "name": "web"}
    web = Answers(found(), ACCEPTED)
    waits = await update(web, given)
    assert body(web) == {"resize": {"flavorRef": LARGE}}
    waits = await update(Answers(found("RESIZE")), given, progress=waits.progress)
    assert isinstance(waits, Wait) and "is not ready: RESIZE" in waits.reason
    web = Answers(found(flavor={"id": LARGE}), ACCEPTED)
    waits = await update(web, given, progress=waits.progress)
    assert body(web) == {"resize": {"volume": {"size": 2}}}
    last: dict[str, Json] = {"flavor": {"id": LARGE}, "volume": {"size": 2}}
    web = Answers(found(**last), ACCEPTED, found(name="web", **last))
    assert isinstance(await update(web, given, progress=waits.progress), Done)
    assert body(web, 1) == {"instance": {"name": "web"}}


async def test_a_resize_without_effect_is_not_repeated() -> None:
    fault = {"message": "no host"}
    progress = {"id": ID, "sent": ["flavor"]}
    failed = await update(Answers(found(fault=fault)), {"flavor": LARGE}, progress=progress)
    assert isinstance(failed, Failed) and failed.reason.endswith("ACTIVE: no host")


async def test_a_volume_that_becomes_smaller_is_refused() -> None:
    web = Answers(found(volume={"size": 5}))
    failed = await update(web, {"size": 2})
    assert isinstance(failed, Failed) and "cannot become smaller: it has 5 GiB" in failed.reason
    assert [one.method for one in web.requests] == ["GET"]


async def test_a_failed_instance_is_not_replaced_and_a_missing_one_is() -> None:
    failed = await update(Answers(found("ERROR")), {"size": 2})
    assert isinstance(failed, Failed) and "mark the resource unhealthy" in failed.reason
    assert await update(Answers(MISSING), {"size": 2}) == Replace()


@pytest.mark.parametrize("status", ["SHUTDOWN", "UNKNOWN"])
async def test_an_instance_without_a_running_server_is_waited_for_some_minutes(status: str) -> None:
    progress: Json = {"id": ID, "path": "/instances"}
    at = NOW
    for _ in range(MAX_STOPPED):
        waits = await create(Answers(found(status)), {}, progress=progress, now=at)
        assert isinstance(waits, Wait) and waits.reason.endswith(f"is not ready: {status}")
        assert waits.until is not None
        progress, at = waits.progress, waits.until
    assert timedelta(minutes=2) < at - NOW < timedelta(minutes=5)
    ended = await create(Answers(found(status)), {}, progress=progress, now=at)
    assert isinstance(ended, Failed) and ended.physical_id == ID
    assert ended.reason == (
        f"the server of the database instance does not run: {status}. Repair it with Trove, or have"
        " it replaced: mark the resource unhealthy."
    )
    update_ended = await update(Answers(found(status)), {"size": 2}, progress=progress)
    assert isinstance(update_ended, Failed) and update_ended.reason == ended.reason
    # Another status begins a new wait, and the end of Trove's delete a replacement.
    for between in ("REBOOT", "ACTIVE"):
        waits = await update(Answers(found(between)), {"size": 2}, progress=progress)
        assert isinstance(waits, Wait) and "stopped_polls" not in waits.progress
    waits = await update(Answers(found(status)), {"size": 2}, progress=waits.progress)
    assert isinstance(waits, Wait)
    assert await update(Answers(MISSING), {"size": 2}, progress=progress) == Replace()


async def test_a_check_finds_an_instance_without_a_running_server() -> None:
    """As in Heat, whose check accepts an active instance alone."""
    for status in ("SHUTDOWN", "UNKNOWN"):
        type_ = type_with(Answers(found(status)), INSTANCE)
        failed = await run(type_, "check", a_call(type_, GIVEN, credential="t", physical_id=ID))
        assert isinstance(failed, Failed) and f"does not run: {status}" in failed.reason
    type_ = type_with(Answers(found()), INSTANCE)
    done = await run(type_, "check", a_call(type_, GIVEN, credential="t", physical_id=ID))
    assert isinstance(done, Done)


@pytest.mark.parametrize(
    ("status", "state"),
    [("SHUTDOWN", ObservedState.DEGRADED), ("UNKNOWN", ObservedState.PRESENT)],
)
async def test_an_observation_finds_an_instance_without_a_server(
    status: str, state: ObservedState
) -> None:
    """UNKNOWN is also the status while Nova moves the server."""
    one = {"id": ID, "status": status, "flavor": {"id": SMALL}, "volume": {"size": 1}}
    type_ = type_with(Answers(answer(200, {"instances": [one]})), INSTANCE)
    call = a_call(type_, GIVEN, physical_id=ID, attributes={"show": one})
    observed = await type_.observe([call])  # type: ignore[misc]
    assert observed[call.resource_id].state == state


async def test_a_limit_of_requests_pauses_an_operation() -> None:
    """Trove answers 413 with a pause to too many requests, and without one beyond a quota."""
    progress = {"id": ID, "path": "/instances"}
    limit = answer(413, {"overLimit": {"code": 413, "message": "at most 200"}}, retry_after="9")
    waits = await create(Answers(limit), {}, progress=progress)
    assert isinstance(waits, Wait) and waits.until == NOW + timedelta(seconds=9)
    waits = await create(Answers(found("BUILD")), {}, progress=waits.progress)
    assert isinstance(waits, Wait) and "busy" not in waits.progress
    quota = answer(413, {"overLimit": {"code": 413, "message": "Quota exceeded"}})
    failed = await create(Answers(quota), {})
    assert isinstance(failed, Failed) and not failed.retry and "Quota exceeded" in failed.reason


@pytest.mark.parametrize("repeats", [False, True])
async def test_contents_of_other_clients_stay(repeats: bool) -> None:
    """Also when an update applies everything again."""
    ann = {"name": "ann", "host": "%", "password": SECRET, "databases": ["db1"]}
    bob = {"name": "bob", "host": "10.0.0.1", "password": SECRET, "databases": ["db0"]}
    former = [{"name": "db0"}, {"name": "db1"}]
    previous = {"name": "a", "databases": former, "users": [ann, bob]}
    given = {"name": "a", "databases": [{"name": "db1"}], "users": [ann]}
    there = [{"name": name} for name in ("db0", "db1", "own")]
    users = [{"name": "ann", "host": "%"}, {"name": "bob", "host": "10.0.0.1"}, {"name": "own"}]
    web = Answers(
        found(), answer(200, {"databases": there}), answer(200, {"users": users}),
        *([ACCEPTED] if repeats else []), answer(200, {"databases": [{"name": "db0"}]}),
        ACCEPTED, ACCEPTED, ACCEPTED, ACCEPTED,
    )  # fmt: skip
    done = await update(web, given, previous, failed=repeats)
    assert isinstance(done, Done)
    place = f"/instances/{ID}"
    changes = [one for one in sent(web) if not one.startswith("GET")]
    password = [f"PUT {place}/users"] if repeats else []
    assert changes == [
        *password,
        f"PUT {place}/users/ann%40%25/databases",
        f"DELETE {place}/users/ann%40%25/databases/db0",
        f"DELETE {place}/users/bob%4010.0.0.1",
        f"DELETE {place}/databases/db0",
    ]


async def test_a_changed_password_and_new_contents_are_sent() -> None:
    ann = {"name": "ann", "host": "%", "password": "former_1", "databases": ["db1"]}
    eve = {"name": "eve", "password": SECRET, "databases": ["db2"]}
    given = {
        "databases": [{"name": "db1"}, {"name": "db2"}],
        "users": [{**ann, "password": SECRET}, eve],
    }
    previous = {"databases": [{"name": "db1"}], "users": [ann]}
    web = Answers(
        found(), answer(200, {"databases": [{"name": "db1"}]}), ACCEPTED,
        answer(200, {"users": [{"name": "ann", "host": "%"}]}), ACCEPTED, ACCEPTED,
        answer(200, {"databases": [{"name": "db1"}]}),
    )  # fmt: skip
    assert isinstance(await update(web, given, previous), Done)
    assert [one["name"] for one in body(web, 2)["databases"]] == ["db2"]
    assert [one["name"] for one in body(web, 4)["users"]] == ["eve"]
    assert body(web, 5) == {"users": [{"name": "ann", "host": "%", "password": SECRET}]}


async def test_an_instance_that_is_being_created_is_deleted_later() -> None:
    refused = answer(422, {"unprocessableEntity": {"message": "not ready", "code": 422}})
    waits = await delete(Answers(found("BUILD"), refused), physical_id=ID)
    assert isinstance(waits, Wait)
    web = Answers(found(), ACCEPTED)
    waits = await delete(web, physical_id=ID, progress=waits.progress)
    assert sent(web)[-1] == f"DELETE /instances/{ID}"
    web = Answers(found("SHUTDOWN"))
    waits = await delete(web, physical_id=ID, progress=waits.progress)
    assert isinstance(waits, Wait) and [one.method for one in web.requests] == ["GET"]
    # While Trove deletes an instance, its status can be ERROR for a while.
    waits = await delete(Answers(found("ERROR")), physical_id=ID, progress=waits.progress)
    assert isinstance(waits, Wait)
    progress = {**waits.progress, "failed_polls": MAX_FAILED}
    failed = await delete(Answers(found("ERROR")), physical_id=ID, progress=progress)
    assert isinstance(failed, Failed) and "could not be deleted" in failed.reason
    ended = await delete(Answers(MISSING), physical_id=ID, progress=waits.progress)
    assert ended == Done(None)


async def test_the_delete_of_an_instance_whose_long_create_fails_is_sent() -> None:
    """Trove refuses it until then."""
    refused = answer(422, {"unprocessableEntity": {"message": "not ready", "code": 422}})
    progress: Json = None
    for _ in range(MAX_FAILED + 2):
        waits = await delete(Answers(found("BUILD"), refused), physical_id=ID, progress=progress)
        assert isinstance(waits, Wait)
        progress = waits.progress
    web = Answers(found("ERROR"), ACCEPTED)
    waits = await delete(web, physical_id=ID, progress=progress)
    assert isinstance(waits, Wait) and sent(web)[-1] == f"DELETE /instances/{ID}"
    for _ in range(MAX_FAILED):
        waits = await delete(Answers(found("ERROR")), physical_id=ID, progress=waits.progress)
        assert isinstance(waits, Wait)
    failed = await delete(Answers(found("ERROR")), physical_id=ID, progress=waits.progress)
    assert isinstance(failed, Failed) and "could not be deleted" in failed.reason


@pytest.mark.parametrize(
    ("properties", "place"),
    [
        ({"datastore_version": "8.0"}, "datastore_type"),
        ({"replica_count": 2}, "replica_count"),
        ({"networks": [{"network": NETWORK, "port": NETWORK}]}, "networks.0"),
    ],
)
def test_what_trove_would_refuse_is_found_before(properties: Json, place: str) -> None:
    type_ = type_with(Answers(), INSTANCE)
    (finding,) = findings_of(type_, {**GIVEN, **properties})
    assert finding.place.endswith(f"properties.{place}")


CLUSTER = "OS::Trove::Cluster"
MEMBERS = {
    "datastore_type": "pxc",
    "datastore_version": "8.0",
    "instances": [{"flavor": SMALL, "volume_size": 1, "networks": [{"network": NETWORK}]}],
}


def a_cluster(task: str, *states: str, **fields: Json) -> Any:
    members = [{"id": LARGE, "name": "m", "status": one} for one in states]
    usual = {"id": ID, "name": "c", "task": {"name": task}, "instances": members}
    return answer(200, {"cluster": {**usual, **fields}})


async def create_cluster(web: Answers, properties: Json, **more: Json) -> Any:
    type_ = type_with(web, CLUSTER)
    given = {**MEMBERS, **properties}
    return await run(type_, "create", a_call(type_, given, credential="t", **more))


async def test_a_named_cluster_is_not_one_that_had_the_name_before() -> None:
    former = {"id": LARGE, "name": "c"}
    listed = answer(200, {"clusters": [former]})
    waits = await create_cluster(Answers(listed), {"name": "c"})
    assert isinstance(waits, Wait)
    web = Answers(a_cluster("BUILDING"))
    created = await create_cluster(web, {"name": "c"}, progress=waits.progress)
    assert isinstance(created, Wait) and sent(web) == ["POST /clusters"]
    web = Answers(listed, a_cluster("BUILDING"))
    created = await create_cluster(web, {"name": "c"}, progress=waits.progress, repeated=True)
    assert isinstance(created, Wait) and created.progress["id"] == ID
    assert body(web)["cluster"] == {
        "name": "c",
        "datastore": {"type": "pxc", "version": "8.0"},
        "instances": [
            {"flavorRef": SMALL, "volume": {"size": 1}, "nics": [{"network_id": NETWORK}]}
        ],
    }
    web = Answers(answer(200, {"clusters": [former, {"id": ID, "name": "c"}]}))
    again = await create_cluster(web, {"name": "c"}, progress=waits.progress, repeated=True)
    assert isinstance(again, Wait) and again.progress["id"] == ID


async def test_a_cluster_waits_for_its_task_and_its_members() -> None:
    progress: Json = {"id": ID, "path": "/clusters"}
    for task, states in (("BUILDING", ("ACTIVE",)), ("NONE", ("ACTIVE", "BUILD"))):
        waits = await create_cluster(Answers(a_cluster(task, *states)), {}, progress=progress)
        assert isinstance(waits, Wait), task
    ready = a_cluster("NONE", "ACTIVE", ip=["10.0.0.1"])
    done = await create_cluster(Answers(ready), {}, progress=progress)
    assert isinstance(done, Done)
    assert (done.attributes["instances"], done.attributes["ip"]) == ([LARGE], ["10.0.0.1"])


async def test_a_cluster_whose_members_do_not_run_is_waited_for_some_minutes() -> None:
    progress: Json = {"id": ID, "path": "/clusters"}
    for _ in range(MAX_STOPPED):
        stopped = Answers(a_cluster("NONE", "ACTIVE", "SHUTDOWN"))
        waits = await create_cluster(stopped, {}, progress=progress)
        assert isinstance(waits, Wait)
        progress = waits.progress
    stopped = Answers(a_cluster("NONE", "ACTIVE", "SHUTDOWN"))
    failed = await create_cluster(stopped, {}, progress=progress)
    assert isinstance(failed, Failed)
    assert "the server of the database cluster does not run: SHUTDOWN" in failed.reason


async def test_a_failed_cluster_has_the_faults_of_its_members() -> None:
    """Its task does not end."""
    fault = answer(200, {"instance": {"id": LARGE, "fault": {"message": "no host"}}})
    web = Answers(a_cluster("BUILDING", "ACTIVE", "ERROR"), fault)
    failed = await create_cluster(web, {}, progress={"id": ID, "path": "/clusters"})
    assert isinstance(failed, Failed)
    assert failed.reason == "the database cluster has failed: ERROR: m: no host"
    assert sent(web)[-1] == f"GET /clusters/{ID}/instances/{LARGE}"


async def test_a_cluster_that_cannot_be_deleted_says_what_to_do() -> None:
    type_ = type_with(Answers(a_cluster("BUILDING", "ERROR"), MISSING), CLUSTER)
    progress = {"failed_polls": MAX_FAILED}
    call = a_call(type_, MEMBERS, credential="t", physical_id=ID, progress=progress)
    failed = await run(type_, "delete", call)
    assert isinstance(failed, Failed) and "administrator has reset its status" in failed.reason
