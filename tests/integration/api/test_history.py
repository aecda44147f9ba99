"""All that happened to a stack, for whoever comes later than the stream."""

from collections.abc import AsyncIterator
from uuid import uuid4

import pytest
import pytest_asyncio

from tests.integration.nested.test_events import streamed
from tests.integration.nested.test_lives import FILES, nested
from tests.support.changes import gone, put
from tests.support.postgres import TestServer
from tests.support.program import Json, Program, program, resource
from tests.support.receiver import receiving
from tests.support.whole_life import settled

#: Two stacks for all of them: they only read.
pytestmark = pytest.mark.asyncio(loop_scope="module")
HELD: Json = {"hooks": [{"at": "a", "on": ["pre-create"]}]}


@pytest_asyncio.fixture(scope="module", loop_scope="module")
async def run(postgres: TestServer) -> AsyncIterator[Program]:
    """`s` created past a hook that somebody was told of, updated and checked, with one inside;
    `other` beside it."""
    async with postgres.new_database() as url, program(url) as made, receiving() as receiver:
        await made.call("POST", "/subscriptions", {"target": receiver.url, "stacks": ["s"]})
        resources = {"a": resource(), "web": nested(depends_on="a")}
        key = {"key": {"type": "string", "hidden": True}}
        await made.create("s", resources, files=FILES, environment=HELD, parameters={"key": "hush-7"},
                          template={"heat_template_version": "2018-08-31", "parameters": key,
                                    "resources": resources | {"b": resource({"get_param": "key"})}})  # fmt: skip
        (hook,) = await made.waiting("s")
        await settled(made)  # the notice has arrived, which is told before the answer
        await made.signal(hook)
        assert await made.until_ended("s") == "CREATE_COMPLETE"
        await made.create("other", {"a": resource()})
        assert await made.until_ended("other") == "CREATE_COMPLETE"
        await put(made, "s", {"a": resource("y"), "web": nested("y")}, files=FILES)
        assert await made.until_ended("s") == "UPDATE_COMPLETE"
        await made.act("s", "check")
        assert await made.until_ended("s") == "CHECK_COMPLETE"
        await settled(made)
        yield made


async def history(run: Program, query: str = "", name: str = "s") -> list[Json]:
    said = await run.at("GET", name, f"/history?{query}")
    assert said["next"] is None
    return list(said["events"])


async def by_stream(run: Program, **query: str) -> list[Json]:
    last = (await run.call("GET", "/stacks/s"))[1]["stack"]["id"]
    end = (await history(run))[-1]["id"]
    return await streamed(run, end, stack=last, **query)


def begun(events: list[Json]) -> list[str]:
    return [
        one["type"]
        for one in events
        if one["type"].endswith("started") and ".stack." in one["type"]
    ]


async def test_it_is_what_the_stream_told(run: Program) -> None:
    own = await history(run)
    stack = (await run.stack("s"))["id"]
    told = await by_stream(run)
    assert own == [one for one in told if one["data"]["stack"]["id"] == stack]
    assert [one["sequence"] for one in own] == list(range(1, len(own) + 1))
    assert {one["type"].split(".")[1] for one in own} == {"stack", "resource", "hook", "delivery"}
    assert "hush-7" not in str(own)
    every = await history(run, "nested=true")
    assert len(every) > len(own) + 10
    key = ("source", "sequence")
    assert {tuple(one[k] for k in key) for one in every} == {
        tuple(one[k] for k in key) for one in told
    }


async def test_with_what_happened_inside_by_time(run: Program) -> None:
    every = await history(run, "nested=true")
    assert [one["time"] for one in every] == sorted(one["time"] for one in every)
    for stack in {one["source"] for one in every}:
        numbers = [one["sequence"] for one in every if one["source"] == stack]
        assert numbers == list(range(1, len(numbers) + 1))
    assert begun(every)[:2] == ["headgate.stack.create.started"] * 2
    assert every[0]["data"]["stack"]["path"] == "" and every[-1]["type"].endswith("check.completed")


async def test_of_one_traversal(run: Program) -> None:
    whole = await history(run)
    parts = [await history(run, f"traversal={number}") for number in (1, 2, 3)]
    assert [one for part in parts for one in part] == whole
    for part, action in zip(parts, ("create", "update", "check"), strict=True):
        assert part[0]["type"] == f"headgate.stack.{action}.started"
        assert part[-1]["type"] == f"headgate.stack.{action}.completed"
        assert len(begun(part)) == 1
    inside = [await history(run, f"traversal={number}&nested=true") for number in (1, 2, 3)]
    assert [one for part in inside for one in part] == await history(run, "nested=true")
    for part, action in zip(inside, ("create", "update", "check"), strict=True):
        assert begun(part) == [f"headgate.stack.{action}.started"] * 2


@pytest.mark.parametrize("query", ["", "nested=true", "traversal=2&nested=true", "traversal=2"])
async def test_in_pages(run: Program, query: str) -> None:
    whole, paged, after = await history(run, query), [], 0
    while True:
        page = await run.at("GET", "s", f"/history?{query}&limit=3&after={after}")
        paged += page["events"]
        if page["next"] is None:
            break
        assert len(page["events"]) == 3
        after = page["next"]
    assert paged == whole
    if "nested" not in query:
        assert await history(run, f"{query}&after={whole[4]['sequence']}") == whole[5:]
        assert (await run.at("GET", "s", f"/history?{query}&limit=1"))["next"] == whole[0][
            "sequence"
        ]


async def test_what_is_not_there(run: Program) -> None:
    stack = await run.stack("s")
    at = f"/stacks/s/{stack['id']}"
    for number in (0, 4, 999_999_999):
        status, said = await run.call("GET", f"{at}/history?traversal={number}")
        assert (status, said["error"]["type"]) == (404, "TraversalNotFound")
        assert "/versions lists" in str(said)
    assert (await run.call("GET", f"/stacks/s/{uuid4()}/history"))[0] == 404
    other = Program(run.session, run.url, "q")
    assert (await other.call("GET", f"{at}/history"))[0] == 404
    for query in ("traversal=x", "after=-1", "limit=x", "nested=1"):
        status, said = await run.call("GET", f"{at}/history?{query}")
        assert status == 400 and said["error"]["findings"][0]["place"] == query.split("=")[0]
    assert await history(run, f"after={10**8}") == []


@pytest.mark.asyncio(loop_scope="function")
async def test_of_a_stack_that_is_gone_and_of_what_is_left_when_the_old_goes(
    running: Program,
) -> None:
    stack = await running.create("s", {"web": nested()}, files=FILES)
    await running.until_ended("s")
    for value in ("y", "z"):
        await put(running, "s", {"web": nested(value)}, files=FILES)
        await running.until_ended("s")
    whole = await history(running)
    async with running.database.connection() as conn:
        second = next(one for one in whole if one["type"].endswith("update.started"))["sequence"]
        await conn.execute(
            "delete from event where stack_id = $1 and sequence <= $2", stack, second
        )
    assert await history(running, "traversal=1") == []
    assert (
        await history(running, "traversal=2") + await history(running, "traversal=3")
        == whole[second:]
    )
    async with running.database.connection() as conn:
        await conn.execute(
            "delete from event where stack_id = $1 and sequence < $2", stack, len(whole)
        )
    assert await history(running, "traversal=2") == []
    assert await history(running, "traversal=3") == whole[-1:]
    await running.at("DELETE", "s")
    await gone(running, "s")
    status, said = await running.call("GET", f"/stacks/s/{stack}/history?traversal=4&nested=true")
    assert status == 200 and said["events"][-1]["type"] == "headgate.stack.delete.completed"
    assert len(begun(said["events"])) == 2
