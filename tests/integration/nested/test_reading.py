"""Nested stacks in the Orchestration API."""

from collections.abc import AsyncIterator
from typing import Any

import pytest
import pytest_asyncio

from tests.integration.nested.test_lives import FILES, nested
from tests.support.postgres import TestServer
from tests.support.program import Http, Json, Program, program, resource

#: One tree for all of them: they only read.
pytestmark = pytest.mark.asyncio(loop_scope="module")
OUTERMOST, MIDDLE, INNER = "s", "s/deep", "s/deep/inner"


@pytest_asyncio.fixture(scope="module", loop_scope="module")
async def tree(postgres: TestServer) -> AsyncIterator[Program]:
    """A stack `s` of three levels: deep/inner/one and two, beside plain."""
    async with postgres.new_database() as url, program(url) as made:
        await made.create("s", {"deep": nested("x", "outer.yaml"), "plain": resource()},
                          files=FILES)  # fmt: skip
        assert await made.until_ended("s") == "CREATE_COMPLETE"
        yield made


async def listed(http: Http, query: str) -> list[Json]:
    status, said = await http.call("GET", f"/stacks?{query}")
    assert status == 200, said
    return list(said["stacks"])


async def ids(http: Http) -> dict[str, str]:
    """The three stacks, root stack first."""
    found = [(await http.stack("s"))["id"]]
    for name in ("deep", "inner"):
        found.append((await http.resources(found[-1]))[name]["physical_resource_id"])
    return dict(zip((OUTERMOST, MIDDLE, INNER), found, strict=True))


def links(one: Json) -> dict[str, str]:
    return {link["rel"]: link["href"].rpartition("/")[2] for link in one["links"]}


async def test_lists_show_them_only_when_asked(tree: Program) -> None:
    known = await ids(tree)
    assert [one["id"] for one in await listed(tree, "")] == [known[OUTERMOST]]
    shown = {one["id"]: one for one in await listed(tree, "show_nested=true&with_count=true")}
    assert [(one, shown[one]["parent"]) for one in known.values()] == [
        (known[OUTERMOST], None),
        (known[MIDDLE], known[OUTERMOST]),
        (known[INNER], known[MIDDLE]),
    ]
    for query in (f"owner_id={known[MIDDLE]}", f"parent={known[MIDDLE]}&show_nested=true"):
        assert [one["id"] for one in await listed(tree, query)] == [known[INNER]]
    assert await listed(tree, f"owner_id={known[INNER]}") == []
    assert await listed(tree, f"id={known[INNER]}") == []
    for count, query in ((1, ""), (3, "&show_nested=true")):
        _, said = await tree.call("GET", f"/stacks?with_count=true{query}")
        assert said["count"] == count


async def test_one_inside_says_where_it_is(tree: Program) -> None:
    known = await ids(tree)
    stack = await tree.stack(known[INNER])
    assert (stack["parent"], stack["root"]) == (known[MIDDLE], known[OUTERMOST])
    assert stack["path"] == "deep/inner"
    outermost = await tree.stack("s")
    assert (outermost["parent"], outermost["root"], outermost["path"]) == (None, None, "")
    assert (await tree.stack(stack["stack_name"]))["id"] == known[INNER]


async def test_a_resource_leads_to_the_stack_inside_of_it(tree: Program) -> None:
    known = await ids(tree)
    shown = (await tree.at("GET", "s", "/resources/deep"))["resource"]
    assert links(shown) == {
        "self": "deep",
        "stack": known[OUTERMOST],
        "nested": known[MIDDLE],
    }
    assert "parent_resource" not in shown
    assert "nested" not in links((await tree.at("GET", "s", "/resources/plain"))["resource"])


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
async def test_resources_of_all_levels(tree: Program, query: str, names: list[str]) -> None:
    found = (await tree.at("GET", "s", f"/resources?{query}"))["resources"]
    said = ["/".join(filter(None, (one.get("parent_resource"), one["resource_name"])))
            for one in found]  # fmt: skip
    assert sorted(said) == sorted(names)
    depths = [name.count("/") + ("inner/" in name) for name in said]
    assert depths == sorted(depths), "the nearest come first"


async def test_resources_inside_are_shown_as_those_of_their_stack(tree: Program) -> None:
    known = await ids(tree)
    path = "/resources?nested_depth=2&with_detail=true"
    inside = (await tree.at("GET", "s", path))["resources"]
    own = (await tree.at("GET", known[INNER], "/resources?with_detail=true"))["resources"]
    one = next(one for one in inside if one["resource_name"] == "one")
    assert one["required_by"] == ["two"]
    assert one["attributes"]["output"] == "x"
    assert one | {"parent_resource": None} == own[0] | {"parent_resource": None}
    assert one["links"][0]["href"].endswith(f"{known[INNER]}/resources/one")


async def events(http: Http, query: str, name: str = "s") -> list[Json]:
    return list((await http.at("GET", name, f"/events?{query}"))["events"])


async def test_events_of_all_levels(tree: Program) -> None:
    known = await ids(tree)
    own = await events(tree, "")
    assert {links(one)["stack"] for one in own} == {known[OUTERMOST]}
    assert all("root_stack" not in links(one) for one in own)
    every = await events(tree, "nested_depth=2")
    assert {links(one)["stack"] for one in every} == set(known.values())
    assert {links(one)["root_stack"] for one in every} == {known[OUTERMOST]}
    one_level = await events(tree, "nested_depth=1")
    assert {links(one)["stack"] for one in one_level} == {known[OUTERMOST], known[MIDDLE]}
    for stack_id in known.values():
        alone = [one["id"] for one in await events(tree, "", stack_id)]
        assert [one["id"] for one in every if links(one)["stack"] == stack_id] == alone
    begun = [links(one)["stack"] for one in every if one["resource_status_reason"]
             == "Stack CREATE started"]  # fmt: skip
    assert begun == list(known.values()), "by time"
    assert every[-1]["id"] == own[-1]["id"]


@pytest.mark.parametrize("order", ["", "sort_dir=desc", "sort_keys=resource_type",
                                   "sort_keys=resource_type&sort_dir=desc"])  # fmt: skip
async def test_events_of_all_levels_come_in_pages(tree: Program, order: str) -> None:
    query = f"nested_depth=2&{order}"
    whole = [one["id"] for one in await events(tree, query)]
    assert len(whole) == len(set(whole)) > 15
    paged: list[str] = []
    while page := await events(
        tree, f"{query}&limit=4" + (f"&marker={paged[-1]}" if paged else "")
    ):
        paged += [one["id"] for one in page]
    assert paged == whole


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
