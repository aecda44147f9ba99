"""Waiting for a stack: to the end of its action, or until only hooks are left."""

import asyncio
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

from hub.cli.client import Client, Refused, place
from hub.cli.exit_codes import Exit, of_status

Json = Any
#: Seconds between two looks: the first ones soon, for small stacks end soon.
PAUSES = (0.05, 0.1, 0.2, 0.4, 0.8, 1.0)
#: Actions that fail what is waited for, however well they end themselves.
TOOK_OVER = ("DELETE", "ROLLBACK")
#: Actions whose purpose a newer one carries on: who waits for them waits for that, too.
CARRIED_ON = ("CREATE", "UPDATE", "ADOPT")


@dataclass(frozen=True, slots=True)
class Patience:
    """end: wait for the end. until_waiting: or until only hooks are left. seconds: at most."""

    end: bool
    until_waiting: bool
    seconds: float

    @property
    def any(self) -> bool:
        return self.end or self.until_waiting


@dataclass(frozen=True, slots=True)
class Outcome:
    """stack: as it is now. said: what a person should know besides."""

    stack: Json
    code: Exit
    said: str = ""


def judge(stack: Mapping[str, Json], action: str) -> Outcome | None:
    """What an end state means to whoever waits for `action`; None while it is none. Pure."""
    status = str(stack["stack_status"])
    code = of_status(status)
    now = status.partition("_")[0]
    if now == "ROLLBACK" and code is None:
        return None  # it is part of what was begun: its end is the end
    if now != action and (now in TOOK_OVER or action not in CARRIED_ON):
        other = "a rollback" if now == "ROLLBACK" else "another action"
        return Outcome(stack, Exit.FAILED, f"{other} superseded it: {status}")
    return None if code is None else Outcome(stack, code)


def only_hooks_left(nodes: Sequence[Json], hooks: Sequence[Json]) -> bool:
    """Everything that can run has run, and what is parked is parked at hooks. Pure."""
    states = [node["state"] for node in nodes]
    busy = any(state in ("ready", "running") for state in states)
    parked = states.count("parked")
    return not busy and 0 < parked <= len(hooks)


def nodes_of_all(graph: Mapping[str, Json]) -> list[Json]:
    """Those of a stack and of stacks inside, without those that only wait for a stack inside."""
    inside = graph.get("stacks") or []
    known = {one["stack_id"] for one in inside}
    nodes = [*graph["nodes"], *(node for one in inside for node in one["nodes"])]
    return [node for node in nodes if not (node.get("inside") in known and _waits(node))]


def _waits(node: Mapping[str, Json]) -> bool:
    return bool((node["state"], node["phase"]) == ("parked", "act"))


async def settle(client: Client, stack_id: str, action: str, patience: Patience) -> Outcome:
    """The stack: at once, at the end of the action, or when patience is over."""
    if not patience.any:
        return Outcome(await _full(client, stack_id, action), Exit.COMPLETE)
    try:
        async with asyncio.timeout(patience.seconds):
            outcome = await _until(client, stack_id, action, patience)
    except TimeoutError:
        said = "--timeout has expired; the action continues on the server"
        outcome = Outcome(None, Exit.TIMED_OUT, said)
    return replace(outcome, stack=await _full(client, stack_id, action))


async def _until(client: Client, stack_id: str, action: str, patience: Patience) -> Outcome:
    pauses = iter(PAUSES)
    pause = PAUSES[0]
    while True:
        stack = await _look(client, stack_id, action, {"resolve_outputs": "false"})
        outcome = judge(stack, action)
        if outcome is not None:
            return outcome
        if patience.until_waiting and await _only_hooks_left(client, stack):
            return Outcome(stack, Exit.WAITING)
        pause = next(pauses, pause)
        await asyncio.sleep(pause)


async def _full(client: Client, stack_id: str, action: str) -> Json:
    return await _look(client, stack_id, action, {})


async def _look(client: Client, stack_id: str, action: str, query: Mapping[str, str]) -> Json:
    try:
        return (await client.call("GET", place("stacks", stack_id), query=query))["stack"]
    except Refused as error:
        if error.status == 404 and action == "DELETE":  # it may be purged before we look
            return {"id": stack_id, "stack_status": "DELETE_COMPLETE"}
        raise


async def _only_hooks_left(client: Client, stack: Json) -> bool:
    path = place("stacks", stack["stack_name"], stack["id"], "graph")
    nodes = nodes_of_all(await client.call("GET", path, query={"nested": "true"}))
    if not only_hooks_left(nodes, nodes):
        return False
    return only_hooks_left(nodes, await waiting_hooks(client, stack["id"]))


async def waiting_hooks(client: Client, stack_id: str | None = None) -> list[Json]:
    """All waiting hooks, of a stack or of the project, page by page."""
    query = {"state": "waiting", "limit": "1000"} | ({"stack": stack_id} if stack_id else {})
    return await pages(client, place("hooks"), "hooks", query)


async def pages(
    client: Client, path: str, wrapper: str, query: Mapping[str, str], *, marker: str = "marker"
) -> list[Json]:
    """All of a list that the server gives in pages. marker: how it is told where to go on."""
    found: list[Json] = []
    asked = dict(query)
    while True:
        answer = await client.call("GET", path, query=asked)
        found += answer[wrapper]
        if not answer.get("next"):
            return found
        asked[marker] = str(answer["next"])
