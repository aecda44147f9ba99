"""After each step of a stack's lifecycle, the state rebuilt from its events is the state in the
API.
"""

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

import aiohttp
import orjson

from engine.types.contract import Done, Failed
from engine.words import ResourceAction
from tests.support.changes import LONG_WAIT, put, thing, until_deleted, until_started, until_status
from tests.support.history import History, HookState, ResourceState, StackState, rebuild
from tests.support.program import Json, Program, eventually, template
from tests.support.scripted_type import World

LAST = "select sequence from stack where id = $1"


class Listener:
    """Receives events, and nothing else."""

    def __init__(self, run: Program, answer: aiohttp.ClientResponse) -> None:
        self._run, self._lines = run, answer.content
        self.events: list[Json] = []
        self.steps = 0

    async def agrees(self, name: str) -> History:
        """Check that the events of a stack so far give the state in the API; return that state."""
        history: History
        history, shown = await eventually(lambda: self._both(name))
        assert history == shown
        self.steps += 1
        return history

    async def _both(self, name: str) -> tuple[History, History] | None:
        """Both states, when no event arrived in between."""
        response = (await self._run.call("GET", f"/stacks?name={name}&show_deleted=true"))[1]
        (stack,) = response["stacks"]
        last = await self._last(stack)
        while len(events := self._of(stack["id"])) < last:
            line = await self._lines.readline()
            if line.startswith(b"data: "):
                self.events.append(orjson.loads(line[6:]))
        history = rebuild(events)
        shown = await api_state(self._run, stack, history)
        if last != await self._last(stack):
            return None
        assert [event["sequence"] for event in events] == list(range(1, last + 1))
        return history, shown

    async def _last(self, stack: Json) -> int:
        async with self._run.database.connection() as conn:
            return int(await conn.fetchval(LAST, stack["id"]))

    def _of(self, stack_id: str) -> list[Json]:
        return [event for event in self.events if event["source"].endswith(f"/{stack_id}")]


async def api_state(run: Program, stack: Json, rebuilt_history: History) -> History:
    """The state in the API. Of a deleted stack, only its hooks and its last status."""
    action, status = stack["stack_status"].split("_", 1)
    state = StackState(action, status, stack["stack_status_reason"], 0, 0)
    deleted = stack["deletion_time"] is not None
    hooks = {}
    resources = {}
    assert rebuilt_history.stack is not None
    if deleted:
        version, traversal = rebuilt_history.stack.version, rebuilt_history.stack.traversal
        hooks = dict(rebuilt_history.hooks)
    else:
        name = stack["stack_name"]
        walk = (await run.stack_request("GET", name, "/graph"))["traversal"]
        version, traversal = walk["version"], walk["number"]
        response = (await run.call("GET", f"/hooks?stack={name}&limit=1000"))[1]["hooks"]
        hooks = {
            one["id"]: HookState(one["state"], one.get("decision"), one.get("decided_by"))
            for one in response
        }
        resources = {
            key: resource_state(one)
            for key, one in (await run.resources(name)).items()
            if one["resource_status"] != "INIT_COMPLETE"  # planned, but not yet created
        }
    state = StackState(state.action, state.status, state.reason, version, traversal)
    return History(state, resources, hooks)


def resource_state(one: Json) -> ResourceState:
    action, status = one["resource_status"].split("_", 1)
    reason = "" if status == "IN_PROGRESS" else one["resource_status_reason"]
    return ResourceState(action, status, reason, one["physical_resource_id"] or None)


@asynccontextmanager
async def listening(run: Program) -> AsyncIterator[Listener]:
    """From the first event on."""
    url, headers = f"{run.url}/v1/p/events/stream", {"Last-Event-ID": "0-0"}
    async with run.session.get(url, headers=headers) as answer:
        yield Listener(run, answer)


def hooks_at(name: str, *points: str, **more: Json) -> Json:
    return {"hooks": [{"at": name, "on": list(points), **more}]}


async def answer_hook(run: Program, decision: str, user: str) -> None:
    (hook,) = await run.waiting_hooks("s")
    assert (await run.signal(hook, decision, user=user, reason="because"))[0] == 200


async def wake(run: Program, name: str) -> None:
    """Wake an operation that waits."""
    await run.stack_request("POST", "s", f"/resources/{name}/signal", {"go": "on"})


async def create_stack(run: Program, listener: Listener) -> None:
    hooks = [
        *hooks_at("b", "pre-create")["hooks"],
        *hooks_at("c", "pre-create", mode="notify")["hooks"],
    ]
    resources = {"a": thing(), "b": thing({"get_attr": ["a", "size"]}), "c": thing()}
    await run.create("s", resources, environment={"hooks": hooks})
    await run.waiting_hooks("s")
    await listener.agrees("s")
    await answer_hook(run, "continue", "ann")
    assert await run.until_ended("s") == "CREATE_COMPLETE"
    history = await listener.agrees("s")
    assert sorted(history.resources) == ["a", "b", "c"]


async def update_stack(run: Program, world: World, listener: Listener) -> None:
    world.script("update", "a", LONG_WAIT)
    world.script("delete", "c", LONG_WAIT)
    await put(run, "s", {"a": thing(2), "b": thing(place="x"), "d": thing()})
    for operation, name in (("update", "a"), ("delete", "c")):
        await until_started(world, operation, name)
        await listener.agrees("s")
        await wake(run, name)
    assert await run.until_ended("s") == "UPDATE_COMPLETE"
    history = await listener.agrees("s")
    assert sorted(history.resources) == ["a", "b", "d"]


async def replace_resources(run: Program, world: World, listener: Listener) -> None:
    world.script("create", "b", LONG_WAIT)
    await put(run, "s", {"a": thing(2), "b": thing(place="y"), "d": thing()},
              environment=hooks_at("b", "pre-replace"))  # fmt: skip
    await run.waiting_hooks("s")
    await listener.agrees("s")
    await answer_hook(run, "continue", "bob")
    await until_signalled(run, world)
    await listener.agrees("s")
    await wake(run, "b")
    assert await run.until_ended("s") == "UPDATE_COMPLETE"
    await listener.agrees("s")
    # A failed replacement leaves an object; the original stays until a replacement succeeds.
    world.script("create", "b", Failed("no", physical_id="half"))
    await put(run, "s", {"a": thing(2), "b": thing(place="z"), "d": thing(), "e": thing()})
    assert await run.until_ended("s") == "UPDATE_FAILED"
    await listener.agrees("s")
    await put(run, "s", {"a": thing(2), "b": thing(place="z"), "d": thing()})
    assert await run.until_ended("s") == "UPDATE_COMPLETE"
    await listener.agrees("s")


async def until_signalled(run: Program, world: World) -> None:
    async def waits() -> bool:
        return not world.scripted["create", "b"]

    await eventually(waits)


async def roll_back(run: Program, world: World, listener: Listener) -> None:
    # A resource without a physical ID is deleted without a call of its type.
    world.script("create", "h", Done(None))
    kept = thing(deletion_policy="Retain")
    await put(run, "s", {"a": thing(2), "b": thing(place="z"), "h": kept})
    assert await run.until_ended("s") == "UPDATE_COMPLETE"
    history = await listener.agrees("s")
    assert history.resources["h"].physical_id is None
    await put(run, "s", {"a": thing(2), "b": thing(place="z")})
    assert await run.until_ended("s") == "UPDATE_COMPLETE"
    assert "h" not in (await listener.agrees("s")).resources
    world.script("create", "f", Failed("cannot"))
    await put(run, "s", {"a": thing(2), "b": thing(place="z"), "f": thing()})
    assert await run.until_ended("s") == "UPDATE_FAILED"
    await listener.agrees("s")
    world.script("update", "b", Failed("no"))
    changed = template({"a": thing(3, place="there"), "b": thing(4, place="z"), "g": thing()})
    await run.update("s", "PUT", template=changed, disable_rollback=False)
    await until_status(run, "s", "ROLLBACK_COMPLETE")
    await listener.agrees("s")
    await run.update("s", "PATCH", disable_rollback=True)
    await run.until_ended("s")
    await listener.agrees("s")


async def run_in_place_actions(run: Program, world: World, listener: Listener) -> None:
    world.script("suspend", "a", LONG_WAIT)
    await run.act("s", "suspend")
    await until_started(world, "suspend", "a")
    await listener.agrees("s")
    await wake(run, "a")
    for action, next_one in (("suspend", "resume"), ("resume", "check"), ("check", "")):
        await until_status(run, "s", f"{action.upper()}_COMPLETE")
        await listener.agrees("s")
        if next_one:
            await run.act("s", next_one)
    world.script("check", "a", Failed("it is gone"))
    await run.act("s", "check")
    await until_status(run, "s", "CHECK_FAILED")
    await listener.agrees("s")
    for mark in ({"mark_unhealthy": False}, {"protect": True}, {"protect": False}):
        await run.stack_request("PATCH", "s", "/resources/a", mark)
        await listener.agrees("s")


async def answer_hooks(run: Program, world: World, listener: Listener) -> None:
    now = {"a": thing(2), "b": thing(5, place="z")}
    await put(run, "s", now, environment=hooks_at("b", "pre-update"))
    await answer_hook(run, "reject", "cy")
    assert await run.until_ended("s") == "UPDATE_FAILED"
    await listener.agrees("s")
    await put(run, "s", now, environment=hooks_at("b", "pre-update", timeout="1s"))
    assert await run.until_ended("s") == "UPDATE_STOPPED"
    history = await listener.agrees("s")
    assert {HookState("expired", "stop", "engine"), HookState("answered", "reject", "cy")} <= set(
        history.hooks.values()
    )
    await put(run, "s", now, environment=hooks_at("b", "pre-update"))
    await run.waiting_hooks("s")
    await put(run, "s", now, hooks={"clear": ["*"]})
    assert await run.until_ended("s") == "UPDATE_COMPLETE"
    history = await listener.agrees("s")
    assert "superseded" in {hook.state for hook in history.hooks.values()}


async def move_and_delete(run: Program, world: World, listener: Listener) -> None:
    moved = [{"from": "a", "to": "z"}]
    kept = thing(5, place="z", deletion_policy="Retain")
    await put(run, "s", {"z": thing(2), "b": kept}, moved=moved)
    await run.until_ended("s")
    history = await listener.agrees("s")
    assert sorted(history.resources) == ["b", "z"]
    await run.create("t", {"y": thing()})
    await run.until_ended("t")
    await listener.agrees("t")
    await run.stack_request("DELETE", "t")
    await until_deleted(run, "t")
    await listener.agrees("t")
    await put(run, "s", {"z": thing(2)}, environment=hooks_at("z", "pre-delete"))
    await run.until_ended("s")
    await listener.agrees("s")
    await run.stack_request("DELETE", "s")
    await run.waiting_hooks("s")
    await listener.agrees("s")
    await answer_hook(run, "continue", "ann")
    await until_deleted(run, "s")
    history = await listener.agrees("s")
    assert (
        history.resources == {} and history.stack is not None and history.stack.action == "DELETE"
    )


async def test_the_state_rebuilt_from_events_is_that_of_the_api(run: Program, world: World) -> None:
    async with listening(run) as listener:
        await create_stack(run, listener)
        await update_stack(run, world, listener)
        await replace_resources(run, world, listener)
        await roll_back(run, world, listener)
        await run_in_place_actions(run, world, listener)
        await answer_hooks(run, world, listener)
        await move_and_delete(run, world, listener)
    resources = [one["data"]["resource"] for one in listener.events if ".resource." in one["type"]]
    assert {one["action"] for one in resources} <= set(ResourceAction)
    print(f"{listener.steps} times the same, from {len(listener.events)} events")
