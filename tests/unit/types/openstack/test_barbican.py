"""The rules of the types of Barbican, and how a repeated create finds its own object."""

from base64 import b64encode
from typing import Any
from uuid import UUID

import orjson
import pytest

from engine.types.contract import Done, Failed, Outcome, Wait
from engine.types.http_client import NoResponse, Response
from engine.types.openstack.barbican.payloads import payload_of, text_of
from engine.types.openstack.barbican.secret import MARK
from engine.types.openstack.barbican.stored_type import MAX_ROUNDS
from engine.types.operation_outcomes import CANCELLED
from engine.words import ObservedState
from tests.unit.types.calls import KEY, a_call, findings_of, run
from tests.unit.types.openstack.clouds import Answers, answer, type_with

Json = Any
SECRET, ORDER = "OS::Barbican::Secret", "OS::Barbican::Order"
GENERIC, RSA = "OS::Barbican::GenericContainer", "OS::Barbican::RSAContainer"
HOST = "http://key-manager"
ID, OTHER = (f"{one * 8}-1111-4111-8111-111111111111" for one in "12")
LOST = NoResponse("no answer", retry=True)
NAMED = {"name": "db", "payload": "p", "secret_type": "opaque"}
CONFLICT = answer(409, {"title": "Conflict", "description": "Key is there"})


def secret(object_id: str = ID, **fields: Json) -> Json:
    usual = {"name": "db", "status": "ACTIVE", "secret_type": "opaque", "algorithm": None}
    content = {"content_types": {"default": "text/plain"}}
    return {**usual, **content, "secret_ref": f"{HOST}/secrets/{object_id}", **fields}


def container(*claimants: str) -> Json:
    consumers = [{"name": "headgate", "URL": f"urn:uuid:{one}"} for one in claimants]
    return {
        "name": "bag", "type": "generic", "status": "ACTIVE", "secret_refs": [],
        "container_ref": f"{HOST}/containers/{ID}", "consumers": consumers,
    }  # fmt: skip


def listed(key: str, *found: Json) -> Response:
    return answer(200, {key: list(found)})


def payload(text: bytes = b"p") -> Response:
    return Response(200, {}, text)


def sent(web: Answers) -> list[str]:
    return [f"{one.method} {one.url.removeprefix(HOST)}" for one in web.requests]


async def create(web: Answers, name: str, properties: Json, **more: Json) -> Outcome:
    type_ = type_with(web, name)
    return await run(type_, "create", a_call(type_, properties, credential="t", **more))


async def delete(web: Answers, name: str, properties: Json, **more: Json) -> Outcome:
    type_ = type_with(web, name)
    return await run(type_, "delete", a_call(type_, properties, credential="t", **more))


@pytest.mark.parametrize(
    ("name", "properties", "places"),
    [
        (SECRET, {"payload": " "}, ["payload"]),
        (
            SECRET,
            {"payload": "p", "payload_content_type": "application/octet-stream"},
            ["payload_content_encoding"],
        ),
        (
            SECRET,
            {"payload_content_type": "text/plain", "payload_content_encoding": "base64"},
            ["payload_content_encoding"],
        ),
        (
            SECRET,
            {
                "payload": "no base64!",
                "payload_content_type": "application/octet-stream",
                "payload_content_encoding": "base64",
            },
            ["payload"],
        ),
        (SECRET, {"payload": "p"}, []),
        (ORDER, {"type": "key"}, ["algorithm", "bit_length"]),
        (
            ORDER,
            {"type": "key", "algorithm": "aes", "bit_length": 8, "pass_phrase": "p"},
            ["pass_phrase"],
        ),
        (ORDER, {"type": "certificate", "profile": "p"}, ["ca_id"]),
        (ORDER, {"type": "certificate", "request_type": "custom"}, []),
        (
            GENERIC,
            {"secrets": [{"name": "a", "ref": "x"}, {"name": "b", "ref": "x"}]},
            ["secrets[1]"],
        ),
        (
            GENERIC,
            {"secrets": [{"name": "a", "ref": "x"}, {"name": "a", "ref": "y"}]},
            ["secrets[1]"],
        ),
        (RSA, {"private_key_ref": "x", "public_key_ref": "x"}, ["public_key_ref"]),
    ],
)
def test_what_barbican_refuses_is_found_before(
    name: str, properties: Json, places: list[str]
) -> None:
    found = findings_of(type_with(Answers(), name), properties)
    assert [one.place.rpartition("properties.")[2] for one in found] == places
    assert all(one.remedy for one in found)


def test_a_payload_is_text_or_base64() -> None:
    assert text_of("größe".encode()) == "größe"
    assert text_of(b"\xff\x00") == b64encode(b"\xff\x00").decode()
    assert text_of(b"a\x00") == b64encode(b"a\x00").decode()
    assert text_of(None) is None
    encoded = {"payload": " /wA= ", "payload_content_encoding": "base64"}
    assert payload_of(encoded) == b"\xff\x00"
    assert payload_of({"payload": " p "}) == b"p"


async def test_a_repeated_create_takes_only_what_it_may_have_created() -> None:
    """A secret that had the name before, and one of another content, are of others."""
    first = await create(Answers(listed("secrets", secret(OTHER))), SECRET, NAMED)
    assert isinstance(first, Wait)
    stranger = secret("33333333-1111-4111-8111-111111111111")
    web = Answers(
        listed("secrets", secret(OTHER), stranger),
        payload(b"another"),
        answer(201, {"secret_ref": f"{HOST}/secrets/{ID}"}),
    )
    second = await create(web, SECRET, NAMED, progress=first.progress, repeated=True)
    assert isinstance(second, Wait) and second.progress["reference"].endswith(ID)
    assert sent(web)[-1] == "POST /secrets"
    body = orjson.loads(web.requests[-1].body or b"")
    assert body == {**NAMED, "payload_content_type": "text/plain"}


async def test_a_repeated_create_claims_its_secret() -> None:
    web = Answers(
        listed("secrets", secret()),
        payload(),
        answer(201, {}),
        answer(200, {"metadata": {MARK: str(KEY)}}),
    )
    found = await create(web, SECRET, NAMED, progress={"known": []}, repeated=True)
    assert isinstance(found, Wait) and found.progress["reference"].endswith(ID)
    assert sent(web)[2:] == [f"POST /secrets/{ID}/metadata", f"GET /secrets/{ID}/metadata"]


async def test_a_secret_of_another_operation_is_not_taken() -> None:
    """It looks again first, because the other one may withdraw."""
    other = answer(200, {"metadata": {MARK: "another"}})
    found: Outcome = Wait(None, {"known": []}, "")
    for _ in range(MAX_ROUNDS):
        assert isinstance(found, Wait)
        web = Answers(listed("secrets", secret()), payload(), CONFLICT, other)
        found = await create(web, SECRET, NAMED, progress=found.progress, repeated=True)
    assert isinstance(found, Wait) and "reference" not in found.progress
    created = answer(201, {"secret_ref": f"{HOST}/secrets/{OTHER}"})
    web = Answers(listed("secrets", secret()), payload(), CONFLICT, other, created)
    found = await create(web, SECRET, NAMED, progress=found.progress, repeated=True)
    assert isinstance(found, Wait) and found.progress["reference"].endswith(OTHER)


async def test_a_new_secret_that_another_operation_has_claimed_is_left_to_it() -> None:
    other = answer(200, {"metadata": {MARK: "another"}})
    progress = {"known": [], "reference": f"{HOST}/secrets/{ID}"}
    found = await create(Answers(CONFLICT, other), SECRET, NAMED, progress=progress)
    assert isinstance(found, Wait)
    assert "reference" not in found.progress and found.progress["searches"]


@pytest.mark.parametrize("status", [503, 400])
async def test_a_secret_that_is_not_claimed_is_not_deleted(status: int) -> None:
    """It may belong to another operation: the delete claims it first."""
    progress = {"known": [OTHER], "reference": f"{HOST}/secrets/{ID}"}
    failed = await create(Answers(answer(status, {})), SECRET, NAMED, progress=progress)
    assert isinstance(failed, Failed) and failed.physical_id is None
    other = answer(200, {"metadata": {MARK: "another"}})
    web = Answers(listed("secrets", secret()), payload(), CONFLICT, other)
    waits = await delete(web, SECRET, NAMED, data=failed.data)
    assert isinstance(waits, Wait) and not any(one.startswith("DELETE") for one in sent(web))


async def test_a_claimed_secret_that_cannot_be_read_is_deleted() -> None:
    progress = {"known": [], "reference": f"{HOST}/secrets/{ID}"}
    own = answer(200, {"metadata": {MARK: str(KEY)}})
    waits = await create(Answers(answer(201, {}), own), SECRET, NAMED, progress=progress)
    assert isinstance(waits, Wait)
    web = Answers(answer(200, secret()), answer(403, {}))
    failed = await create(web, SECRET, NAMED, progress=waits.progress)
    assert isinstance(failed, Failed) and failed.physical_id == f"{HOST}/secrets/{ID}"


@pytest.mark.parametrize("status", [403, 404])
async def test_a_secret_that_only_others_may_read_is_not_taken(status: int) -> None:
    created = answer(201, {"secret_ref": f"{HOST}/secrets/{OTHER}"})
    web = Answers(listed("secrets", secret()), answer(status, {}), created)
    found = await create(web, SECRET, NAMED, progress={"known": []}, repeated=True)
    assert isinstance(found, Wait) and found.progress["reference"].endswith(OTHER)


async def test_a_create_that_a_busy_service_refused_looks_for_its_secret_first() -> None:
    busy = Response(503, {"retry-after": "1"}, b"{}")
    waits = await create(Answers(busy), SECRET, NAMED, progress={"known": []})
    assert isinstance(waits, Wait)
    web = Answers(
        listed("secrets", secret()),
        payload(),
        answer(201, {}),
        answer(200, {"metadata": {MARK: str(KEY)}}),
    )
    found = await create(web, SECRET, NAMED, progress=waits.progress)
    assert isinstance(found, Wait) and found.progress["reference"].endswith(ID)


async def test_operations_that_claim_a_container_at_once_withdraw() -> None:
    progress = {"known": [], "reference": f"{HOST}/containers/{ID}"}
    both = container("another", str(KEY))
    web = Answers(answer(200, container()), answer(200, both), answer(200, both), answer(200, {}))
    found = await create(web, GENERIC, {"name": "bag"}, progress=progress)
    assert isinstance(found, Wait) and found.progress["reference"]
    assert sent(web)[-1] == f"DELETE /containers/{ID}/consumers"


async def test_operations_that_have_withdrawn_pause_for_different_times() -> None:
    pauses = set()
    for number in range(3):
        progress = {"known": [], "reference": f"{HOST}/containers/{ID}"}
        key = UUID(int=number)
        both = answer(200, container("another", str(key)))
        web = Answers(answer(200, container()), answer(200, {}), both, answer(200, {}))
        more = {"progress": progress, "operation_key": key}
        pauses.add((await create(web, GENERIC, {"name": "bag"}, **more)).until)  # type: ignore[union-attr]
    assert len(pauses) == 3


async def test_own_consumers_are_no_attribute() -> None:
    progress = {"reference": f"{HOST}/containers/{ID}"}
    own = container(str(KEY))
    own["consumers"].append({"name": "balancer", "URL": "http://h"})
    found = await create(Answers(answer(200, own)), GENERIC, {}, progress=progress)
    assert isinstance(found, Done)
    assert found.attributes["consumers"] == [{"name": "balancer", "URL": "http://h"}]
    assert found.attributes["show"]["consumers"] == found.attributes["consumers"]


async def test_what_a_create_without_an_answer_has_created_is_deleted() -> None:
    failed = await create(Answers(LOST), SECRET, NAMED, progress={"known": [OTHER]})
    assert isinstance(failed, Failed) and failed.physical_id is None
    web = Answers(
        listed("secrets", secret(OTHER), secret()),
        payload(),
        answer(201, {}),
        answer(200, {"metadata": {MARK: str(KEY)}}),
        answer(204),
    )
    assert isinstance(await delete(web, SECRET, NAMED, data=failed.data), Done)
    assert sent(web)[-1] == f"DELETE /secrets/{ID}"


async def test_an_order_that_was_refused_leaves_nothing_to_delete() -> None:
    refused = answer(400, {"title": "Bad Request", "description": "Not one of"})
    failed = await create(Answers(refused), ORDER, {"type": "certificate"})
    assert isinstance(failed, Failed) and not failed.data
    assert "Not one of" in failed.public_reason
    assert isinstance(
        await delete(Answers(), ORDER, {"type": "certificate"}, data=failed.data), Done
    )


async def test_show_of_an_order_has_no_pass_phrase() -> None:
    url = f"{HOST}/orders/{ID}"
    meta = {"name": "o", "pass_phrase": "p", MARK: str(KEY)}
    order = {"status": "ACTIVE", "order_ref": url, "type": "asymmetric", "meta": meta}
    web = Answers(answer(200, order))
    found = await create(web, ORDER, {"type": "asymmetric"}, progress={"reference": url})
    assert isinstance(found, Done)
    assert found.attributes["show"]["meta"] == {"name": "o"}


async def test_an_order_that_barbican_could_not_fulfil_fails_with_the_reason() -> None:
    url = f"{HOST}/orders/{ID}"
    order = {
        "status": "ERROR", "order_ref": url, "error_status_code": "400", "error_reason": "No aes",
    }  # fmt: skip
    web = Answers(answer(200, order))
    found = await create(web, ORDER, {"type": "key"}, progress={"reference": url})
    assert isinstance(found, Failed)
    assert (found.reason, found.physical_id) == ("the order has failed: 400 No aes", url)


async def test_a_cancelled_create_does_not_wait_for_an_order() -> None:
    url = f"{HOST}/orders/{ID}"
    pending = answer(200, {"status": "PENDING", "order_ref": url})
    found = await create(
        Answers(pending), ORDER, {"type": "key"}, progress={"reference": url}, cancelled=True
    )
    assert isinstance(found, Failed) and not found.retry
    assert (found.reason, found.physical_id) == (CANCELLED, url)


@pytest.mark.parametrize(
    ("found", "state"),
    [
        (answer(404, {}), ObservedState.MISSING),
        (answer(200, secret()), ObservedState.PRESENT),
        (answer(200, secret(status="ERROR")), ObservedState.DEGRADED),
        (answer(403, {}), ObservedState.UNKNOWN),
    ],
)
async def test_a_secret_is_observed(found: Response, state: ObservedState) -> None:
    type_ = type_with(Answers(found), SECRET)
    call = a_call(type_, NAMED, physical_id=f"{HOST}/secrets/{ID}")
    seen = await type_.observe([call])  # type: ignore[misc]
    assert seen[call.resource_id].state is state


async def test_a_reference_never_leads_to_another_server() -> None:
    """A request goes to the Barbican of the catalog."""
    web = Answers(answer(404, {}))
    type_ = type_with(web, SECRET)
    await run(
        type_, "check", a_call(type_, {}, credential="t", physical_id=f"http://evil/secrets/{ID}")
    )
    assert [one.url for one in web.requests] == [f"{HOST}/secrets/{ID}"]
