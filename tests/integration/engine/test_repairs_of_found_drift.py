"""Repairs act on what an observation has found now, and not on drift that was known before: it may
have ended since."""

import asyncio
from collections import Counter
from collections.abc import Awaitable, Callable, Mapping, Sequence
from contextlib import suppress
from datetime import UTC, datetime, timedelta
from typing import Any
from uuid import UUID

import pytest

from engine.plan.convergence import ConvergencePolicy
from engine.store.hooks.drift_hooks import ApprovedRepair
from engine.store.observer import waiting_repairs
from engine.store.observer.drift_rows import RepairableStack
from engine.store.observer.found_drift import FoundDrift
from engine.store.observer.observation_schedule import report_resources
from engine.types.contract import Failed
from engine.types.observation import Observation
from engine.weekly_window import DAYS
from engine.words import ObservedState
from engine.work.observer import repair_reactions
from engine.work.observer.observer import Observer
from engine.work.observer.stack_observation import StackObservation
from tests.integration.engine.test_drift_hooks import (
    HOLD,
    changed,
    created,
    hooks,
    observe,
    observer_of,
    traversals,
)
from tests.integration.engine.test_drift_reactions import reports
from tests.support.changes import LONG_WAIT, put, thing
from tests.support.paused_observers import paused_observer
from tests.support.program import Json, Program, eventually
from tests.support.scripted_type import World

#: Closed when tests run.
CLOSED: Json = {
    "days": [DAYS[(datetime.now(UTC) + timedelta(days=3)).weekday()]],
    "from": "00:00",
    "to": "24:00",
}
REPAIR: Json = {"observe": {"every": "1d"}, "on_drift": "repair"}
MISSING = Observation(ObservedState.MISSING)
#: The operations on a resource whose repair has replaced it.
REPLACED = ["create", "create", "delete"]


def nested(*names: str) -> str:
    resources = "".join(f"  {name}: {{type: Test::Thing}}\n" for name in names)
    return f"heat_template_version: 2018-08-31\nresources:\n{resources}"


FILES = {"a.yaml": nested("a1"), "b.yaml": nested("b1"), "pair.yaml": nested("a1", "b1")}
TWO: Json = {"A": {"type": "a.yaml"}, "B": {"type": "b.yaml"}}
#: The policy of the newest version of a stack, as if its window had opened, or the stack had been
#: updated.
CHANGE_POLICY = """
update template t set environment = jsonb_set(environment, '{convergence}', $2)
  from stack s where s.project = $1 and s.name = 's' and t.stack_id = s.id
"""
#: Makes all stacks of the tree due, or only the root.
MAKE_DUE = """
update observation_schedule q
   set next_at = now() + case when $2 or s.root_id is null then '-1s' else '1h' end::interval,
       early_at = null
  from stack s where s.project = $1 and s.id = q.stack_id
"""
#: A process that has lost its claims: another one has claimed the stacks since.
CLAIM_AGAIN = """
update observation_schedule
   set claim = claim + 1, claimed_at = now(), next_at = now() + interval '30s' where project = $1
"""


@pytest.fixture(scope="module")
def things_settings(paused_observers: None) -> Mapping[str, Any]:
    return {}


@pytest.fixture
def run(things_in_own_project: Program) -> Program:
    return things_in_own_project


async def change_policy(run: Program, policy: Json) -> None:
    await run.database.pool.execute(CHANGE_POLICY, run.project, policy)


async def make_due(run: Program, *, nested: bool = True) -> None:
    await run.database.pool.execute(MAKE_DUE, run.project, nested)


async def age_drift(run: Program) -> None:
    await run.database.pool.execute("update observation set since = since - interval '20 min'")


async def report(run: Program, name: str) -> None:
    """Report a change of a resource, and observe it."""
    physical_id = (await run.resources("s"))[name]["physical_resource_id"]
    body = {"observations": [{"physical_resource_id": physical_id}]}
    assert (await run.call("POST", "/observations", body))[0] == 202
    await observer_of(run).observe_due()


async def answer(run: Program, *names: str) -> None:
    """Approve the repair of resources, also of nested stacks."""
    _, found = await run.call("GET", "/hooks?state=waiting&point=drift")
    by_name = {one["resource_name"]: one for one in found["hooks"]}
    for name in names:
        assert (await run.signal(by_name[name], "repair", user="ada"))[0] == 200


async def report_nested(run: Program, name: str) -> None:
    """As `report`, of a resource of a nested stack, as its recorded ID is not known here."""
    row = await run.database.pool.fetchrow(
        "select r.stack_id, r.id from resource r join stack s on s.id = r.stack_id"
        " where s.project = $1 and r.name = $2 and r.replaced_by is null",
        run.project, name,
    )  # fmt: skip
    assert row is not None
    async with run.database.connection() as conn:
        await report_resources(conn, [(row["stack_id"], [row["id"]])])
    await observer_of(run).observe_due()


async def waiting(run: Program) -> int:
    """The number of resources whose repair waits."""
    count: int = await run.database.pool.fetchval(
        "select coalesce(sum(cardinality(repair_resources)), 0) from observation_schedule"
        " where project = $1",
        run.project,
    )
    return count


async def leave_claimed(run: Program, name: str) -> None:
    """Another process observes the stack of a resource, and does not end."""
    await run.database.pool.execute(
        "update observation_schedule q set claimed_at = now(), claim = claim + 1,"
        "       next_at = now() + interval '1h'"
        "  from resource r where q.project = $1 and r.stack_id = q.stack_id and r.name = $2",
        run.project, name,
    )  # fmt: skip


async def leave_due(run: Program, name: str) -> None:
    """Only the stack of a resource is due."""
    await run.database.pool.execute(
        "update observation_schedule q"
        "   set next_at = now() + case when r.name is null then '1h' else '-1s' end::interval"
        "  from stack s left join resource r on r.stack_id = s.id and r.name = $2"
        " where q.project = $1 and s.id = q.stack_id",
        run.project, name,
    )  # fmt: skip


def operations(run: Program, world: World, *names: str) -> dict[str, list[str]]:
    return {name: world.operations(name) for name in names}


async def until_repaired(run: Program, repairs: int) -> None:
    """The number of repairs, after the last one has ended."""
    assert (await run.until_ended("s")).endswith("_COMPLETE")
    by = [one["requested_by"] for one in await traversals(run)]
    assert sum(one in ("observer", "ada") for one in by) == repairs, by


def before_write(observer: Observer, then: Callable[[], Awaitable[None]]) -> Observer:
    """then: happens after the provider has answered, before anything is written."""
    calls = observer._batches._calls
    call = calls.call

    async def patched(*args: Any, **more: Any) -> Any:
        answers = await call(*args, **more)
        await then()
        return answers

    calls.call = patched  # type: ignore[method-assign]
    return observer


async def test_a_report_repairs_nothing_but_the_reported_resource(
    run: Program, world: World
) -> None:
    """The drift of `a` was known before the window opened, and has ended since."""
    await created(run, {"a": thing(), "b": thing()}, REPAIR | {"window": CLOSED})
    world.observed["a"] = changed(7)
    await observe(run)
    await change_policy(run, REPAIR)
    world.observed.clear()
    await report(run, "b")
    await until_repaired(run, 0)
    # What the observation has found is repaired.
    world.observed["b"] = changed(8)
    await report(run, "b")
    await until_repaired(run, 1)
    assert operations(run, world, "a", "b") == {"a": ["create"], "b": REPLACED}


async def test_members_that_were_repaired_by_hand_are_left_alone_when_the_window_opens(
    run: Program, world: World
) -> None:
    """Their nested stacks are observed in two batches."""
    group = {
        "type": "OS::Heat::ResourceGroup",
        "properties": {"count": 60, "resource_def": {"type": "a.yaml"}},
    }
    await created(run, {"g": group}, REPAIR | {"window": CLOSED}, files=FILES)
    await observe(run)
    world.observed["a1"] = changed(7)
    await observe(run)
    world.observed.clear()
    await change_policy(run, REPAIR)
    await observe(run)
    await until_repaired(run, 0)
    assert world.operations("a1") == ["create"] * 60


async def test_only_the_observed_stack_of_a_tree_is_repaired(run: Program, world: World) -> None:
    resources = TWO | {"x": thing()}
    await created(run, resources, REPAIR | {"window": CLOSED}, files=FILES)
    await observe(run)
    world.observed = {"a1": changed(7), "b1": changed(7)}
    await observe(run)
    await change_policy(run, REPAIR)
    world.observed = {"x": changed(7)}
    await make_due(run, nested=False)
    await observer_of(run).observe_due()
    await until_repaired(run, 1)
    assert operations(run, world, "a1", "b1", "x") == {
        "a1": ["create"],
        "b1": ["create"],
        "x": REPLACED,
    }
    failed = "select count(*) from resource where status = 'FAILED'"
    assert await run.database.pool.fetchval(failed) == 0


@pytest.mark.parametrize("ended", [True, False], ids=["ended", "other"])
async def test_an_approval_holds_for_the_drift_that_was_shown(
    run: Program, world: World, ended: bool
) -> None:
    """Each nested stack is observed once more, in a batch of its own."""
    await created(run, TWO, files=FILES)
    await observe(run)
    world.observed = {"a1": changed(7), "b1": changed(8)}
    await observe(run)
    await answer(run, "a1", "b1")
    world.observed = {} if ended else {"a1": changed(99), "b1": changed(99)}
    await observer_of(run).observe_due()
    await until_repaired(run, 0)
    assert operations(run, world, "a1", "b1") == {"a1": ["create"], "b1": ["create"]}


async def test_an_approval_that_waits_needs_another_observation_of_its_resource(
    run: Program, world: World
) -> None:
    await created(run, {"a": thing(), "b": thing(), "c": thing()})
    world.observed["a"] = changed(7)
    await observe(run)
    world.script("update", "c", Failed("no"))
    resources = {"a": thing(), "b": thing(), "c": thing(2)}
    await put(run, "s", resources, environment={"convergence": HOLD})
    assert await run.until_ended("s") == "UPDATE_FAILED"
    await answer(run, "a")
    await observer_of(run).observe_due()
    await put(run, "s", resources, environment={"convergence": HOLD})
    await until_repaired(run, 0)
    # The drift of `a` has ended, which no observation has found.
    world.observed = {"b": changed(8)}
    await report(run, "b")
    await until_repaired(run, 0)
    world.observed["a"] = changed(7)
    await report(run, "a")
    await until_repaired(run, 1)
    assert operations(run, world, "a", "b") == {"a": REPLACED, "b": ["create"]}


async def test_an_observation_that_began_before_the_answer_does_not_start_the_repair(
    run: Program, world: World
) -> None:
    """The answer requests another one, which finds that the drift has ended."""
    await created(run, {"a": thing()})
    world.observed["a"] = changed(7)
    await observe(run)

    async def answered() -> None:
        if world.observed:
            world.observed.clear()
            await answer(run, "a")

    await make_due(run)
    await before_write(observer_of(run), answered).observe_due()
    await until_repaired(run, 0)
    assert world.operations("a") == ["create"]
    assert await hooks(run) == []


async def test_drift_of_a_nested_stack_is_repaired_after_it_has_lasted(
    run: Program, world: World
) -> None:
    """Not together with a sibling whose drift has lasted."""
    policy = REPAIR | {"tolerate": "15m"}
    await created(run, {"P": {"type": "pair.yaml"}}, policy, files=FILES)
    await observe(run)
    world.observed["a1"] = changed(7)
    await observe(run)
    await age_drift(run)
    world.observed["b1"] = changed(8)
    await observe(run)
    await until_repaired(run, 1)
    assert operations(run, world, "a1", "b1") == {"a1": REPLACED, "b1": ["create"]}
    del world.observed["a1"]
    await age_drift(run)
    await observe(run)
    await until_repaired(run, 2)
    assert operations(run, world, "a1", "b1")["b1"] == REPLACED


async def test_drift_in_another_state_must_last_anew(run: Program, world: World) -> None:
    """Its last event says something else."""
    await created(run, {"a": thing()}, REPAIR | {"tolerate": "15m", "window": CLOSED})
    world.observed["a"] = changed(7)
    await observe(run)
    await age_drift(run)
    await observe(run)
    await change_policy(run, REPAIR | {"tolerate": "15m"})
    world.observed["a"] = MISSING
    await observe(run)
    await until_repaired(run, 0)
    await age_drift(run)
    await observe(run)
    await until_repaired(run, 1)


async def test_a_longer_time_holds_for_drift_that_was_reported_before(
    run: Program, world: World
) -> None:
    await created(run, {"a": thing()}, REPAIR | {"on_drift": "notify"})
    world.observed["a"] = changed(7)
    await observe(run)
    await change_policy(run, REPAIR | {"tolerate": "15m"})
    await observe(run)
    await until_repaired(run, 0)


async def test_a_process_that_has_lost_its_claim_repairs_and_reports_nothing(
    run: Program, world: World
) -> None:
    await created(run, {"a": thing()}, {"observe": {"every": "1d"}})
    world.observed["a"] = changed(7)
    await observe(run)
    await change_policy(run, REPAIR)

    async def lose() -> None:
        await run.database.pool.execute(CLAIM_AGAIN, run.project)

    await make_due(run)
    await before_write(observer_of(run), lose).observe_due()
    await until_repaired(run, 0)
    assert world.operations("a") == ["create"] and await reports(run) == []


async def test_no_repair_starts_after_the_window_has_closed(
    run: Program, world: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    """It closes while the provider answers. The next observation is when it opens again."""
    await created(run, {"a": thing()}, REPAIR | {"observe": {"every": "30d"}})
    world.observed["a"] = changed(7)
    closes: list[datetime] = []

    async def close() -> None:
        closes.append(await run.database.pool.fetchval("select clock_timestamp()"))

    def repairs_in(self: ConvergencePolicy, now: datetime) -> timedelta:
        return timedelta(days=2) if closes and now >= closes[0] else timedelta(0)

    monkeypatch.setattr(ConvergencePolicy, "repairs_in", repairs_in)
    await make_due(run)
    await before_write(observer_of(run), close).observe_due()
    await until_repaired(run, 0)
    planned = await run.database.pool.fetchval("select next_at from observation_schedule")
    opens = closes[0] + timedelta(days=2)
    assert opens <= planned < opens + timedelta(minutes=6)


async def test_a_repair_looks_at_the_drift_again_when_it_starts(run: Program, world: World) -> None:
    """Another observation has found another state meanwhile, which must last anew."""
    await created(run, {"a": thing()}, REPAIR | {"tolerate": "15m", "window": CLOSED})
    world.observed["a"] = changed(7)
    await observe(run)
    await age_drift(run)
    await change_policy(run, REPAIR | {"tolerate": "15m"})
    started: list[RepairableStack] = []

    async def start(
        project: str, one: RepairableStack, policy: ConvergencePolicy, section: Json
    ) -> bool:
        started.append(one)
        world.observed["a"] = MISSING
        await observe(run)
        return await run.engine.repairs.start(project, one, policy, section)

    await make_due(run)
    await Observer(run.database, *paused_observer(run), repair=start).observe_due()
    assert len(started) == 1
    await until_repaired(run, 0)


async def test_an_approved_repair_looks_at_the_drift_again_when_it_starts(
    run: Program, world: World
) -> None:
    """Another observation has withdrawn the hook meanwhile."""
    await created(run, {"a": thing()})
    world.observed["a"] = changed(7)
    await observe(run)
    await answer(run, "a")
    started: list[ApprovedRepair] = []

    async def start(project: str, root_id: Any, approved: ApprovedRepair) -> bool:
        started.append(approved)
        world.observed["a"] = changed(8)
        await observe(run)
        return await run.engine.repairs.start_approved(project, root_id, approved)

    await Observer(run.database, *paused_observer(run), approved=start).observe_due()
    assert len(started) == 1
    await until_repaired(run, 0)
    assert len(await hooks(run)) == 1


async def test_members_found_in_several_batches_are_repaired_together(
    run: Program, world: World
) -> None:
    """It counts as one repair. 101 nested stacks are three batches."""
    group = {
        "type": "OS::Heat::ResourceGroup",
        "properties": {"count": 101, "resource_def": {"type": "a.yaml"}},
    }
    policy = REPAIR | {"repairs_per_day": 1}
    await created(run, {"g": group}, policy | {"window": CLOSED}, files=FILES)
    await observe(run)
    world.observed["a1"] = changed(7)
    await observe(run)
    await change_policy(run, policy)
    await observe(run)
    await until_repaired(run, 1)
    assert Counter(world.operations("a1")) == {"create": 202, "delete": 101}
    assert await waiting(run) == 0


async def test_found_drift_waits_for_the_other_stacks_only_for_a_while(
    run: Program, world: World
) -> None:
    """Then it is observed again, and repaired, although the other observation still has no end."""
    await created(run, TWO | {"x": thing()}, REPAIR, files=FILES)
    await observe(run)
    world.observed = {"x": changed(7), "a1": changed(7)}
    await make_due(run)
    await leave_claimed(run, "b1")
    await observer_of(run).observe_due()
    await until_repaired(run, 0)
    assert await waiting(run) == 2
    await run.database.pool.execute(
        "update observation_schedule set repair_waits_at = now() - interval '6 min',"
        " repair_found_at = now() - interval '6 min', claimed_at = claimed_at - interval '6 min'"
    )
    assert await observer_of(run).repairs.make_due() == 2
    await observer_of(run).observe_due()
    await until_repaired(run, 1)
    assert operations(run, world, "x", "a1") == {"x": REPLACED, "a1": REPLACED}
    assert await waiting(run) == 0


async def test_the_last_observation_of_a_tree_starts_what_waits_also_if_it_finds_nothing(
    run: Program, world: World
) -> None:
    await created(run, TWO, REPAIR, files=FILES)
    await observe(run)
    world.observed["a1"] = changed(7)
    await make_due(run)
    await leave_claimed(run, "b1")
    await observer_of(run).observe_due()
    await until_repaired(run, 0)
    assert await waiting(run) == 1
    await run.database.pool.execute(
        "update observation_schedule set claimed_at = null, next_at = now() - interval '1 s'"
        " where claimed_at is not null"
    )
    await observer_of(run).observe_due()
    await until_repaired(run, 1)
    assert world.operations("a1") == REPLACED and world.operations("b1") == ["create"]
    assert await waiting(run) == 0


async def test_a_report_does_not_repair_what_was_found_long_before(
    run: Program, world: World
) -> None:
    """It may have been repaired by hand while its repair waited."""
    await created(run, TWO | {"x": thing()}, REPAIR, files=FILES)
    await observe(run)
    world.observed["a1"] = changed(7)
    await make_due(run)
    await leave_claimed(run, "b1")
    await observer_of(run).observe_due()
    assert await waiting(run) == 1
    await run.database.pool.execute(
        "update observation_schedule set repair_found_at = now() - interval '2 min',"
        " claimed_at = claimed_at - interval '2 min'"
    )
    world.observed = {"x": changed(8)}
    await report(run, "x")
    await until_repaired(run, 1)
    assert operations(run, world, "x", "a1") == {"x": REPLACED, "a1": ["create"]}


@pytest.mark.parametrize(
    "policy", [REPAIR | {"on_drift": "notify"}, REPAIR | {"ignore": {"a": ["*"]}}],
    ids=["notify", "ignore"],
)  # fmt: skip
async def test_a_policy_that_changed_during_the_observation_holds(
    run: Program, world: World, policy: Json
) -> None:
    await created(run, {"a": thing()}, REPAIR)
    await observe(run)
    world.observed["a"] = changed(7)
    await make_due(run)

    async def updated() -> None:
        await put(run, "s", {"a": thing()}, environment={"convergence": policy})
        assert await run.until_ended("s") == "UPDATE_COMPLETE"

    await before_write(observer_of(run), updated).observe_due()
    await until_repaired(run, 0)
    assert world.operations("a") == ["create"]


async def test_found_drift_that_has_waited_too_long_is_observed_again(
    run: Program, world: World
) -> None:
    """The other stack was never observed. It is no more due, because its observation failed."""
    await created(run, TWO, REPAIR, files=FILES)
    await observe(run)
    world.observed["a1"] = changed(7)
    await make_due(run)
    await leave_claimed(run, "b1")
    await observer_of(run).observe_due()
    assert await waiting(run) == 1
    pool = run.database.pool
    await pool.execute(
        "update observation_schedule set claimed_at = null, next_at = now() + interval '1h'"
        " where claimed_at is not null"
    )
    watch = observer_of(run).repairs
    assert await watch.make_due() == 0
    await age_waiting(run)
    world.observed.clear()
    assert await watch.make_due() == 1
    await observer_of(run).observe_due()
    await until_repaired(run, 0)
    # Drift that is still there is repaired.
    world.observed["a1"] = changed(7)
    await report_nested(run, "a1")
    await until_repaired(run, 1)
    assert world.operations("a1") == REPLACED


async def end_without_reactions(observer: Observer) -> None:
    """Observe what is due in a process that ends when it has written what it has found."""
    batches = observer._batches

    async def end(ended: Sequence[StackObservation]) -> None:
        raise asyncio.CancelledError

    batches._reactions.react = end  # type: ignore[method-assign]
    with suppress(asyncio.CancelledError):
        await observer.observe_due()


async def age_waiting(run: Program) -> None:
    """As if what waits had begun to wait six minutes before."""
    await run.database.pool.execute(
        "update observation_schedule set repair_waits_at = repair_waits_at - interval '6 min',"
        "       repair_found_at = repair_found_at - interval '6 min'"
        " where project = $1 and repair_waits_at is not null",
        run.project,
    )


@pytest.mark.parametrize("by", ["policy", "answer"])
async def test_what_a_process_has_found_before_it_ended_is_repaired(
    run: Program, world: World, by: str
) -> None:
    """After minutes, not after the interval of the stack."""
    await created(run, {"a": thing()}, REPAIR if by == "policy" else REPAIR | {"on_drift": "hold"})
    world.observed["a"] = changed(7)
    if by == "answer":
        await observe(run)
        await answer(run, "a")
        assert await waiting(run) == 0
    else:
        await make_due(run)
    await end_without_reactions(observer_of(run))
    assert await waiting(run) == 1
    watch = observer_of(run).repairs
    assert await watch.make_due() == 0
    await age_waiting(run)
    assert await watch.make_due() == 1 and await waiting(run) == 0
    await observer_of(run).observe_due()
    await until_repaired(run, 1)
    assert world.operations("a") == REPLACED and await waiting(run) == 0


async def test_a_process_that_ended_after_its_repair_had_begun_repairs_once(
    run: Program, world: World
) -> None:
    """What waits is observed again, and is as recorded then."""
    await created(run, {"a": thing()}, REPAIR)
    await observe(run)
    world.observed["a"] = changed(7)
    await make_due(run)
    observer = observer_of(run)

    async def end(found: Sequence[FoundDrift]) -> None:
        raise asyncio.CancelledError

    observer.repairs._drop = end  # type: ignore[method-assign]
    with suppress(asyncio.CancelledError):
        await observer.observe_due()
    await until_repaired(run, 1)
    world.observed.clear()
    assert await waiting(run) == 1
    await age_waiting(run)
    assert await observer_of(run).repairs.make_due() == 1
    await observer_of(run).observe_due()
    await until_repaired(run, 1)
    assert world.operations("a") == REPLACED and await waiting(run) == 0


@pytest.mark.parametrize("on_drift", ["notify", "hold"])
async def test_what_a_process_has_found_before_it_ended_is_reported(
    run: Program, world: World, on_drift: str
) -> None:
    await created(run, {"a": thing()}, REPAIR | {"on_drift": on_drift})
    await observe(run)
    world.observed["a"] = changed(7)
    await make_due(run)
    await end_without_reactions(observer_of(run))
    assert await waiting(run) == 1 and await reports(run) == []
    await age_waiting(run)
    assert await observer_of(run).repairs.make_due() == 1
    await observer_of(run).observe_due()
    assert await reports(run) == [("detected", "a", "changed")]
    assert len(await hooks(run)) == (1 if on_drift == "hold" else 0)
    assert await waiting(run) == 0


@pytest.mark.parametrize(
    "policy",
    [{"on_drift": "notify"}, {"on_drift": "hold"}, {"window": CLOSED}, {"tolerate": "1h"},
     {"repairs_per_day": 1}],
    ids=["notify", "hold", "window", "tolerate", "limit"],
)  # fmt: skip
async def test_drift_that_is_not_repaired_does_not_wait(
    run: Program, world: World, policy: Json
) -> None:
    """It is not observed again before the interval of its stack."""
    await created(run, {"a": thing()}, REPAIR | policy)
    await observe(run)
    for value in (7, 8):
        world.observed["a"] = changed(value)
        await make_due(run)
        await observer_of(run).observe_due()
        assert (await run.until_ended("s")).endswith("_COMPLETE")
    assert await waiting(run) == 0


async def test_batches_that_end_at_the_same_time_are_one_repair(
    run: Program, world: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The second one ends while the first one looks for stacks that are being observed."""
    await created(run, TWO, REPAIR, files=FILES)
    await observe(run)
    world.observed = {"a1": changed(7), "b1": changed(8)}
    await make_due(run)
    first, second = observer_of(run), observer_of(run)
    read = waiting_repairs.read
    others: list[Awaitable[None]] = []

    async def read_and_end(*args: Any) -> list[FoundDrift]:
        found = await read(*args)
        while others:
            await others.pop()
        return found

    await leave_due(run, "a1")
    monkeypatch.setattr(waiting_repairs, "read", read_and_end)

    async def end_the_other() -> None:
        await leave_due(run, "b1")
        await end_without_reactions(second)

    others.append(end_the_other())
    await first.observe_due()
    await until_repaired(run, 1)
    assert operations(run, world, "a1", "b1") == {"a1": REPLACED, "b1": REPLACED}
    assert await waiting(run) == 0


@pytest.mark.parametrize("by", ["policy", "answer"])
async def test_drift_found_during_a_repair_is_observed_again_and_repaired_after_it(
    run: Program, world: World, by: str
) -> None:
    """Not after the interval of its stack."""
    resources = {"a": thing(), "b": thing()}
    await created(run, resources, REPAIR if by == "policy" else REPAIR | {"on_drift": "hold"})
    world.script("create", "a", LONG_WAIT)
    world.observed["a"] = changed(7)
    if by == "answer":
        world.observed["b"] = changed(8)
        await observe(run)
        await answer(run, "a")
        await observer_of(run).observe_due()
    else:
        await observe(run)
    await run.until_parked("s", 1)
    if by == "answer":
        await answer(run, "b")
        await observer_of(run).observe_due()
    else:
        world.observed["b"] = changed(8)
        await report(run, "b")
    watch = observer_of(run).repairs
    assert await waiting(run) == 1 and await watch.make_due() == 0
    world.observed.pop("a")
    await run.stack_request("POST", "s", "/resources/a/signal", {})
    await until_repaired(run, 1)
    assert await watch.make_due() == 1 and await waiting(run) == 0
    await observer_of(run).observe_due()
    await until_repaired(run, 2)
    # The creation that has waited was called twice.
    assert world.operations("a") == ["create", *REPLACED] and world.operations("b") == REPLACED
    assert await waiting(run) == 0 and await watch.make_due() == 0


async def test_drift_that_ends_during_a_repair_is_not_repaired_after_it(
    run: Program, world: World
) -> None:
    await created(run, {"a": thing(), "b": thing()}, REPAIR)
    world.script("create", "a", LONG_WAIT)
    world.observed["a"] = changed(7)
    await observe(run)
    await run.until_parked("s", 1)
    world.observed["b"] = changed(8)
    await report(run, "b")
    world.observed.clear()
    await run.stack_request("POST", "s", "/resources/a/signal", {})
    await until_repaired(run, 1)
    assert await observer_of(run).repairs.make_due() == 1
    await observer_of(run).observe_due()
    await until_repaired(run, 1)
    assert world.operations("b") == ["create"] and await waiting(run) == 0


async def test_a_resource_that_must_be_observed_again_is_not_repaired_with_others(
    run: Program,
) -> None:
    await created(run, {"a": thing(), "b": thing()}, REPAIR)
    stack_id = UUID(str((await run.stack("s"))["id"]))
    rows = await run.database.pool.fetch("select id from resource where stack_id = $1", stack_id)
    first, second = (row["id"] for row in rows)
    now = datetime.now(UTC)
    hour = timedelta(hours=1)
    async with run.database.connection() as conn:
        found = [FoundDrift(stack_id, stack_id, [first, second], now)]
        for again in (False, True):
            await waiting_repairs.keep(conn, found, again=again)
            kept = await waiting_repairs.read(conn, [stack_id], hour)
            assert len(kept) == (0 if again else 1)
        await waiting_repairs.keep(conn, found, again=False)
        assert await waiting_repairs.read(conn, [stack_id], hour) == []
        await waiting_repairs.drop(conn, [FoundDrift(stack_id, stack_id, [first], now)])
        assert await waiting_repairs.take_due(conn, hour, 10) == [(stack_id, [second])]
        assert await waiting_repairs.take_due(conn, hour, 10) == []


async def test_what_a_later_observation_has_found_waits_although_an_earlier_one_ends_its_wait(
    run: Program,
) -> None:
    """Another process reacts slowly to what it has found before."""
    await created(run, {"a": thing()}, REPAIR)
    stack_id = UUID(str((await run.stack("s"))["id"]))
    resource = await run.database.pool.fetchval(
        "select id from resource where stack_id = $1", stack_id
    )
    now = datetime.now(UTC)
    earlier, later = (
        FoundDrift(stack_id, stack_id, [resource], now + timedelta(seconds=one)) for one in (1, 2)
    )
    async with run.database.connection() as conn:
        for one in (earlier, later):
            await waiting_repairs.keep(conn, [one], again=False)
        await waiting_repairs.drop(conn, [earlier])
        assert await waiting_repairs.read(conn, [stack_id], timedelta(hours=1)) == [later]
        await waiting_repairs.drop(conn, [later])
        assert await waiting_repairs.read(conn, [stack_id], timedelta(hours=1)) == []


async def observe_slowly(run: Program, monkeypatch: pytest.MonkeyPatch, then: World) -> None:
    """Observe what is due resource by resource. After the first ones were observed, nothing differs
    any more, and the others take longer than what was found may be old."""
    monkeypatch.setattr(repair_reactions, "NEWEST", timedelta(milliseconds=100))
    registry, policies = paused_observer(run)
    repairs = run.engine.repairs
    observer = Observer(
        run.database, registry, policies, repair=repairs.start, approved=repairs.start_approved,
        page=1,
    )  # fmt: skip
    begin = await run.database.pool.fetchval("select clock_timestamp()")

    async def is_old() -> bool:
        now: datetime = await run.database.pool.fetchval("select clock_timestamp()")
        return bool(now - begin > timedelta(milliseconds=300))

    async def repaired_by_hand() -> None:
        then.observed.clear()
        await eventually(is_old)

    await before_write(observer, repaired_by_hand).observe_due()


@pytest.mark.parametrize("by", ["policy", "answer"])
async def test_what_a_long_observation_has_found_first_is_observed_again(
    run: Program, world: World, monkeypatch: pytest.MonkeyPatch, by: str
) -> None:
    """It has been repaired by hand since. Drift that is still there is repaired after that."""
    resources = {"a": thing(), "b": thing()}
    await created(run, resources, REPAIR if by == "policy" else REPAIR | {"on_drift": "hold"})
    await observe(run)
    for is_there in (False, True):
        world.observed = {"a": changed(7), "b": changed(7)}
        if by == "answer":
            await observe(run)
            await answer(run, "a", "b")
            # Nothing but the answers makes it due.
        else:
            await make_due(run)
        await observe_slowly(run, monkeypatch, world)
        await until_repaired(run, 0)
        assert await waiting(run) == 1
        if is_there:
            world.observed = {"a": changed(7), "b": changed(7)}
        assert await observer_of(run).repairs.make_due() == 1
        await observer_of(run).observe_due()
        await until_repaired(run, 1 if is_there else 0)
        assert await waiting(run) == 0


async def observe_the_other(run: Program) -> None:
    """The observation of another stack begins again."""
    await run.database.pool.execute(
        "update observation_schedule set claimed_at = now() where claimed_at is not null"
    )


async def test_found_drift_waits_not_for_ever_for_a_tree_that_is_always_observed(
    run: Program, world: World
) -> None:
    """One of its stacks is due or observed at every moment, for example because its changes are
    reported."""
    await created(run, TWO, REPAIR, files=FILES)
    await observe(run)
    world.observed["a1"] = changed(7)
    await make_due(run)
    await leave_claimed(run, "b1")
    await observer_of(run).observe_due()
    for _ in range(3):
        await until_repaired(run, 0)
        assert await waiting(run) == 1
        await age_waiting(run)
        await observe_the_other(run)
        assert await observer_of(run).repairs.make_due() == 1
        await observer_of(run).observe_due()
    await until_repaired(run, 1)
    assert world.operations("a1") == REPLACED and await waiting(run) == 0
    # Then the next one waits anew.
    world.observed["a1"] = changed(8)
    await observe_the_other(run)
    await report_nested(run, "a1")
    await until_repaired(run, 1)
    assert await waiting(run) == 1


async def test_a_wait_begins_anew_if_nothing_differs_in_between(run: Program, world: World) -> None:
    await created(run, TWO, REPAIR, files=FILES)
    await observe(run)
    await leave_claimed(run, "b1")
    for _ in range(3):
        world.observed["a1"] = changed(7)
        await report_nested(run, "a1")
        await age_waiting(run)
        world.observed.clear()
        assert await observer_of(run).repairs.make_due() == 1
        await observe_the_other(run)
        await observer_of(run).observe_due()
    world.observed["a1"] = changed(7)
    await report_nested(run, "a1")
    await until_repaired(run, 0)
    assert await waiting(run) == 1


async def test_what_waits_is_not_repaired_by_a_policy_that_ignores_it_since(
    run: Program, world: World
) -> None:
    """The last stack of the tree is observed by the new policy, which says nothing about what was
    found by the former one."""
    await created(run, TWO, REPAIR, files=FILES)
    await observe(run)
    world.observed["a1"] = changed(7)
    await make_due(run)
    await leave_claimed(run, "b1")
    await observer_of(run).observe_due()
    assert await waiting(run) == 1
    policy = REPAIR | {"ignore": {"a1": ["*"]}}
    await put(run, "s", TWO, environment={"convergence": policy}, files=FILES)
    assert await run.until_ended("s") == "UPDATE_COMPLETE"
    await run.database.pool.execute("update observation_schedule set claimed_at = null")
    await leave_due(run, "b1")
    await observer_of(run).observe_due()
    await until_repaired(run, 0)
    await age_waiting(run)
    assert await observer_of(run).repairs.make_due() == 1
    await observer_of(run).observe_due()
    await until_repaired(run, 0)
    assert world.operations("a1") == ["create"] and await waiting(run) == 0


@pytest.mark.parametrize("by", ["policy", "answer"])
async def test_a_repair_that_always_fails_is_attempted_once_more_and_not_for_ever(
    run: Program, world: World, by: str
) -> None:
    await created(run, {"a": thing()}, REPAIR if by == "policy" else REPAIR | {"on_drift": "hold"})
    attempts: list[str] = []

    async def fail(*_: object) -> bool:
        attempts.append(by)
        raise RuntimeError("a defect")

    def failing() -> Observer:
        return Observer(run.database, *paused_observer(run), repair=fail, approved=fail)

    world.observed["a"] = changed(7)
    if by == "answer":
        await observe(run)
        await answer(run, "a")
    else:
        await make_due(run)
    await failing().observe_due()
    assert len(attempts) == 1 and await waiting(run) == 1
    await age_waiting(run)
    assert await failing().repairs.make_due() == 1
    await failing().observe_due()
    assert len(attempts) == 2 and await waiting(run) == 0
    # The next observation of the stack tries again.
    await make_due(run)
    await failing().observe_due()
    assert len(attempts) == 3 and await waiting(run) == 1
