"""Answers to drift hooks that arrive together with other answers, changes and observations, at two
processes that share a database: one wins, the others get the reason, and nothing is lost."""

import asyncio
from collections.abc import AsyncIterator, Awaitable, Mapping
from typing import Any

import pytest

from tests.integration.engine.test_adopted_values import changed
from tests.integration.engine.test_drift_hooks import created, hooks, observe
from tests.support.changes import thing
from tests.support.program import Json, Program, eventually, program, template
from tests.support.scripted_type import Thing, World

HOLD: Json = {"convergence": {"observe": {"every": "10m"}, "on_drift": "hold"}}
Result = tuple[int, Json]
#: Stacks in which a race runs at once, with different answers.
STACKS = [f"s{number}" for number in range(6)]
WAITING = "select count(*) from hook where state = 'waiting'"


@pytest.fixture
async def both(
    database_url: str, world: World, paused_observers: None
) -> AsyncIterator[tuple[Program, Program]]:
    """Two programs on one database."""
    settings: dict[str, Any] = {"types": [Thing(world)]}
    async with program(database_url, **settings) as one, program(database_url, **settings) as two:
        yield one, two


async def drifted(run: Program, world: World) -> dict[str, Json]:
    """Create the stacks, with drift of `a`; return the waiting hook of each."""
    await asyncio.gather(*(created(run, {"a": thing()}, name=name) for name in STACKS))
    world.observed["a"] = changed(1, 7)
    await observe(run)
    found = {name: await hooks(run, stack=name) for name in STACKS}
    return {name: one for name, (one,) in found.items()}


async def at_rest(run: Program, world: World) -> dict[str, tuple[str, int]]:
    """By stack, its state and the number of its changes, after all that was approved has been done
    and observed. The drift is over."""
    await observe(run)
    states = {name: await run.until_ended(name) for name in STACKS}
    world.observed.clear()
    await observe(run)
    assert await run.database.pool.fetchval(WAITING) == 0
    found = {}
    for name, state in states.items():
        assert await run.until_ended(name) == state
        versions = await run.stack_request("GET", name, "/versions")
        found[name] = state, len(versions["traversals"])
        drift = await run.stack_request("GET", name, "/drift")
        assert drift["resources"] == [] and not drift["observing"]
    return found


async def path_of(run: Program, name: str) -> str:
    return f"/stacks/{name}/{(await run.stack(name))['id']}"


async def both_orders(
    name: str, first: Awaitable[Result], second: Awaitable[Result]
) -> tuple[Result, Result]:
    """Send two requests at once, in the other order for every second stack."""
    if STACKS.index(name) % 2:
        later, earlier = await asyncio.gather(second, first)
        return earlier, later
    return await asyncio.gather(first, second)


def answer(run: Program, waiting: Mapping[str, Json], name: str) -> Awaitable[Result]:
    """Send the answer of a stack: two stacks each get repair, adopt and ignore."""
    decision = ("repair", "adopt", "ignore")[STACKS.index(name) // 2]
    data = {"for": "1h"} if decision == "ignore" else None
    return run.signal(waiting[name], decision, user="ada", data=data)


def reason_of(response: Json) -> str:
    return str(response["error"]["message"])


async def test_one_of_two_answers_wins_and_the_other_gets_the_reason(
    both: tuple[Program, Program], world: World
) -> None:
    one, two = both
    waiting = await drifted(one, world)

    async def race(name: str) -> str:
        results = await both_orders(
            name,
            one.signal(waiting[name], "repair", user="ada"),
            two.signal(waiting[name], "adopt", user="bob"),
        )
        assert sorted(status for status, _ in results) == [200, 409], results
        ((_, refused),) = [one for one in results if one[0] == 409]
        winner, by = ("repair", "ada") if results[0][0] == 200 else ("adopt", "bob")
        assert refused["error"]["type"] == "HookAlreadyAnswered"
        assert f"already answered: {winner} by {by}" in reason_of(refused)
        return winner

    winners = dict(zip(STACKS, await asyncio.gather(*map(race, STACKS)), strict=True))
    ended = await at_rest(one, world)
    for name, winner in winners.items():
        expected = {"repair": ("UPDATE_COMPLETE", 2), "adopt": ("CREATE_COMPLETE", 1)}[winner]
        assert ended[name] == expected, name
        drift = await one.stack_request("GET", name, "/drift")
        assert bool(drift["adopted"]) is (winner == "adopt")


async def test_an_answer_while_an_update_starts_wins_or_is_superseded(
    both: tuple[Program, Program], world: World
) -> None:
    """Also an answer that wins changes no resource twice."""
    one, two = both
    waiting = await drifted(one, world)
    body = {"template": template({"a": thing(size=2), "b": thing()}), "environment": HOLD}

    async def race(name: str) -> None:
        (status, response), (accepted, updated) = await both_orders(
            name,
            answer(two, waiting, name),
            one.call("PUT", await path_of(one, name), body),
        )
        assert accepted == 202, updated
        assert status == 200 or (status == 409 and "change" in reason_of(response)), response

    await asyncio.gather(*map(race, STACKS))
    states = [await one.until_ended(name) for name in STACKS]
    assert set(states) == {"UPDATE_COMPLETE"}
    world.observed.clear()
    ended = await at_rest(one, world)
    assert {changes for _, changes in ended.values()} == {2}
    assert sorted(world.things.values()) == [1] * len(STACKS) + [2] * len(STACKS)


async def test_an_answer_while_the_drift_ends_wins_or_is_superseded(
    both: tuple[Program, Program], world: World
) -> None:
    one, two = both
    waiting = await drifted(one, world)
    world.observed.clear()
    requests = [answer(two, waiting, name) for name in STACKS]
    results, *_ = await asyncio.gather(asyncio.gather(*requests), observe(one), observe(two))
    for status, response in results:
        assert status == 200 or (status == 409 and "changed" in reason_of(response)), response
    ended = await at_rest(one, world)
    assert set(ended.values()) == {("CREATE_COMPLETE", 1)}
    assert {one for one, of in world.done if of == "a"} == {"create"}


async def test_an_answer_while_the_drift_changes_leaves_one_hook_about_the_new_drift(
    both: tuple[Program, Program], world: World
) -> None:
    one, two = both
    waiting = await drifted(one, world)
    world.observed["a"] = changed(1, 8)
    requests = [answer(two, waiting, name) for name in STACKS]
    results, *_ = await asyncio.gather(asyncio.gather(*requests), observe(one), observe(two))
    await observe(one)
    for name, (status, response) in zip(STACKS, results, strict=True):
        if status == 200 and response["decision"] == "ignore":
            assert await hooks(one, stack=name) == []  # also of other drift
            continue
        (found,) = await hooks(one, stack=name)
        assert found["id"] != waiting[name]["id"]
        assert found["resource"]["changes"]["size"]["from"] == 8
    ended = await at_rest(one, world)
    assert set(ended.values()) == {("CREATE_COMPLETE", 1)}


async def test_an_answer_while_the_stack_is_deleted_delays_no_delete(
    both: tuple[Program, Program], world: World
) -> None:
    one, two = both
    waiting = await drifted(one, world)

    async def race(name: str) -> None:
        (status, response), (deleted, _) = await both_orders(
            name,
            answer(two, waiting, name),
            one.call("DELETE", await path_of(one, name)),
        )
        assert deleted == 204
        assert status == 200 or (status in (404, 409) and reason_of(response)), response

    await asyncio.gather(observe(two), *map(race, STACKS))
    await asyncio.gather(observe(one), observe(two))

    async def gone() -> bool:
        _, found = await one.call("GET", "/stacks")
        return not found["stacks"]

    await eventually(gone)
    assert await one.database.pool.fetchval(WAITING) == 0
    assert world.things == {}
