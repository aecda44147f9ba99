"""Lists of the Orchestration API: what the engine is asked, what is refused, how pages go on."""

from dataclasses import replace

import pytest

from engine.store.events import EventFilter
from hub.auth.anonymous import Anonymous
from hub.auth.credentials import RequestCredentials
from hub.auth.identity import Identity
from tests.unit.hub.api.orchestration_support import (
    EVENT_ID,
    OTHER_EVENT,
    STACK_ID,
    Client,
    StubEngine,
    client_of,
)

V = "/v1/demo"
S = f"{V}/stacks/web/{STACK_ID}"


async def test_a_full_page_of_stacks_links_to_the_next(client: Client) -> None:
    _, said, _ = await client.call("GET", f"{V}/stacks?limit=1&tags=a,b&with_count=True")
    following = f"{client.url}{V}/stacks?limit=1&tags=a,b&with_count=True&marker={STACK_ID}"
    assert said["links"] == [{"href": following, "rel": "next"}]
    assert said["count"] == 1
    ((_, wanted),) = client.engine.asked
    assert (wanted.limit, wanted.tags) == (1, ["a", "b"])
    _, said, _ = await client.call("GET", f"{V}/stacks?limit=2")
    assert "links" not in said


class OfOneProject(Anonymous):
    async def identify(self, presented: RequestCredentials, project: str) -> Identity:
        return replace(await super().identify(presented, project), everywhere=False)


async def test_stacks_of_every_project_are_not_for_somebody_of_one() -> None:
    engine = StubEngine()
    async with client_of(engine, OfOneProject()) as client:
        status, said, _ = await client.call("GET", f"{V}/stacks?global_tenant=True")
        assert (status, said["error"]["type"]) == (403, "Forbidden")
        assert engine.asked == []
        assert (await client.call("GET", f"{V}/stacks?global_tenant=False"))[0] == 200


async def test_an_id_that_is_none_finds_no_stack(client: Client) -> None:
    status, _, _ = await client.call("GET", f"{V}/stacks?id=zz")
    assert status == 200
    assert client.engine.asked[0][1].ids == []


@pytest.mark.parametrize(
    ("query", "status", "code"),
    [
        ("show_deleted=maybe", 400, "HTTPBadRequest"),
        ("limit=-1", 400, "HTTPBadRequest"),
        ("marker=x", 400, "HTTPBadRequest"),
        ("sort_keys=colour", 400, "HTTPBadRequest"),
        ("sort_dir=up", 400, "HTTPBadRequest"),
        ("name=%00", 400, "HTTPBadRequest"),
    ],
)
async def test_wrong_queries_are_refused(
    client: Client, query: str, status: int, code: str
) -> None:
    got, said, _ = await client.call("GET", f"{V}/stacks?{query}")
    assert (got, said["error"]["type"]) == (status, code)
    assert client.engine.asked == []


async def test_resources_are_filtered_and_unknown_filters_refused(client: Client) -> None:
    _, said, _ = await client.call("GET", f"{S}/resources?name=app&name=none&nested_depth=2")
    assert [one["resource_name"] for one in said["resources"]] == ["app"]
    for query in ("colour=red", "limit=1"):
        status, said, _ = await client.call("GET", f"{S}/resources?{query}")
        assert status == 400
        assert "Invalid filter parameters" in said["error"]["message"]


async def test_resources_are_listed_in_detail(client: Client) -> None:
    _, said, _ = await client.call("GET", f"{S}/resources?with_detail=True")
    attributes = {"value": "******", "size": 4}
    assert {one["resource_name"]: one["description"] for one in said["resources"]} == {
        "pw": "A word", "app": "",
    }  # fmt: skip
    assert [one["attributes"] for one in said["resources"]] == [attributes, attributes]
    _, said, _ = await client.call("GET", f"{S}/resources/pw?with_attr=size&with_attr=colour")
    assert said["resource"]["attributes"] == attributes | {"colour": None}
    assert said["resource"]["description"] == "A word"


async def test_a_page_after_the_last_event_is_empty(client: Client) -> None:
    for path in (f"{S}/events", f"{S}/resources/pw/events"):
        status, said, _ = await client.call("GET", f"{path}?marker={OTHER_EVENT}")
        assert (status, said) == (200, {"events": []})
    status, _, _ = await client.call("GET", f"{S}/resources/nope/events")
    assert status == 404


async def test_events_are_asked_for_as_the_query_says(client: Client) -> None:
    await client.call("GET", f"{S}/events?marker={EVENT_ID}&limit=5&sort_dir=desc")
    wanted = EventFilter(marker=EVENT_ID, limit=5, descending=True)
    assert client.engine.asked == [("events", wanted)]


async def test_events_below_a_stack_lead_to_its_root(client: Client) -> None:
    _, said, _ = await client.call("GET", f"{S}/events?resource_name=pw&limit=1&nested_depth=1")
    (only,) = said["events"]
    assert only["resource_name"] == "pw"
    assert only["links"][-1]["rel"] == "root_stack"


async def test_an_event_is_found_under_its_own_resource_only(client: Client) -> None:
    status, said, _ = await client.call("GET", f"{S}/resources/pw/events/{OTHER_EVENT}")
    assert (status, said["event"]["resource_type"]) == (200, "Test::Secret")
    assert said["event"]["resource_properties"] == {"length": 4}
    status, _, _ = await client.call("GET", f"{S}/resources/app/events/{OTHER_EVENT}")
    assert status == 404
