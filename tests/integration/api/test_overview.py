"""The overview of a project."""

from collections.abc import AsyncIterator
from typing import Any

import pytest
import pytest_asyncio

from tests.integration.nested.test_lifecycle import FILES, nested
from tests.support.changes import put
from tests.support.postgres import TestServer
from tests.support.program import Json, Program, eventually, program, resource

#: One server for all tests but those that start their own.
pytestmark = pytest.mark.asyncio(loop_scope="module")
DRY: Json = {"on": ["pre-create"], "at": "dry", "dry": True}


@pytest_asyncio.fixture(scope="module", loop_scope="module")
async def run(postgres: TestServer) -> AsyncIterator[Program]:
    """`tree` waits in a nested stack; `plain` and `Late` are complete, `bad` has failed."""
    settings = {"hooks.rules": [DRY], "server.hidden_stack_tags": ["secret"]}
    async with postgres.new_database() as url, program(url, settings) as server:
        for name in ("bad", "secret", "plain"):
            fails = {"type": "OS::Heat::TestResource", "properties": {"fail": name == "bad"}}
            tags = {"plain": ["prod", "web"], "secret": ["secret"]}.get(name, ["web"])
            await server.create(name, {"a": fails, "b": resource(depends_on="a")}, tags=tags)
            await server.until_ended(name)
        breakpoints = {"hooks": [{"at": "web/two", "on": ["pre-create"]}]}
        inside = {"web": nested(), "dry": resource(), "last": resource(depends_on="web")}
        await server.create("tree", inside, files=FILES, environment=breakpoints)
        await server.waiting_hooks("tree")
        await server.create("Late", {"a": resource()})
        await server.until_ended("Late")

        async def dry_is_complete() -> bool:
            return (
                str((await server.resources("tree"))["dry"]["resource_status"]) == "CREATE_COMPLETE"
            )

        await eventually(dry_is_complete)
        yield server


async def overview(run: Program, query: str = "") -> Json:
    status, response = await run.call("GET", f"/overview?{query}")
    assert status == 200, response
    return response


async def names(run: Program, query: str = "") -> list[str]:
    return [one["name"] for one in (await overview(run, query))["stacks"]]


async def test_a_row_shows_the_activity_of_the_whole_tree(run: Program) -> None:
    lines = {one["name"]: one for one in (await overview(run))["stacks"]}
    tree, stack = lines["tree"], await run.stack("tree")
    assert (tree["id"], tree["owner"]) == (stack["id"], stack["stack_owner"])
    assert (tree["action"], tree["status"]) == ("CREATE", "IN_PROGRESS")
    # web, dry and web/one start at once; web/two waits at a hook, and last for it.
    assert tree["nodes"] == {"done": 2, "parked": 2, "waiting": 1}
    assert (tree["hooks_waiting"], tree["hooks_dry"], tree["resources"]) == (1, 1, 5)
    assert tree["updated_at"] is None and tree["traversal"]["ended_at"] is None
    graph = await run.stack_request("GET", "tree", "/graph")
    shown = {key: graph["traversal"][key] for key in tree["traversal"]}
    assert tree["traversal"] == shown
    bad = lines["bad"]
    assert (bad["status"], bad["nodes"]) == ("FAILED", {"failed": 1, "dropped": 1})
    assert bad["reason"] and bad["tags"] == ["web"] and bad["hooks_waiting"] == 0


@pytest.mark.parametrize(
    ("query", "found"),
    [
        ("", ["Late", "tree", "plain", "bad"]),
        ("search=LA", ["Late", "plain"]),
        ("search=%25", []),
        ("search=_", []),
        ("status=failed", ["bad"]),
        ("status=COMPLETE&status=IN_PROGRESS", ["Late", "tree", "plain"]),
        ("status=CREATE_COMPLETE,UPDATE_FAILED", ["Late", "plain"]),
        ("status=STOPPED", []),
        ("waiting=true", ["tree"]),
        ("tags=web", ["plain", "bad"]),
        ("tags=web,prod", ["plain"]),
        ("show_hidden=true&tags=secret", ["secret"]),
        ("stack=00000000-0000-0000-0000-000000000000", []),
    ],
)
async def test_filters_of_the_overview(run: Program, query: str, found: list[str]) -> None:
    assert await names(run, query) == found


async def test_filter_by_id_and_pages(run: Program) -> None:
    every = await overview(run)
    ids = [one["id"] for one in every["stacks"]]
    assert every["next"] is None and every["counts"] is None
    assert await names(run, f"stack={ids[1]}&stack={ids[3]}") == ["tree", "bad"]
    assert await names(run, f"search={ids[1][5:20].upper()}") == ["tree"]
    inside = (await run.resources("tree"))["web"]["physical_resource_id"]
    assert await names(run, f"stack={inside}") == [], "it is no line of its own"
    paged, marker = [], ""
    while True:
        page = await overview(run, f"limit=1{marker}")
        paged += [one["id"] for one in page["stacks"]]
        marker = f"&marker={page['next']}"
        if page["next"] is None:
            break
    assert paged == ids


async def test_the_number_of_stacks_in_each_status(run: Program) -> None:
    async def counted(query: str) -> Any:
        return (await overview(run, f"counts=true&{query}"))["counts"]

    whole = {"IN_PROGRESS": 1, "COMPLETE": 2, "FAILED": 1, "STOPPED": 0}
    assert await counted("") == {"statuses": whole, "waiting": 1}
    assert await counted("status=FAILED&limit=1") == {"statuses": whole, "waiting": 1}
    assert await counted("search=la") == {
        "statuses": {"IN_PROGRESS": 0, "COMPLETE": 2, "FAILED": 0, "STOPPED": 0}, "waiting": 0
    }  # fmt: skip


@pytest.mark.parametrize(
    ("query", "place"),
    [
        ("status=FINE", "status"), ("status=NAP_COMPLETE", "status"), ("stack=tree", "stack"),
        ("waiting=1", "waiting"), ("counts=", "counts"), ("limit=-1", "limit"),
        ("marker=2026-01-01T00:00:00_00000000-0000-0000-0000-000000000000", "marker"),
        ("marker=00000000-0000-0000-0000-000000000000", "marker"), ("marker=_", "marker"),
    ],
)  # fmt: skip
async def test_invalid_queries_of_the_overview_are_refused(
    run: Program, query: str, place: str
) -> None:
    status, response = await run.call("GET", f"/overview?{query}")
    assert status == 400 and response["error"]["findings"][0]["place"] == place


async def test_the_overview_has_stacks_of_its_project_only(run: Program) -> None:
    ids = ",".join(one["id"] for one in (await overview(run))["stacks"])
    other = Program(run.session, run.url, "q")
    for query in ("", f"stack={ids}", "waiting=true"):
        response = await overview(other, f"counts=true&{query}")
        assert response["stacks"] == [] and response["counts"]["waiting"] == 0


@pytest.mark.asyncio(loop_scope="function")
async def test_the_latest_change_is_first_and_deleted_stacks_are_absent(running: Program) -> None:
    for name in ("a", "b", "c"):
        await running.create(name, {"a": resource()})
        await running.until_ended(name)
    page = await overview(running, "limit=2")
    assert [one["name"] for one in page["stacks"]] == ["c", "b"]
    await put(running, "a", {"a": resource("y")})
    await put(running, "b", {"a": resource("y"), "b": resource()})
    for name in ("a", "b"):
        await running.until_ended(name)
    assert await names(running) == ["b", "a", "c"]
    (line,) = (await overview(running, "search=b&limit=1"))["stacks"]
    assert line["updated_at"] == line["traversal"]["started_at"] > line["created_at"]
    assert (line["traversal"]["number"], line["resources"]) == (2, 2)
    # The next page continues there even if the last stack of the page has moved.
    following = await overview(running, f"marker={page['next']}")
    assert [one["name"] for one in following["stacks"]] == []
    await running.stack_request("DELETE", "b")
    await running.until_ended(line["id"])
    assert await names(running) == ["a", "c"]
    assert await names(running, f"stack={line['id']}") == []
