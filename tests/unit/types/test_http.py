"""Headgate::HTTP: requests, evaluation of responses, and reasons."""

import gc
import re
import weakref
from collections.abc import Mapping
from dataclasses import replace
from datetime import timedelta
from pathlib import Path
from typing import Any

import pytest
import yaml

from engine.types.contract import Call, Done, Failed, Outcome, Replace, Wait
from engine.types.http import (
    PERHAPS_SAME_OBJECT,
    SAME_OBJECT,
    Http,
    HttpSettings,
)
from engine.types.http.json_paths import first_value
from engine.types.http.property_checks import missing_property
from engine.types.http_client import NoResponse
from engine.types.operator_credentials import Credential, Credentials
from engine.types.successor import Successor
from engine.words import Json, ResourceId, StackId
from tests.support.in_memory_service import URL, InMemoryService, answer, properties
from tests.unit.types.calls import KEY, a_call, ended, findings_of, run

SECRET = "hunter2-secret"
TOKEN = Credential(
    "Authorization", f"Bearer {SECRET}", SECRET, ["https://shelf.example.org"], ["p", "team-*"]
)
ON = HttpSettings(enabled=True, max_timeout=timedelta(minutes=10))
UNAVAILABLE = NoResponse("no connection to shelf.example.org:443: Connection refused", retry=True)
BUSY = answer(503, {"error": "later"})


@pytest.fixture
def service() -> InMemoryService:
    return InMemoryService()


@pytest.fixture
def http(service: InMemoryService) -> Http:
    return Http(ON, service, Credentials({"shelf": TOKEN}))


def run_again(type_: Http, done: Done, properties: Mapping[str, Json], **more: Any) -> Call:
    known = {"physical_id": done.physical_id, "data": done.data, "attributes": done.attributes}
    return a_call(type_, properties, **(known | more))


async def created_object(type_: Http, **more: Json) -> Done:
    outcome = await ended(type_, "create", a_call(type_, properties(**more)))
    assert isinstance(outcome, Done), outcome
    return outcome


def reason_of(outcome: Outcome) -> str:
    assert isinstance(outcome, Failed), outcome
    return outcome.reason


# -- create ---------------------------------------------------------------------------------------


async def test_a_created_object_has_an_id_and_attributes(
    http: Http, service: InMemoryService
) -> None:
    done = await created_object(http)
    assert done.physical_id == "t0" and service.things["t0"]["colour"] == "red"
    assert done.attributes == {"outputs": {"colour": "red"}, "secrets": {}}
    post, get = service.requests
    assert post.headers["Idempotency-Key"] == str(KEY)
    assert post.headers["Content-Type"] == "application/json"
    assert "Idempotency-Key" not in get.headers


async def test_a_created_object_is_saved_before_the_next_request(
    http: Http, service: InMemoryService
) -> None:
    outcome = await run(http, "create", a_call(http, properties()))
    assert isinstance(outcome, Wait) and service.methods() == ["POST"]
    call = replace(a_call(http, properties()), progress=outcome.progress)
    assert isinstance(await run(http, "create", call), Done)
    assert service.methods() == ["POST", "GET"]


async def test_a_lost_create_is_found_by_its_key_at_the_service(
    http: Http, service: InMemoryService
) -> None:
    for _ in range(2):
        await run(http, "create", a_call(http, properties()))
    assert len(service.things) == 1


async def test_a_lost_create_is_found_by_a_request(http: Http, service: InMemoryService) -> None:
    http_properties = properties(
        create={"url": URL, "body": {"colour": "red", "mark": "${key}"}},
        find={"url": URL},
        id="$[?@.mark=='${key}'].id",
        idempotency_header="",
    )
    for _ in range(2):  # its answer has no such path: it is looked for, which finds it
        done = await ended(http, "create", a_call(http, http_properties))
        assert isinstance(done, Done) and done.physical_id == "t0", done
    assert service.methods().count("POST") == 1 and len(service.things) == 1


@pytest.mark.parametrize("status", [429, 502, 503, 504])
async def test_a_busy_endpoint_is_retried(
    http: Http, service: InMemoryService, status: int
) -> None:
    service.script("POST", answer(status))
    outcome = await run(http, "create", a_call(http, properties()))
    assert isinstance(outcome, Failed) and outcome.retry


async def test_an_unreachable_service_is_retried(http: Http, service: InMemoryService) -> None:
    service.script("POST", UNAVAILABLE)
    outcome = await run(http, "create", a_call(http, properties()))
    assert isinstance(outcome, Failed) and outcome.retry
    assert outcome.reason == f"create: {UNAVAILABLE}"


@pytest.mark.parametrize(
    ("response", "reason"),
    [
        (answer(400, {"error": "no such colour"}), 'answered 400: {"error":"no such colour"}'),
        (answer(302, location="https://b.example.org/x?token=1"),
         "redirects to https://b.example.org/x; redirects are not followed"),
        (answer(200, {"name": "x"}), "the response has no id at $.id"),
        (answer(200, "x"), "the response has no id at $.id"),
    ],
    ids=["refused", "elsewhere", "without an id", "a text"],
)  # fmt: skip
async def test_failed_requests_have_reasons(
    http: Http, service: InMemoryService, response: Any, reason: str
) -> None:
    service.script("POST", response)
    outcome = await run(http, "create", a_call(http, properties()))
    assert reason in reason_of(outcome)
    assert isinstance(outcome, Failed) and not outcome.retry


async def test_only_expected_statuses_are_successes(http: Http, service: InMemoryService) -> None:
    service.script("POST", answer(409, {"id": "x"}), answer(200, {"id": "x"}))
    http_properties = properties(create={"url": URL, "expect": [409]}, read=None)
    assert isinstance(await run(http, "create", a_call(http, http_properties)), Done)
    assert "answered 200" in reason_of(await run(http, "create", a_call(http, http_properties)))


async def test_an_id_can_be_a_text_or_absent(http: Http) -> None:
    http_properties = properties(id="thing-${key}", read=None)
    done = await ended(http, "create", a_call(http, http_properties))
    assert isinstance(done, Done) and done.physical_id == f"thing-{KEY}"
    done = await ended(http, "create", a_call(http, properties(id=None, read=None)))
    assert isinstance(done, Done) and done.physical_id == str(KEY)


# -- ready ----------------------------------------------------------------------------------------

READY = {"path": "$.state", "values": ["ready"], "failed": ["broken"]}


async def test_an_operation_waits_until_the_object_is_ready(
    http: Http, service: InMemoryService
) -> None:
    service.script("GET", answer(404), answer(200, {"state": "starting"}), BUSY)
    call, reasons = a_call(http, properties(ready=READY, interval=3)), []
    while isinstance(outcome := await run(http, "create", call), Wait):
        assert outcome.until is not None and outcome.until - call.now <= timedelta(seconds=3)
        call = replace(call, now=outcome.until, progress=outcome.progress)
        reasons.append(outcome.reason)
    assert isinstance(outcome, Done) and service.methods() == ["POST"] + 4 * ["GET"]
    first, gone, starting, busy = reasons
    assert first == "" and "404" in gone and "starting" in starting and "503" in busy


async def test_a_failed_object_ends_the_wait(http: Http, service: InMemoryService) -> None:
    service.script("GET", answer(200, {"state": "broken"}))
    outcome = await ended(http, "create", a_call(http, properties(ready=READY)))
    assert reason_of(outcome) == "the object has failed: broken"
    assert isinstance(outcome, Failed) and outcome.physical_id == "t0"


async def test_the_wait_ends_after_the_timeout(http: Http, service: InMemoryService) -> None:
    service.script("GET", *(answer(200, {"state": "starting"}) for _ in range(300)))
    outcome = await ended(http, "create", a_call(http, properties(ready=READY, timeout=20)))
    assert reason_of(outcome) == "the object was not ready within 20 s: starting"
    assert len(service.requests) < 30


async def test_without_a_ready_condition_an_unreadable_object_has_failed(
    http: Http, service: InMemoryService
) -> None:
    service.script("GET", answer(404))
    outcome = await ended(http, "create", a_call(http, properties()))
    assert "read: the service answered 404" in reason_of(outcome)


@pytest.mark.parametrize("value", [True, "true"])
async def test_ready_values_can_have_another_type(
    http: Http, service: InMemoryService, value: Json
) -> None:
    service.script("GET", answer(200, {"state": True}))
    ready = {"path": "$.state", "values": [value]}
    outcome = await ended(http, "create", a_call(http, properties(ready=ready)))
    assert isinstance(outcome, Done) and len(service.requests) == 2


# -- update ---------------------------------------------------------------------------------------


async def test_an_update_is_sent_to_the_created_object(
    http: Http, service: InMemoryService
) -> None:
    done = await created_object(http)
    call = run_again(http, done, properties(), changed=frozenset({"update"}), operation_key=NOW_KEY)
    assert not http.needs_replace(call)
    outcome = await ended(http, "update", replace(call, changed=frozenset({"create"})))
    assert isinstance(outcome, Done) and outcome.attributes["outputs"] == {"colour": "blue"}
    (put,) = [one for one in service.requests if one.method == "PUT"]
    assert put.url == f"{URL}/t0" and put.headers["Idempotency-Key"] == str(NOW_KEY)


NOW_KEY = KEY.__class__(int=7)


async def test_without_an_update_request_a_change_is_a_replacement(http: Http) -> None:
    done = await created_object(http)
    call = run_again(http, done, properties(update=None), changed=frozenset({"create"}))
    assert http.needs_replace(call)
    assert isinstance(await run(http, "update", call), Replace)


@pytest.mark.parametrize("name", ["attributes", "delete", "ready", "credential", "timeout"])
async def test_a_change_for_later_operations_sends_nothing(
    http: Http, service: InMemoryService, name: str
) -> None:
    done = await created_object(http)
    http_properties = properties(update=None, attributes={"state": "$.state"})
    call = run_again(http, done, http_properties, changed=frozenset({name}))
    assert not http.needs_replace(call)
    outcome = await ended(http, "update", call)
    assert isinstance(outcome, Done) and outcome.attributes["outputs"] == {"state": "ready"}
    assert set(service.methods()[1:]) == {"GET"}


async def test_after_a_failed_update_the_request_is_repeated(
    http: Http, service: InMemoryService
) -> None:
    done = await created_object(http)
    service.script("PUT", answer(500))
    call = run_again(http, done, properties(), changed=frozenset({"create"}))
    failed = await ended(http, "update", call)
    assert isinstance(failed, Failed)
    call = replace(call, data=failed.data, changed=frozenset({"timeout"}))
    assert isinstance(await ended(http, "update", call), Done)
    assert service.methods().count("PUT") == 2


# -- delete ---------------------------------------------------------------------------------------


@pytest.mark.parametrize("status", [404, 410])
async def test_a_missing_object_counts_as_deleted(
    http: Http, service: InMemoryService, status: int
) -> None:
    done = await created_object(http)
    service.script("DELETE", answer(status))
    assert isinstance(await ended(http, "delete", run_again(http, done, properties())), Done)


class Replaced:
    """A replacement of each resource."""

    def __init__(self, successor: Successor) -> None:
        self._successor = successor

    async def read(self, stack_id: StackId, resource_id: ResourceId) -> Successor | None:
        return self._successor


@pytest.mark.parametrize(
    ("more", "reason"),
    [
        ({"headers": {"x-tenant": "a", "X-Key": "${key}"}}, SAME_OBJECT),
        ({"headers": {"X-Tenant": "b", "X-Key": "${key}"}}, PERHAPS_SAME_OBJECT),
        ({"credential": "shelf"}, PERHAPS_SAME_OBJECT),
        ({"delete": {"url": "/${id}?colour=${outputs.colour}"}}, None),
        ({"delete": None}, SAME_OBJECT),
        ({"idempotency_header": "X-Once"}, SAME_OBJECT),
    ],
    ids=["same", "tenant", "credential", "no value", "no delete", "idempotency header"],
)
async def test_the_object_of_a_replacement_with_the_same_request_stays(
    http: Http, service: InMemoryService, more: Json, reason: str | None
) -> None:
    """With another tenant or credential, it can be another object or the same one: it stays."""
    own = properties(headers={"X-Tenant": "a", "X-Key": "${key}"})
    done = await created_object(http, headers=own["headers"])
    http.successors = Replaced(Successor({**own, **more}, {"key": "another"}))
    outcome = await ended(http, "delete", run_again(http, done, own))
    assert isinstance(outcome, Done)
    assert service.methods().count("DELETE") == (1 if reason is None else 0)
    assert outcome.public_reason == (reason or "")


async def test_an_accepted_delete_is_polled(http: Http, service: InMemoryService) -> None:
    done = await created_object(http)
    service.script("DELETE", answer(202))
    service.script("GET", answer(200, {}), BUSY, answer(404))
    assert isinstance(await ended(http, "delete", run_again(http, done, properties())), Done)
    assert service.methods().count("DELETE") == 1
    service.script("DELETE", answer(202))
    outcome = await ended(http, "delete", run_again(http, done, properties(timeout=5)))
    assert "the object still existed 5 s later" in reason_of(outcome)


async def test_an_object_of_a_failed_create_is_searched_for(
    http: Http, service: InMemoryService
) -> None:
    http_properties = properties(
        create={"url": URL, "body": {"mark": "${key}"}},
        find={"url": URL}, id="$[?@.mark=='${key}'].id",
    )  # fmt: skip
    await service.send(await _posted(http, http_properties))
    service.requests.clear()
    service.script("GET", answer(200, []), answer(500))
    service.script("POST", answer(500))
    failed = await ended(http, "create", a_call(http, http_properties))
    assert isinstance(failed, Failed) and failed.physical_id is None
    service.scripted.clear()
    gone = a_call(http, http_properties, data=failed.data, operation_key=NOW_KEY)
    assert isinstance(await ended(http, "delete", gone), Done)
    assert service.things == {}


async def _posted(http: Http, properties: Mapping[str, Json]) -> Any:
    """The request that creates it, as it was sent."""
    other_url = InMemoryService()
    await run(Http(ON, other_url, Credentials({})), "create", a_call(http, properties))
    return next(one for one in other_url.requests if one.method == "POST")


async def test_delete_without_a_known_name_sends_nothing(
    http: Http, service: InMemoryService
) -> None:
    outcome = await ended(http, "delete", a_call(http, properties()))
    assert isinstance(outcome, Done) and outcome.reason and service.requests == []


# -- check ----------------------------------------------------------------------------------------


async def test_a_check_reports_drift(http: Http, service: InMemoryService) -> None:
    done = await created_object(http)
    http_properties = properties(compare={"$.colour": "red"}, ready=READY)
    assert isinstance(await run(http, "check", run_again(http, done, http_properties)), Done)
    service.things["t0"]["colour"] = "green"
    drifted = await run(http, "check", run_again(http, done, http_properties))
    assert reason_of(drifted) == "the object differs from `compare` at $.colour"
    service.things["t0"] |= {"colour": "red", "state": "broken"}
    assert (
        reason_of(await run(http, "check", run_again(http, done, http_properties)))
        == "the object is not ready: broken"
    )
    service.things.clear()
    gone = await run(http, "check", run_again(http, done, http_properties))
    assert reason_of(gone) == "the object does not exist: the service answered 404"


async def test_without_a_read_request_check_is_not_supported(http: Http) -> None:
    done = await created_object(http)
    outcome = await run(http, "check", run_again(http, done, properties(read=None)))
    assert isinstance(outcome, Done) and "not supported" in outcome.reason


async def test_an_existing_object_is_adopted_with_its_attributes(
    http: Http, service: InMemoryService
) -> None:
    await created_object(http)
    outcome = await run(http, "adopt", a_call(http, properties(), physical_id="t0"))
    assert isinstance(outcome, Done) and outcome.attributes["outputs"] == {"colour": "red"}


# -- secrets --------------------------------------------------------------------------------------


async def test_hidden_attributes_are_secret(http: Http, service: InMemoryService) -> None:
    service.script("GET", answer(200, {"colour": "red", "password": SECRET}))
    done = await created_object(
        http, attributes={"colour": "$.colour", "password": "$.password"}, hidden=["password"]
    )
    assert done.attributes == {"outputs": {"colour": "red"}, "secrets": {"password": SECRET}}
    assert http.schema.attributes["secrets"].secret
    http_properties = properties(
        attributes={"password": "$.password"}, hidden=["password"],
        delete={"url": "/${id}", "headers": {"X-Key": "${secrets.password}"}},
    )  # fmt: skip
    await ended(http, "delete", run_again(http, done, http_properties))
    assert service.requests[-1].headers["X-Key"] == SECRET


@pytest.mark.parametrize(
    "more",
    [
        {"create": {"url": URL, "body": {"deep": [{"password": SECRET}]}}},
        {"create": {"url": URL, "headers": {"X-Key": SECRET}}},
        {"headers": {"X-Key": SECRET}},
        {"credential": "shelf"},
    ],
    ids=["body", "header", "header of all", "credential"],
)
async def test_secrets_in_a_response_are_masked(
    http: Http, service: InMemoryService, more: dict[str, Json]
) -> None:
    service.script("POST", answer(400, {"error": f"bad {SECRET}"}))
    outcome = await run(http, "create", a_call(http, properties(**more)))
    assert "bad ******" in reason_of(outcome) and SECRET not in reason_of(outcome)


async def test_a_credential_is_sent_to_its_origin_for_its_projects(
    http: Http, service: InMemoryService
) -> None:
    http_properties = properties(credential="shelf")
    await run(http, "create", a_call(http, http_properties))
    assert service.requests[-1].headers["Authorization"] == f"Bearer {SECRET}"
    await run(http, "create", a_call(http, http_properties, project="team-a"))
    service.requests.clear()
    other = await run(http, "create", a_call(http, http_properties, project="q"))
    assert reason_of(other).startswith(
        'create: the operator provides no credential "shelf" for project q'
    )
    for url in ("https://shelf.example.org:8443/things", "http://shelf.example.org/things"):
        other_url = {**http_properties, "create": {"url": url}}
        assert "is not for" in reason_of(await run(http, "create", a_call(http, other_url)))
    assert service.requests == []


# -- validation -----------------------------------------------------------------------------------


def messages_of(http: Http, **more: Json) -> str:
    return "\n".join(str(one) for one in findings_of(http, properties(**more)))


@pytest.mark.parametrize(
    ("more", "message"),
    [
        ({"read": {"url": "/${di}"}}, 'read: ${di} is not known in this request. Known here: id'),
        ({"create": {"url": "/${id}"}}, "create: ${id} is not known in this request. Known here"),
        ({"update": {"url": "/", "body": ["${outputs.color}"]}}, 'Did you mean "outputs.colour"'),
        ({"base": "https://${id}.example.org"}, "read.url: has no fixed host"),
        ({"read": {"url": "https://${id}.example.org/x"}}, "read.url: has no fixed host"),
        ({"read": {"url": "http://127.0.0.1/x"}}, "read.url: is elsewhere"),
        ({"headers": {"Host": "x"}}, "headers.Host: is a header of the connection"),
        ({"headers": {"X": "a\nb"}}, "headers.X: contains control characters"),
        ({"headers": {"a b": "x"}}, "headers.a b: is not a valid header name"),
        ({"id": "$..id"}, "id: uses JSON path features that are not supported"),
        ({"attributes": {"x": "name"}}, "attributes.x: is not a valid JSON path"),
        ({"compare": {"$.a[": 1}}, "compare.$.a[: is not a valid JSON path"),
        ({"ready": {"path": 1, "values": []}}, "ready.path: is not a valid JSON path"),
        ({"hidden": ["color"]}, 'hidden: hides "color", which is not one of its attributes'),
        ({"idempotency_header": "Host"}, "idempotency_header: is a header of the connection"),
        ({"timeout": 601}, "timeout: is longer than the 600 seconds allowed here"),
    ],
)  # fmt: skip
def test_findings_have_the_place_of_the_property(
    http: Http, more: dict[str, Json], message: str
) -> None:
    assert message in messages_of(http, **more)


@pytest.mark.parametrize(
    ("more", "message"),
    [
        ({"ready": READY, "read": None}, "ready uses the result of read, which is missing"),
        ({"compare": {"$.a": 1}, "read": None}, "compare uses the result of read"),
        ({"find": {"url": URL}, "id": None}, "find needs the JSON path"),
        ({"find": {"url": URL}, "id": "a-text"}, "find needs the JSON path"),
    ],
)
async def test_a_property_without_the_one_it_needs_fails_before_any_request(
    http: Http, service: InMemoryService, more: dict[str, Json], message: str
) -> None:
    assert message in reason_of(await run(http, "create", a_call(http, properties(**more))))
    assert service.requests == []


async def test_invalid_paths_that_are_known_at_run_time_fail(
    http: Http, service: InMemoryService
) -> None:
    call = a_call(http, properties(attributes={"colour": "$..colour"}, read=None))
    assert "features that are not supported" in reason_of(await run(http, "create", call))


def test_valid_properties_have_no_findings(http: Http) -> None:
    assert messages_of(http, ready=READY, compare={"$.colour": "red"}, credential="shelf") == ""


def test_the_examples_of_the_page_are_valid(http: Http) -> None:
    text = (Path(__file__).parents[3] / "docs/how-to/manage-anything-over-http.md").read_text()
    blocks = [yaml.safe_load(one) for one in re.findall(r"```yaml\n(.*?)```", text, re.S)]
    whole = blocks[0]["resources"]["orders"]["properties"]
    parts = {name: example for block in blocks[1:] for name, example in block.items()}
    for example in (whole, {"base": URL, **parts}):
        read = {**example, "base": URL, "credential": None}
        assert findings_of(http, read) == [] and missing_property(read) is None
    assert len(blocks) == 4 and {"create", "find", "id", "hidden"} <= parts.keys()


async def test_a_disabled_type_is_refused(service: InMemoryService) -> None:
    http = Http(HttpSettings(), service, Credentials({}))
    assert "is off on this server" in messages_of(http)
    assert "is off" in reason_of(await run(http, "create", a_call(http, properties())))
    assert service.requests == []


@pytest.mark.parametrize("path", ["$.things", "$.things[0].id", "$.things[?@.id == 'b']", "$.x"])
def test_a_response_is_freed_without_the_garbage_collector(path: str) -> None:
    class Document(dict[str, Json]):
        pass

    gc.disable()
    try:
        document = Document(things=[{"id": "a"}, {"id": "b"}])
        reference = weakref.ref(document)
        first_value(path, document)
        del document
        assert reference() is None
    finally:
        gc.enable()
