"""Quotas of observations and repairs: what waits, what is refused, and what the project sees."""

import asyncio
from collections.abc import AsyncIterator
from datetime import datetime, time
from typing import Any

import pytest

from engine.plan.convergence import ConvergencePolicy
from engine.store.observer.drift_rows import RepairableStack
from engine.types.observation import Observation
from engine.types.registry import TypeRegistry
from engine.work.observer.observer import Observer
from tests.support.changes import thing
from tests.support.program import Json, Program, eventually, program
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
    found: list[tuple[RepairableStack, ConvergencePolicy, Json]] = []

    async def keep(
        project: str, one: RepairableStack, policy: ConvergencePolicy, section: Json
    ) -> bool:
        found.append((one, policy, section))
        return False

    await Observer(run.database, TypeRegistry([Thing(world)]), repair=keep).observe_due()
    assert {str(one.root_id) for one, *_ in found} == {*stacks}
    await asyncio.gather(*(run.engine.repairs.start("small", *one) for one in found))
    assert (await used(small))["repairs_per_day"] == (1, 1)


async def why(run: Program) -> Any:
    return await run.stack_request("GET", "s", "/why")


async def test_an_unknown_resource_is_not_observed_before_the_quota_ends(
    run: Program, world: World
) -> None:
    await create(run, "s", "a", "b")
    world.observed["a"] = Observation.unknown("it is slow", "it is slow")
    for _ in range(2):
        await observe(run, world)
    await run.database.pool.execute(
        "update observation_schedule set next_at = now() + interval '1s'"
    )
    found = await why(run)
    (paused,), (unknown,) = found["paused"], found["unknown"]
    assert unknown["next_observation_at"] == paused["until"]
    assert f"The next observation is not before {paused['until']}." in unknown["sentence"]
    assert (await drift_of(run, "s"))["next_observation_at"] == paused["until"]


async def test_a_policy_that_has_ended_schedules_and_pauses_nothing(
    run: Program, world: World
) -> None:
    await create(run, "s", "a", "b")
    world.observed["a"] = Observation.unknown("it is slow", "it is slow")
    for _ in range(2):
        await observe(run, world)
    # The schedule still has the time of the policy.
    await run.update("s", environment={"convergence": {"observe": "never"}})
    assert await run.until_ended("s") == "UPDATE_COMPLETE"
    next_at = "select next_at from observation_schedule"
    assert await run.database.pool.fetchval(next_at) is not None
    found = await why(run)
    assert found["paused"] == [] and "No other is scheduled." in found["unknown"][0]["sentence"]
    drift = await drift_of(run, "s")
    assert (drift["next_observation_at"], drift["paused"]) == (None, [])


LEAVE_OUT = """
update observation_schedule
   set deferred = array(select id from resource), next_at = now() - interval '1s',
       deferred_reason = 'the budget of requests is used up'
"""


async def test_resources_that_wait_for_another_reason_do_not_show_the_earlier_one(
    run: Program, world: World
) -> None:
    await create(run, "s", "a", "b")
    await observe(run, world)
    pool = run.database.pool
    # What is due waits for nothing, and what is requested has no time in 1970.
    await pool.execute(LEAVE_OUT)
    assert (await drift_of(run, "s"))["paused"] == []
    await run.act("s", "observe")
    assert (await drift_of(run, "s"))["paused"] == []
    # A value of the stack cannot be decrypted: it is tried again in a minute.
    await pool.execute(LEAVE_OUT + ", requested_at = now() - interval '1h'")
    sealed = """'{"$sealed:v2:0000000000000000": "AAAA"}'"""
    await pool.execute(f"update resource set properties = {sealed} where name = 'a'")
    await observe(run, world)
    (paused,) = (await drift_of(run, "s"))["paused"]
    assert "cannot be decrypted: no key with the id 0000000000000000" in paused["reason"]
    assert "budget" not in paused["sentence"] and paused["resources"] == 2
    assert (await why(run))["paused"] == [paused]


async def test_what_the_quota_has_delayed_does_not_name_a_budget_when_the_quota_is_raised(
    run: Program, world: World
) -> None:
    await create(run, "s", "a", "b", "c")
    await observe(run, world)
    await run.database.pool.execute(LEAVE_OUT)
    await observe(run, world)
    await run.database.pool.execute("delete from observer_usage")
    (paused,) = (await drift_of(run, "s"))["paused"]
    assert paused["reason"] == "the project has used up its quota of observations"


async def test_a_deleted_stack_is_not_observed(run: Program, world: World) -> None:
    await create(run, "s", "a", "b")
    for _ in range(2):
        await observe(run, world)
    stack_id = (await run.stack("s"))["id"]
    assert (await drift_of(run, "s"))["paused"] != []
    await run.stack_request("DELETE", "s")

    async def deleted() -> bool:
        return (await run.call("GET", "/stacks/s"))[0] == 404

    await eventually(deleted)
    status, found = await run.call("GET", f"/stacks/s/{stack_id}/why")
    assert status == 200, found
    assert (found["paused"], found["unknown"], found["unrepaired"]) == ([], [], [])
    status, drift = await run.call("GET", f"/stacks/s/{stack_id}/drift")
    assert (drift["next_observation_at"], drift["paused"], drift["resources"]) == (None, [], [])
