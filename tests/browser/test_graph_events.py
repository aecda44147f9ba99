"""The graph computed from events, compared with the server's: at every stop of real changes, and
at their ends."""

from collections.abc import Callable
from copy import deepcopy
from json import dumps
from typing import Any

import pytest

from tests.browser.conftest import Visitor
from tests.integration.nested.test_events import streamed
from tests.support.program import Http, Json, eventually, resource, template

INACTIVE = {"waiting", "parked", "done", "failed", "stopped", "dropped"}
#: Applies the events from the beginning of the change, as a timeline does, and from the graph
#: before, as an open page does. Returns the differences from the server's graph.
COMPARE_SCRIPT = """(m, { pictures, events }) => {
  const upTo = (model) => events.filter((event) => {
    const stackGraph = model.tree.stackGraphs.get(event.stackpath ?? "");
    return stackGraph && event.sequence <= stackGraph.sequence;
  });
  const summary = ({ state, phase, operation, reason, hook }) => [
    state, operation, state === "parked" ? [phase, hook?.point] : null,
    ["failed", "stopped", "dropped"].includes(state) ? reason : null,
  ];
  const differences = (how, model, known) => [...known].flatMap(([key, one]) => {
    const [is, was] = [summary(model.known.get(key)), summary(one)].map((it) => JSON.stringify(it));
    return is === was ? [] : [`${how} ${key}: ${is}, but it is ${was}`];
  });
  return pictures.flatMap((picture, at) => {
    const model = m.graphModel(picture);
    const known = new Map(model.known);
    const playback = model.playback(upTo(model));
    const found = differences(`picture ${at} from the beginning`, model, known);
    playback.seek(0);
    playback.seek(playback.length);
    found.push(...differences(`picture ${at} to and fro`, model, known));
    const before = pictures[at - 1];
    if (!before) return found;
    const live = m.graphModel(before);
    for (const event of upTo(m.graphModel(picture))) live.apply(event);
    const newer = picture.traversal.number !== before.traversal.number;
    if (newer && !live.outdated.value) found.push(`picture ${at} is of another change: not noticed`);
    if (!live.outdated.value) found.push(...differences(`picture ${at} live`, live, known));
    return found;
  });
}"""
INNER = template({"disk": resource(), "server": resource(depends_on="disk")})


class GraphRecorder:
    """Fetches the graph of one stack repeatedly."""

    def __init__(self, http: Http, name: str) -> None:
        self.http, self.name = http, name
        self.pictures: list[Json] = []
        self.answered: list[Json] = []

    async def fetch(self) -> None:
        """Fetch the graph once no node is active."""

        async def is_inactive() -> Json:
            response = await self.http.stack_request("GET", self.name, "/graph?nested=true")
            graphs = [response, *response["stacks"]]
            states = {node["state"] for one in graphs for node in one["nodes"]}
            over = response["traversal"]["state"] not in ("running", "ending")
            waits = any(
                node["state"] == "parked" and node["phase"] != "execute"
                for one in graphs
                for node in one["nodes"]
            )
            return response if states <= INACTIVE and (over or waits) else None

        self.pictures.append(await eventually(is_inactive))

    async def answer(self, decision: str = "continue", *, count: int = 1) -> None:
        """Fetch the graph, then answer the waiting hooks."""
        hooks = await self.http.waiting_hooks(self.name, count)
        await self.fetch()
        for hook in hooks:
            assert (await self.http.signal(hook, decision))[0] == 200

    async def answer_all(self) -> None:
        """Answer until the change ends, and fetch the graph before each answer."""

        async def next_hook() -> Json:
            _, response = await self.http.call("GET", f"/hooks?state=waiting&stack={self.name}")
            status = (await self.http.stack(self.name))["stack_status"]
            return response["hooks"] or status.endswith("_COMPLETE")

        while (found := await eventually(next_hook)) is not True:
            await self.fetch()
            self.answered.append(found[0])
            assert (await self.http.signal(found[0]))[0] == 200

    async def end(self, status: str) -> None:
        assert await self.http.until_ended(self.name) == status
        await self.fetch()

    async def events(self) -> list[Json]:
        stack = await self.http.stack(self.name)
        last = (await self.http.events(self.name))[-1]["id"]
        return [one for one in await streamed(self.http, last) if one["rootstack"] == stack["id"]]


Scenario = tuple[GraphRecorder, list[Json]]


async def create_with_hooks(http: Http) -> Scenario:
    """Hooks before and after, notifications, and a hook before the whole stack."""
    watcher = GraphRecorder(http, "created")
    rules = [
        {"at": "web", "on": ["pre-create", "post-create"]},
        {"at": "db", "on": "pre-create", "mode": "notify"},
        {"on": ["pre-stack-create", "post-stack-create"]},
    ]
    resources = {
        "net": resource(),
        "db": resource(depends_on="net"),
        "web": resource(depends_on="net"),
        "lb": resource(depends_on=["web", "db"]),
    }
    await http.create("created", resources, environment={"hooks": rules})
    for _ in range(4):
        await watcher.answer()
    await watcher.end("CREATE_COMPLETE")
    return watcher, await watcher.events()


async def update_and_replace(http: Http) -> Scenario:
    """An update, a replacement with its cleanup, a create and a delete."""
    watcher = GraphRecorder(http, "changed")
    again = {"update_replace": True}

    def template_of(value: str) -> Json:
        replaced = {"type": "OS::Heat::TestResource", "properties": {"value": value, **again}}
        return {
            "a": resource(value),
            "b": replaced | {"depends_on": "a"},
            "c": resource(value, depends_on="b"),
        }

    await http.create("changed", {**template_of("one"), "gone": resource()})
    await watcher.end("CREATE_COMPLETE")
    rules = [
        {"at": "*", "on": ["pre-replace", "post-replace", "pre-delete", "post-delete"]},
        {"at": "c", "on": ["pre-update"]},
    ]
    body = {"template": template({**template_of("two"), "new": resource(depends_on="c")})}
    await http.update("changed", "PUT", **body, environment={"hooks": rules})
    await watcher.answer_all()
    points = {hook["point"] for hook in watcher.answered}
    assert points == {"pre-update", *rules[0]["on"]}
    await watcher.end("UPDATE_COMPLETE")
    return watcher, await watcher.events()


async def reader_without_change(http: Http) -> Scenario:
    """A reader of a changed resource whose read value is the same ends without an event."""
    watcher = GraphRecorder(http, "left_alone")

    def template_of(constraint: int) -> Json:
        first = {"value": "same", "attr_wait_secs": constraint}
        return {
            "a": {"type": "OS::Heat::TestResource", "properties": first},
            "b": resource({"get_attr": ["a", "output"]}),
            "c": resource({"get_attr": ["b", "output"]}),
        }

    await http.create("left_alone", template_of(1))
    await watcher.end("CREATE_COMPLETE")
    breakpoints = {"resource_registry": {"resources": {"c": {"hooks": "pre-update"}}}}
    await http.update(
        "left_alone", "PUT", template=template(template_of(2)), environment=breakpoints
    )
    await watcher.answer()
    await watcher.end("UPDATE_COMPLETE")
    return watcher, await watcher.events()


async def fail_and_reject(http: Http) -> Scenario:
    """A failure and a rejection; the dependents are dropped."""
    watcher = GraphRecorder(http, "failed")
    failing = {"type": "OS::Heat::TestResource", "properties": {"fail": True}}
    resources = {
        "first": resource(),
        "bad": failing | {"depends_on": "first"},
        "after": resource(depends_on="bad"),
        "last": resource(depends_on="after"),
        "aside": resource(),
    }
    hooks = [{"at": "aside", "on": "pre-create"}]
    body: Json = {"environment": {"hooks": hooks}, "disable_rollback": True}
    await http.create("failed", resources, **body)
    await watcher.answer("reject")
    await watcher.end("CREATE_FAILED")
    return watcher, await watcher.events()


async def stop_three_ways(http: Http) -> Scenario:
    """Stopped by a breakpoint, by a deadline, and by a user while a hook waits."""
    watcher = GraphRecorder(http, "stopped")
    resources = {
        "a": resource(),
        "b": resource(depends_on="a"),
        "c": resource(depends_on="a"),
        "d": resource(depends_on=["b", "c"]),
    }
    rules = [
        {"at": "b", "on": "pre-create", "mode": "stop"},
        {"at": "c", "on": "pre-create", "timeout": "1s"},
    ]
    await http.create("stopped", resources, environment={"hooks": rules})
    await watcher.end("CREATE_STOPPED")
    waits = [{"at": "b", "on": ["pre-create", "post-create"]}]
    repeated = template(resources)
    await http.update("stopped", "PUT", template=repeated, environment={"hooks": waits})
    await watcher.answer()
    await http.waiting_hooks("stopped")
    await watcher.fetch()
    await http.act("stopped", "stop")
    await watcher.end("UPDATE_STOPPED")
    return watcher, await watcher.events()


async def nested_hooks(http: Http) -> Scenario:
    """Hooks on two levels; the parent node waits for its nested stack."""
    watcher = GraphRecorder(http, "nested")
    outer = template({"deep": {"type": "inner.yaml"}, "beside": resource()})
    resources = {
        "web": {"type": "outer.yaml"},
        "plain": resource(),
        "end": resource(depends_on="web"),
    }
    rules = [
        {"at": "web/deep/server", "on": ["pre-create", "post-create"]},
        {"at": "end", "on": "pre-create"},
    ]
    files = {"inner.yaml": dumps(INNER), "outer.yaml": dumps(outer)}
    await http.create("nested", resources, files=files, environment={"hooks": rules})
    for _ in range(3):
        await watcher.answer()
    await watcher.end("CREATE_COMPLETE")
    return watcher, await watcher.events()


@pytest.mark.parametrize(
    "change",
    [
        create_with_hooks,
        update_and_replace,
        reader_without_change,
        fail_and_reject,
        stop_three_ways,
        nested_hooks,
    ],
)
async def test_the_graph_from_events_equals_the_graph_of_the_server(
    visitor: Visitor, http: Http, change: Callable[[Http], Any]
) -> None:
    watcher, events = await change(http)
    assert len(watcher.pictures) > 1
    argument = {"pictures": watcher.pictures, "events": events}
    assert await visitor.module("graph/model.js", COMPARE_SCRIPT, argument) == []


STEPS = """(m, {picture, events}) => {
  const model = m.graphModel(picture);
  const playback = model.playback(events);
  const states = () => [...model.known.values()].map(({ state, phase, reason }) =>
    [state, phase, reason].join(" "));
  return events.map((event, at) => {
    playback.seek(at);
    const before = states();
    playback.seek(at + 1);
    return states().filter((one, place) => one !== before[place]);
  });
}"""


async def test_notifications_change_nothing_and_a_retry_waits(visitor: Visitor, http: Http) -> None:
    watcher, events = await create_with_hooks(http)
    started = next(
        at for at, one in enumerate(events)
        if one["type"] == "headgate.resource.create.started" and one["subject"] == "db"
    )  # fmt: skip
    repeated = deepcopy(events[started])
    repeated["type"] = "headgate.resource.create.retrying"
    repeated["data"]["resource"]["reason"] = "it is away"
    events.insert(started + 1, repeated)
    argument = {"picture": watcher.pictures[-1], "events": events}
    changes = await visitor.module("graph/model.js", STEPS, argument)
    notifications = [
        change for change, event in zip(changes, events, strict=True)
        if (event["data"].get("hook") or {}).get("mode") == "notify"
    ]  # fmt: skip
    assert notifications and not any(notifications)
    assert changes[started + 1] == ["parked execute it is away"]
