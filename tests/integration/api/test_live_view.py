"""A client that reads the graph once and updates it from the event stream."""

from collections.abc import Iterable

import pytest

from tests.integration.nested.test_events import streamed
from tests.integration.nested.test_lifecycle import FILES, nested
from tests.support.changes import put, thing
from tests.support.program import Json, Program, eventually

#: The state of a node after an event, by the last word of its type. The event of a hook after the
#: operation follows that of the operation's end.
STATES = {"started": "running", "completed": "done", "failed": "failed", "retrying": "parked"}
Nodes = dict[tuple[str, int, int], Json]


@pytest.fixture
def run(things_in_own_project: Program) -> Program:
    return things_in_own_project


async def graph_of(run: Program, name: str) -> Json:
    return await run.stack_request("GET", name, "/graph?nested=true")


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
    """The states of nodes after the events that are newer than their graphs."""
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
    """Events until the end of the latest action."""
    (last,) = [one["id"] for one in (await run.events(name))[-1:]]
    return await streamed(run, last)


async def answer_hook(run: Program, name: str, point: str) -> None:
    async def waits_at_point() -> Json:
        _, response = await run.call("GET", f"/hooks?state=waiting&stack={name}&point={point}")
        return response["hooks"]

    for hook in await eventually(waits_at_point):
        assert (await run.signal(hook))[0] == 200


async def test_every_event_names_its_node(run: Program) -> None:
    """Also in a replacement, where the old and the new resource have the same name."""
    at = {"at": "a", "on": ["pre-replace", "pre-delete", "post-delete"]}
    await run.create("s", {"a": thing()}, environment={"hooks": [at]})
    assert await run.until_ended("s") == "CREATE_COMPLETE"
    await put(run, "s", {"a": thing(place="there")}, environment={"hooks": [at]})
    for point in at["on"]:
        await answer_hook(run, "s", point)
    assert await run.until_ended("s") == "UPDATE_COMPLETE"
    found = await graph_of(run, "s")
    number, stack = found["traversal"]["number"], (await run.stack("s"))["id"]
    nodes = nodes_of(graphs_in(found, stack))
    assert {(one["resource_name"], one["direction"]) for one in nodes.values()} == {
        ("a", "forward"), ("a", "cleanup"),
    }  # fmt: skip
    streamed_events = [
        one for one in await all_events(run, "s")
        if one["type"].split(".")[1] in ("resource", "hook") and one["data"]["traversal"] == number
    ]  # fmt: skip
    assert len(streamed_events) > 8
    for event in streamed_events:
        node, data = nodes[node_of(event)], event["data"]
        assert event["subject"] == node["path"]
        if "operation" in data:
            assert data["operation"] in (node["operation"], "update"), event
            assert (data["operation"] == "delete") == (node["direction"] == "cleanup"), event
        else:
            assert ("delete" in data["hook"]["point"]) == (node["direction"] == "cleanup"), event
            assert (data["hook"]["traversal"], data["hook"]["node"]) == node_of(event)[1:]
    _, response = await run.call("GET", "/hooks?stack=s&state=answered")
    assert {(stack, one["traversal"], one["node"]) for one in response["hooks"]} <= nodes.keys()


async def test_a_graph_with_later_events_is_the_later_graph(run: Program) -> None:
    """Also for graphs in the middle of a traversal, and for nested stacks."""
    rules = [
        {"at": "a", "on": ["pre-create", "post-create"]},
        {"at": "web/two", "on": "pre-create"},
    ]
    resources = {"a": thing(), "b": thing(depends_on="a"), "web": nested(depends_on="b")}
    stack = await run.create("s", resources, files=FILES, environment={"hooks": rules})
    graphs: list[Json] = []
    for point in ("pre-create", "post-create", "pre-create"):
        await run.waiting_hooks("s")
        graphs.append(await graph_of(run, "s"))
        (parked,) = [
            node for node in nodes_of(graphs_in(graphs[-1], stack)).values()
            if node["state"] == "parked" and node["phase"] != "execute"
        ]  # fmt: skip
        assert parked["until"] is None and parked["ended_at"] is None
        await answer_hook(run, "s", point)
        graphs.append(await graph_of(run, "s"))
    assert await run.until_ended("s") == "CREATE_COMPLETE"
    last = await graph_of(run, "s")
    events = await all_events(run, "s")
    own = [one["sequence"] for one in events if one["data"]["stack"]["id"] == stack]
    assert last["sequence"] == own[-1] == len(own)
    ends = {key: node["state"] for key, node in nodes_of(graphs_in(last, stack)).items()}
    assert set(ends.values()) == {"done"} and len(ends) == 5
    assert [len(one["stacks"]) for one in (graphs[0], last)] == [0, 1]
    for one in graphs:
        folded = fold(graphs_in(one, stack), events)
        # A nested stack that was created later is not in the graph, and all its events are newer.
        assert folded == ends, one
    for node in nodes_of(graphs_in(last, stack)).values():
        assert node["started_at"] <= node["ended_at"] and node["until"] is None


async def test_a_graph_has_the_number_of_its_latest_event(run: Program) -> None:
    await run.create("s", {"a": thing()}, environment={"hooks": [{"at": "a", "on": "pre-create"}]})
    await run.waiting_hooks("s")
    found = await graph_of(run, "s")
    assert found["nodes"][0]["started_at"] is None
    streamed_events = await streamed(run, (await run.events("s"))[-1]["id"])
    assert [one["type"] for one in streamed_events][-1] == "headgate.hook.waiting"
    assert found["sequence"] == streamed_events[-1]["sequence"]
