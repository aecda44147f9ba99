"""The requests of the types of Magnum."""

from typing import Any

import orjson
import pytest

from engine.types.contract import Done, Failed, Replace, Wait
from engine.types.http_client import NoResponse
from engine.types.openstack.magnum.cluster import MAX_READS, MAX_STALE, MAX_UNCHANGED
from tests.unit.types.calls import KEY, a_call, run
from tests.unit.types.openstack.clouds import Answers, answer, type_with

Json = Any
ID, KIND = "11111111-1111-4111-8111-111111111111", "22222222-2222-4222-8222-222222222222"
CLUSTER, TEMPLATE = "OS::Magnum::Cluster", "OS::Magnum::ClusterTemplate"
ACCEPTED = answer(202, {"uuid": ID})
MISSING = answer(404, {"errors": [{"detail": "Cluster could not be found."}]})
NONE = answer(200, {"clusters": []})


def found(status: str = "CREATE_COMPLETE", **fields: Json) -> Any:
    return answer(200, {"uuid": ID, "status": status, "updated_at": "t0", **fields})


def groups(nodes: int) -> Any:
    """Node groups, of which another client has added one."""
    added = {"is_default": False, "node_count": 7}
    return answer(200, {"nodegroups": [added, {"is_default": True, "node_count": nodes}]})


def sent(web: Answers) -> list[str]:
    """The requests: the method and the path."""
    return [f"{one.method} /{one.url.partition('//')[2].partition('/')[2]}" for one in web.requests]


def body(web: Answers) -> Json:
    """Of the last request."""
    return orjson.loads(web.requests[-1].body or b"null")


async def create(web: Answers, properties: Json, **more: Json) -> Any:
    type_ = type_with(web, CLUSTER)
    given = {"cluster_template": KIND, **properties}
    return await run(type_, "create", a_call(type_, given, credential="t", **more))


async def update(web: Answers, *, nodes: int = 3, **more: Json) -> Any:
    type_ = type_with(web, CLUSTER)
    known = {"previous": {"node_count": 1}, "changed": frozenset({"node_count"}), **more}
    given = {"cluster_template": KIND, "node_count": nodes}
    call = a_call(type_, given, credential="t", physical_id=ID, **known)
    return await run(type_, "update", call)


async def delete(web: Answers, **more: Json) -> Any:
    type_ = type_with(web, CLUSTER)
    call = a_call(type_, {"cluster_template": KIND}, credential="t", **more)
    return await run(type_, "delete", call)


async def test_a_named_cluster_gets_a_label_besides_those_of_its_template() -> None:
    web = Answers(ACCEPTED)
    waits = await create(web, {"name": "web"})
    assert isinstance(waits, Wait) and waits.progress["id"] == ID
    assert body(web)["labels"] == {"headgate_operation": str(KEY)}
    assert body(web)["merge_labels"] is True and body(web)["name"] == "web"
    web = Answers(ACCEPTED)
    await create(web, {})
    assert "labels" not in body(web) and body(web)["name"].endswith(KEY.hex[:12])


@pytest.mark.parametrize("name", [None, "web"])
async def test_a_repeated_create_waits_for_the_conductor(name: str | None) -> None:
    """The cluster of the lost request appears in the second list."""
    other = {"uuid": KIND, "name": "web", "labels": {"size": "1"}}
    given = {"name": name} if name else {}
    waits = await create(Answers(answer(200, {"clusters": [other]})), given, repeated=True)
    assert isinstance(waits, Wait) and waits.until is not None
    own = {"name": "web", "labels": {"size": "1", "headgate_operation": str(KEY)}}
    web = Answers(ACCEPTED)
    await create(web, given)
    listed = answer(200, {"clusters": [other, {"uuid": ID, **(own if name else body(web))}]})
    web = Answers(listed, listed)
    again = await create(web, given, progress=waits.progress)
    assert isinstance(again, Wait) and again.progress["id"] == ID
    assert {one.method for one in web.requests} == {"GET"}


async def test_a_repeated_create_sends_its_request_after_some_lists() -> None:
    progress: Json = None
    for _ in range(MAX_READS):
        waits = await create(Answers(NONE), {}, repeated=True, progress=progress)
        assert isinstance(waits, Wait)
        progress = waits.progress
    web = Answers(NONE, ACCEPTED)
    waits = await create(web, {}, repeated=True, progress=progress)
    assert isinstance(waits, Wait) and waits.progress["id"] == ID
    assert sent(web)[-1].startswith("POST /")


async def test_a_lost_cluster_is_deleted() -> None:
    failed = await create(Answers(NoResponse("no answer", retry=True)), {})
    assert isinstance(failed, Failed) and failed.physical_id is None
    name = failed.data["lost"]["fields"]["name"]
    listed = answer(200, {"clusters": [{"uuid": ID, "name": name}]})
    web = Answers(listed, answer(204), found("DELETE_IN_PROGRESS"))
    waits = await delete(web, data=failed.data)
    assert isinstance(waits, Wait) and sent(web)[1] == f"DELETE /clusters/{ID}"
    web = Answers(listed, found("DELETE_IN_PROGRESS"))
    assert isinstance(await delete(web, data=failed.data, progress=waits.progress), Wait)
    ended = await delete(Answers(NONE), data=failed.data, progress=waits.progress)
    assert ended == Done(None)


async def test_a_cancelled_create_whose_cluster_is_not_stored_yet_is_deleted() -> None:
    """The engine died after the request, and the stack is deleted before the conductor stores the
    cluster."""
    failed = await create(Answers(NONE), {}, repeated=True, cancelled=True)
    assert isinstance(failed, Failed) and failed.physical_id is None
    waits = await delete(Answers(NONE), data=failed.data)
    assert isinstance(waits, Wait) and "may not be stored yet" in waits.reason
    listed = answer(
        200, {"clusters": [{"uuid": ID, "name": failed.data["lost"]["fields"]["name"]}]}
    )
    web = Answers(listed, answer(204), found("DELETE_IN_PROGRESS"))
    waits = await delete(web, data=failed.data, progress=waits.progress)
    assert isinstance(waits, Wait) and sent(web)[1] == f"DELETE /clusters/{ID}"


async def test_the_delete_of_a_cluster_that_was_never_stored_ends() -> None:
    failed = await create(Answers(NONE), {}, progress={"reads": 1}, cancelled=True)
    progress: Json = None
    for _ in range(MAX_READS):
        waits = await delete(Answers(NONE), data=failed.data, progress=progress)
        assert isinstance(waits, Wait)
        progress = waits.progress
    assert await delete(Answers(NONE), data=failed.data, progress=progress) == Done(None)
    assert await delete(Answers()) == Done(None)  # no request was sent


async def test_an_accepted_cluster_may_not_exist_yet() -> None:
    progress = {"id": ID, "path": "/clusters"}
    waits = await create(Answers(MISSING), {}, progress=progress)
    assert isinstance(waits, Wait) and "has not stored the cluster" in waits.reason
    busy = found("CREATE_IN_PROGRESS")
    waits = await create(Answers(busy), {}, progress=waits.progress)
    assert isinstance(waits, Wait)
    failed = await create(Answers(MISSING), {}, progress=waits.progress)
    assert isinstance(failed, Failed) and failed.physical_id == ID


async def test_a_failed_cluster_has_the_reasons_of_its_groups() -> None:
    more = {"status_reason": "a group failed", "faults": {"default-worker": "no room", "b": None}}
    failed = await create(Answers(found("CREATE_FAILED", **more)), {}, progress={"id": ID})
    assert isinstance(failed, Failed)
    assert failed.reason == "the cluster has failed: CREATE_FAILED: a group failed: no room"


async def test_an_update_waits_until_the_conductor_begins() -> None:
    web = Answers(found(), groups(1), ACCEPTED)
    waits = await update(web)
    assert body(web) == [{"op": "replace", "path": "/node_count", "value": 3}]
    waits = await update(Answers(found()), progress=waits.progress)
    assert isinstance(waits, Wait) and "has not begun" in waits.reason
    # Another change of the cluster, such as that of its health.
    waits = await update(Answers(found(updated_at="t1"), groups(1)), progress=waits.progress)
    assert isinstance(waits, Wait) and "has not begun" in waits.reason
    done = await update(
        Answers(found("UPDATE_COMPLETE", updated_at="t2"), groups(3)), progress=waits.progress
    )
    assert isinstance(done, Done)


async def test_an_update_in_the_same_second_ends() -> None:
    before = ["UPDATE_COMPLETE", "t0"]
    progress = {"id": ID, "path": "/clusters", "before": before, "tries": MAX_UNCHANGED}
    done = await update(Answers(found("UPDATE_COMPLETE"), groups(3)), progress=progress)
    assert isinstance(done, Done)


async def test_an_update_waits_for_another_change() -> None:
    waits = await update(Answers(found("UPDATE_IN_PROGRESS")))
    assert isinstance(waits, Wait) and "another change" in waits.reason
    web = Answers(found("UPDATE_COMPLETE"), groups(3))
    assert isinstance(await update(web, progress=waits.progress), Done)
    assert {one.method for one in web.requests} == {"GET"}


async def test_a_failed_update_is_repeated_by_a_resize() -> None:
    web = Answers(found("UPDATE_FAILED"), groups(3), ACCEPTED)
    waits = await update(web)
    assert sent(web)[-1] == f"POST /clusters/{ID}/actions/resize"
    assert body(web) == {"node_count": 3}
    waits = await update(Answers(found("UPDATE_FAILED")), progress=waits.progress)
    assert isinstance(waits, Wait) and "has not begun" in waits.reason
    failed = await update(
        Answers(found("UPDATE_FAILED", updated_at="t1", status_reason="no room")),
        progress=waits.progress,
    )
    assert isinstance(failed, Failed) and failed.reason.endswith("UPDATE_FAILED: no room")


async def test_a_cluster_that_magnum_does_not_change_is_replaced() -> None:
    assert await update(Answers(found("ROLLBACK_FAILED"))) == Replace()
    assert await update(Answers(MISSING)) == Replace()


async def test_a_repeated_update_sends_only_what_has_changed() -> None:
    """Magnum refuses the other fields."""
    web = Answers(found(create_timeout=5, master_count=3), groups(1), ACCEPTED)
    await update(web, failed=True)
    assert [one["path"] for one in body(web)] == ["/node_count"]


async def test_the_failure_of_an_earlier_delete_is_none_of_this_one() -> None:
    failed = found("DELETE_FAILED", status_reason="a node stays")
    web = Answers(answer(204), failed)
    waits = await delete(web, physical_id=ID)
    assert isinstance(waits, Wait)
    progress = {"tries": MAX_STALE}
    ended = await delete(Answers(failed), physical_id=ID, progress=progress)
    assert isinstance(ended, Failed)
    assert ended.reason == "the cluster could not be deleted: DELETE_FAILED: a node stays"
    web = Answers(found("DELETE_IN_PROGRESS"))
    assert isinstance(await delete(web, physical_id=ID, progress=progress), Wait)
    assert sent(web) == [f"GET /clusters/{ID}"]


async def test_a_cluster_without_node_groups_is_read_again() -> None:
    """Also a list with such a cluster of another client. No request is sent twice."""
    refused = answer(400, {"errors": [{"detail": "Invalid input for field/attribute node_count."}]})
    progress = {"id": ID, "path": "/clusters", "before": ["CREATE_COMPLETE", "t0"]}
    waits = await update(Answers(refused), progress=progress)
    assert isinstance(waits, Wait) and waits.progress == progress and waits.until is not None
    waits = await create(Answers(refused), {}, repeated=True)
    assert isinstance(waits, Wait) and waits.progress == {}
    waits = await delete(Answers(answer(204), refused), physical_id=ID)
    assert isinstance(waits, Wait) and waits.progress == {"tries": 1}
    lost = {"fields": {"name": "a"}, "query": {}}
    waits = await delete(Answers(refused), data={"lost": lost})
    listed = answer(200, {"clusters": [{"uuid": ID, "name": "a"}]})
    web = Answers(listed, answer(204), MISSING)
    await delete(web, data={"lost": lost}, progress=waits.progress)
    assert "DELETE" in [one.method for one in web.requests]


async def test_a_template_in_use_gets_no_request_without_changes() -> None:
    """Magnum refuses to set what is so already."""
    web = Answers(answer(200, {"uuid": ID, "public": False}))
    type_ = type_with(web, TEMPLATE)
    given = {"image": ID, "external_network": ID, "coe": "kubernetes", "public": False}
    call = a_call(type_, given, credential="t", physical_id=ID, previous=given, failed=True)
    assert isinstance(await run(type_, "update", call), Done)
    assert [one.method for one in web.requests] == ["GET"]
