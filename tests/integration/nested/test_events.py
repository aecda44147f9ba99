"""Events of nested stacks: subscriptions, sinks and the stream."""

import asyncio
from collections import Counter
from collections.abc import Mapping

import orjson

from tests.integration.nested.test_lifecycle import FILES, nested
from tests.support.program import PATIENCE, Http, Json, Program, resource, template
from tests.support.receiver import Receiver, running_receiver, until

STACKS = {"stacks": ["tree-*"]}
DONE = "headgate.stack.create.completed"


async def streamed(http: Http, last: str, **query: str) -> list[Json]:
    """The events of the stream from its start up to this ID."""
    url = f"{http.url}/v1/{http.project}/events/stream"
    found: list[Json] = []
    async with (
        asyncio.timeout(PATIENCE),
        http.session.get(url, params={"last_event_id": "0-0", **query}) as answer,
    ):
        async for line in answer.content:
            if line.startswith(b"data: "):
                found.append(orjson.loads(line.removeprefix(b"data: ")))
                if found[-1]["id"] == last:
                    break
    return found


def paths(events: list[Json]) -> Counter[str]:
    """The number of starts or ends of each stack, by path."""
    return Counter(one.get("stackpath", "") for one in events if ".stack." in one["type"])


async def last_event_id(http: Program, stack: str) -> str:
    return str((await http.events(stack))[-1]["id"])


async def test_events_of_nested_stacks_are_delivered_with_those_of_the_root(
    running: Program, receiver: Receiver, other_receiver: Receiver
) -> None:
    """In subscriptions by stack name, in the sinks of the environment, once, and in the stream."""
    async with running_receiver() as sink:
        for target, more in ((receiver, {}), (other_receiver, {"nested": False})):
            body = {"target": target.url, **STACKS, **more}
            status, response = await running.call("POST", "/subscriptions", body)
            assert (status, response["nested"]) == (201, more.get("nested", True))
        sinks = [{"type": "webhook", "target": sink.url, "events": ["headgate.stack.*"]}]
        outer_id = await running.create(
            "tree-1", {"deep": nested("x", "outer.yaml"), "plain": resource()}, files=FILES,
            environment={"event_sinks": sinks},
        )  # fmt: skip
        await running.create("other", {"web": nested()}, files=FILES)
        assert await running.until_ended("other") == "CREATE_COMPLETE"
        assert await running.until_ended("tree-1") == "CREATE_COMPLETE"
        end = await last_event_id(running, "tree-1")
        for one in (receiver, other_receiver, sink):
            await until(lambda one=one: end in {event["id"] for event in one.events})
        all_levels = {"": 2, "deep": 2, "deep/inner": 2}
        await until(lambda: paths(receiver.events) == all_levels)
        await until(lambda: paths(sink.events) == all_levels)
        assert paths(other_receiver.events) == {"": 2}
        assert {one["rootstack"] for one in receiver.events} == {outer_id}
        assert {one["data"]["stack"]["root"]["name"] for one in receiver.events} == {"tree-1"}
        subjects = {one["subject"] for one in receiver.events if "subject" in one}
        assert {"plain", "deep", "deep/inner", "deep/inner/one"} <= subjects
        for listener in (receiver, sink):
            assert set(Counter(one["id"] for one in listener.events).values()) == {1}
        _, new_environment = await running.call("GET", "/subscriptions")
        named = [one["stack_id"] for one in new_environment["subscriptions"] if one["stack_id"]]
        assert named == [outer_id], "one for the tree, not one for each stack"

    inner = next(one["data"]["stack"]["id"] for one in receiver.events
                 if one.get("stackpath") == "deep/inner")  # fmt: skip
    middle = (await running.resources("tree-1"))["deep"]["physical_resource_id"]
    wanted: Mapping[str, tuple[str, Mapping[str, str], Mapping[str, int]]] = {
        "with nested stacks": ("tree-1", {}, all_levels),
        "alone": ("tree-1", {"nested": "false"}, {"": 2}),
        "a nested stack with its nested stacks": (middle, {}, {"deep": 2, "deep/inner": 2}),
        "a nested stack alone": (middle, {"nested": "false"}, {"deep": 2}),
        "the innermost": (inner, {}, {"deep/inner": 2}),
    }
    for what, (stack, query, expected) in wanted.items():
        last = await last_event_id(running, stack)
        events = await streamed(running, last, stack=stack, **query)
        assert paths(events) == expected, what
    last = (await running.events("tree-1"))[-2]["id"]  # the resource `deep` ends last
    events = await streamed(running, last, stack="tree-1", resources="deep/inner/*,plain,deep")
    assert {event["subject"] for event in events} == {
        "deep", "plain", "deep/inner/one", "deep/inner/two",
    }  # fmt: skip


async def test_sinks_get_nested_events_while_the_environment_has_them(
    running: Program, receiver: Receiver
) -> None:
    environment = {"event_sinks": [{"type": "webhook", "target": receiver.url,
                                    "events": ["headgate.stack.*"]}]}  # fmt: skip
    steps: list[tuple[Json, str]] = [({}, "x"), ({}, "y"), (environment, "z")]
    await running.create("s", {"web": nested("x")}, files=FILES, environment=environment)
    await running.until_ended("s")
    await until(lambda: paths(receiver.events) == {"": 2, "web": 2})
    for new_environment, value in steps:
        wanted = template({"web": nested(value)})
        await running.update("s", "PUT", template=wanted, files=FILES, environment=new_environment)
        assert await running.until_ended("s") == "UPDATE_COMPLETE"

    def traversals(path: str) -> list[int]:
        """The traversals with events of a path. Events of the update that removes the sink may
        arrive or not.
        """
        matching = [one for one in receiver.events if one.get("stackpath", "") == path]
        return [one["data"]["traversal"] for one in matching if one["data"]["traversal"] != 2]

    for path in ("", "web"):
        await until(lambda path=path: traversals(path)[-2:] == [4, 4])
        assert traversals(path) == [1, 1, 4, 4], "no event of the update without the sink"
