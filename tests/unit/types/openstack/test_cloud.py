"""Requests to services: tokens, pages, pauses."""

from collections.abc import Sequence
from datetime import timedelta

import pytest

from engine.types.contract import Done, Failed, ResourceType, Wait
from engine.types.custom_constraints import ValidationContext
from engine.types.http_client import NoResponse, Response
from engine.types.openstack.cinder.volume import Volume
from engine.types.openstack.cloud import Cloud, Session, segment
from engine.types.openstack.cloud_operation import MAX_BUSY, poll
from engine.types.openstack.neutron import neutron_types
from engine.types.openstack.neutron.lookups import NETWORKS
from engine.types.openstack.nova.host_aggregate import HostAggregate
from engine.types.openstack.object_type import ABSENT
from engine.types.openstack.service_errors import CloudError
from engine.types.openstack.services import IDENTITY, NETWORK
from engine.words import Json
from tests.unit.types.calls import KEY, NOW, a_call, run
from tests.unit.types.openstack.clouds import Answers, Renewing, answer

GROUP = "11111111-1111-4111-8111-111111111111"
ROUTER, SUBNET = GROUP, "22222222-2222-4222-8222-222222222222"


def session(web: Answers, token: str = "old") -> Session:
    return Cloud(web, Renewing()).session(ValidationContext("p", NOW, token))


async def test_a_refused_token_is_replaced_once() -> None:
    web = Answers(answer(401), answer(200, {"network": {"id": "a"}}))
    found = await session(web).find(NETWORK, "/networks/a", "network", "read it")
    assert (found, web.tokens) == ({"id": "a"}, ["old", "new"])
    again = Answers(answer(401), answer(401))
    with pytest.raises(CloudError) as refused:
        await session(again).request(NETWORK, "GET", "/networks/a", "read it")
    assert (refused.value.status, again.tokens) == (401, ["old", "new"])


async def test_a_token_of_the_request_itself_is_not_replaced() -> None:
    web = Answers(answer(401))
    with pytest.raises(CloudError):
        await session(web, "own").request(NETWORK, "GET", "/networks/a", "read it")
    assert web.tokens == ["own"]


async def test_no_token_is_in_an_error() -> None:
    web = Answers(NoResponse("no connection", retry=True))
    with pytest.raises(CloudError) as failed:
        await session(web).request(NETWORK, "GET", "/networks/a", "read it")
    assert failed.value.retry
    assert str(failed.value) == "Neutron did not answer the request to read it: no connection"
    assert "old" not in repr(web.requests[0])


def page(ids: Sequence[str], link: str = "") -> Response:
    links = [{"rel": "next", "href": link}] if link else []
    return answer(200, {"ports": [{"id": one} for one in ids], "ports_links": links})


async def test_a_delete_of_what_does_not_exist_succeeds() -> None:
    await session(Answers(answer(404))).delete(NETWORK, "/networks/a", "delete it")
    with pytest.raises(CloudError):
        await session(Answers(answer(403))).delete(NETWORK, "/networks/a", "delete it")


def test_an_id_stays_one_part_of_a_path() -> None:
    assert segment("a/../b?c#d") == "a%2F..%2Fb%3Fc%23d"


@pytest.mark.parametrize("value", [None, "", ".", ".."])
def test_what_cannot_be_an_id_is_missing(value: Json) -> None:
    with pytest.raises(CloudError) as refused:
        segment(value)
    assert refused.value.is_missing


async def test_all_pages_are_read_from_the_same_server() -> None:
    web = Answers(page(["a"], "https://inside:9696/ports?marker=a&limit=500"), page(["b"]))
    found = await session(web).list(NETWORK, "/ports", "ports", {"name": "x"})
    assert [one["id"] for one in found] == ["a", "b"]
    urls = [one.url for one in web.requests]
    assert urls == [
        "http://network/ports?name=x&limit=500",
        "http://network/ports?marker=a&limit=500",
    ]


async def test_all_pages_of_keystone_are_read() -> None:
    """It refuses `limit` for some lists, and has its link to the next page at another place."""
    links = [{"next": "http://inside:5000/regions?marker=a&limit=1"}, {"next": None}]
    web = Answers(
        *(
            answer(200, {"regions": [{"id": name}], "links": one})
            for name, one in zip("ab", links, strict=True)
        )
    )
    found = await session(web).list(IDENTITY, "/regions", "regions")
    assert [one["id"] for one in found] == ["a", "b"]
    urls = [one.url for one in web.requests]
    assert urls == ["http://identity/regions", "http://identity/regions?marker=a&limit=1"]


async def test_a_next_page_of_another_server_is_refused() -> None:
    web = Answers(page(["a"], "https://elsewhere/other?marker=a"))
    with pytest.raises(CloudError, match="on another server"):
        await session(web).list(NETWORK, "/ports", "ports")


async def test_many_objects_are_read_by_few_requests() -> None:
    web = Answers(page(["0"]), page(["50"]))
    ids = [str(number) for number in range(51)]
    found = [one["id"] async for one in session(web).by_ids(NETWORK, "/ports", "ports", ids)]
    assert found == ["0", "50"]
    assert [one.url.count("id=") for one in web.requests] == [50, 1]


@pytest.mark.parametrize("body", [None, {"other": 1}, [1]])
async def test_an_answer_without_the_object_is_an_error(body: Json) -> None:
    with pytest.raises(CloudError, match="without `network`"):
        web = Answers(answer(200, body))
        await session(web).find(NETWORK, "/networks/a", "network", "read it")


def type_of(name: str, web: Answers) -> ResourceType:
    cloud = Cloud(web, Renewing())
    types = {one.schema.name: one for one in [*neutron_types(cloud), HostAggregate(cloud)]}
    return types[name]


async def delete(name: str, web: Answers, given: Json, data: Json) -> list[tuple[str, str]]:
    """Delete a resource without a physical ID. Returns the requests: method, end of the URL."""
    type_ = type_of(name, web)
    outcome = await run(type_, "delete", a_call(type_, given, credential="t", data=data))
    assert outcome == Done(None)
    return [(one.method, one.url.rpartition("/")[2]) for one in web.requests]


async def create(web: Answers, progress: Json = None, **more: Json) -> object:
    net = type_of("OS::Neutron::Net", web)
    return await run(net, "create", a_call(net, {}, credential="t", progress=progress, **more))


async def test_a_service_that_asks_for_a_pause_gets_it() -> None:
    outcome = await create(Answers(answer(429, {}, retry_after="7")))
    assert isinstance(outcome, Wait)
    assert outcome.until == NOW + timedelta(seconds=7)
    last = await create(Answers(answer(200, {"networks": []}), answer(503, {}, retry_after="7")),
                        {"busy": MAX_BUSY})  # fmt: skip
    assert isinstance(last, Failed) and last.retry


@pytest.mark.parametrize("more", [{}, {"read_at": NOW.isoformat()}])
def test_an_answer_begins_the_count_of_busy_answers_again(more: Json) -> None:
    """Also of an operation that waits for the observer."""
    call = a_call(type_of("OS::Neutron::Net", Answers()), {})
    assert "busy" not in poll(call, {"busy": 19, **more}, "not ready").progress


async def test_the_first_call_does_not_look_for_an_object() -> None:
    web = Answers(answer(201, {"network": {"id": "a", "status": "ACTIVE"}}))
    await create(web)
    assert [one.method for one in web.requests] == ["POST"]


MARK = {"name": f"s-r-{KEY.hex[:12]}"}


async def test_a_repeated_call_takes_the_object_of_an_earlier_one() -> None:
    listed = [{"id": "other", "name": "x"}, {"id": "a", "status": "ACTIVE", **MARK}]
    web = Answers(answer(200, {"networks": listed}))  # a service may ignore the filter
    outcome = await create(web, repeated=True)
    assert [one.method for one in web.requests] == ["GET"]
    assert getattr(outcome, "physical_id", None) == "a"


async def test_only_what_a_lost_create_has_created_is_deleted() -> None:
    failed = await create(Answers(NoResponse("no answer", retry=True)))
    assert isinstance(failed, Failed) and failed.physical_id is None
    assert failed.data == {"lost": {"fields": MARK, "query": MARK}}
    listed = [{"id": "other", "name": "x"}, {"id": "a", **MARK}, {"id": "more"}]
    web = Answers(answer(200, {"networks": listed}), answer(204))
    assert await delete("OS::Neutron::Net", web, {}, failed.data) == [
        ("GET", f"networks?name={MARK['name']}&limit=500"),
        ("DELETE", "a"),
    ]


async def test_a_delete_that_fails_still_knows_what_was_lost() -> None:
    lost = {"lost": {"fields": {"name": "n"}, "query": {"name": "n"}}}
    web = Answers(NoResponse("no answer", retry=True))
    net = type_of("OS::Neutron::Net", web)
    failed = await run(net, "delete", a_call(net, {}, credential="t", data=lost))
    assert isinstance(failed, Failed) and failed.data == lost


RULE = {"security_group": GROUP, "protocol": "tcp", "port_range_min": 1, "port_range_max": 1}
HAS = {"id": "theirs", "security_group_id": GROUP, "direction": "ingress", "ethertype": "IPv4",
       "protocol": "tcp", "port_range_min": 1, "port_range_max": 1}  # fmt: skip
RULES = "security_group_rules"


async def create_rule(web: Answers, progress: Json = None, **more: Json) -> object:
    rule = type_of("OS::Neutron::SecurityGroupRule", web)
    call = a_call(rule, RULE, credential="t", progress=progress, **more)
    return await run(rule, "create", call)


@pytest.mark.parametrize("repeated", [False, True])
async def test_an_object_without_a_mark_that_existed_before_is_not_taken(repeated: bool) -> None:
    failed = await create_rule(Answers(answer(200, {RULES: [HAS]})), repeated=repeated)
    assert isinstance(failed, Failed) and "theirs" in failed.reason
    assert (failed.physical_id, failed.data) == (None, {})


async def test_a_create_without_a_mark_saves_that_there_was_none() -> None:
    waits = await create_rule(Answers(answer(200, {RULES: []})))
    assert isinstance(waits, Wait) and waits.progress == {ABSENT: True}
    lost = await create_rule(Answers(NoResponse("no answer", retry=True)), waits.progress)
    assert isinstance(lost, Failed) and lost.data == {"lost": {"fields": {}, "query": {}}}
    web = Answers(answer(200, {RULES: [{**HAS, "id": "ours"}]}))
    again = await create_rule(web, waits.progress, repeated=True)
    assert getattr(again, "physical_id", None) == "ours"
    web = Answers(answer(200, {RULES: [{**HAS, "id": "ours"}]}), answer(204))
    deleted = await delete("OS::Neutron::SecurityGroupRule", web, RULE, lost.data)
    assert deleted[-1] == ("DELETE", "ours")


async def test_a_refused_create_without_a_mark_deletes_nothing() -> None:
    refused = await create_rule(Answers(answer(409, {})), {ABSENT: True})
    assert isinstance(refused, Failed) and refused.data == {}
    assert await delete("OS::Neutron::SecurityGroupRule", Answers(), RULE, {}) == []


async def test_a_router_interface_of_another_stack_is_neither_taken_nor_removed() -> None:
    port = {"id": "p", "device_owner": "network:router_interface"}
    given = {"router": ROUTER, "subnet": SUBNET}
    web = Answers(answer(200, {"ports": [port]}))
    interface = type_of("OS::Neutron::RouterInterface", web)
    failed = await run(interface, "create", a_call(interface, given, credential="t"))
    assert isinstance(failed, Failed) and "router interface already: p" in failed.reason
    assert await delete("OS::Neutron::RouterInterface", Answers(), given, failed.data) == []


async def test_a_lost_aggregate_is_found_by_its_name_alone() -> None:
    """Nova has no filter for the list of aggregates."""
    listed = [{"id": 1, "name": "theirs", "hosts": ["h"]}, {"id": 2, "name": "n", "hosts": []}]
    own = {"id": 2, "name": "n", "hosts": []}
    web = Answers(answer(200, {"aggregates": listed}), answer(200, {"aggregate": own}), answer(200))
    lost = {"lost": {"fields": {"name": "n"}, "query": {"name": "n"}}}
    sent = await delete("OS::Nova::HostAggregate", web, {"name": "n"}, lost)
    assert sent[1:] == [("GET", "2"), ("DELETE", "2")]


#: Documents that no service should send: (the response to a list of ports, what it lacks).
NO_LISTS: list[tuple[Json, str]] = [
    (None, "`ports`"),
    ({"ports": None}, "`ports`"),
    ({"ports": {"a": {}}}, "`ports`"),
    ({"ports": [5]}, "objects in `ports`"),
    ({"ports": [{"id": "a"}, None]}, "objects in `ports`"),
    ({"ports": [{"id": "a"}], "ports_links": 5}, "links in `ports_links`"),
    ({"ports": [{"id": "a"}], "ports_links": {"rel": "next"}}, "links in `ports_links`"),
    ({"ports": [{"id": "a"}], "ports_links": ["next"]}, "links in `ports_links`"),
    ({"ports": [{"id": "a"}], "ports_links": [{"rel": "next", "href": 5}]}, "a URL"),
    ({"ports": [{"id": "a"}], "ports_links": [{"rel": "next", "href": "http://["}]}, "a valid URL"),
    ({"ports": [{"id": "a"}], "next": {"href": "/ports"}}, "a URL"),
]


@pytest.mark.parametrize(("body", "missing"), NO_LISTS)
async def test_an_answer_without_a_list_is_an_error(body: Json, missing: str) -> None:
    with pytest.raises(CloudError, match="without") as failed:
        await session(Answers(answer(200, body))).list(NETWORK, "/ports", "ports")
    assert f"Neutron answered the request to list the ports without {missing}" in str(failed.value)


NO_OBJECTS: list[Json] = [None, 5, [], {}, {"network": None}, {"network": 5}, {"network": ["a"]}]
NO_IDS: list[Json] = [{}, {"id": None}, {"id": ""}, {"id": {}}, {"id": True}, {"name": "a"}]


@pytest.mark.parametrize("body", [*NO_OBJECTS, *({"network": one} for one in NO_IDS)])
async def test_a_create_without_an_object_is_repeated(body: Json) -> None:
    """The object may exist: the repeated call looks for it, or a delete."""
    outcome = await create(Answers(answer(201, body)))
    assert isinstance(outcome, Failed) and outcome.retry
    assert "Neutron answered" in outcome.reason and "without `" in outcome.reason
    assert outcome.data["lost"]


@pytest.mark.parametrize("body", NO_OBJECTS)
async def test_a_find_without_an_object_is_an_error(body: Json) -> None:
    with pytest.raises(CloudError, match="without `network`"):
        await session(Answers(answer(200, body))).find(NETWORK, "/networks/a", "network", "read it")
    types = {
        one.schema.name: one for one in neutron_types(Cloud(Answers(answer(200, body)), Renewing()))
    }
    net = types["OS::Neutron::Net"]
    outcome = await run(net, "check", a_call(net, {}, credential="t", physical_id="a"))
    assert isinstance(outcome, Failed) and "without `network`" in outcome.reason


@pytest.mark.parametrize("found", NO_IDS)
async def test_an_object_without_id_is_not_found_by_name(found: Json) -> None:
    web = Answers(answer(200, {"networks": [{**found, "name": "n"}]}))
    with pytest.raises(CloudError, match="without `id`"):
        await NETWORKS.find_id(session(web), "n")


async def test_ids_can_be_numbers() -> None:
    web = Answers(answer(200, {"networks": [{"id": 7, "name": "n"}]}))
    assert await NETWORKS.find_id(session(web), "n") == "7"


@pytest.mark.parametrize("body", [None, 5, {"volume": 5}, {"volume": {}}, {"volume": {"id": None}}])
async def test_a_create_of_other_services_without_an_object_is_repeated(body: Json) -> None:
    volume = Volume(Cloud(Answers(answer(202, body)), Renewing()))
    call = a_call(volume, {"size": 1}, credential="t")
    outcome = await run(volume, "create", call)
    assert isinstance(outcome, Failed) and outcome.retry
    assert "Cinder answered" in outcome.reason and "without `" in outcome.reason
