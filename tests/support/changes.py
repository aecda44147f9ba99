"""Steps that many tests of changes share."""

from datetime import UTC, datetime
from typing import Any

from engine.types.contract import Wait
from tests.support.program import Http, Json, Program, eventually, template
from tests.support.scripted_type import World

#: The outcome of an operation that ends only when it gets a signal, or is stopped.
LONG_WAIT = Wait(datetime(2100, 1, 1, tzinfo=UTC), {})

#: $1: a waiting hook.
EXPIRE = "update hook set deadline = now() where id = $1::uuid"


def thing(size: Json = 1, **more: Json) -> Json:
    properties = {"size": size} | {key: more.pop(key) for key in ("place",) if key in more}
    return {"type": "Test::Thing", "properties": properties, **more}


async def put(run: Http, name: str, resources: Json, **body: Json) -> None:
    await run.update(name, "PUT", template=template(resources), **body)


async def expect_error(run: Http, method: str, name: str, rest: str, body: Json = None) -> Json:
    stack = await run.stack(name)
    path = f"/stacks/{stack['stack_name']}/{stack['id']}{rest}"
    status, response = await run.call(method, path, body)
    assert status >= 400, response
    return status, response["error"]


def error_text(error: Json) -> str:
    """An error of the Orchestration API with everything that a client can show: its message, and
    the place, reason and remedy of each finding."""
    found = error.get("findings") or [error]
    parts = [f"{one.get('place', '')}: {one.get('remedy', '')}" for one in found]
    return "\n".join([str(error["message"]), *parts])


async def until_started(world: World, operation: str, name: str) -> None:
    async def check() -> bool:
        return operation in world.operations(name)

    await eventually(check)


async def until_status(run: Http, name: str, status: str) -> None:
    async def check() -> bool:
        return bool((await run.stack(name))["stack_status"] == status)

    await eventually(check)


async def until_deleted(run: Http, name: str) -> None:
    async def check() -> bool:
        return (await run.call("GET", f"/stacks/{name}"))[0] == 404

    await eventually(check)


async def until_complete(run: Http, name: str) -> None:
    """Wait until the newest traversal is complete."""

    async def check() -> bool:
        graph = await run.stack_request("GET", name, "/graph")
        assert graph["traversal"]["state"] in ("running", "ending", "complete"), graph["traversal"]
        return bool(graph["traversal"]["state"] == "complete")

    await eventually(check)


async def expire_hook(run: Program, name: str = "s") -> Json:
    """Wait until the stack has one waiting hook, end its time, and return it. A short timeout could
    end before the test has seen the hook."""
    (hook,) = await run.waiting_hooks(name)
    await run.database.pool.execute(EXPIRE, hook["id"])
    return hook


async def observed(run: Http, name: str = "s") -> Any:
    """Observe a stack; return its drift."""
    await run.act(name, "observe")

    async def ended() -> Any:
        drift = await run.stack_request("GET", name, "/drift")
        return None if drift["observing"] else drift

    return await eventually(ended)
