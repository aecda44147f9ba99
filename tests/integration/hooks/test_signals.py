"""Signals to resources: before and while the resource waits, above the limits, and for types
without signals.
"""

import pytest

from tests.support.changes import LONG_WAIT, put, thing, until_started
from tests.support.program import Json, Program, program, resource
from tests.support.scripted_type import Thing, World


@pytest.fixture
def run(things_in_own_project: Program) -> Program:
    return things_in_own_project


async def send(run: Program, name: str, data: Json) -> tuple[int, Json]:
    stack = await run.stack("s")
    path = f"/stacks/s/{stack['id']}/resources/{name}/signal"
    return await run.call("POST", path, data)


async def test_an_early_signal_is_stored_and_a_later_one_wakes_the_resource(
    run: Program, world: World
) -> None:
    world.script("create", "a", LONG_WAIT)
    hooks = {"hooks": [{"at": "a", "on": "pre-create"}]}
    await run.create("s", {"a": thing()}, environment=hooks)
    (hook,) = await run.waiting_hooks("s")
    assert (await send(run, "a", {"early": 1}))[0] == 200
    await run.signal(hook)
    await until_started(world, "create", "a")
    assert world.calls[0].signals == [{"early": 1}]
    assert (await send(run, "a", {"late": 2}))[0] == 200
    assert await run.until_ended("s") == "CREATE_COMPLETE"
    assert world.calls[1].signals == [{"early": 1}, {"late": 2}]


async def test_a_replacement_starts_without_signals(run: Program, world: World) -> None:
    await run.create("s", {"a": thing()})
    await run.until_ended("s")
    assert (await send(run, "a", {"to": "the old"}))[0] == 200
    await put(run, "s", {"a": thing(place="there")})
    assert await run.until_ended("s") == "UPDATE_COMPLETE"
    assert [list(call.signals) for call in world.calls] == [[], [], [{"to": "the old"}]]
    async with run.database.connection() as conn:
        assert await conn.fetchval("select count(*) from resource_signal") == 0


async def test_a_type_without_signals_refuses_them(run: Program) -> None:
    await run.create("s", {"t": resource()})
    await run.until_ended("s")
    status, response = await send(run, "t", {"x": 1})
    assert (status, response["error"]["type"]) == (400, "ResourceActionNotSupported")
    assert (await send(run, "nobody", {"x": 1}))[0] == 404


@pytest.mark.parametrize("data", [[1], "text", 5])
async def test_only_objects_are_accepted_as_signals(run: Program, data: Json) -> None:
    await run.create("s", {"a": thing()})
    await run.until_ended("s")
    assert (await send(run, "a", data))[0] == 400


async def test_signals_above_a_limit_are_refused_with_the_limit(
    database_url: str, world: World
) -> None:
    limits = {"quotas.signals_per_resource": 2, "quotas.signal_bytes": 20}
    async with program(database_url, limits, types=[Thing(world)]) as run:
        await run.create("s", {"a": thing()})
        await run.until_ended("s")
        status, response = await send(run, "a", {"long": "x" * 30})
        assert status == 400 and "The limit is 20" in response["error"]["remedy"]
        assert [(await send(run, "a", {"n": n}))[0] for n in range(3)] == [200, 200, 400]
