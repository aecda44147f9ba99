"""The graph of a change as its events tell it, beside what the server says: at every stop of real
changes, and at their ends."""

from collections.abc import Callable
from copy import deepcopy
from json import dumps
from typing import Any

import pytest

from tests.browser.conftest import Visitor
from tests.integration.nested.test_events import streamed
from tests.support.program import Http, Json, eventually, resource, template

STILL = {"waiting", "parked", "done", "failed", "stopped", "dropped"}
#: Both ways to know of it: from the beginning of the change, as a timeline does, and from the
#: picture before, as a page does that is open. Gives what differs from what the server says.
COMPARED = """(m, { pictures, events }) => {
  const upTo = (model) => events.filter((event) => {
    const stackGraph = model.tree.stackGraphs.get(event.stackpath ?? "");
    return stackGraph && event.sequence <= stackGraph.sequence;
  });
  const said = ({ state, phase, operation, reason, hook }) => [
    state, operation, state === "parked" ? [phase, hook?.point] : null,
    ["failed", "stopped", "dropped"].includes(state) ? reason : null,
  ];
  const differences = (how, model, told) => [...told].flatMap(([key, one]) => {
    const [is, was] = [said(model.known.get(key)), said(one)].map((it) => JSON.stringify(it));
    return is === was ? [] : [`${how} ${key}: ${is}, but it is ${was}`];
  });
  return pictures.flatMap((picture, at) => {
    const model = m.graphModel(picture);
    const told = new Map(model.known);
    const playback = model.playback(upTo(model));
    const found = differences(`picture ${at} from the beginning`, model, told);
    playback.seek(0);
    playback.seek(playback.length);
    found.push(...differences(`picture ${at} to and fro`, model, told));
    const before = pictures[at - 1];
    if (!before) return found;
    const live = m.graphModel(before);
    for (const event of upTo(m.graphModel(picture))) live.apply(event);
    const newer = picture.traversal.number !== before.traversal.number;
    if (newer && !live.stale.value) found.push(`picture ${at} is of another change: not noticed`);
    if (!live.stale.value) found.push(...differences(`picture ${at} live`, live, told));
    return found;
  });
}"""
INSIDE = template({"disk": resource(), "server": resource(depends_on="disk")})


class Watcher:
    """Somebody who looks at the graph of one stack, again and again."""

    def __init__(self, http: Http, name: str) -> None:
        self.http, self.name = http, name
        self.pictures: list[Json] = []
        self.answered: list[Json] = []

    async def look(self) -> None:
        """As soon as nothing moves."""

        async def still() -> Json:
            found = await self.http.at("GET", self.name, "/graph?nested=true")
            graphs = [found, *found["stacks"]]
            states = {node["state"] for one in graphs for node in one["nodes"]}
            over = found["traversal"]["state"] not in ("running", "ending")
            waits = any(
                node["state"] == "parked" and node["phase"] != "act"
                for one in graphs
                for node in one["nodes"]
            )
            return found if states <= STILL and (over or waits) else None

        self.pictures.append(await eventually(still))

    async def answer(self, decision: str = "continue", *, count: int = 1) -> None:
        """Look, and answer what waits."""
        hooks = await self.http.waiting(self.name, count)
        await self.look()
        for hook in hooks:
            assert (await self.http.signal(hook, decision))[0] == 200

    async def answer_all(self) -> None:
        """To the end of the change, looking before each answer."""

        async def next_one() -> Json:
            _, said = await self.http.call("GET", f"/hooks?state=waiting&stack={self.name}")
            status = (await self.http.stack(self.name))["stack_status"]
            return said["hooks"] or status.endswith("_COMPLETE")

        while (found := await eventually(next_one)) is not True:
            await self.look()
            self.answered.append(found[0])
            assert (await self.http.signal(found[0]))[0] == 200

    async def end(self, status: str) -> None:
        assert await self.http.until_ended(self.name) == status
        await self.look()

    async def events(self) -> list[Json]:
        stack = await self.http.stack(self.name)
        last = (await self.http.events(self.name))[-1]["id"]
        return [one for one in await streamed(self.http, last) if one["rootstack"] == stack["id"]]


Made = tuple[Watcher, list[Json]]


async def created(http: Http) -> Made:
    """Stops before and after, tells on the way, and asks before the whole."""
    watcher = Watcher(http, "created")
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


async def changed(http: Http) -> Made:
    """One is changed, one replaced, one made, one goes; so does what the replacement replaced."""
    watcher = Watcher(http, "changed")
    again = {"update_replace": True}

    def made(value: str) -> Json:
        replaced = {"type": "OS::Heat::TestResource", "properties": {"value": value, **again}}
        return {
            "a": resource(value),
            "b": replaced | {"depends_on": "a"},
            "c": resource(value, depends_on="b"),
        }

    await http.create("changed", {**made("one"), "gone": resource()})
    await watcher.end("CREATE_COMPLETE")
    rules = [
        {"at": "*", "on": ["pre-replace", "post-replace", "pre-delete", "post-delete"]},
        {"at": "c", "on": ["pre-update"]},
    ]
    body = {"template": template({**made("two"), "new": resource(depends_on="c")})}
    await http.update("changed", "PUT", **body, environment={"hooks": rules})
    await watcher.answer_all()
    points = {hook["point"] for hook in watcher.answered}
    assert points == {"pre-update", *rules[0]["on"]}
    await watcher.end("UPDATE_COMPLETE")
    return watcher, await watcher.events()


async def left_alone(http: Http) -> Made:
    """What reads a thing that changed, but not in what is read, ends without an event of its own."""
    watcher = Watcher(http, "left_alone")

    def made(constraint: int) -> Json:
        first = {"value": "same", "attr_wait_secs": constraint}
        return {
            "a": {"type": "OS::Heat::TestResource", "properties": first},
            "b": resource({"get_attr": ["a", "output"]}),
            "c": resource({"get_attr": ["b", "output"]}),
        }

    await http.create("left_alone", made(1))
    await watcher.end("CREATE_COMPLETE")
    held = {"resource_registry": {"resources": {"c": {"hooks": "pre-update"}}}}
    await http.update("left_alone", "PUT", template=template(made(2)), environment=held)
    await watcher.answer()
    await watcher.end("UPDATE_COMPLETE")
    return watcher, await watcher.events()


async def failed(http: Http) -> Made:
    """By itself, and because somebody rejects it; what comes after is dropped."""
    watcher = Watcher(http, "failed")
    bad = {"type": "OS::Heat::TestResource", "properties": {"fail": True}}
    resources = {
        "first": resource(),
        "bad": bad | {"depends_on": "first"},
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


async def stopped(http: Http) -> Made:
    """By a breakpoint, by a hook that nobody answered, and by somebody while a hook waits."""
    watcher = Watcher(http, "stopped")
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
    again = template(resources)
    await http.update("stopped", "PUT", template=again, environment={"hooks": waits})
    await watcher.answer()
    await http.waiting("stopped")
    await watcher.look()
    await http.act("stopped", "stop")
    await watcher.end("UPDATE_STOPPED")
    return watcher, await watcher.events()


async def nested(http: Http) -> Made:
    """Hooks on two levels; the one around waits for the stack inside."""
    watcher = Watcher(http, "nested")
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
    files = {"inner.yaml": dumps(INSIDE), "outer.yaml": dumps(outer)}
    await http.create("nested", resources, files=files, environment={"hooks": rules})
    for _ in range(3):
        await watcher.answer()
    await watcher.end("CREATE_COMPLETE")
    return watcher, await watcher.events()


@pytest.mark.parametrize("change", [created, changed, left_alone, failed, stopped, nested])
async def test_events_tell_what_the_graph_says(
    visitor: Visitor, http: Http, change: Callable[[Http], Any]
) -> None:
    watcher, events = await change(http)
    assert len(watcher.pictures) > 1
    argument = {"pictures": watcher.pictures, "events": events}
    assert await visitor.module("graph/model.js", COMPARED, argument) == []


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


async def test_what_only_tells_changes_nothing_and_what_is_tried_again_waits(
    visitor: Visitor, http: Http
) -> None:
    watcher, events = await created(http)
    started = next(
        at for at, one in enumerate(events)
        if one["type"] == "headgate.resource.create.started" and one["subject"] == "db"
    )  # fmt: skip
    again = deepcopy(events[started])
    again["type"] = "headgate.resource.create.retrying"
    again["data"]["resource"]["reason"] = "it is away"
    events.insert(started + 1, again)
    argument = {"picture": watcher.pictures[-1], "events": events}
    changes = await visitor.module("graph/model.js", STEPS, argument)
    told = [
        change for change, event in zip(changes, events, strict=True)
        if (event["data"].get("hook") or {}).get("mode") == "notify"
    ]  # fmt: skip
    assert told and not any(told)
    assert changes[started + 1] == ["parked act it is away"]
