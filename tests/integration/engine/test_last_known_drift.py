"""What is known of a resource while its state is unknown, and when it was observed last."""

import asyncio
from collections.abc import AsyncIterator, Mapping
from datetime import datetime
from typing import Any
from uuid import UUID

import pytest
import pytest_asyncio

from engine.store.observer import observation_schedule
from engine.types.observation import Difference, Observation
from engine.types.registry import TypeRegistry
from engine.words import ObservedState
from engine.work.observer.observer import Observer
from tests.integration.engine.test_long_lists import PAGE, ListedThing, object_of
from tests.support.changes import LONG_WAIT, put, thing
from tests.support.http_things import HTTP_SETTINGS, Things, serve_things
from tests.support.http_things import thing as http_thing
from tests.support.paused_observers import paused_observer
from tests.support.program import Json, Program
from tests.support.scripted_type import Thing, World

NOTIFY: Json = {"observe": {"every": "10m"}, "on_drift": "notify"}
HOLD: Json = {"observe": {"every": "10m"}, "on_drift": "hold"}
UNKNOWN = Observation.unknown("it does not respond", "it does not respond")
#: The observation of a stack began an hour ago, and so did its drift.
AN_HOUR_AGO = """
update observation set since = since - interval '1h', known_since = known_since - interval '1h',
                       known_until = known_until - interval '1h'
"""
#: A process of the previous release writes an observation. $1: its state.
WRITE_AS_BEFORE = """
update observation
   set state = $1, since = clock_timestamp(), observed_at = clock_timestamp(), reason = '',
       differences = case $1 when 'changed' then '[{"path": "$.size", "desired": 1,
                                                    "observed": 9}]'::jsonb else '[]' end
"""


def changed(size: int) -> Observation:
    return Observation(ObservedState.CHANGED, [Difference("$.size", 1, size)])


@pytest_asyncio.fixture(loop_scope="session")
async def things() -> AsyncIterator[Things]:
    async with serve_things() as service:
        yield service


@pytest.fixture(scope="module")
def things_settings(paused_observers: None) -> Mapping[str, Any]:
    return HTTP_SETTINGS


@pytest.fixture
def run(things_in_own_project: Program) -> Program:
    return things_in_own_project


async def observe(run: Program, *, after_pause: bool = True) -> None:
    """Observe all stacks that a policy has scheduled. after_pause: of the endpoints that failed."""
    pool = run.database.pool
    await pool.execute("update observation_schedule set next_at = now() where next_at is not null")
    if after_pause:
        await pool.execute(
            "with requests as (delete from failed_request) delete from provider_failure"
        )
    registry, policies = paused_observer(run)
    await Observer(run.database, registry, policies).observe_due()


async def observed(run: Program, world: World, seen: Observation | None) -> Json | None:
    """Observe the resource `a`; return its drift. seen: None: it is as recorded."""
    world.observed = {} if seen is None else {"a": seen}
    await observe(run)
    return next(iter((await drift(run))["resources"]), None)


async def drift(run: Program) -> Json:
    return await run.stack_request("GET", "s", "/drift")


async def inspected(run: Program, name: str = "a") -> Json:
    return (await run.stack_request("GET", "s", f"/resources/{name}/inspect"))["observed"]


async def created(run: Program, resources: Json, policy: Json = NOTIFY) -> None:
    await run.create("s", resources, environment={"convergence": policy})
    assert await run.until_ended("s") == "CREATE_COMPLETE", await run.events("s")


async def moments(run: Program, prefix: str = "headgate.resource.drift.") -> list[str]:
    history = await run.stack_request("GET", "s", "/history")
    return [
        one["type"].removeprefix(prefix)
        for one in history["events"]
        if one["type"].startswith(prefix)
    ]


async def drift_found(run: Program) -> int:
    count: int = await run.database.pool.fetchval("select sum(drift_found) from observer_usage")
    return count


async def test_drift_lasts_from_its_first_observation_on_if_its_state_was_unknown_meanwhile(
    run: Program, world: World
) -> None:
    await created(run, {"a": thing()}, NOTIFY | {"tolerate": "1h"})
    first = await observed(run, world, changed(7))
    assert first is not None and first["last_known"] is None
    for reason in ("it does not respond", "it answers nonsense"):
        unknown = await observed(run, world, Observation.unknown(reason, reason))
        assert unknown is not None
        assert (unknown["state"], unknown["reason"]) == ("unknown", reason)
        assert unknown["since"] > first["since"] and unknown["differences"] == []
        known = {key: first[key] for key in ("state", "differences", "reason", "since")}
        assert unknown["last_known"] == known == (await inspected(run))["last_known"]
    again = await observed(run, world, changed(7))
    assert again is not None and again["last_known"] is None
    assert (again["state"], again["since"]) == ("changed", first["since"])
    assert await drift_found(run) == 1
    # Unknown when the tolerated time is over, so it is reported afterwards, at once.
    await observed(run, world, UNKNOWN)
    await run.database.pool.execute(AN_HOUR_AGO)
    await observed(run, world, UNKNOWN)
    assert await moments(run) == []
    await observed(run, world, changed(7))
    assert await moments(run) == ["detected"]


async def test_what_was_known_ends_with_the_drift(run: Program, world: World) -> None:
    await created(run, {"a": thing()})
    first = await observed(run, world, changed(7))
    await observed(run, world, UNKNOWN)
    pool = run.database.pool
    await pool.execute("update observation_schedule set drifted_at = now() - interval '8d'")
    assert await observed(run, world, None) is None
    recently = "select drifted_at > now() - interval '1d' from observation_schedule"
    assert await pool.fetchval(recently)
    assert await moments(run) == ["detected", "resolved"]
    resolved = (await run.stack_request("GET", "s", "/history"))["events"][-1]
    assert first is not None and resolved["data"]["drift"]["since"][:23] == first["since"][:23]
    again = await observed(run, world, changed(7))
    assert again is not None and again["since"] > first["since"]
    assert await drift_found(run) == 2


async def test_another_state_begins_when_it_is_observed(run: Program, world: World) -> None:
    await created(run, {"a": thing()})
    first = await observed(run, world, changed(7))
    await observed(run, world, UNKNOWN)
    gone = await observed(run, world, Observation(ObservedState.MISSING))
    assert first is not None and gone is not None
    assert gone["since"] > first["since"] and gone["last_known"] is None
    unknown = await observed(run, world, UNKNOWN)
    assert unknown is not None and unknown["last_known"]["state"] == "missing"
    # Drift of the state before an operation is not the drift after it.
    await observed(run, world, changed(7))
    world.observed = {}
    await put(run, "s", {"a": thing(2)}, environment={"convergence": NOTIFY})
    assert await run.until_ended("s") == "UPDATE_COMPLETE"
    unknown = await observed(run, world, UNKNOWN)
    assert unknown is not None and unknown["last_known"] is None


async def test_what_a_process_of_the_previous_release_has_written_is_not_mixed_up(
    run: Program, world: World
) -> None:
    await created(run, {"a": thing()})
    await observed(run, world, changed(7))
    await observed(run, world, UNKNOWN)
    for state in ("changed", "unknown"):
        await run.database.pool.execute(WRITE_AS_BEFORE, state)
    (shown,) = (await drift(run))["resources"]
    assert shown["state"] == "unknown" and shown["last_known"] is None
    again = await observed(run, world, changed(9))
    assert again is not None and again["since"] > shown["since"]
    unknown = await observed(run, world, UNKNOWN)
    assert unknown is not None and unknown["last_known"]["differences"][0]["observed"] == 9


async def test_a_drift_hook_waits_while_the_state_is_unknown(run: Program, world: World) -> None:
    await created(run, {"a": thing()}, HOLD | {"tolerate": "1s"})

    async def hooks(state: str) -> list[str]:
        _, found = await run.call("GET", f"/hooks?state={state}&stack=s&point=drift")
        return [one["id"] for one in found["hooks"]]

    await observed(run, world, changed(7))
    await run.database.pool.execute(AN_HOUR_AGO)
    await observed(run, world, changed(7))
    (waiting,) = await hooks("waiting")
    for seen in (UNKNOWN, UNKNOWN, changed(7), UNKNOWN):
        await observed(run, world, seen)
        assert await hooks("waiting") == [waiting] and await hooks("superseded") == []
    await observed(run, world, None)
    assert await hooks("waiting") == [] and await hooks("superseded") == [waiting]


@pytest.mark.parametrize("retry_after", ["", "1200"], ids=["backing off", "throttling"])
@pytest.mark.parametrize("listed", [False, True], ids=["read", "listed"])
async def test_an_observation_that_asks_no_provider_is_none(
    run: Program, things: Things, retry_after: str, *, listed: bool
) -> None:
    await created(run, {name: http_thing(things, listed=listed) for name in "ab"})
    await observe(run)
    complete = (await drift(run))["observed_at"]
    assert complete == (await inspected(run))["observed_at"]
    things.faults, things.retry_after = [429 if retry_after else 503], retry_after
    await observe(run)
    failed = (await drift(run))["observed_at"]
    assert failed > complete
    looks = [one["observed_at"] for one in (await drift(run))["resources"]]
    assert len(looks) == 2 and all(failed < one for one in looks)
    things.requests.clear()
    things.faults = []
    await observe(run, after_pause=False)
    if retry_after:
        await run.act("s", "observe")
        await observe(run, after_pause=False)
    shown = await drift(run)
    assert things.requests == {} and not shown["observing"] and shown["observed_at"] == failed
    assert [one["observed_at"] for one in shown["resources"]] == looks
    await observe(run)
    assert (await drift(run))["observed_at"] > failed


async def test_a_resource_that_was_never_asked_about_was_observed_before_the_pause(
    run: Program, things: Things
) -> None:
    await created(run, {"a": http_thing(things)})
    await run.create("t", {"b": http_thing(things)}, environment={"convergence": NOTIFY})
    assert await run.until_ended("t") == "CREATE_COMPLETE"
    await observe(run)
    before = (await drift(run))["observed_at"]
    things.faults = [503]
    make_due = (
        "update observation_schedule set next_at = now(), early_at = null where stack_id = $1"
    )
    await run.database.pool.execute("update observation_schedule set next_at = null")
    registry, policies = paused_observer(run)
    for name in ("t", "s"):
        stack_id = UUID((await run.stack(name))["id"])
        await run.database.pool.execute(make_due, stack_id)
        await Observer(run.database, registry, policies).observe_due()
    (unknown,) = (await drift(run))["resources"]
    assert (unknown["state"], unknown["observed_at"]) == ("unknown", before)
    assert unknown["since"] > before == (await drift(run))["observed_at"]


async def test_a_first_observation_that_asks_no_provider_is_none(
    run: Program, things: Things
) -> None:
    await created(run, {"a": http_thing(things)})
    await run.database.pool.execute(
        "insert into provider_failure select $1, 'Headgate::HTTP', $2, 1, now() + interval '1h',"
        " now(), 'it is slow', '', false",
        run.project, things.url,
    )  # fmt: skip
    await observe(run, after_pause=False)
    shown = await drift(run)
    assert shown["observed_at"] is None and len(shown["resources"]) == 1
    assert shown["resources"][0]["observed_at"] < shown["resources"][0]["since"]


async def test_a_resource_that_differs_was_observed_with_its_stack(
    run: Program, world: World
) -> None:
    await created(run, {"a": thing(), "b": thing()})
    first = await observed(run, world, changed(7))
    rows = "select xmin, ctid from observation"
    before = await run.database.pool.fetch(rows)
    again = await observed(run, world, changed(7))
    assert before == await run.database.pool.fetch(rows)
    assert first is not None and again is not None
    assert again["since"] == first["since"]
    started = (await drift(run))["observed_at"]
    assert again["observed_at"] == started == (await inspected(run))["observed_at"]
    assert started > first["observed_at"]


async def test_an_observation_during_an_operation_is_none_of_its_resource(
    run: Program, world: World
) -> None:
    await created(run, {"a": thing(), "b": thing()})
    await observed(run, world, changed(7))
    before = await observed(run, world, changed(7))
    as_created = await inspected(run, "b")
    assert before is not None and as_created["source"] == "poll"
    for name in "ab":
        world.script("update", name, LONG_WAIT)
    environment = {"convergence": NOTIFY}
    await put(run, "s", {"a": thing(2), "b": thing(2)}, environment=environment)
    await run.until_parked("s", 2)
    assert (await inspected(run))["observed_at"] == before["observed_at"]
    during = await observed(run, world, changed(7))
    assert during is not None and during["observed_at"] < (await drift(run))["observed_at"]
    assert (await inspected(run))["observed_at"] == during["observed_at"]
    assert (await inspected(run, "b"))["source"] == "operation"


async def test_a_suspended_resource_is_as_its_operation_says(run: Program, world: World) -> None:
    await created(run, {"a": thing()})
    await run.act("s", "suspend")
    assert await run.until_ended("s") == "SUSPEND_COMPLETE"
    await observe(run)
    assert (await inspected(run))["source"] == "operation"


async def test_a_look_after_a_report_counts(run: Program, world: World) -> None:
    await created(run, {"a": thing()})
    first = await observed(run, world, changed(7))
    physical_id = (await run.resources("s"))["a"]["physical_resource_id"]
    async with run.database.connection() as conn:
        await observation_schedule.report_changes(conn, run.project, [(physical_id, None)])
    registry, policies = paused_observer(run)
    await Observer(run.database, registry, policies).observe_due()
    (again,) = (await drift(run))["resources"]
    assert first is not None and again["observed_at"] > first["observed_at"]
    same = ("state", "differences", "since", "found_by")
    assert [again[key] for key in same] == [first[key] for key in same]


@pytest.mark.parametrize("requested", [False, True], ids=["by policy", "requested"])
async def test_a_resource_that_changes_while_a_list_is_read_is_counted(
    run: Program, world: World, *, requested: bool
) -> None:
    """If a user waits for the observation, it is observed again at once."""
    listed, count = ListedThing(world), PAGE + 2
    names = [f"r{number}" for number in range(count)]
    await created(run, {name: thing() for name in names})
    pending = ["r4"]

    async def change(page: int) -> None:
        while pending:
            name = pending.pop()
            await put(
                run, "s", {one: thing(7 if one == name else 1) for one in names},
                environment={"convergence": NOTIFY},
            )  # fmt: skip
            assert await run.until_ended("s") == "UPDATE_COMPLETE"
            world.things[object_of(world, name)] = 9

    listed.reads.before = change
    observer = Observer(run.database, TypeRegistry([listed]), page=PAGE)
    if requested:
        await run.act("s", "observe")
    else:
        await run.database.pool.execute("update observation_schedule set next_at = now()")
    await observer.observe_due()
    shown = await drift(run)
    assert (shown["observable_resources"], shown["observing"]) == (count, False)
    assert shown["next_observation_at"] is not None
    found = {one["resource_name"]: one["state"] for one in shown["resources"]}
    assert found == ({"r4": "changed"} if requested else {})
    assert listed.compared.count("r0") == 1
    if not requested:
        one = await inspected(run, "r4")
        assert one["source"] == "operation"
        assert datetime.fromisoformat(one["observed_at"]) > datetime.fromisoformat(
            shown["observed_at"]
        )


class ChangingThing(Thing):
    """Its first observation waits for `go`."""

    def __init__(self, world: World) -> None:
        super().__init__(world)
        self.started, self.go = asyncio.Event(), asyncio.Event()

    async def observe(self, calls: Any) -> Any:  # type: ignore[override]
        found = super().observe(calls)
        self.started.set()
        await self.go.wait()
        return found


async def test_a_reported_resource_that_changes_meanwhile_is_observed_again(
    run: Program, world: World
) -> None:
    await created(run, {"a": thing(), "b": thing()})
    physical_id = (await run.resources("s"))["a"]["physical_resource_id"]
    async with run.database.connection() as conn:
        await observation_schedule.report_changes(conn, run.project, [(physical_id, None)])
    slow = ChangingThing(world)
    observing = asyncio.create_task(
        Observer(run.database, TypeRegistry([slow])).observe_due()
    )  # fmt: skip
    async with asyncio.timeout(60):
        await slow.started.wait()
    await put(run, "s", {"a": thing(2), "b": thing()}, environment={"convergence": NOTIFY})
    assert await run.until_ended("s") == "UPDATE_COMPLETE"
    world.observed["a"] = Observation(ObservedState.DEGRADED, reason="it is slow")
    slow.go.set()
    await observing
    found = {one["resource_name"]: one["state"] for one in (await drift(run))["resources"]}
    assert found == {"a": "degraded"}
