"""Quotas of observations and repairs: what waits, what is refused, and what the project sees."""

import asyncio
from collections.abc import AsyncIterator
from datetime import datetime, time
from typing import Any
from uuid import UUID

import pytest

from engine.types.registry import TypeRegistry
from engine.work.observer.observer import Observer
from tests.support.changes import thing
from tests.support.program import Json, Program, program
from tests.support.scripted_type import Thing, World

REPAIR: Json = {"observe": {"every": "10m"}, "on_drift": "repair"}
QUOTAS = {"quotas.observations_per_day": 3, "quotas.projects.small.repairs_per_day": 1}


@pytest.fixture
async def run(
    database_url: str, world: World, monkeypatch: pytest.MonkeyPatch
) -> AsyncIterator[Program]:
    """A program whose observer does not run, so that tests run their own."""
    monkeypatch.setattr(Observer, "run", lambda self, stop: stop.wait())
    async with program(database_url, QUOTAS, types=[Thing(world)]) as running:
        yield running


async def observe(run: Program, world: World) -> int:
    """Observe all scheduled stacks, as the program does."""
    await run.database.pool.execute(
        "update observation_schedule set next_at = now() - interval '1s' where next_at > '1970-01-02'"
    )
    observer = Observer(
        run.database,
        TypeRegistry([Thing(world)]),
        repair=run.engine.repairs.start,
        within_quota=run.engine.observations.within_quota,
    )
    return await observer.observe_due()


async def create(run: Program, name: str, *names: str, policy: Json = None) -> None:
    environment = {"convergence": policy or {"observe": {"every": "10m"}}}
    await run.create(name, {one: thing() for one in names}, environment=environment)
    assert await run.until_ended(name) == "CREATE_COMPLETE"


async def used(run: Program) -> dict[str, tuple[int | None, int]]:
    _, response = await run.call("GET", "/quotas")
    return {one["name"]: (one["limit"], one["used"]) for one in response["quotas"]}


async def drift_of(run: Program, name: str) -> Any:
    return await run.stack_request("GET", name, "/drift")


async def test_observations_above_the_quota_wait_until_tomorrow(run: Program, world: World) -> None:
    await create(run, "s", "a", "b")
    await observe(run, world)
    assert (await used(run))["observations_per_day"] == (3, 2)
    world.things.clear()
    await observe(run, world)  # a stack is observed as a whole
    assert len((await drift_of(run, "s"))["resources"]) == 2
    before = await drift_of(run, "s")
    await observe(run, world)
    after = await drift_of(run, "s")
    assert after["observed_at"] == before["observed_at"]
    tomorrow = datetime.fromisoformat(after["next_observation_at"])
    assert (tomorrow.hour, tomorrow.minute) == (0, 0)
    reason = "the project has used up its quota of 3 observations of resources today"
    (paused,) = after["paused"]
    assert f"The observation of 2 resources is paused until {paused['until']}" in paused["sentence"]
    assert f"because {reason} ([quotas] observations_per_day)" in paused["sentence"]
    assert datetime.fromisoformat(paused["until"]).time() == time(0)
    assert (await run.stack_request("GET", "s", "/why"))["paused"] == [paused]
    # Also if a budget of requests has left out resources before, and before the next observation.
    await run.database.pool.execute(
        "update observation_schedule set deferred = array[stack_id], next_at = now(),"
        " deferred_reason = 'the budget of requests is used up'"
    )
    assert (await drift_of(run, "s"))["paused"] == [paused]
    await observe(run, world)
    assert (await drift_of(run, "s"))["paused"] == [paused]
    await run.database.pool.execute("update observation_schedule set deferred = null")
    # A request is refused and changes nothing.
    status, response = await run.call(
        "POST", f"/stacks/s/{(await run.stack('s'))['id']}/actions", {"observe": None}
    )
    assert status == 400, response
    assert response["error"]["type"] == "RequestLimitExceeded"
    assert "[quotas] observations_per_day" in str(response["error"])
    assert not (await drift_of(run, "s"))["observing"]
    # Another project has observations of its own; and so has the next day.
    await run.database.pool.execute("update observer_usage set day = day - 1")
    await observe(run, world)
    last = await drift_of(run, "s")
    assert last["observed_at"] > before["observed_at"] and last["paused"] == []


async def test_reports_above_the_quota_are_observed_tomorrow(run: Program, world: World) -> None:
    await create(run, "s", "a", "b", "c")
    await observe(run, world)
    physical = (await run.resources("s"))["a"]["physical_resource_id"]
    world.things.clear()
    body = {"observations": [{"physical_resource_id": physical}]}
    assert (await run.call("POST", "/observations", body))[0] == 202
    await observe(run, world)
    drift = await drift_of(run, "s")
    assert drift["observing"] and drift["resources"] == []
    await run.database.pool.execute("update observer_usage set day = day - 1")
    await observe(run, world)
    assert len((await drift_of(run, "s"))["resources"]) == 3


async def test_repairs_above_the_quota_of_the_project_say_so(run: Program, world: World) -> None:
    small = Program(run.session, run.url, "small")
    small.database, small.engine = run.database, run.engine
    await run.database.pool.execute("delete from observer_usage")
    for name in ("s", "t"):
        await create(small, name, "a", policy=REPAIR)
    world.things.clear()
    await observe(run, world)
    states = [await small.until_ended(name) for name in ("s", "t")]
    assert sorted(states) == ["CREATE_COMPLETE", "UPDATE_COMPLETE"]
    assert (await used(small))["repairs_per_day"] == (1, 1)
    left = ["s", "t"][states.index("CREATE_COMPLETE")]
    (found,) = (await drift_of(small, left))["resources"]
    assert "repairs within a day" in found["unrepaired"]
    assert "[quotas] repairs_per_day" in found["unrepaired"]
    # A day later, it is repaired.
    await run.database.pool.execute("update traversal set started_at = started_at - interval '2d'")
    await run.database.pool.execute("update observer_usage set day = day - 1")
    await observe(run, world)
    assert await small.until_ended(left) == "UPDATE_COMPLETE"


async def test_the_quota_of_repairs_holds_for_concurrent_ones(run: Program, world: World) -> None:
    small = Program(run.session, run.url, "small")
    small.database, small.engine = run.database, run.engine
    stacks = []
    for number in range(3):
        await create(small, f"s{number}", "a", policy=REPAIR | {"observe": {"every": "1d"}})
        stacks.append((await small.stack(f"s{number}"))["id"])
    world.things.clear()
    for stack_id in stacks:  # observed, and not repaired yet
        await run.database.pool.execute(
            "update observation_schedule set next_at = now() where stack_id = $1", stack_id
        )
    await Observer(run.database, TypeRegistry([Thing(world)])).observe_due()
    await asyncio.gather(
        *(run.engine.repairs.start("small", one, ["a"], 5) for one in map(UUID, stacks))
    )
    assert (await used(small))["repairs_per_day"] == (1, 1)
