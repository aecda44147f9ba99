"""The observer: errors of types, claims, and changes of resources during an observation."""

import asyncio
from collections import Counter
from collections.abc import AsyncIterator, Mapping, Sequence
from contextlib import asynccontextmanager
from datetime import timedelta
from typing import Any
from uuid import UUID, uuid4

import pytest

from engine.store.observer import observation_schedule
from engine.store.observer.observation_schedule import FinishedObservation, report_resources
from engine.types.contract import Call
from engine.types.observation import Difference, Observation
from engine.types.registry import TypeRegistry
from engine.types.value import Value
from engine.words import ObservedState, ResourceId
from engine.work.observer.observer import BATCHES_OF_PROJECT, Observer
from tests.integration.conftest import QUICK
from tests.support.changes import observed, put, thing
from tests.support.paused_observers import run_observers
from tests.support.program import Program, eventually, program
from tests.support.scripted_type import Thing, World

CHANGED = Observation(ObservedState.DEGRADED, reason="it is slow")
LEASE = timedelta(minutes=1)
#: The loop of the observer, which tests remove from their programs.
RUN = Observer.run


class SlowThing(Thing):
    """Its observations wait for `go`."""

    def __init__(self, world: World) -> None:
        super().__init__(world)
        self.started, self.go = asyncio.Event(), asyncio.Event()

    async def observe(self, calls: Sequence[Call]) -> Mapping[ResourceId, Observation]:  # type: ignore[override]
        self.started.set()
        await self.go.wait()
        return super().observe(calls)


class RecoveringThing(SlowThing):
    """Its resource `a` differs in the first observation only."""

    async def observe(self, calls: Sequence[Call]) -> Mapping[ResourceId, Observation]:  # type: ignore[override]
        found = await super().observe(calls)
        self.world.observed.pop("a", None)
        return found


@pytest.fixture(scope="module")
def things_settings(paused_observers: None) -> Mapping[str, Any]:
    return {}


@pytest.fixture
def unobserved(things_in_own_project: Program) -> Program:
    """A program whose observer does not run, so that tests run their own."""
    return things_in_own_project


@pytest.fixture
async def run(database_url: str, world: World) -> AsyncIterator[Program]:
    with run_observers():
        async with program(database_url, QUICK, types=[Thing(world)]) as running:
            yield running


async def request(run: Program) -> str:
    stack_id = str((await run.stack("s"))["id"])
    async with run.database.connection() as conn:
        await observation_schedule.request(conn, UUID(stack_id))
    return stack_id


async def drift_of(run: Program) -> list[dict[str, str]]:
    found: list[dict[str, str]] = (await run.stack_request("GET", "s", "/drift"))["resources"]
    return found


async def create(run: Program, *names: str) -> None:
    await run.create("s", {name: thing() for name in names})
    assert await run.until_ended("s") == "CREATE_COMPLETE"


async def test_an_error_of_a_type_makes_its_resources_unknown(run: Program, world: World) -> None:
    await create(run, "a", "b")
    world.observed["a"] = ValueError("a secret text")
    drift = await observed(run)
    assert [one["state"] for one in drift["resources"]] == ["unknown", "unknown"]
    reason = drift["resources"][0]["reason"]
    assert reason.startswith("internal error ") and "secret" not in reason
    del world.observed["a"]
    assert (await observed(run))["resources"] == []


@pytest.mark.parametrize(
    "observation",
    [
        Observation(ObservedState.CHANGED, [Difference("size", 1, "\ud800")]),
        Observation(ObservedState.CHANGED, [Difference("size", 1, {"a": 2**80})]),
        Observation(ObservedState.DEGRADED, reason="\ud800"),
        Observation(ObservedState.DEGRADED, reason=None),  # type: ignore[arg-type]
        "missing",
    ],
)
async def test_an_observation_that_cannot_be_stored_is_one_of_its_resource_alone(
    run: Program, world: World, observation: Observation
) -> None:
    await create(run, "a", "b")
    world.observed = {"a": observation, "b": CHANGED}
    states = {one["resource_name"]: one["state"] for one in (await observed(run))["resources"]}
    assert states == {"a": "unknown", "b": "degraded"}


async def test_the_first_differences_of_a_resource_are_shown(run: Program, world: World) -> None:
    await create(run, "a")
    many = [Difference(f"p{number}", 1, "x" * 5_000) for number in range(30)]
    world.observed = {"a": Observation(ObservedState.CHANGED, many)}
    (one,) = (await observed(run))["resources"]
    assert [shown["path"] for shown in one["differences"]] == [f"p{n}" for n in range(20)]
    assert all(len(shown["observed"]) == 1_003 for shown in one["differences"])


async def test_a_resource_without_an_observation_is_unknown(
    run: Program, world: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    await create(run, "a")
    monkeypatch.setattr(Thing, "observe", lambda self, calls: {})
    (found,) = (await observed(run))["resources"]
    assert found["state"] == "unknown"
    assert found["reason"] == "the type did not report a state of the resource"


async def test_a_call_that_takes_too_long_is_unknown(unobserved: Program, world: World) -> None:
    await create(unobserved, "a")
    await request(unobserved)
    registry, limit = TypeRegistry([SlowThing(world)]), timedelta(milliseconds=50)
    assert await Observer(unobserved.database, registry, page_timeout=limit).observe_due() == 1
    (found,) = await drift_of(unobserved)
    assert found["reason"] == "there was no answer within 0.05 s"


async def test_a_resource_that_changes_during_its_observation_keeps_none(
    unobserved: Program, world: World
) -> None:
    await create(unobserved, "a", "b")
    world.observed |= {"a": CHANGED, "b": CHANGED}
    slow = RecoveringThing(world)
    await request(unobserved)
    observer = Observer(unobserved.database, TypeRegistry([slow]))
    observing = asyncio.create_task(observer.observe_due())
    async with asyncio.timeout(60):
        await slow.started.wait()
    await put(unobserved, "s", {"a": thing(2), "b": thing()})
    assert await unobserved.until_ended("s") == "UPDATE_COMPLETE"
    slow.go.set()
    await observing
    assert [one["resource_name"] for one in await drift_of(unobserved)] == ["b"]
    assert await unobserved.database.pool.fetchval("select count(*) from observation") == 1


async def test_a_stack_is_claimed_once_and_again_after_its_lease(
    unobserved: Program,
) -> None:
    await create(unobserved, "a")
    stack_id = UUID(await request(unobserved))
    async with unobserved.database.connection() as conn:
        (first,) = await observation_schedule.claim(conn, 10, timedelta(0))
        (second,) = await observation_schedule.claim(conn, 10, LEASE)
        assert await observation_schedule.claim(conn, 10, LEASE) == []
        # The process that lost its lease ends nothing.
        await observation_schedule.finish(conn, [FinishedObservation(first, None, 7, 7)])
        assert (await observation_schedule.read_status(conn, stack_id)).due
        # A request during an observation makes the stack due again.
        await observation_schedule.request(conn, stack_id)
        await observation_schedule.finish(conn, [FinishedObservation(second, None, 1, 0)])
        (third,) = await observation_schedule.claim(conn, 10, LEASE)
        await observation_schedule.finish(conn, [FinishedObservation(third, None, 1, 0)])
        status = await observation_schedule.read_status(conn, stack_id)
        assert (status.due, status.observable) == (False, 1)


async def test_the_same_observation_again_writes_no_row(unobserved: Program, world: World) -> None:
    await create(unobserved, *(f"r{index}" for index in range(20)))
    world.observed["r1"] = CHANGED
    observer, versions = Observer(unobserved.database, TypeRegistry([Thing(world)])), []
    for _ in range(2):
        await request(unobserved)
        await observer.observe_due()
        versions.append(await unobserved.database.pool.fetch("select xmin, ctid from observation"))
    assert len(versions[0]) == 1 and versions[0] == versions[1]


async def test_two_observers_look_at_each_resource_once(
    unobserved: Program, world: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    names = [f"s{number}" for number in range(6)]
    for name in names:
        await unobserved.create(name, {key: thing() for key in "ab"})
        assert await unobserved.until_ended(name) == "CREATE_COMPLETE"
        await unobserved.act(name, "observe")
    looks, observe = Counter[str](), Thing.observe

    async def counted(self: Thing, calls: Sequence[Call]) -> Mapping[ResourceId, Observation]:
        looks.update(f"{call.stack_name}/{call.resource_name}" for call in calls)
        await asyncio.sleep(0)  # the other observer continues
        return observe(self, calls)

    monkeypatch.setattr(Thing, "observe", counted)
    registry = TypeRegistry([Thing(world)])
    counts = await asyncio.gather(
        *(Observer(unobserved.database, registry).observe_due() for _ in range(2))
    )
    assert sum(counts) == len(names)
    assert looks == Counter(f"{name}/{key}" for name in names for key in "ab")


async def test_observations_of_deleted_stacks_end(unobserved: Program, world: World) -> None:
    insert = "insert into observation_schedule (stack_id, project, next_at) values ($1, 'p', now())"
    await unobserved.database.pool.execute(insert, uuid4())
    await Observer(unobserved.database, TypeRegistry([Thing(world)])).observe_due()
    assert await unobserved.database.pool.fetch("select from observation_schedule") == []


async def test_slow_stacks_of_a_project_do_not_delay_other_projects(
    unobserved: Program, world: World
) -> None:
    slow = SlowThing(world)
    for name in ("s", "t", "u"):
        await unobserved.create(name, {"a": thing()})
        assert await unobserved.until_ended(name) == "CREATE_COMPLETE"
        await unobserved.act(name, "observe")
    other = Program(unobserved.session, unobserved.url, "other")
    await other.create("s", {"v": {"type": "OS::Heat::Value", "properties": {"value": 1}}})
    assert await other.until_ended("s") == "CREATE_COMPLETE"
    registry = TypeRegistry([slow, Value()])
    async with observing(unobserved, registry):
        await observed(other)
        claimed = "select count(*) from observation_schedule where claimed_at is not null"
        assert await unobserved.database.pool.fetchval(claimed) == BATCHES_OF_PROJECT
        slow.go.set()
        for name in ("s", "t", "u"):
            assert (await observed(unobserved, name))["observable_resources"] == 1


async def test_a_process_that_stops_releases_its_stacks(unobserved: Program, world: World) -> None:
    await create(unobserved, "a")
    await request(unobserved)
    slow = SlowThing(world)
    async with observing(unobserved, TypeRegistry([slow])):
        await slow.started.wait()
    async with unobserved.database.connection() as conn:
        assert len(await observation_schedule.claim(conn, 1, LEASE)) == 1


@asynccontextmanager
async def observing(run: Program, registry: TypeRegistry) -> AsyncIterator[None]:
    """While entered, an observer runs; afterwards, it ends at once."""
    observer, stop = Observer(run.database, registry), asyncio.Event()
    async with asyncio.timeout(60):
        task = asyncio.create_task(RUN(observer, stop))
        async with run.database.listen(observation_schedule.CHANNEL, observer.wake):
            yield
        stop.set()
        observer.wake()
        await task


@pytest.mark.parametrize("by", ["report", "request"])
async def test_what_is_asked_for_while_a_claim_is_made_is_observed_after_it(
    unobserved: Program, by: str
) -> None:
    """It waits for the row that the claim has locked, and the claim does not have it."""
    run = unobserved
    await run.create("s", {"a": thing(), "b": thing()})
    assert await run.until_ended("s") == "CREATE_COMPLETE"
    stack_id = UUID(str((await run.stack("s"))["id"]))
    rows = await run.database.pool.fetch("select id from resource where stack_id = $1", stack_id)
    first, second = (row["id"] for row in rows)
    lease = timedelta(seconds=30)

    async def ask() -> None:
        async with run.database.connection() as conn:
            if by == "report":
                await report_resources(conn, [(stack_id, [second])])
            else:
                await observation_schedule.request(conn, stack_id)

    async def is_blocked() -> bool:
        return bool(await run.database.pool.fetchval(
            "select count(*) from pg_stat_activity"
            " where wait_event_type = 'Lock' and datname = current_database()"
        ))  # fmt: skip

    async with run.database.connection() as conn:
        await report_resources(conn, [(stack_id, [first])])
    async with asyncio.TaskGroup() as tasks, run.database.transaction(by_index=True) as conn:
        # As a claim, which locks the row before it says when it began.
        await conn.execute(
            "select from observation_schedule where stack_id = $1 for update", stack_id
        )
        tasks.create_task(ask())
        await eventually(is_blocked)
        claimed = await observation_schedule.claim(
            conn, 50, lease, [], urgent_only=[], reports_last=[]
        )
    (one,) = claimed
    assert one.resources == [first]
    async with run.database.transaction() as conn:
        ended = FinishedObservation(one, timedelta(days=1), 2, 0, True)
        await observation_schedule.finish(conn, [ended])
    async with run.database.transaction(by_index=True) as conn:
        (again,) = await observation_schedule.claim(
            conn, 50, lease, [], urgent_only=[], reports_last=[]
        )
    assert again.requested if by == "request" else second in (again.resources or ())
