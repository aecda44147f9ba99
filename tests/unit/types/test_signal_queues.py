"""Signals that servers post to queues of Zaqar, without one."""

from collections.abc import AsyncIterator, Mapping
from dataclasses import replace
from datetime import timedelta
from uuid import UUID

import orjson
import pytest

from engine.types.contract import Call, Done, Failed, ResourceType, Wait
from engine.types.http_client import Response, ServiceError
from engine.types.object_signals import (
    ZAQAR,
    SignalObject,
    SignalServices,
    Uploads,
    contents_of,
    ids_of,
    kept_messages,
    object_name,
    object_of,
    owner_of,
    parse_body,
)
from engine.types.openstack.cloud import Cloud, CloudAccess, StackAdmin, StackDomain
from engine.types.openstack.zaqar.queue_names import reason_against
from engine.types.openstack.zaqar.signal_queues import ZaqarSignals, queue_name
from engine.types.software import software_types
from engine.types.wait_conditions import wait_types
from engine.words import Json
from tests.unit.types.calls import NOW, SERVERS, STACK, a_call, findings_of, run
from tests.unit.types.openstack.clouds import Answers, NoIdentity, answer
from tests.unit.types.software.in_memory import InMemoryStore

HANDLE, CONDITION = "OS::Heat::WaitConditionHandle", "OS::Heat::WaitCondition"
DEPLOYMENT = "OS::Heat::SoftwareDeployment"
TO_ZAQAR = {"signal_transport": ZAQAR}
DOMAIN = StackDomain("d", "admin", "secret", "heat_stack_user")


class InMemoryQueue:
    """A Zaqar with one queue. messages: by ID; a test deletes them as if they had expired."""

    has_observer = needs_credential = False
    service = endpoint = "Zaqar"

    def __init__(self, *, available: bool = True) -> None:
        self.available = available
        self.messages: dict[str, Json] = {}
        self.names: set[str] = set()
        self.broken: ServiceError | None = None

    async def is_available(self, call: Call) -> bool:
        return self.available

    async def create(self, call: Call) -> SignalObject:
        self.names.add(name := object_name(call, ZAQAR))
        user = {"auth_url": "https://keystone/v3", "username": "u", "user_id": "1"}
        rest = {"password": "secret", "project_id": "2", "domain_id": "d", "queue_id": "q"}
        return SignalObject(name, credentials={**user, **rest})

    async def read(self, call: Call, name: str) -> Uploads:
        if self.broken is not None:
            raise self.broken
        kept = {key: body for key, body in kept_messages(call, name)} | {
            key: orjson.dumps(body).decode() for key, body in self.messages.items()
        }
        listed = [[key, body] for key, body in kept.items()]
        return Uploads(contents_of(listed), "", listed)

    async def remove(self, call: Call, *, keep: str = "") -> None:
        self.names = {one for one in self.names if one == keep}

    async def list_all(self, project: str, region: str) -> AsyncIterator[Mapping[str, Json]]:
        raise AssertionError("the observer was used")
        yield {}


def types_with(queue: InMemoryQueue) -> dict[str, ResourceType]:
    return {one.schema.name: one for one in wait_types(SignalServices(zaqar=queue))}


async def waiting(queue: InMemoryQueue, **properties: Json) -> tuple[ResourceType, Call]:
    """A condition that waits for a handle with a queue, and its next call."""
    types = types_with(queue)
    own, condition = types[HANDLE], types[CONDITION]
    made = await run(own, "create", a_call(own, TO_ZAQAR))
    assert isinstance(made, Done)
    handle = own.reference("h", made.physical_id, made.data)
    call = a_call(condition, {"handle": handle, "timeout": 60, **properties})
    begun = await run(condition, "create", call)
    assert isinstance(begun, Wait) and begun.signal_resource_id == owner_of(handle)
    return condition, replace(call, progress=begun.progress, signal_resource_type=HANDLE)


def test_names_of_queues_identify_their_operation_and_are_accepted() -> None:
    call = a_call(types_with(InMemoryQueue())[HANDLE], TO_ZAQAR)
    name = object_name(call, ZAQAR)
    assert object_of(name, STACK) == name and object_of(name, UUID(int=9)) is None
    assert ids_of(name) == (call.stack_id, call.resource_id, call.operation_key)
    assert reason_against(queue_name(name)) is None
    assert name != object_name(call)


async def test_a_handle_has_credentials_for_its_queue_and_its_delete_removes_it() -> None:
    queue = InMemoryQueue()
    own = types_with(queue)[HANDLE]
    assert findings_of(own, TO_ZAQAR) == []
    made = await run(own, "create", a_call(own, TO_ZAQAR))
    assert isinstance(made, Done)
    signal = orjson.loads(made.attributes["signal"])
    assert signal["queue_id"] == "q" and signal["password"] == "secret"
    assert "secret" not in str(made.data)
    gone = a_call(own, TO_ZAQAR, data=made.data)
    assert not own.needs_credential(gone)
    assert isinstance(await run(own, "delete", gone), Done) and not queue.names


async def test_a_cloud_without_zaqar_refuses_the_transport() -> None:
    own = types_with(InMemoryQueue(available=False))[HANDLE]
    refused = await run(own, "create", a_call(own, TO_ZAQAR))
    assert isinstance(refused, Failed) and not refused.retry
    assert "needs Zaqar, which the service catalog does not have" in refused.reason


async def test_messages_count_once_also_when_they_have_expired() -> None:
    queue = InMemoryQueue()
    condition, call = await waiting(queue, count=3)
    queue.messages = {"m1": {}, "m2": {"id": "b", "data": 2}}
    more = await run(condition, "create", call)
    assert isinstance(more, Wait) and more.until is not None
    again = replace(call, progress=more.progress, now=more.until)
    unchanged = await run(condition, "create", again)
    assert isinstance(unchanged, Wait) and unchanged.progress["known"] == 2
    queue.messages = {"m3": {"data": {"three": 3}}}
    done = await run(condition, "create", again)
    assert isinstance(done, Done)
    assert orjson.loads(done.attributes["data"]) == {"1": None, "b": 2, "3": {"three": 3}}
    queue.messages = {"m4": {"data": 4}}
    updated = replace(call, properties={**call.properties, "count": 4}, data=done.data)
    grown = await run(condition, "update", updated)
    assert isinstance(grown, Done)
    assert orjson.loads(grown.attributes["data"])["4"] == 4


@pytest.mark.parametrize("end", [{"superseded": True}, {"now": NOW + timedelta(seconds=61)}])
async def test_messages_of_a_wait_that_has_failed_count_for_the_next_change(end: Json) -> None:
    """The next change replaces the failed condition, and its messages have expired."""
    queue = InMemoryQueue()
    condition, call = await waiting(queue, count=2)
    queue.messages = {"m1": {"id": "a"}}
    more = await run(condition, "create", call)
    assert isinstance(more, Wait) and more.until is not None
    queue.messages = {}
    ended = await run(
        condition, "create", replace(call, progress=more.progress, **{"now": more.until, **end})
    )
    assert isinstance(ended, Failed)
    again = replace(call, progress=None, replaced_data=ended.data)
    begun = await run(condition, "create", again)
    assert isinstance(begun, Wait)
    queue.messages = {"m2": {"id": "b"}}
    done = await run(condition, "create", replace(again, progress=begun.progress))
    assert isinstance(done, Done) and orjson.loads(done.attributes["data"]).keys() == {"a", "b"}
    # An update in place has them in its data.
    updated = replace(call, data=ended.data, properties={**call.properties, "count": 3})
    queue.messages = {"m3": {"id": "c"}, "m2": {"id": "b"}}
    assert isinstance(await run(condition, "update", updated), Done)


async def test_a_condition_of_another_handle_does_not_count_messages_of_the_former_one() -> None:
    queue = InMemoryQueue()
    condition, call = await waiting(queue)
    queue.messages = {"m1": {"id": "a"}}
    done = await run(condition, "create", call)
    assert isinstance(done, Done)
    queue.messages = {}
    handle = call.properties["handle"]
    other = handle[:-32] + UUID(int=99).hex
    for name, kind in ((handle, Done), (other, Wait)):
        changed = {**call.properties, "handle": name}
        again = replace(call, properties=changed, replaced_data=done.data)
        assert isinstance(await run(condition, "create", again), kind)


async def test_what_was_read_counts_while_zaqar_does_not_answer() -> None:
    queue = InMemoryQueue()
    condition, call = await waiting(queue, count=2)
    queue.messages = {"m1": {}}
    more = await run(condition, "create", call)
    assert isinstance(more, Wait) and more.until is not None
    queue.broken = ServiceError("secret", retry=False, public="Zaqar did not answer")
    late = replace(call, progress=more.progress, now=more.until)
    waits = await run(condition, "create", late)
    assert isinstance(waits, Wait) and waits.public_reason == "Zaqar did not answer"
    queue.broken, queue.messages = None, {"m2": {}}
    later = replace(call, progress=waits.progress, now=NOW + timedelta(seconds=59))
    assert isinstance(await run(condition, "create", later), Done)


@pytest.mark.parametrize("body", [{"status": "done"}, [1], "{", 5])
async def test_an_invalid_message_fails_the_condition(body: Json) -> None:
    queue = InMemoryQueue()
    condition, call = await waiting(queue)
    queue.messages = {"m1": body}
    failed = await run(condition, "create", call)
    assert isinstance(failed, Failed) and "signal 1 is invalid" in failed.reason


async def test_a_deployment_gives_its_server_the_credentials_and_ends_with_its_message() -> None:
    queue, store = InMemoryQueue(), InMemoryStore()
    services = SignalServices(zaqar=queue)
    types = {one.schema.name: one for one in software_types(store, SERVERS, services)}
    own, properties = types[DEPLOYMENT], {"server": "web-1", **TO_ZAQAR}
    assert findings_of(own, properties) == []
    assert findings_of(types[f"{DEPLOYMENT}Group"], {"servers": {}, **TO_ZAQAR}) == []
    call = a_call(own, properties)
    assert not own.needs_credential(call)
    begun = await run(own, "create", call)
    assert isinstance(begun, Wait) and begun.until == NOW
    (published,) = store.published
    inputs = {one["name"]: one["value"] for one in published.config.inputs}
    assert "deploy_signal_id" not in inputs and "deploy_domain_id" not in inputs
    wanted = {"auth_url", "username", "user_id", "password", "project_id", "queue_id"}
    assert {f"deploy_{one}" for one in wanted} <= inputs.keys()
    queue.messages = {"m1": {"deploy_status": "IN_PROGRESS"}}
    waits = await run(own, "create", replace(call, progress=begun.progress))
    assert isinstance(waits, Wait) and waits.until is not None
    queue.messages = {"m2": {"deploy_status_code": 0, "deploy_stdout": "o"}}
    done = await run(own, "create", replace(call, progress=waits.progress, now=waits.until))
    assert isinstance(done, Done) and done.attributes["deploy_stdout"] == "o"
    gone = replace(call, physical_id=done.physical_id)
    assert isinstance(await run(own, "delete", gone), Done) and not queue.names


async def test_a_delete_fails_while_headgate_cannot_delete_the_user_and_the_queue() -> None:
    """The operator has removed the setting too early."""
    made = types_with(InMemoryQueue())[HANDLE]
    created = await run(made, "create", a_call(made, TO_ZAQAR))
    assert isinstance(created, Done)
    handle = {one.schema.name: one for one in wait_types()}[HANDLE]
    call = a_call(handle, TO_ZAQAR, data=created.data, physical_id=created.physical_id)
    store = InMemoryStore()
    types = {one.schema.name: one for one in software_types(store, SERVERS)}
    deployment = types[DEPLOYMENT]
    applied = a_call(deployment, {"server": "web-1", "actions": ["DELETE"], **TO_ZAQAR})
    for own, one in ((handle, call), (deployment, replace(applied, physical_id="d"))):
        failed = await run(own, "delete", one)
        assert isinstance(failed, Failed) and not failed.retry
        assert "[resource_types.openstack.stack_users]" in failed.public_reason
    assert not store.published
    for data in ({"transport": "TOKEN_SIGNAL"}, {}):  # nothing exists outside Headgate
        assert isinstance(await run(handle, "delete", replace(call, data=data)), Done)


class StackIdentity(NoIdentity):
    """An identity service with a domain of stack users. tokens: those that were requested, by the
    project of their scope."""

    access = CloudAccess(region="north", stack_domain=DOMAIN)

    def __init__(self) -> None:
        self.refused: list[str] = []

    async def stack_admin(self, project: str = "", refused: str = "") -> StackAdmin:
        if refused:
            self.refused.append(refused)
        return StackAdmin("admin-id", f"token of {project[:8] or 'the domain'}{refused and '!'}")

    def forget_stack_project(self, project: str) -> None:
        pass


def signals_with(*answers: Response, max_signals: int = 1_000) -> tuple[ZaqarSignals, Answers]:
    web = Answers(*answers)
    cloud = Cloud(web, StackIdentity())
    return ZaqarSignals(cloud, DOMAIN, "http://keystone", max_signals), web


def a_page(*messages: tuple[str, Json]) -> Response:
    listed = [{"id": key, "body": body} for key, body in messages]
    link = [{"rel": "next", "href": "/v2/queues/q/messages?marker=1"}] if listed else []
    return answer(200, {"messages": listed, "links": link})


def the_call(**more: Json) -> Call:
    return a_call(types_with(InMemoryQueue())[HANDLE], TO_ZAQAR, **more)


async def test_a_create_makes_a_user_in_a_project_of_its_own_and_the_queue() -> None:
    call = the_call()
    web_answers = (
        answer(200, {"roles": [{"id": "r"}]}),
        answer(409, {"error": {"message": "exists"}}),
        answer(200, {"projects": [{"id": "p1"}]}),
        answer(204),
        answer(201, {"user": {"id": "u1"}}),
        answer(204),
        answer(201),
    )
    signals, web = signals_with(*web_answers)
    created = await signals.create(call)
    sent = [(one.method, one.url.partition("?")[0]) for one in web.requests]
    queue = queue_name(created.name)
    assert sent == [
        ("GET", "http://identity/roles"),
        ("POST", "http://identity/projects"),
        ("GET", "http://identity/projects"),
        ("PUT", "http://identity/projects/p1/users/admin-id/roles/r"),
        ("POST", "http://identity/users"),
        ("PUT", "http://identity/projects/p1/users/u1/roles/r"),
        ("PUT", f"http://messaging/queues/{queue}"),
    ]
    user = orjson.loads(web.requests[4].body or b"")["user"]
    assert user["domain_id"] == "d"
    assert created.credentials == {
        "auth_url": "http://keystone/v3", "username": user["name"], "user_id": "u1",
        "password": user["password"], "project_id": "p1", "domain_id": "d",
        "region_name": "north", "queue_id": queue,
    }  # fmt: skip
    project = orjson.loads(web.requests[1].body or b"")["project"]
    assert web.tokens[-1] == f"token of {project['name'][:8]}" and len(project["name"]) == 64
    assert user["name"] == f"{project['name']}{call.operation_key.hex}"
    assert user["password"] not in repr(created)


async def test_each_operation_has_another_user_whom_a_repeated_call_gets_again() -> None:
    users, passwords = [], []
    for key in (UUID(int=7), UUID(int=7), UUID(int=8)):
        signals, web = signals_with(
            answer(200, {"roles": [{"id": "r"}]}), answer(201, {"project": {"id": "p1"}}),
            answer(204), answer(409, {"error": {"message": "exists"}}),
            answer(200, {"users": [{"id": "u1"}]}), answer(200, {}), answer(204), answer(204),
        )  # fmt: skip
        created = await signals.create(the_call(operation_key=key))
        assert web.requests[5].method == "PATCH"
        changed = orjson.loads(web.requests[5].body or b"")["user"]
        assert created.credentials["password"] == changed["password"]
        passwords.append(changed["password"])
        users.append(created.credentials["username"])
    assert passwords[0] == passwords[1] != passwords[2]
    assert users[0] == users[1] != users[2]


async def test_a_read_returns_new_messages_after_those_that_were_kept() -> None:
    call = the_call(progress={"messages": [["m1", "{}"], ["gone", '{"id":1}']]})
    pages = (a_page(("m1", {}), ("m2", {"id": 2})), a_page(("m3", " " * 65_537)), a_page())
    signals, web = signals_with(*pages)
    found = await signals.read(call, object_name(call, ZAQAR))
    assert [one[0] for one in found.kept] == ["m1", "gone", "m2", "m3"]
    assert found.contents == [b"{}", b'{"id":1}', b'{"id":2}', None]
    assert all(one.method == "GET" for one in web.requests)
    assert "include_claimed=true" in web.requests[0].url and "echo=true" in web.requests[0].url


@pytest.mark.parametrize(
    "raw",
    [
        b"NaN",
        b'{"data":Infinity}',
        b'{"data":1e999}',
        b'"\\ud800"',
        b'{"id":"\\ud800"}',
        b'{"\\ud800":1}',
        b"9" * 5_000,
    ],
    ids=["nan", "infinity", "exponent", "text", "value", "key", "digits"],
)
async def test_a_message_that_is_not_json_is_invalid_and_those_beside_it_count(raw: bytes) -> None:
    """Zaqar stores what Python accepts as JSON."""
    parts = (
        b'{"messages":[{"id":"m1","body":{"id":"a","data":[12345678901,2.5]}},{"id":"m2","body":',
        raw,
        b'},{"id":"m3","body":{"id":"b","data":"\xc3\xa9\\u0000"}}],"links":[]}',
    )
    signals, _ = signals_with(Response(200, {}, b"".join(parts)))
    call = the_call()
    found = await signals.read(call, object_name(call, ZAQAR))
    first, wrong, last = found.contents
    assert parse_body(first) == {"id": "a", "data": [12_345_678_901, 2.5]}
    assert parse_body(wrong) == "it is not valid JSON"
    assert parse_body(last) == {"id": "b", "data": "é\ufffd"}
    orjson.dumps(found.kept)  # what the operation keeps can be stored


async def test_an_answer_that_is_no_document_is_an_error() -> None:
    call = the_call()
    deep = b"[" * 1_000 + b"]" * 1_000
    for body in (b"<html>", b'{"messages":[', b"[" * 100_000, deep):
        signals, _ = signals_with(Response(200, {}, body))
        with pytest.raises(ServiceError, match="with no JSON"):
            await signals.read(call, object_name(call, ZAQAR))


async def test_a_read_is_bounded_and_says_so() -> None:
    page = a_page(*((f"m{number}", {}) for number in range(3)))
    signals, _ = signals_with(page, max_signals=2)
    call = the_call()
    found = await signals.read(call, object_name(call, ZAQAR))
    assert len(found.contents) == 2 and "more than 2 signals" in found.excess
    big = [(f"m{number}", "x" * 65_000) for number in range(20)]
    signals, _ = signals_with(a_page(*big))
    found = await signals.read(call, object_name(call, ZAQAR))
    assert len(found.contents) == 16 and "bytes of signals" in found.excess
    for body in (" " * 65_537, "é" * 32_700):  # too long to be kept; two bytes a character
        signals, _ = signals_with(a_page(*((f"m{number}", body) for number in range(20))))
        found = await signals.read(call, object_name(call, ZAQAR))
        assert len(found.contents) < 17 and "bytes of signals" in found.excess


async def test_a_missing_queue_has_no_messages() -> None:
    call = the_call(progress={"messages": [["m1", "{}"]]})
    signals, _ = signals_with(answer(404, {"title": "Not found", "description": "no queue"}))
    assert (await signals.read(call, object_name(call, ZAQAR))).contents == [b"{}"]


async def test_a_refused_token_is_replaced_once() -> None:
    call = the_call()
    signals, web = signals_with(answer(401, {}), a_page(("m1", {})), a_page())
    assert (await signals.read(call, object_name(call, ZAQAR))).contents == [b"{}"]
    assert web.tokens[0] != web.tokens[1] == web.tokens[2]


async def test_a_delete_ends_the_users_before_the_queues_and_the_project_last() -> None:
    call = the_call()
    project = object_name(call, ZAQAR).removeprefix("headgate-queue-").replace("-", "")[:64]
    users = [{"id": "u1", "name": f"{project}1"}, {"id": "foreign", "name": "another"}]
    signals, web = signals_with(
        answer(200, {"users": users}), answer(204),
        answer(200, {"projects": [{"id": "p1"}]}), answer(200, {"roles": [{"id": "r"}]}),
        answer(204), answer(200, {"queues": [{"name": "signals-1"}], "links": []}), answer(204),
        answer(200, {"projects": [{"id": "p1"}]}), answer(204),
    )  # fmt: skip
    await signals.remove(call)
    assert f"name__startswith={project}" in web.requests[0].url
    changes = [one.url for one in web.requests if one.method == "DELETE"]
    assert changes == [
        "http://identity/users/u1",
        "http://messaging/queues/signals-1",
        "http://identity/projects/p1",
    ]


async def test_user_and_queue_of_a_new_operation_stay_when_earlier_ones_are_deleted() -> None:
    call = the_call()
    name = object_name(call, ZAQAR)
    listed = [{"name": queue_name(name)}, {"name": "signals-old"}]
    project = name.removeprefix("headgate-queue-").replace("-", "")[:64]
    users = [{"id": "new", "name": f"{project}{call.operation_key.hex}"},
             {"id": "old", "name": f"{project}{UUID(int=9).hex}"}]  # fmt: skip
    signals, web = signals_with(
        answer(200, {"users": users}), answer(204), answer(200, {"projects": [{"id": "p1"}]}),
        answer(200, {"roles": [{"id": "r"}]}), answer(204),
        answer(200, {"queues": listed, "links": []}), answer(204),
    )  # fmt: skip
    await signals.remove(call, keep=name)
    assert [one.url for one in web.requests if one.method == "DELETE"] == [
        "http://identity/users/old",
        "http://messaging/queues/signals-old",
    ]


async def test_a_delete_without_a_project_ends_at_once() -> None:
    signals, web = signals_with(answer(200, {"users": []}), answer(200, {"projects": []}))
    await signals.remove(the_call())
    assert len(web.requests) == 2
