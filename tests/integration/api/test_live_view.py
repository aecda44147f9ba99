"""A view that is drawn from the graph once, and kept up to date by the event stream alone."""

from collections.abc import AsyncIterator, Iterable

import pytest

from tests.integration.nested.test_events import streamed
from tests.integration.nested.test_lives import FILES, nested
from tests.support.changes import put, thing
from tests.support.program import Json, Program, eventually, program
from tests.support.things import Thing, World

#: What an event says of its node, by the last word of its type. A hook that waits at a point behind
#: the operation is told of after that operation's end.
STATES = {"started": "running", "completed": "done", "failed": "failed", "retrying": "parked"}
Nodes = dict[tuple[str, int, int], Json]


@pytest.fixture
def world() -> World:
    return World()


@pytest.fixture
async def run(database_url: str, world: World) -> AsyncIterator[Program]:
    async with program(database_url, {"engine.poll": "1s"}, types=[Thing(world)]) as made:
        yield made


async def graph_of(run: Program, name: str) -> Json:
    return await run.at("GET", name, "/graph?nested=true")


def graphs_in(found: Json, stack_id: str) -> list[Json]:
    return [{"stack_id": stack_id, **found}, *found["stacks"]]


def nodes_of(graphs: Iterable[Json]) -> Nodes:
    return {
        (one["stack_id"], one["traversal"]["number"], node["id"]): node
        for one in graphs
        for node in one["nodes"]
    }


def node_of(event: Json) -> tuple[str, int, int]:
    data = event["data"]
    return data["stack"]["id"], data["traversal"], data["node"]


def fold(graphs: list[Json], events: list[Json]) -> dict[tuple[str, int, int], str]:
    """The states of nodes after events that are newer than the graphs that they were in."""
    seen = {one["stack_id"]: one["sequence"] for one in graphs}
    states = {key: str(node["state"]) for key, node in nodes_of(graphs).items()}
    for event in events:
        stack, moment = event["data"]["stack"]["id"], event["type"].rpartition(".")[2]
        if event["sequence"] <= seen.get(stack, 0) or event["data"].get("node") is None:
            continue
        if event["type"] == "headgate.hook.waiting":
            states[node_of(event)] = "parked"
        elif event["type"] == "headgate.hook.answered":
            behind = event["data"]["hook"]["point"].startswith("post-")
            states[node_of(event)] = "done" if behind else "ready"
        elif event["type"].startswith("headgate.resource."):
            states[node_of(event)] = STATES[moment]
    return states


async def all_events(run: Program, name: str) -> list[Json]:
    """Up to the end of what was last done to the stack."""
    (last,) = [one["id"] for one in (await run.events(name))[-1:]]
    return await streamed(run, last)


async def answered(run: Program, name: str, point: str) -> None:
    async def there() -> Json:
        _, said = await run.call("GET", f"/hooks?state=waiting&stack={name}&point={point}")
        return said["hooks"]

    for hook in await eventually(there):
        assert (await run.signal(hook))[0] == 200


async def test_every_event_says_which_node_it_is_about(run: Program) -> None:
    """Of a replacement, too, whose old thing goes under the same name as the new one comes."""
    at = {"at": "a", "on": ["pre-replace", "pre-delete", "post-delete"]}
    await run.create("s", {"a": thing()}, environment={"hooks": [at]})
    assert await run.until_ended("s") == "CREATE_COMPLETE"
    await put(run, "s", {"a": thing(place="there")}, environment={"hooks": [at]})
    for point in at["on"]:
        await answered(run, "s", point)
    assert await run.until_ended("s") == "UPDATE_COMPLETE"
    found = await graph_of(run, "s")
    number, stack = found["traversal"]["number"], (await run.stack("s"))["id"]
    nodes = nodes_of(graphs_in(found, stack))
    assert {(one["resource_name"], one["direction"]) for one in nodes.values()} == {
        ("a", "forward"), ("a", "cleanup"),
    }  # fmt: skip
    told = [
        one for one in await all_events(run, "s")
        if one["type"].split(".")[1] in ("resource", "hook") and one["data"]["traversal"] == number
    ]  # fmt: skip
    assert len(told) > 8
    for event in told:
        node, data = nodes[node_of(event)], event["data"]
        assert event["subject"] == node["path"]
        if "operation" in data:
            assert data["operation"] in (node["operation"], "update"), event
            assert (data["operation"] == "delete") == (node["direction"] == "cleanup"), event
        else:
            assert ("delete" in data["hook"]["point"]) == (node["direction"] == "cleanup"), event
            assert (data["hook"]["traversal"], data["hook"]["node"]) == node_of(event)[1:]
    _, said = await run.call("GET", "/hooks?stack=s&state=answered")
    assert {(stack, one["traversal"], one["node"]) for one in said["hooks"]} <= nodes.keys()


async def test_a_graph_and_the_events_after_it_are_the_graph_later(run: Program) -> None:
    """Whenever the graph was taken, also in the middle; and of stacks inside."""
    rules = [
        {"at": "a", "on": ["pre-create", "post-create"]},
        {"at": "web/two", "on": "pre-create"},
    ]
    resources = {"a": thing(), "b": thing(depends_on="a"), "web": nested(depends_on="b")}
    stack = await run.create("s", resources, files=FILES, environment={"hooks": rules})
    taken: list[Json] = []
    for point in ("pre-create", "post-create", "pre-create"):
        await run.waiting("s")
        taken.append(await graph_of(run, "s"))
        (parked,) = [
            node for node in nodes_of(graphs_in(taken[-1], stack)).values()
            if node["state"] == "parked" and node["phase"] != "act"
        ]  # fmt: skip
        assert parked["until"] is None and parked["ended_at"] is None
        await answered(run, "s", point)
        taken.append(await graph_of(run, "s"))
    assert await run.until_ended("s") == "CREATE_COMPLETE"
    last = await graph_of(run, "s")
    events = await all_events(run, "s")
    own = [one["sequence"] for one in events if one["data"]["stack"]["id"] == stack]
    assert last["sequence"] == own[-1] == len(own)
    ends = {key: node["state"] for key, node in nodes_of(graphs_in(last, stack)).items()}
    assert set(ends.values()) == {"done"} and len(ends) == 5
    assert [len(one["stacks"]) for one in (taken[0], last)] == [0, 1]
    for one in taken:
        folded = fold(graphs_in(one, stack), events)
        # A stack that came to be since is not in the graph, and all of its events are new.
        assert folded == ends, one
    for node in nodes_of(graphs_in(last, stack)).values():
        assert node["started_at"] <= node["ended_at"] and node["until"] is None


async def test_a_graph_says_which_event_it_is_as_of(run: Program) -> None:
    await run.create("s", {"a": thing()}, environment={"hooks": [{"at": "a", "on": "pre-create"}]})
    await run.waiting("s")
    found = await graph_of(run, "s")
    assert found["nodes"][0]["started_at"] is None
    told = await streamed(run, (await run.events("s"))[-1]["id"])
    assert [one["type"] for one in told][-1] == "headgate.hook.waiting"
    assert found["sequence"] == told[-1]["sequence"]
