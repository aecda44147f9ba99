"""The history of a stack."""

from collections.abc import AsyncIterator
from uuid import uuid4

import pytest
import pytest_asyncio

from tests.integration.nested.test_events import streamed
from tests.integration.nested.test_lifecycle import FILES, nested
from tests.support.changes import put, until_deleted
from tests.support.full_stack import until_delivered
from tests.support.postgres import TestServer
from tests.support.program import Json, Program, program, resource
from tests.support.receiver import running_receiver

#: Two stacks that all tests read.
pytestmark = pytest.mark.asyncio(loop_scope="module")
HOOKS: Json = {"hooks": [{"at": "a", "on": ["pre-create"]}]}


@pytest_asyncio.fixture(scope="module", loop_scope="module")
async def run(postgres: TestServer) -> AsyncIterator[Program]:
    """`s` was created with a hook and a notification, updated and checked, and has a nested stack;
    `other` is a second stack.
    """
    async with (
        postgres.new_database() as url,
        program(url) as server,
        running_receiver() as receiver,
    ):
        await server.call("POST", "/subscriptions", {"target": receiver.url, "stacks": ["s"]})
        resources = {"a": resource(), "web": nested(depends_on="a")}
        key = {"key": {"type": "string", "hidden": True}}
        await server.create("s", resources, files=FILES, environment=HOOKS, parameters={"key": "hush-7"},
                          template={"heat_template_version": "2018-08-31", "parameters": key,
                                    "resources": resources | {"b": resource({"get_param": "key"})}})  # fmt: skip
        (hook,) = await server.waiting_hooks("s")
        await until_delivered(server)  # the notification is delivered before the answer
        await server.signal(hook)
        assert await server.until_ended("s") == "CREATE_COMPLETE"
        await server.create("other", {"a": resource()})
        assert await server.until_ended("other") == "CREATE_COMPLETE"
        await put(server, "s", {"a": resource("y"), "web": nested("y")}, files=FILES)
        assert await server.until_ended("s") == "UPDATE_COMPLETE"
        await server.act("s", "check")
        assert await server.until_ended("s") == "CHECK_COMPLETE"
        await until_delivered(server)
        yield server


async def history(run: Program, query: str = "", name: str = "s") -> list[Json]:
    response = await run.stack_request("GET", name, f"/history?{query}")
    assert response["next"] is None
    return list(response["events"])


async def by_stream(run: Program, **query: str) -> list[Json]:
    last = (await run.call("GET", "/stacks/s"))[1]["stack"]["id"]
    end = (await history(run))[-1]["id"]
    return await streamed(run, end, stack=last, **query)


def started(events: list[Json]) -> list[str]:
    return [
        one["type"]
        for one in events
        if one["type"].endswith("started") and ".stack." in one["type"]
    ]


async def test_the_history_has_the_events_of_the_stream(run: Program) -> None:
    own = await history(run)
    stack = (await run.stack("s"))["id"]
    streamed = await by_stream(run)
    assert own == [one for one in streamed if one["data"]["stack"]["id"] == stack]
    assert [one["sequence"] for one in own] == list(range(1, len(own) + 1))
    assert {one["type"].split(".")[1] for one in own} == {"stack", "resource", "hook", "delivery"}
    assert "hush-7" not in str(own)
    every = await history(run, "nested=true")
    assert len(every) > len(own) + 10
    key = ("source", "sequence")
    assert {tuple(one[k] for k in key) for one in every} == {
        tuple(one[k] for k in key) for one in streamed
    }


async def test_the_history_with_nested_stacks_is_ordered_by_time(run: Program) -> None:
    every = await history(run, "nested=true")
    assert [one["time"] for one in every] == sorted(one["time"] for one in every)
    for stack in {one["source"] for one in every}:
        numbers = [one["sequence"] for one in every if one["source"] == stack]
        assert numbers == list(range(1, len(numbers) + 1))
    assert started(every)[:2] == ["headgate.stack.create.started"] * 2
    assert every[0]["data"]["stack"]["path"] == "" and every[-1]["type"].endswith("check.completed")


async def test_the_history_of_one_traversal(run: Program) -> None:
    unpaged = await history(run)
    parts = [await history(run, f"traversal={number}") for number in (1, 2, 3)]
    assert [one for part in parts for one in part] == unpaged
    for part, action in zip(parts, ("create", "update", "check"), strict=True):
        assert part[0]["type"] == f"headgate.stack.{action}.started"
        assert part[-1]["type"] == f"headgate.stack.{action}.completed"
        assert len(started(part)) == 1
    inside = [await history(run, f"traversal={number}&nested=true") for number in (1, 2, 3)]
    assert [one for part in inside for one in part] == await history(run, "nested=true")
    for part, action in zip(inside, ("create", "update", "check"), strict=True):
        assert started(part) == [f"headgate.stack.{action}.started"] * 2


@pytest.mark.parametrize("query", ["", "nested=true", "traversal=2&nested=true", "traversal=2"])
async def test_pages_of_the_history(run: Program, query: str) -> None:
    unpaged, paged, after = await history(run, query), [], 0
    while True:
        page = await run.stack_request("GET", "s", f"/history?{query}&limit=3&after={after}")
        paged += page["events"]
        if page["next"] is None:
            break
        assert len(page["events"]) == 3
        after = page["next"]
    assert paged == unpaged
    if "nested" not in query:
        assert await history(run, f"{query}&after={unpaged[4]['sequence']}") == unpaged[5:]
        assert (await run.stack_request("GET", "s", f"/history?{query}&limit=1"))[
            "next"
        ] == unpaged[0]["sequence"]


async def test_unknown_traversals_and_invalid_queries(run: Program) -> None:
    stack = await run.stack("s")
    at = f"/stacks/s/{stack['id']}"
    for number in (4, 999_999_999):
        status, response = await run.call("GET", f"{at}/history?traversal={number}")
        assert (status, response["error"]["type"]) == (404, "TraversalNotFound")
        assert "/versions lists" in str(response)
    assert (await run.call("GET", f"/stacks/s/{uuid4()}/history"))[0] == 404
    other = Program(run.session, run.url, "q")
    assert (await other.call("GET", f"{at}/history"))[0] == 404
    for query in ("traversal=x", "traversal=0", "after=-1", "limit=x", "nested=1"):
        status, response = await run.call("GET", f"{at}/history?{query}")
        assert status == 400 and response["error"]["findings"][0]["place"] == query.split("=")[0]
    assert await history(run, f"after={10**8}") == []


@pytest.mark.asyncio(loop_scope="function")
async def test_the_history_of_a_deleted_stack_and_after_a_purge(
    running: Program,
) -> None:
    stack = await running.create("s", {"web": nested()}, files=FILES)
    await running.until_ended("s")
    for value in ("y", "z"):
        await put(running, "s", {"web": nested(value)}, files=FILES)
        await running.until_ended("s")
    unpaged = await history(running)
    async with running.database.connection() as conn:
        second = next(one for one in unpaged if one["type"].endswith("update.started"))["sequence"]
        await conn.execute(
            "delete from event where stack_id = $1 and sequence <= $2", stack, second
        )
    assert await history(running, "traversal=1") == []
    assert (
        await history(running, "traversal=2") + await history(running, "traversal=3")
        == unpaged[second:]
    )
    async with running.database.connection() as conn:
        await conn.execute(
            "delete from event where stack_id = $1 and sequence < $2", stack, len(unpaged)
        )
    assert await history(running, "traversal=2") == []
    assert await history(running, "traversal=3") == unpaged[-1:]
    await running.stack_request("DELETE", "s")
    await until_deleted(running, "s")
    status, response = await running.call(
        "GET", f"/stacks/s/{stack}/history?traversal=4&nested=true"
    )
    assert status == 200 and response["events"][-1]["type"] == "headgate.stack.delete.completed"
    assert len(started(response["events"])) == 2
