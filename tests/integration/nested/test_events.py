"""Events of nested stacks: subscriptions, sinks and the stream."""

import asyncio
from collections import Counter
from collections.abc import Mapping

import orjson

from tests.integration.nested.test_lives import FILES, nested
from tests.support.program import PATIENCE, Http, Json, Program, resource, template
from tests.support.receiver import Receiver, receiving, until

OUTERMOST = {"stacks": ["tree-*"]}
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


async def end_of(http: Program, stack: str) -> str:
    return str((await http.events(stack))[-1]["id"])


async def test_they_come_along_with_those_of_the_outermost(
    running: Program, receiver: Receiver, other_receiver: Receiver
) -> None:
    """To subscriptions by name, to the sinks of its environment, once, and to the stream."""
    async with receiving() as sink:
        for target, more in ((receiver, {}), (other_receiver, {"nested": False})):
            body = {"target": target.url, **OUTERMOST, **more}
            status, made = await running.call("POST", "/subscriptions", body)
            assert (status, made["nested"]) == (201, more.get("nested", True))
        sinks = [{"type": "webhook", "target": sink.url, "events": ["headgate.stack.*"]}]
        outer_id = await running.create(
            "tree-1", {"deep": nested("x", "outer.yaml"), "plain": resource()}, files=FILES,
            environment={"event_sinks": sinks},
        )  # fmt: skip
        await running.create("other", {"web": nested()}, files=FILES)
        assert await running.until_ended("other") == "CREATE_COMPLETE"
        assert await running.until_ended("tree-1") == "CREATE_COMPLETE"
        end = await end_of(running, "tree-1")
        for one in (receiver, other_receiver, sink):
            await until(lambda one=one: end in {event["id"] for event in one.events})
        whole = {"": 2, "deep": 2, "deep/inner": 2}
        await until(lambda: paths(receiver.events) == whole)
        await until(lambda: paths(sink.events) == whole)
        assert paths(other_receiver.events) == {"": 2}
        assert {one["rootstack"] for one in receiver.events} == {outer_id}
        assert {one["data"]["stack"]["root"]["name"] for one in receiver.events} == {"tree-1"}
        subjects = {one["subject"] for one in receiver.events if "subject" in one}
        assert {"plain", "deep", "deep/inner", "deep/inner/one"} <= subjects
        for listener in (receiver, sink):
            assert set(Counter(one["id"] for one in listener.events).values()) == {1}
        _, said = await running.call("GET", "/subscriptions")
        named = [one["stack_id"] for one in said["subscriptions"] if one["stack_id"]]
        assert named == [outer_id], "one for the tree, not one for each stack"

    inner = next(one["data"]["stack"]["id"] for one in receiver.events
                 if one.get("stackpath") == "deep/inner")  # fmt: skip
    middle = (await running.resources("tree-1"))["deep"]["physical_resource_id"]
    wanted: Mapping[str, tuple[str, Mapping[str, str], Mapping[str, int]]] = {
        "with those inside": ("tree-1", {}, whole),
        "alone": ("tree-1", {"nested": "false"}, {"": 2}),
        "one inside, with those inside of it": (middle, {}, {"deep": 2, "deep/inner": 2}),
        "one inside, alone": (middle, {"nested": "false"}, {"deep": 2}),
        "the innermost": (inner, {}, {"deep/inner": 2}),
    }
    for what, (stack, query, expected) in wanted.items():
        last = await end_of(running, stack)
        events = await streamed(running, last, stack=stack, **query)
        assert paths(events) == expected, what
    last = (await running.events("tree-1"))[-2]["id"]  # of the resource `deep`: the last to end
    events = await streamed(running, last, stack="tree-1", resources="deep/inner/*,plain,deep")
    assert {event["subject"] for event in events} == {
        "deep", "plain", "deep/inner/one", "deep/inner/two",
    }  # fmt: skip


async def test_sinks_hear_of_what_is_inside_while_they_are_named(
    running: Program, receiver: Receiver
) -> None:
    environment = {"event_sinks": [{"type": "webhook", "target": receiver.url,
                                    "events": ["headgate.stack.*"]}]}  # fmt: skip
    steps: list[tuple[Json, str]] = [({}, "x"), ({}, "y"), (environment, "z")]
    await running.create("s", {"web": nested("x")}, files=FILES, environment=environment)
    await running.until_ended("s")
    await until(lambda: paths(receiver.events) == {"": 2, "web": 2})
    for said, value in steps:
        wanted = template({"web": nested(value)})
        await running.update("s", "PUT", template=wanted, files=FILES, environment=said)
        assert await running.until_ended("s") == "UPDATE_COMPLETE"

    def heard(path: str) -> list[int]:
        """Of which traversals; what was inside when the sink was dropped may be told, or not."""
        told = [one for one in receiver.events if one.get("stackpath", "") == path]
        return [one["data"]["traversal"] for one in told if one["data"]["traversal"] != 2]

    for path in ("", "web"):
        await until(lambda path=path: heard(path)[-2:] == [4, 4])
        assert heard(path) == [1, 1, 4, 4], "of the update between, it heard nothing"
