"""The rules of the types of Zaqar, and how a repeated create finds its own object."""

from typing import Any

import orjson
import pytest

from engine.types.contract import Call, Done, Failed, Outcome
from engine.types.http_client import Response
from engine.types.openstack.zaqar.queue import patch
from tests.unit.types.calls import KEY, NOW, a_call, findings_of, run
from tests.unit.types.openstack.clouds import Answers, answer, type_with

Json = Any
QUEUE, SUBSCRIPTION = "OS::Zaqar::Queue", "OS::Zaqar::Subscription"
SIGNED = "OS::Zaqar::SignedQueueURL"
ID = "11111111-1111-4111-8111-111111111111"
MARK = {"headgate_operation": str(KEY)}
SUBSCRIBER = {"queue_name": "q", "subscriber": "http://a/"}


async def outcome(
    operation: str, web: Answers, name: str, properties: Json, **more: Json
) -> Outcome:
    type_ = type_with(web, name)
    return await run(type_, operation, a_call(type_, properties, credential="t", **more))


def sent(web: Answers) -> list[str]:
    return [f"{one.method} {one.url.partition('//')[2].partition('/')[2]}" for one in web.requests]


def body(web: Answers, number: int) -> Json:
    return orjson.loads(web.requests[number].body or b"")


def listed(key: str, *found: Json) -> Response:
    link = {"rel": "next", "href": "/v2/more"}
    return answer(200, {key: list(found), "links": [link] if found else []})


#: Zaqar creates a trust for this subscriber.
TRUSTED = {"subscriber": "trust+http://a/"}


def subscription(**options: Json) -> Json:
    return {
        "id": ID,
        "age": 1,
        "source": "q",
        "subscriber": "http://a/",
        "ttl": 60,
        "options": options,
    }


@pytest.mark.parametrize(
    ("name", "properties", "places"),
    [
        (QUEUE, {"name": "a.b"}, ["name"]),
        (QUEUE, {"name": "a_b-1"}, []),
        (QUEUE, {"metadata": {"headgate_operation": 1}}, ["metadata.headgate_operation"]),
        (SUBSCRIPTION, {**SUBSCRIBER, "subscriber": "ftp://a"}, ["subscriber"]),
        (SUBSCRIPTION, {**SUBSCRIBER, "subscriber": "http"}, ["subscriber"]),
        (SUBSCRIPTION, {**SUBSCRIBER, "subscriber": "trust+https://a"}, []),
        (SUBSCRIPTION, {**SUBSCRIBER, "options": MARK}, ["options.headgate_operation"]),
        (SIGNED, {"queue": "a b"}, ["queue"]),
    ],
)
def test_what_zaqar_refuses_is_found_before(name: str, properties: Json, places: list[str]) -> None:
    found = findings_of(type_with(Answers(), name), properties)
    assert [one.place.rpartition("properties.")[2] for one in found] == places


async def test_a_queue_is_marked_and_shown_without_the_mark() -> None:
    web = Answers(answer(201))
    done = await outcome("create", web, QUEUE, {"name": "q", "metadata": {"a": 1}})
    assert isinstance(done, Done) and done.physical_id == "q"
    assert sent(web) == ["PUT queues/q"] and body(web, 0) == {"a": 1, **MARK}
    assert done.attributes["show"] == {"metadata": {"a": 1}}
    assert "Client-ID" in web.requests[0].headers


async def test_a_name_derived_from_the_stack_is_one_of_zaqar() -> None:
    web = Answers(answer(201))
    done = await outcome("create", web, QUEUE, {}, stack_name="a.b" * 30)
    assert isinstance(done, Done) and len(str(done.physical_id)) == 64
    assert findings_of(type_with(Answers(), QUEUE), {"name": done.physical_id}) == []


@pytest.mark.parametrize(
    ("metadata", "is_own"), [(MARK, True), ({}, False), ({"headgate_operation": "x"}, False)]
)
async def test_a_queue_that_exists_is_taken_only_with_the_mark(
    metadata: Json, is_own: bool
) -> None:
    """Zaqar answers 204 and changes nothing."""
    listing = listed("queues", {"name": "q", "metadata": metadata})
    web = Answers(answer(204), answer(200, metadata), *([listing] if not metadata else []))
    found = await outcome("create", web, QUEUE, {"name": "q"})
    assert isinstance(found, Done) is is_own
    if isinstance(found, Failed):
        assert found.physical_id is None and "already: q" in found.reason
        assert "lost" in found.data


async def test_a_repeated_create_finds_its_queue_on_a_later_page() -> None:
    first = listed("queues", {"name": "o", "metadata": {"headgate_operation": "other"}})
    second = listed("queues", {"name": "q", "metadata": MARK})
    web = Answers(first, second)
    found = await outcome("create", web, QUEUE, {"name": "q"}, repeated=True)
    assert isinstance(found, Done) and {one.method for one in web.requests} == {"GET"}


async def test_a_queue_of_the_list_only_exists() -> None:
    """Zaqar answers a read of any name with its defaults."""
    defaults = answer(200, {"_default_message_ttl": 3600})
    known = {"physical_id": "q", "previous": {}}
    gone = await outcome("check", Answers(defaults, listed("queues")), QUEUE, {}, **known)
    assert isinstance(gone, Failed) and "does not exist" in gone.reason
    there = listed("queues", {"name": "q", "metadata": {}})
    assert isinstance(await outcome("check", Answers(defaults, there), QUEUE, {}, **known), Done)


def test_a_patch_replaces_all_metadata() -> None:
    before = {"same": 1, "_default_message_ttl": 60, "a~/b": 1, "none": None}
    assert patch(before, {"same": 1, "a~/b": 2, "new": None}) == [
        {"op": "remove", "path": "/metadata/_default_message_ttl"},
        {"op": "remove", "path": "/metadata/none"},
        {"op": "add", "path": "/metadata/a~0~1b", "value": 2},
        {"op": "add", "path": "/metadata/new", "value": None},
    ]


async def test_an_update_keeps_the_mark() -> None:
    live = answer(200, {"a": 1, **MARK})
    web = Answers(live, answer(200, {}), answer(200, {"b": 1, **MARK}))
    known = {"physical_id": "q", "previous": {}, "changed": frozenset({"metadata"})}
    done = await outcome("update", web, QUEUE, {"metadata": {"b": 1}}, **known)
    assert isinstance(done, Done)
    assert {one["path"] for one in body(web, 1)} == {"/metadata/a", "/metadata/b"}
    content = web.requests[1].headers["Content-Type"]
    assert content == "application/openstack-messaging-v2.0-json-patch"


@pytest.mark.parametrize(("options", "is_own"), [(MARK, True), ({}, False)])
async def test_a_subscription_that_exists_is_not_taken(options: Json, is_own: bool) -> None:
    """Zaqar answers a create with the ID of the one that exists."""
    made = answer(201, {"subscription_id": ID})
    web = Answers(made, answer(200, subscription(**options)))
    found = await outcome("create", web, SUBSCRIPTION, SUBSCRIBER)
    assert isinstance(found, Done) is is_own
    assert body(web, 0)["options"] == MARK
    if isinstance(found, Failed):
        assert ID in found.reason and found.physical_id is None


async def test_a_subscription_with_a_trust_is_created_if_the_queue_lacks_the_subscriber() -> None:
    other = listed("subscriptions", subscription() | {"subscriber": "trust+http://b/"})
    made = answer(201, {"subscription_id": ID})
    live = answer(200, subscription(trust_id="t", **MARK) | TRUSTED)
    web = Answers(other, listed("subscriptions"), made, live)
    found = await outcome("create", web, SUBSCRIPTION, {**SUBSCRIBER, **TRUSTED})
    assert isinstance(found, Done)
    assert [one.partition(" ")[0] for one in sent(web)] == ["GET", "GET", "POST", "GET"]


async def test_no_trust_is_created_for_a_subscription_that_exists() -> None:
    web = Answers(listed("subscriptions", subscription(trust_id="t") | TRUSTED))
    found = await outcome("create", web, SUBSCRIPTION, {**SUBSCRIBER, **TRUSTED})
    assert isinstance(found, Failed) and ID in found.reason
    assert sent(web) == ["GET queues/q/subscriptions"]


async def test_a_duplicate_is_final() -> None:
    text = {"title": "Resource conflict", "description": "Such subscription already exists."}
    found = await outcome("create", Answers(answer(409, text)), SUBSCRIPTION, SUBSCRIBER)
    assert isinstance(found, Failed) and not found.retry and "already exists" in found.reason


async def test_a_repeated_create_finds_its_subscription() -> None:
    web = Answers(listed("subscriptions", subscription(), subscription(**MARK)))
    found = await outcome("create", web, SUBSCRIPTION, SUBSCRIBER, repeated=True)
    assert isinstance(found, Done) and found.physical_id == ID
    assert sent(web) == ["GET queues/q/subscriptions"]


async def test_an_update_sends_what_differs_and_keeps_what_zaqar_added() -> None:
    """Zaqar refuses the subscriber that the subscription has."""
    live = answer(200, subscription(a=1, trust_id="t", **MARK) | TRUSTED)
    web = Answers(live, answer(204), live)
    now = {**SUBSCRIBER, **TRUSTED, "options": {"a": 2}, "ttl": 60}
    known = {"physical_id": ID, "previous": now, "failed": True}
    done = await outcome("update", web, SUBSCRIPTION, now, **known)
    assert isinstance(done, Done)
    assert body(web, 1) == {"options": {"a": 2, "trust_id": "t", **MARK}}


@pytest.mark.parametrize("given", [{}, {"options": {"trust_id": "t"}}], ids=["zaqar", "template"])
async def test_a_delete_deletes_the_trust_of_zaqar(given: Json) -> None:
    live = answer(200, subscription(trust_id="t", **MARK) | TRUSTED)
    web = Answers(live, answer(204), answer(204))
    properties = {**SUBSCRIBER, **TRUSTED, **given}
    known = {"physical_id": ID, "previous": properties}
    assert isinstance(await outcome("delete", web, SUBSCRIPTION, properties, **known), Done)
    deleted = [one for one in sent(web) if one.startswith("DELETE")]
    trust = [] if given else ["DELETE OS-TRUST/trusts/t"]
    assert deleted == [f"DELETE queues/q/subscriptions/{ID}", *trust]


async def test_a_trust_of_a_subscriber_without_one_is_the_users_own() -> None:
    live = answer(200, subscription(trust_id="t", **MARK))
    known = {"physical_id": ID, "previous": SUBSCRIBER}
    web = Answers(live, answer(204), live)
    now = {**SUBSCRIBER, "options": {"a": 2}, "ttl": 60}
    await outcome("update", web, SUBSCRIPTION, now, **{**known, "previous": now}, failed=True)
    assert body(web, 1) == {"options": {"a": 2, **MARK}}
    web = Answers(live, answer(204))
    assert isinstance(await outcome("delete", web, SUBSCRIPTION, SUBSCRIBER, **known), Done)
    assert [one for one in sent(web) if "trusts" in one] == []


async def test_a_signature_ends_after_its_time() -> None:
    fields = {
        "signature": "s", "expires": "e", "paths": ["/v2/queues/q/messages"],
        "methods": ["GET"], "project": "p",
    }  # fmt: skip
    web = Answers(answer(200, fields))
    done = await outcome("create", web, SIGNED, {"queue": "q", "ttl": 90}, now=NOW)
    assert isinstance(done, Done)
    assert body(web, 0) == {"expires": "2026-01-01T00:01:30"}
    query = "signature=s&expires=e&paths=%2Fv2%2Fqueues%2Fq%2Fmessages&methods=GET"
    assert done.attributes["query_str"] == f"{query}&project_id=p&queue_name=q"


@pytest.mark.parametrize("name", [QUEUE, SUBSCRIPTION])
def test_only_the_owner_of_the_project_observes(name: str) -> None:
    """Zaqar shows objects to their project only, also to the operator's reader."""
    type_ = type_with(Answers(), name)

    def key(**more: Json) -> str | None:
        call: Call = a_call(type_, {} if name == QUEUE else SUBSCRIBER, physical_id="q", **more)
        return type_.observation_key(call)

    assert (key(), key(observation_credential="c")) == (None, name)


async def test_entries_of_lists_without_metadata_and_options_have_none() -> None:
    """They are not compared: an answer without them does not say that they are empty."""
    call: Call = a_call(type_with(Answers(), QUEUE), {}, credential="t")
    for name, path, entry in [
        (QUEUE, "/v2/queues", {"queues": [{"name": "q"}]}),
        (SUBSCRIPTION, "/v2/queues/q/subscriptions", {"subscriptions": [{"id": "s"}]}),
    ]:
        type_: Any = type_with(Answers(answer(200, entry)), name)
        session = type_.cloud.session(call)
        pages = type_.list_all(session) if name == QUEUE else type_._pages(session, path)
        ((found,),) = [page async for page in pages]
        assert found.keys().isdisjoint({"metadata", "options"})
