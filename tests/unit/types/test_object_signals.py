"""Signals that are uploaded to an object store, without one."""

from collections.abc import AsyncIterator, Mapping
from dataclasses import replace
from datetime import timedelta
from uuid import UUID

import pytest

from engine.types.contract import Call, Done, Failed, ResourceType, Wait
from engine.types.http_client import Response, ServiceError
from engine.types.object_signals import (
    MAX_BYTES,
    SignalObject,
    SignalServices,
    Uploads,
    number_of,
    object_name,
    object_of,
    owner_of,
    parse_body,
)
from engine.types.openstack.cloud import Cloud
from engine.types.openstack.swift.signal_objects import PLACEHOLDER, SwiftSignals
from engine.types.openstack.swift.temporary_url import sign_url
from engine.types.software import software_types
from engine.types.wait_conditions import wait_types
from engine.words import Json
from tests.unit.types.calls import KEY, NOW, SERVERS, SIGNAL_URL, STACK, a_call, findings_of, run
from tests.unit.types.openstack.clouds import Answers, Renewing, answer
from tests.unit.types.software.in_memory import InMemoryStore

HANDLE = "OS::Heat::WaitConditionHandle"
HANDLE_WITH_UPDATE = "OS::Heat::UpdateWaitConditionHandle"
TEMP_URL = {"signal_transport": "TEMP_URL_SIGNAL"}


class InMemoryObjects:
    """An object store. broken: its next answers. not_removed: those to removes."""

    has_observer = False
    needs_credential = True
    endpoint = service = "Swift"

    def __init__(self, *, available: bool = True) -> None:
        self.available = available
        self.uploads: list[bytes | None] = []
        self.excess = ""
        self.names: set[str] = set()
        self.broken: ServiceError | None = None
        self.not_removed: ServiceError | None = None

    async def is_available(self, call: Call) -> bool:
        return self.available

    async def create(self, call: Call) -> SignalObject:
        if self.broken is not None:
            self.names.add("entry")
            raise self.broken
        self.names.add(object_name(call))
        return SignalObject(object_name(call), f"https://swift/v1/A/{object_name(call)}?sig=s")

    async def read(self, call: Call, name: str) -> Uploads:
        if self.broken is not None:
            raise self.broken
        return Uploads(self.uploads, self.excess)

    async def remove(self, call: Call, *, keep: str = "") -> None:
        if self.not_removed is not None:
            raise self.not_removed
        self.names = {one for one in self.names if one == keep}

    async def list_all(self, project: str, region: str) -> AsyncIterator[Mapping[str, Json]]:
        yield {number_of(one, 1): 1 for one in self.names}


def types_with(objects: InMemoryObjects) -> dict[str, ResourceType]:
    return {one.schema.name: one for one in wait_types(SignalServices(objects))}


async def waiting(objects: InMemoryObjects, **properties: Json) -> tuple[ResourceType, Call]:
    """A condition that waits for a handle with an object, and its next call."""
    types = types_with(objects)
    own, condition = types[HANDLE], types["OS::Heat::WaitCondition"]
    made = await run(own, "create", a_call(own, TEMP_URL))
    assert isinstance(made, Done)
    handle = own.reference("h", made.physical_id, made.data)
    call = a_call(condition, {"handle": handle, "timeout": 60, **properties})
    begun = await run(condition, "create", call)
    assert isinstance(begun, Wait) and begun.signal_resource_id == owner_of(handle)
    return condition, replace(call, progress=begun.progress, signal_resource_type=HANDLE)


def test_names_of_objects_identify_their_resource() -> None:
    call = a_call(types_with(InMemoryObjects())[HANDLE], TEMP_URL)
    name = object_name(call)
    url = f"https://swift/v1/AUTH_p/{name}/{name}?temp_url_sig=0"
    assert object_of(url) == object_of(name, STACK) == name
    assert owner_of(name) == call.resource_id
    assert object_of(name, UUID(int=9)) is None
    for text in ("h", name[:-1], name + "0", SIGNAL_URL.signed_url):
        assert object_of(text) is None


@pytest.mark.parametrize(
    ("body", "fields"),
    [
        (b"", {}),
        (b" \n", {}),
        (b'{"id": 1}', {"id": 1}),
        (b"{", "not valid JSON"),
        (b"[]", "not a JSON object"),
        (b"\xff", "not valid JSON"),
        (None, "longer than 65536 bytes"),
    ],
)
def test_the_fields_of_an_uploaded_signal(body: bytes | None, fields: Json) -> None:
    found = parse_body(body)
    assert fields in found if isinstance(found, str) else found == fields


def test_a_temporary_url_is_signed_with_sha_256() -> None:
    """Over method, time and path, each on a line."""
    url = sign_url("GET", "https://swift-cluster.example.com/v1/my_account/container/object",
                   "mykey", 1_685_990_400)  # fmt: skip
    assert url.endswith(
        "/v1/my_account/container/object?temp_url_sig="
        "b5e77af64d301a8c37826f9cfb67cdc8145d5c4555b637467d042d3e74e7fb38"
        "&temp_url_expires=1685990400"
    )


async def test_a_cloud_without_swift_refuses_the_transport_and_says_what_to_use() -> None:
    own = types_with(InMemoryObjects(available=False))[HANDLE]
    assert findings_of(own, TEMP_URL) == []
    refused = await run(own, "create", a_call(own, TEMP_URL))
    assert isinstance(refused, Failed) and not refused.retry
    assert "needs Swift, which the service catalog does not have" in refused.reason
    assert "Use one of TOKEN_SIGNAL" in refused.public_reason


@pytest.mark.parametrize("available", [True, False])
async def test_the_url_of_a_swift_signal_handle(available: bool) -> None:
    own = types_with(InMemoryObjects(available=available))["OS::Heat::SwiftSignalHandle"]
    done = await run(own, "create", a_call(own, {}, credential="token"))
    assert isinstance(done, Done)
    url = done.attributes["endpoint"]
    assert url == own.reference("h", done.physical_id, done.data)
    assert done.attributes["curl_cli"] == f"curl -i -X PUT '{url}'"
    assert (object_of(url) is not None) is available
    assert available or url == SIGNAL_URL.signed_url


async def test_a_delete_removes_the_objects_of_its_handle_alone() -> None:
    objects = InMemoryObjects()
    own = types_with(objects)[HANDLE]
    await run(own, "create", a_call(own, TEMP_URL))
    other = a_call(own, {"signal_transport": "CFN_SIGNAL"}, data={"transport": "CFN_SIGNAL"})
    assert isinstance(await run(own, "delete", other), Done) and objects.names
    objects.broken = ServiceError("away", retry=True)
    failed = await run(own, "create", a_call(own, TEMP_URL))
    assert isinstance(failed, Failed) and failed.retry
    left = a_call(own, {}, data=failed.data)
    assert isinstance(await run(own, "delete", left), Done) and not objects.names


async def test_uploaded_signals_count_beside_those_that_headgate_received() -> None:
    objects = InMemoryObjects()
    condition, call = await waiting(objects, count=3)
    objects.uploads = [b"", b'{"id": "b", "more": 1}']
    more = await run(condition, "create", call)
    assert isinstance(more, Wait) and more.progress["known"] == 2
    sent = {"id": "own", "status": "SUCCESS", "reason": "r", "data": 5}
    done = await run(condition, "create", replace(call, progress=more.progress, signals=[sent]))
    assert isinstance(done, Done)
    assert done.attributes["data"] == '{"own":5,"1":null,"b":null}'


async def test_the_object_is_not_read_before_its_time_unless_the_change_has_ended() -> None:
    objects = InMemoryObjects()
    condition, call = await waiting(objects)
    early = await run(condition, "create", call)
    assert isinstance(early, Wait) and early.until is not None and early.until > NOW
    objects.uploads = [b""]
    call = replace(call, progress=early.progress)
    assert isinstance(await run(condition, "create", call), Wait)
    ended = await run(condition, "create", replace(call, superseded=True))
    assert isinstance(ended, Done)
    objects.uploads = []
    given_up = await run(condition, "create", replace(call, superseded=True))
    assert isinstance(given_up, Failed) and "the change ended" in given_up.reason
    late = await run(condition, "create", replace(call, now=early.until))
    assert isinstance(late, Wait) and late.until is not None
    assert late.until - early.until > early.until - NOW


async def test_a_swift_that_is_away_only_delays_the_signals() -> None:
    objects = InMemoryObjects()
    condition, call = await waiting(objects)
    objects.broken = ServiceError("secret", retry=False, public="Swift did not answer")
    wait = await run(condition, "create", call)
    assert isinstance(wait, Wait) and wait.public_reason == "Swift did not answer"
    end = replace(call, progress=wait.progress, now=NOW + timedelta(seconds=60))
    failed = await run(condition, "create", end)
    assert isinstance(failed, Failed)
    assert failed.reason == (
        "WaitConditionTimeout: 0 of 1 received. The signals cannot be read: Swift did not answer"
    )
    objects.broken, objects.uploads = None, [b""]
    assert isinstance(await run(condition, "create", end), Done)


DEPLOYMENT = "OS::Heat::SoftwareDeployment"
UPLOADS: Json = {"server": "web-1", **TEMP_URL}


def deployments_with(
    objects: InMemoryObjects,
) -> tuple[ResourceType, ResourceType, InMemoryStore]:
    """A deployment and a group of them, and their store."""
    store = InMemoryStore()
    types = {
        one.schema.name: one for one in software_types(store, SERVERS, SignalServices(objects))
    }
    return types[DEPLOYMENT], types[f"{DEPLOYMENT}Group"], store


async def test_a_deployment_ends_with_what_its_server_uploads() -> None:
    objects = InMemoryObjects()
    own, group, store = deployments_with(objects)
    assert findings_of(own, UPLOADS) == findings_of(group, {"servers": {}, **TEMP_URL}) == []
    call = a_call(own, UPLOADS)
    begun = await run(own, "create", call)
    assert isinstance(begun, Wait) and begun.until == NOW
    (published,) = store.published
    inputs = {one["name"]: one["value"] for one in published.config.inputs}
    assert inputs["deploy_signal_id"].startswith("https://swift/")
    assert inputs["deploy_signal_verb"] == "PUT"
    objects.uploads = [b'{"deploy_status": "IN_PROGRESS"}']
    waits = await run(own, "create", replace(call, progress=begun.progress))
    assert isinstance(waits, Wait) and waits.progress["known"] == 1 and waits.progress["published"]
    objects.uploads += [b'{"deploy_status_code": 0, "deploy_stdout": "o"}']
    assert waits.until is not None
    later = replace(call, progress=waits.progress, now=waits.until)
    done = await run(own, "create", later)
    assert isinstance(done, Done) and done.attributes["deploy_stdout"] == "o"
    assert isinstance(await run(own, "delete", replace(call, physical_id=done.physical_id)), Done)
    assert not objects.names


async def test_an_invalid_upload_fails_the_deployment_and_an_absent_swift_is_named() -> None:
    objects = InMemoryObjects()
    own, _, store = deployments_with(objects)
    call = a_call(own, UPLOADS)
    begun = await run(own, "create", call)
    assert isinstance(begun, Wait)
    objects.uploads = [None]
    failed = await run(own, "create", replace(call, progress=begun.progress))
    assert isinstance(failed, Failed) and "longer than 65536 bytes" in failed.reason
    store.published.clear()
    objects.available = False
    refused = await run(own, "create", call)
    assert isinstance(refused, Failed) and not store.published
    assert "needs Swift" in refused.reason and "Use CFN_SIGNAL" in refused.public_reason


@pytest.mark.parametrize("way", ["api", "superseded"])
async def test_a_deployment_stops_waiting_when_headgate_has_a_result_or_its_change_ends(
    way: str,
) -> None:
    own, _, _ = deployments_with(InMemoryObjects())
    call = a_call(own, UPLOADS)
    begun = await run(own, "create", call)
    assert isinstance(begun, Wait)
    waits = await run(own, "create", replace(call, progress=begun.progress))
    assert isinstance(waits, Wait)
    again = replace(call, progress=waits.progress)
    if way == "api":
        sent = replace(again, signals=[{"deploy_status_code": 0}])
        assert isinstance(await run(own, "create", sent), Done)
    else:
        ended = await run(own, "create", replace(again, superseded=True))
        assert isinstance(ended, Failed) and "cancelled" in ended.reason


async def test_an_upload_between_two_requests_is_not_too_long_either() -> None:
    """Swift has the placeholder at first, and then what a server has uploaded."""
    web = Answers(
        answer(200, content_length="5"),
        Response(200, {"x-timestamp": "1795812108.82554"}, b" " * (MAX_BYTES + 1)),
        answer(200, []),
    )
    signals = SwiftSignals(Cloud(web, Renewing()))
    call = a_call(types_with(InMemoryObjects())[HANDLE], TEMP_URL, credential="token")
    assert await signals.read(call, object_name(call)) == Uploads([None])


@pytest.mark.parametrize("transport", ["TOKEN_SIGNAL", "CFN_SIGNAL", "HEAT_SIGNAL", "NO_SIGNAL"])
async def test_signals_to_headgate_need_no_credential_of_the_cloud(transport: str) -> None:
    """So their waits do not depend on Keystone."""
    objects = InMemoryObjects()
    types = types_with(objects)
    own, condition = types[HANDLE], types["OS::Heat::WaitCondition"]
    call = a_call(own, {"signal_transport": transport})
    made = await run(own, "create", call)
    assert isinstance(made, Done)
    created = replace(call, physical_id=made.physical_id, data=made.data)
    handle = own.reference("h", made.physical_id, made.data)
    waits = a_call(condition, {"handle": handle, "timeout": 60}, progress={"until": "x"})
    calls = [(own, call), (own, created), (condition, waits)]
    if transport != "TOKEN_SIGNAL":
        deployment, _, _ = deployments_with(objects)
        properties = {"server": "web-1", "signal_transport": transport}
        calls.append((deployment, a_call(deployment, properties)))
        calls.append((deployment, a_call(deployment, properties, progress={"published": True})))
    for type_, one in calls:
        assert type_.uses_credential and not type_.needs_credential(one)


@pytest.mark.parametrize("name", ["AWS::CloudFormation::WaitConditionHandle", HANDLE_WITH_UPDATE])
def test_handles_that_never_use_swift_need_no_credential(name: str) -> None:
    own = types_with(InMemoryObjects())[name]
    assert not own.needs_credential(a_call(own, {}))


async def test_signals_to_swift_need_a_credential() -> None:
    objects = InMemoryObjects()
    own, (condition, waits) = types_with(objects)[HANDLE], await waiting(objects)
    assert own.needs_credential(a_call(own, TEMP_URL))
    assert own.needs_credential(a_call(own, {}, data={"object": ""}))
    assert condition.needs_credential(waits)
    assert not condition.needs_credential(replace(waits, progress=None))
    deployment, _, _ = deployments_with(objects)
    assert deployment.needs_credential(a_call(deployment, UPLOADS))
    kept = replace(a_call(deployment, UPLOADS), properties={}, data={"properties": UPLOADS})
    assert deployment.needs_credential(kept)
    swift = types_with(objects)["OS::Heat::SwiftSignalHandle"]
    call = a_call(swift, {}, credential="token")
    assert swift.needs_credential(call)
    made = await run(swift, "create", call)
    assert isinstance(made, Done)
    assert swift.needs_credential(replace(call, data=made.data))
    objects.available = False
    made = await run(swift, "create", call)
    assert isinstance(made, Done)
    assert not swift.needs_credential(replace(call, data=made.data))


REFUSED = ServiceError("403", status=403, public="refused")
AWAY = ServiceError("503", status=503, retry=True)


@pytest.mark.parametrize(
    ("status", "not_removed", "repeated", "falls_back"),
    [
        (412, None, False, True),
        (412, None, True, True),
        (412, AWAY, False, False),
        (403, None, False, True),
        (403, REFUSED, False, True),
        (403, REFUSED, True, False),  # an earlier call may have created the object
        (409, None, False, False),
        (503, None, False, False),
    ],
)
async def test_a_swift_signal_handle_has_headgates_url_if_swift_cannot_store_its_signals(
    status: int, not_removed: ServiceError | None, repeated: bool, falls_back: bool
) -> None:
    objects = InMemoryObjects()
    objects.broken, objects.not_removed = ServiceError("r", status=status), not_removed
    own = types_with(objects)["OS::Heat::SwiftSignalHandle"]
    outcome = await run(own, "create", a_call(own, {}, credential="token", repeated=repeated))
    if not falls_back:
        assert isinstance(outcome, Failed) and outcome.data["object"] == ""
        return
    assert isinstance(outcome, Done)
    assert outcome.attributes["endpoint"] == SIGNAL_URL.signed_url
    assert not objects.names or not_removed is REFUSED
    assert not own.needs_credential(a_call(own, {}, data=outcome.data))


async def test_a_delete_that_swift_refuses_does_not_run_the_config_of_the_delete_again() -> None:
    objects = InMemoryObjects()
    own, _, store = deployments_with(objects)
    call = a_call(own, {**UPLOADS, "actions": ["DELETE"]}, physical_id=str(KEY))
    begun = await run(own, "delete", call)
    assert isinstance(begun, Wait) and len(store.published) == 1
    objects.uploads, objects.not_removed = [b'{"deploy_status_code": 0}'], AWAY
    repeated = replace(call, progress=begun.progress)
    failed = await run(own, "delete", repeated)
    assert isinstance(failed, Failed) and failed.retry and objects.names
    assert await run(own, "delete", repeated) == failed
    again = replace(call, operation_key=UUID(int=8), data=failed.data)
    assert isinstance(await run(own, "delete", again), Failed)
    objects.not_removed = None
    assert isinstance(await run(own, "delete", again), Done)
    assert len(store.published) == 1 and not store.deployments and not objects.names


@pytest.mark.parametrize(
    ("sizes", "max_total", "read", "reason"),
    [
        ([23, 1], 100, ["a", "newest"], ""),
        ([23, 1, 1], 100, ["a", "b"], "more than 2 signals"),
        ([23, 1, 1, 1], 100, ["a", "b"], "more than 2 signals"),
        ([23, 70, 10], 100, ["a"], "more than 100 bytes"),
        ([23, MAX_BYTES + 1], 100, [None, "newest"], ""),
        ([23, 75], 100, ["a"], "more than 100 bytes"),
    ],
)
async def test_only_the_oldest_signals_of_an_object_are_read(
    sizes: list[int],
    max_total: int,
    read: list[str | None],
    reason: str,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """The first of the sizes is that of the placeholder. The limit is two signals."""
    path = "engine.types.openstack.swift.signal_objects.MAX_TOTAL_BYTES"
    monkeypatch.setattr(path, max_total)
    call = a_call(types_with(InMemoryObjects())[HANDLE], TEMP_URL, credential="token")
    name = object_name(call)
    versions = [f"{len(name):03x}{name}/179581210{n}.00000" for n in range(len(sizes))]
    listed = [{"name": one, "bytes": size} for one, size in zip(versions, sizes, strict=True)]
    now = {"x-timestamp": "1795812109.00000"}
    contents = [PLACEHOLDER, *(one.encode() for one in read if one in ("a", "b"))]
    web = Answers(
        answer(200, content_length="6", **now),
        Response(200, now, b"newest"),
        answer(200, listed),
        *(Response(200, {"x-timestamp": "1.0"}, one) for one in contents),
    )
    found = await SwiftSignals(Cloud(web, Renewing()), max_signals=2).read(call, name)
    assert found.contents == [one and one.encode() for one in read]
    assert reason in found.excess and bool(reason) is bool(found.excess)
    assert not web.answers and "limit=4" in web.requests[2].url


async def test_too_many_signals_fail_a_wait_unless_the_oldest_suffice() -> None:
    objects = InMemoryObjects()
    condition, call = await waiting(objects, count=2)
    objects.uploads, objects.excess = [b'{"deploy_status": "IN_PROGRESS"}'], "more than 1 signal"
    failed = await run(condition, "create", call)
    assert isinstance(failed, Failed)
    assert failed.public_reason == "WaitConditionFailure: more than 1 signal"
    deployment, _, _ = deployments_with(objects)
    call = a_call(deployment, UPLOADS)
    begun = await run(deployment, "create", call)
    assert isinstance(begun, Wait)
    failed = await run(deployment, "create", replace(call, progress=begun.progress))
    assert isinstance(failed, Failed) and failed.reason.endswith("failed: more than 1 signal")
    condition, call = await waiting(objects, count=1)
    assert isinstance(await run(condition, "create", call), Done)
