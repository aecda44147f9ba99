"""A rich life, and after each step of it: what the events say is what the API shows."""

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

import aiohttp
import orjson
import pytest

from engine.types.contract import Done, Failed
from engine.words import ResourceAction
from tests.support.changes import FAR, begun, ended_as, gone, put, thing
from tests.support.history import History, HookState, ResourceState, StackState, rebuilt
from tests.support.program import Json, Program, eventually, program, template
from tests.support.things import Thing, World

LAST = "select sequence from stack where id = $1"


class Listener:
    """Hears events and nothing else."""

    def __init__(self, run: Program, answer: aiohttp.ClientResponse) -> None:
        self._run, self._lines = run, answer.content
        self.events: list[Json] = []
        self.steps = 0

    async def agrees(self, name: str) -> History:
        """What was heard of a stack so far is what is shown of it; returns that."""
        said: History
        said, shown = await eventually(lambda: self._both(name))
        assert said == shown
        self.steps += 1
        return said

    async def _both(self, name: str) -> tuple[History, History] | None:
        """What was heard and what is shown, when nothing has happened between."""
        found = (await self._run.call("GET", f"/stacks?name={name}&show_deleted=true"))[1]
        (stack,) = found["stacks"]
        last = await self._last(stack)
        while len(heard := self._of(stack["id"])) < last:
            line = await self._lines.readline()
            if line.startswith(b"data: "):
                self.events.append(orjson.loads(line[6:]))
        said = rebuilt(heard)
        shown = await as_shown(self._run, stack, said)
        if last != await self._last(stack):
            return None
        assert [event["sequence"] for event in heard] == list(range(1, last + 1))
        return said, shown

    async def _last(self, stack: Json) -> int:
        async with self._run.database.connection() as conn:
            return int(await conn.fetchval(LAST, stack["id"]))

    def _of(self, stack_id: str) -> list[Json]:
        return [event for event in self.events if event["source"].endswith(f"/{stack_id}")]


async def as_shown(run: Program, stack: Json, said: History) -> History:
    """As the API has it. Of a deleted stack, the hooks and what was said of it last."""
    action, status = stack["stack_status"].split("_", 1)
    state = StackState(action, status, stack["stack_status_reason"], 0, 0)
    gone = stack["deletion_time"] is not None
    hooks = {}
    resources = {}
    assert said.stack is not None
    if gone:
        version, traversal = said.stack.version, said.stack.traversal
        hooks = dict(said.hooks)
    else:
        name = stack["stack_name"]
        walk = (await run.at("GET", name, "/graph"))["traversal"]
        version, traversal = walk["version"], walk["number"]
        found = (await run.call("GET", f"/hooks?stack={name}&limit=1000"))[1]["hooks"]
        hooks = {
            one["id"]: HookState(one["state"], one.get("decision"), one.get("decided_by"))
            for one in found
        }
        resources = {
            key: resource_state(one)
            for key, one in (await run.resources(name)).items()
            if one["resource_status"] != "INIT_COMPLETE"  # planned: nothing has happened yet
        }
    state = StackState(state.action, state.status, state.reason, version, traversal)
    return History(state, resources, hooks)


def resource_state(one: Json) -> ResourceState:
    action, status = one["resource_status"].split("_", 1)
    reason = "" if status == "IN_PROGRESS" else one["resource_status_reason"]
    return ResourceState(action, status, reason, one["physical_resource_id"] or None)


@pytest.fixture
async def world() -> World:
    return World()


@pytest.fixture
async def run(database_url: str, world: World) -> AsyncIterator[Program]:
    quick = {"engine.first_retry": "1s", "engine.poll": "1s"}
    async with program(database_url, quick, types=[Thing(world)]) as made:
        yield made


@asynccontextmanager
async def listening(run: Program) -> AsyncIterator[Listener]:
    """From the first event on."""
    url, headers = f"{run.url}/v1/p/events/stream", {"Last-Event-ID": "0-0"}
    async with run.session.get(url, headers=headers) as answer:
        yield Listener(run, answer)


def at(name: str, *points: str, **more: Json) -> Json:
    return {"hooks": [{"at": name, "on": list(points), **more}]}


async def answered(run: Program, decision: str, user: str) -> None:
    (hook,) = await run.waiting("s")
    assert (await run.signal(hook, decision, user=user, reason="because"))[0] == 200


async def go_on(run: Program, name: str) -> None:
    """What waits inside its operation is looked at again."""
    await run.at("POST", "s", f"/resources/{name}/signal", {"go": "on"})


async def is_made(run: Program, listener: Listener) -> None:
    hooks = [*at("b", "pre-create")["hooks"], *at("c", "pre-create", mode="notify")["hooks"]]
    made = {"a": thing(), "b": thing({"get_attr": ["a", "size"]}), "c": thing()}
    await run.create("s", made, environment={"hooks": hooks})
    await run.waiting("s")
    await listener.agrees("s")
    await answered(run, "continue", "ann")
    assert await run.until_ended("s") == "CREATE_COMPLETE"
    said = await listener.agrees("s")
    assert sorted(said.resources) == ["a", "b", "c"]


async def is_changed(run: Program, world: World, listener: Listener) -> None:
    world.will("update", "a", FAR)
    world.will("delete", "c", FAR)
    await put(run, "s", {"a": thing(2), "b": thing(place="x"), "d": thing()})
    for operation, name in (("update", "a"), ("delete", "c")):
        await begun(world, operation, name)
        await listener.agrees("s")
        await go_on(run, name)
    assert await run.until_ended("s") == "UPDATE_COMPLETE"
    said = await listener.agrees("s")
    assert sorted(said.resources) == ["a", "b", "d"]


async def is_replaced(run: Program, world: World, listener: Listener) -> None:
    world.will("create", "b", FAR)
    await put(run, "s", {"a": thing(2), "b": thing(place="y"), "d": thing()},
              environment=at("b", "pre-replace"))  # fmt: skip
    await run.waiting("s")
    await listener.agrees("s")
    await answered(run, "continue", "bob")
    await until_signalled(run, world)
    await listener.agrees("s")
    await go_on(run, "b")
    assert await run.until_ended("s") == "UPDATE_COMPLETE"
    await listener.agrees("s")
    # A replacement that fails leaves something behind; the old one stays, until it is right.
    world.will("create", "b", Failed("no", physical_id="half"))
    await put(run, "s", {"a": thing(2), "b": thing(place="z"), "d": thing(), "e": thing()})
    assert await run.until_ended("s") == "UPDATE_FAILED"
    await listener.agrees("s")
    await put(run, "s", {"a": thing(2), "b": thing(place="z"), "d": thing()})
    assert await run.until_ended("s") == "UPDATE_COMPLETE"
    await listener.agrees("s")


async def until_signalled(run: Program, world: World) -> None:
    async def waits() -> bool:
        return not world.say["create", "b"]

    await eventually(waits)


async def is_undone(run: Program, world: World, listener: Listener) -> None:
    # What has no id of its own goes without a word of its type.
    world.will("create", "h", Done(None))
    kept = thing(deletion_policy="Retain")
    await put(run, "s", {"a": thing(2), "b": thing(place="z"), "h": kept})
    assert await run.until_ended("s") == "UPDATE_COMPLETE"
    said = await listener.agrees("s")
    assert said.resources["h"].physical_id is None
    world.will("create", "f", Failed("cannot"))
    await put(run, "s", {"a": thing(2), "b": thing(place="z"), "f": thing()})
    assert await run.until_ended("s") == "UPDATE_FAILED"
    await listener.agrees("s")
    world.will("update", "b", Failed("no"))
    changed = template({"a": thing(3, place="there"), "b": thing(4, place="z"), "g": thing()})
    await run.update("s", "PUT", template=changed, disable_rollback=False)
    await ended_as(run, "s", "ROLLBACK_COMPLETE")
    await listener.agrees("s")
    await run.update("s", "PATCH", disable_rollback=True)
    await run.until_ended("s")
    await listener.agrees("s")


async def is_visited(run: Program, world: World, listener: Listener) -> None:
    world.will("suspend", "a", FAR)
    await run.act("s", "suspend")
    await begun(world, "suspend", "a")
    await listener.agrees("s")
    await go_on(run, "a")
    for action, next_one in (("suspend", "resume"), ("resume", "check"), ("check", "")):
        await ended_as(run, "s", f"{action.upper()}_COMPLETE")
        await listener.agrees("s")
        if next_one:
            await run.act("s", next_one)
    world.will("check", "a", Failed("it is gone"))
    await run.act("s", "check")
    await ended_as(run, "s", "CHECK_FAILED")
    await listener.agrees("s")
    for mark in ({"mark_unhealthy": False}, {"protect": True}, {"protect": False}):
        await run.at("PATCH", "s", "/resources/a", mark)
        await listener.agrees("s")


async def is_asked(run: Program, world: World, listener: Listener) -> None:
    now = {"a": thing(2), "b": thing(5, place="z")}
    await put(run, "s", now, environment=at("b", "pre-update"))
    await answered(run, "reject", "cy")
    assert await run.until_ended("s") == "UPDATE_FAILED"
    await listener.agrees("s")
    await put(run, "s", now, environment=at("b", "pre-update", timeout="1s"))
    assert await run.until_ended("s") == "UPDATE_STOPPED"
    said = await listener.agrees("s")
    assert {HookState("expired", "stop", "nobody"), HookState("answered", "reject", "cy")} <= set(
        said.hooks.values()
    )
    await put(run, "s", now, environment=at("b", "pre-update"))
    await run.waiting("s")
    await put(run, "s", now, hooks={"clear": ["*"]})
    assert await run.until_ended("s") == "UPDATE_COMPLETE"
    said = await listener.agrees("s")
    assert "superseded" in {hook.state for hook in said.hooks.values()}


async def goes(run: Program, world: World, listener: Listener) -> None:
    moved = [{"from": "a", "to": "z"}]
    kept = thing(5, place="z", deletion_policy="Retain")
    await put(run, "s", {"z": thing(2), "b": kept}, moved=moved)
    await run.until_ended("s")
    said = await listener.agrees("s")
    assert sorted(said.resources) == ["b", "z"]
    await run.create("t", {"y": thing()})
    await run.until_ended("t")
    await listener.agrees("t")
    await run.at("DELETE", "t")
    await gone(run, "t")
    await listener.agrees("t")
    await put(run, "s", {"z": thing(2)}, environment=at("z", "pre-delete"))
    await run.until_ended("s")
    await listener.agrees("s")
    await run.at("DELETE", "s")
    await run.waiting("s")
    await listener.agrees("s")
    await answered(run, "continue", "ann")
    await gone(run, "s")
    said = await listener.agrees("s")
    assert said.resources == {} and said.stack is not None and said.stack.action == "DELETE"


async def test_what_events_say_is_what_is_shown(run: Program, world: World) -> None:
    async with listening(run) as listener:
        await is_made(run, listener)
        await is_changed(run, world, listener)
        await is_replaced(run, world, listener)
        await is_undone(run, world, listener)
        await is_visited(run, world, listener)
        await is_asked(run, world, listener)
        await goes(run, world, listener)
    told = [one["data"]["resource"] for one in listener.events if ".resource." in one["type"]]
    assert {one["action"] for one in told} <= set(ResourceAction)
    print(f"{listener.steps} times the same, from {len(listener.events)} events")
