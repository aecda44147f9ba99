"""Lists of the Orchestration API: filters, errors and pages."""

from dataclasses import replace

import pytest

from engine.store.stacks.events import EventFilter
from hub.auth.identity import Anonymous, Identity
from hub.auth.request_credentials import RequestCredentials
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
    _, response, _ = await client.call("GET", f"{V}/stacks?limit=1&tags=a,b&with_count=True")
    following = f"{client.url}{V}/stacks?limit=1&tags=a,b&with_count=True&marker={STACK_ID}"
    assert response["links"] == [{"href": following, "rel": "next"}]
    assert response["count"] == 1
    ((_, wanted),) = client.engine.calls
    assert (wanted.limit, wanted.tags) == (1, ["a", "b"])
    _, response, _ = await client.call("GET", f"{V}/stacks?limit=2")
    assert "links" not in response


class OfOneProject(Anonymous):
    async def identify(self, credentials: RequestCredentials, project: str) -> Identity:
        return replace(await super().identify(credentials, project), everywhere=False)


async def test_listing_all_projects_requires_a_role_in_all() -> None:
    engine = StubEngine()
    async with client_of(engine, OfOneProject()) as client:
        status, response, _ = await client.call("GET", f"{V}/stacks?global_tenant=True")
        assert (status, response["error"]["type"]) == (403, "Forbidden")
        assert engine.calls == []
        assert (await client.call("GET", f"{V}/stacks?global_tenant=False"))[0] == 200


async def test_an_invalid_id_matches_no_stack(client: Client) -> None:
    status, _, _ = await client.call("GET", f"{V}/stacks?id=zz")
    assert status == 200
    assert client.engine.calls[0][1].ids == []


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
async def test_invalid_queries_are_refused(
    client: Client, query: str, status: int, code: str
) -> None:
    got, response, _ = await client.call("GET", f"{V}/stacks?{query}")
    assert (got, response["error"]["type"]) == (status, code)
    assert client.engine.calls == []


async def test_resources_are_filtered_and_unknown_filters_refused(client: Client) -> None:
    _, response, _ = await client.call("GET", f"{S}/resources?name=app&name=none&nested_depth=2")
    assert [one["resource_name"] for one in response["resources"]] == ["app"]
    assert not client.engine.values_were_read
    for query in ("colour=red", "limit=1"):
        status, response, _ = await client.call("GET", f"{S}/resources?{query}")
        assert status == 400
        assert "Invalid filter parameters" in response["error"]["message"]


async def test_resources_are_listed_in_detail(client: Client) -> None:
    _, response, _ = await client.call("GET", f"{S}/resources?with_detail=True")
    assert client.engine.values_were_read
    attributes = {"value": "******", "size": 4}
    assert {one["resource_name"]: one["description"] for one in response["resources"]} == {
        "pw": "A word", "app": "",
    }  # fmt: skip
    assert [one["attributes"] for one in response["resources"]] == [attributes, attributes]
    _, response, _ = await client.call("GET", f"{S}/resources/pw?with_attr=size&with_attr=colour")
    assert response["resource"]["attributes"] == attributes | {"colour": None}
    assert response["resource"]["description"] == "A word"


async def test_a_page_after_the_last_event_is_empty(client: Client) -> None:
    for path in (f"{S}/events", f"{S}/resources/pw/events"):
        status, response, _ = await client.call("GET", f"{path}?marker={OTHER_EVENT}")
        assert (status, response) == (200, {"events": []})
    status, _, _ = await client.call("GET", f"{S}/resources/nope/events")
    assert status == 404


async def test_the_query_selects_events(client: Client) -> None:
    await client.call("GET", f"{S}/events?marker={EVENT_ID}&limit=5&sort_dir=desc")
    wanted = EventFilter(marker=EVENT_ID, limit=5, descending=True)
    assert client.engine.calls == [("events", wanted)]


async def test_events_of_nested_stacks_link_to_the_root_stack(client: Client) -> None:
    _, response, _ = await client.call("GET", f"{S}/events?resource_name=pw&limit=1&nested_depth=1")
    (only,) = response["events"]
    assert only["resource_name"] == "pw"
    assert only["links"][-1]["rel"] == "root_stack"


async def test_an_event_is_found_under_its_own_resource_only(client: Client) -> None:
    status, response, _ = await client.call("GET", f"{S}/resources/pw/events/{OTHER_EVENT}")
    assert (status, response["event"]["resource_type"]) == (200, "Test::Secret")
    assert response["event"]["resource_properties"] == {"length": 4}
    status, _, _ = await client.call("GET", f"{S}/resources/app/events/{OTHER_EVENT}")
    assert status == 404
