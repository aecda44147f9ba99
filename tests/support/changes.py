"""What the tests of changes say over and over."""

from datetime import UTC, datetime

from engine.types.contract import Wait
from tests.support.program import Http, Json, eventually, template
from tests.support.things import World

#: An operation that does not end by itself.
FAR = Wait(datetime(2100, 1, 1, tzinfo=UTC), {})


def thing(size: Json = 1, **more: Json) -> Json:
    properties = {"size": size} | {key: more.pop(key) for key in ("place",) if key in more}
    return {"type": "Test::Thing", "properties": properties, **more}


async def put(run: Http, name: str, resources: Json, **body: Json) -> None:
    await run.update(name, "PUT", template=template(resources), **body)


async def refused(run: Http, method: str, name: str, rest: str, body: Json = None) -> Json:
    stack = await run.stack(name)
    path = f"/stacks/{stack['stack_name']}/{stack['id']}{rest}"
    status, said = await run.call(method, path, body)
    assert status >= 400, said
    return status, said["error"]


async def begun(world: World, operation: str, name: str) -> None:
    async def look() -> bool:
        return operation in world.operations(name)

    await eventually(look)


async def ended_as(run: Http, name: str, status: str) -> None:
    async def look() -> bool:
        return bool((await run.stack(name))["stack_status"] == status)

    await eventually(look)


async def gone(run: Http, name: str) -> None:
    async def look() -> bool:
        return (await run.call("GET", f"/stacks/{name}"))[0] == 404

    await eventually(look)


async def ended_again(run: Http, name: str) -> None:
    """The newest traversal has ended well."""

    async def look() -> bool:
        said = await run.at("GET", name, "/graph")
        assert said["traversal"]["state"] in ("running", "ending", "complete"), said["traversal"]
        return bool(said["traversal"]["state"] == "complete")

    await eventually(look)
