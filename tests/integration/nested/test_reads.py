"""Nested stacks in the Orchestration API."""

from collections.abc import AsyncIterator
from types import SimpleNamespace
from typing import Any

import pytest
import pytest_asyncio
from heatclient.common.utils import EventLogContext  # type: ignore[import-untyped]

from tests.integration.nested.test_lifecycle import FILES, nested
from tests.support.postgres import TestServer
from tests.support.program import Http, Json, Program, program, resource

#: One tree for all of them: they only read.
pytestmark = pytest.mark.asyncio(loop_scope="module")
ROOT, MIDDLE, INNER = "s", "s/deep", "s/deep/inner"


@pytest_asyncio.fixture(scope="module", loop_scope="module")
async def tree(postgres: TestServer) -> AsyncIterator[Program]:
    """A stack `s` of three levels: deep/inner/one and two, beside plain."""
    async with postgres.new_database() as url, program(url) as run:
        await run.create("s", {"deep": nested("x", "outer.yaml"), "plain": resource()},
                          files=FILES)  # fmt: skip
        assert await run.until_ended("s") == "CREATE_COMPLETE"
        yield run


async def listed(http: Http, query: str) -> list[Json]:
    status, response = await http.call("GET", f"/stacks?{query}")
    assert status == 200, response
    return list(response["stacks"])


async def ids(http: Http) -> dict[str, str]:
    """The three stacks, root stack first."""
    found = [(await http.stack("s"))["id"]]
    for name in ("deep", "inner"):
        found.append((await http.resources(found[-1]))[name]["physical_resource_id"])
    return dict(zip((ROOT, MIDDLE, INNER), found, strict=True))


def links(one: Json) -> dict[str, str]:
    return {link["rel"]: link["href"].rpartition("/")[2] for link in one["links"]}


async def test_stack_lists_include_nested_stacks_on_request_only(tree: Program) -> None:
    stack_ids = await ids(tree)
    assert [one["id"] for one in await listed(tree, "")] == [stack_ids[ROOT]]
    shown = {one["id"]: one for one in await listed(tree, "show_nested=true&with_count=true")}
    assert [(one, shown[one]["parent"]) for one in stack_ids.values()] == [
        (stack_ids[ROOT], None),
        (stack_ids[MIDDLE], stack_ids[ROOT]),
        (stack_ids[INNER], stack_ids[MIDDLE]),
    ]
    for query in (f"owner_id={stack_ids[MIDDLE]}", f"parent={stack_ids[MIDDLE]}&show_nested=true"):
        assert [one["id"] for one in await listed(tree, query)] == [stack_ids[INNER]]
    assert await listed(tree, f"owner_id={stack_ids[INNER]}") == []
    assert await listed(tree, f"id={stack_ids[INNER]}") == []
    for count, query in ((1, ""), (3, "&show_nested=true")):
        _, response = await tree.call("GET", f"/stacks?with_count=true{query}")
        assert response["count"] == count


async def test_a_nested_stack_shows_parent_root_and_path(tree: Program) -> None:
    stack_ids = await ids(tree)
    stack = await tree.stack(stack_ids[INNER])
    assert (stack["parent"], stack["root"]) == (stack_ids[MIDDLE], stack_ids[ROOT])
    assert stack["path"] == "deep/inner"
    root = await tree.stack("s")
    assert (root["parent"], root["root"], root["path"]) == (None, None, "")
    assert (await tree.stack(stack["stack_name"]))["id"] == stack_ids[INNER]


async def test_a_resource_links_to_its_nested_stack(tree: Program) -> None:
    stack_ids = await ids(tree)
    response = (await tree.stack_request("GET", "s", "/resources/deep"))["resource"]
    assert links(response) == {
        "self": "deep",
        "stack": stack_ids[ROOT],
        "nested": stack_ids[MIDDLE],
    }
    assert "parent_resource" not in response
    assert "nested" not in links(
        (await tree.stack_request("GET", "s", "/resources/plain"))["resource"]
    )


@pytest.mark.parametrize(
    ("query", "names"),
    [
        ("", ["deep", "plain"]),
        ("nested_depth=1", ["deep", "plain", "deep/inner"]),
        ("nested_depth=5", ["deep", "plain", "deep/inner", "inner/one", "inner/two"]),
        ("nested_depth=5&name=two", ["inner/two"]),
        ("nested_depth=5&type=inner.yaml&type=outer.yaml", ["deep", "deep/inner"]),
        ("nested_depth=5&status=FAILED", []),
    ],
)
async def test_resources_of_all_levels_are_listed(
    tree: Program, query: str, names: list[str]
) -> None:
    response = (await tree.stack_request("GET", "s", f"/resources?{query}"))["resources"]
    paths = ["/".join(filter(None, (one.get("parent_resource"), one["resource_name"])))
            for one in response]  # fmt: skip
    assert sorted(paths) == sorted(names)
    depths = [name.count("/") + ("inner/" in name) for name in paths]
    assert depths == sorted(depths), "the nearest come first"


async def test_nested_resources_are_shown_as_in_their_own_stack(tree: Program) -> None:
    stack_ids = await ids(tree)
    path = "/resources?nested_depth=2&with_detail=true"
    nested_resources = (await tree.stack_request("GET", "s", path))["resources"]
    own_resources = (
        await tree.stack_request("GET", stack_ids[INNER], "/resources?with_detail=true")
    )["resources"]
    one = next(one for one in nested_resources if one["resource_name"] == "one")
    assert one["required_by"] == ["two"]
    assert one["attributes"]["output"] == "x"
    assert one["parent_resource"] == "inner"
    assert one == own_resources[0]
    shown = (await tree.stack_request("GET", stack_ids[MIDDLE], "/resources/inner"))["resource"]
    assert shown["parent_resource"] == "deep"
    assert one["links"][0]["href"].endswith(f"{stack_ids[INNER]}/resources/one")


async def events(http: Http, query: str, name: str = "s") -> list[Json]:
    return list((await http.stack_request("GET", name, f"/events?{query}"))["events"])


async def test_events_of_all_levels_are_listed(tree: Program) -> None:
    stack_ids = await ids(tree)
    own_resources = await events(tree, "")
    assert {links(one)["stack"] for one in own_resources} == {stack_ids[ROOT]}
    assert all("root_stack" not in links(one) for one in own_resources)
    all_events = await events(tree, "nested_depth=2")
    assert {links(one)["stack"] for one in all_events} == set(stack_ids.values())
    assert {links(one)["root_stack"] for one in all_events} == {stack_ids[ROOT]}
    one_level = await events(tree, "nested_depth=1")
    assert {links(one)["stack"] for one in one_level} == {stack_ids[ROOT], stack_ids[MIDDLE]}
    for stack_id in stack_ids.values():
        alone = [one["id"] for one in await events(tree, "", stack_id)]
        assert [one["id"] for one in all_events if links(one)["stack"] == stack_id] == alone
    started = [links(one)["stack"] for one in all_events if one["resource_status_reason"]
             == "Stack CREATE started"]  # fmt: skip
    assert started == list(stack_ids.values()), "by time"
    assert all_events[-1]["id"] == own_resources[-1]["id"]


@pytest.mark.parametrize("order", ["", "sort_dir=desc", "sort_keys=resource_type",
                                   "sort_keys=resource_type&sort_dir=desc"])  # fmt: skip
async def test_events_of_all_levels_have_pages(tree: Program, order: str) -> None:
    query = f"nested_depth=2&{order}"
    unpaged = [one["id"] for one in await events(tree, query)]
    assert len(unpaged) == len(set(unpaged)) > 15
    paged: list[str] = []
    while page := await events(
        tree, f"{query}&limit=4" + (f"&marker={paged[-1]}" if paged else "")
    ):
        paged += [one["id"] for one in page]
    assert paged == unpaged


FILTERS: dict[str, Any] = {
    "resource_name=one": {"one"},
    "resource_type=inner.yaml": {"inner"},
    "resource_action=DELETE": set(),
    "resource_status=CREATE_COMPLETE&resource_name=two": {"two"},
}


@pytest.mark.parametrize("query", FILTERS)
async def test_events_of_all_levels_are_filtered(tree: Program, query: str) -> None:
    found = await events(tree, f"nested_depth=2&{query}")
    assert {one["resource_name"] for one in found} == FILTERS[query]


async def test_an_event_before_the_physical_id_has_the_name_of_the_nested_stack(
    tree: Program,
) -> None:
    """Heat's client finds the path of a nested resource by that name."""
    stack_ids = await ids(tree)
    middle, inner = [(await tree.stack(stack_ids[name]))["stack_name"] for name in (MIDDLE, INNER)]
    started = {
        one["resource_name"]: one
        for one in await events(tree, "nested_depth=2")
        if one["resource_status"] == "CREATE_IN_PROGRESS"
    }
    assert started["deep"]["physical_resource_id"] == middle
    assert started["inner"]["physical_resource_id"] == inner
    created = {
        one["resource_name"]: one["physical_resource_id"]
        for one in await events(tree, "nested_depth=2")
        if one["resource_status"] == "CREATE_COMPLETE"
    }
    assert started["one"]["physical_resource_id"].startswith(f"{inner}-one-")
    assert started["one"]["physical_resource_id"] == created["one"]
    (own, *_) = await events(tree, "resource_name=deep")
    assert own["physical_resource_id"] == middle
    path = f"/resources/deep/events/{own['id']}"
    shown = (await tree.stack_request("GET", "s", path))["event"]
    assert shown["physical_resource_id"] == middle
    context = EventLogContext()
    paths = [context.build_resource_name(SimpleNamespace(**one))
             for one in await events(tree, "nested_depth=2")]  # fmt: skip
    assert {"s", "s.deep", "s.deep.inner", "s.deep.inner.one", "s.plain"} <= {*paths}
    assert not {"one", "s.one", "inner"} & {*paths}
    ended = await events(tree, "resource_name=deep&resource_status=CREATE_COMPLETE")
    assert [one["physical_resource_id"] for one in ended] == [stack_ids[MIDDLE]]
