"""Data for resources that wait for it: early, in time, over the limits, for what waits for none."""

import pytest

from tests.support.changes import FAR, begun, put, thing
from tests.support.program import Json, Program, program, resource
from tests.support.things import Thing, World


async def send(run: Program, name: str, data: Json) -> tuple[int, Json]:
    stack = await run.stack("s")
    path = f"/stacks/s/{stack['id']}/resources/{name}/signal"
    return await run.call("POST", path, data)


async def test_what_comes_early_is_kept_and_what_comes_in_time_wakes(
    run: Program, world: World
) -> None:
    world.will("create", "a", FAR)
    held = {"hooks": [{"at": "a", "on": "pre-create"}]}
    await run.create("s", {"a": thing()}, environment=held)
    (hook,) = await run.waiting("s")
    assert (await send(run, "a", {"early": 1}))[0] == 200
    await run.signal(hook)
    await begun(world, "create", "a")
    assert world.calls[0].signals == [{"early": 1}]
    assert (await send(run, "a", {"late": 2}))[0] == 200
    assert await run.until_ended("s") == "CREATE_COMPLETE"
    assert world.calls[1].signals == [{"early": 1}, {"late": 2}]


async def test_another_in_its_place_begins_without(run: Program, world: World) -> None:
    await run.create("s", {"a": thing()})
    await run.until_ended("s")
    assert (await send(run, "a", {"to": "the old"}))[0] == 200
    await put(run, "s", {"a": thing(place="there")})
    assert await run.until_ended("s") == "UPDATE_COMPLETE"
    assert [list(call.signals) for call in world.calls] == [[], [], [{"to": "the old"}]]
    async with run.database.connection() as conn:
        assert await conn.fetchval("select count(*) from resource_signal") == 0


async def test_what_waits_for_nothing_takes_none(run: Program) -> None:
    await run.create("s", {"t": resource()})
    await run.until_ended("s")
    status, said = await send(run, "t", {"x": 1})
    assert (status, said["error"]["type"]) == (400, "ResourceActionNotSupported")
    assert (await send(run, "nobody", {"x": 1}))[0] == 404


@pytest.mark.parametrize("data", [[1], "text", 5])
async def test_only_objects_are_taken(run: Program, data: Json) -> None:
    await run.create("s", {"a": thing()})
    await run.until_ended("s")
    assert (await send(run, "a", data))[0] == 400


async def test_limits_are_kept_and_named(database_url: str, world: World) -> None:
    few = {"quotas.signals_per_resource": 2, "quotas.signal_bytes": 20}
    async with program(database_url, few, types=[Thing(world)]) as run:
        await run.create("s", {"a": thing()})
        await run.until_ended("s")
        status, said = await send(run, "a", {"long": "x" * 30})
        assert status == 400 and "The most is 20" in said["error"]["message"]
        assert [(await send(run, "a", {"n": n}))[0] for n in range(3)] == [200, 200, 400]
