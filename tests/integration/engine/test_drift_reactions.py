"""What convergence policies do about drift: events, and repairs within a limit."""

import asyncio
from collections.abc import AsyncIterator, Mapping
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any
from uuid import UUID

import pytest
import pytest_asyncio

from engine.plan.convergence import ConvergencePolicy
from engine.store.observer.drift_rows import RepairableStack
from engine.store.observer.observation_schedule import read_section
from engine.types.observation import Observation
from engine.weekly_window import DAYS
from engine.words import ObservedState
from engine.work.observer.observer import Observer
from tests.support.changes import LONG_WAIT, expect_error, put
from tests.support.changes import thing as simple
from tests.support.http_things import HTTP_SETTINGS, Things, serve_things, thing
from tests.support.paused_observers import paused_observer
from tests.support.program import Json, Program, program, template
from tests.support.scripted_type import Thing, World

NOTIFY: Json = {"observe": {"every": "10m"}, "on_drift": "notify"}
REPAIR: Json = {"observe": {"every": "10m"}, "on_drift": "repair"}
COMMANDS: dict[str, Any] = {
    "resource_types.command.enabled": True,
    "resource_types.command.run_as": "server",
    "resource_types.command.programs": [
        {"path": "/bin/sh", "projects": ["*"], "arguments": ["**"], "folders": ["/"]}
    ],
}
ALWAYS: Json = {"from": "00:00", "to": "24:00"}


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


@pytest.fixture
async def configured(
    database_url: str, world: World, settings: dict[str, Any], paused_observers: None
) -> AsyncIterator[Program]:
    async with program(database_url, settings, types=[Thing(world)]) as running:
        yield running


def observer_of(run: Program) -> Observer:
    registry, policies = paused_observer(run)
    return Observer(run.database, registry, policies, repair=run.engine.repairs.start)


async def observe(run: Program, observer: Observer | None = None) -> None:
    """Observe all stacks that a policy has scheduled, also after an endpoint has failed."""
    await run.database.pool.execute(
        "update observation_schedule set next_at = now() - interval '1s' where next_at is not null"
    )
    await run.database.pool.execute(
        "with requests as (delete from failed_request) delete from provider_failure"
    )
    await (observer or observer_of(run)).observe_due()


async def created(
    run: Program, resources: Json, convergence: Json, name: str = "s", **more: Json
) -> dict[str, str]:
    """Create a stack with a policy; return the physical ID of each resource."""
    await run.create(name, resources, environment={"convergence": convergence}, **more)
    assert await run.until_ended(name) == "CREATE_COMPLETE", await run.events(name)
    return await ids(run, name)


async def ids(run: Program, name: str = "s") -> dict[str, str]:
    found = await run.resources(name)
    return {key: one["physical_resource_id"] for key, one in found.items()}


async def reports(run: Program, name: str = "s") -> list[tuple[str, str, str]]:
    """The events about drift: (moment, resource, state)."""
    history = await run.stack_request("GET", name, "/history?nested=true")
    prefix = "headgate.resource.drift."
    return [
        (one["type"].removeprefix(prefix), one["subject"], one["data"]["drift"]["state"])
        for one in history["events"]
        if one["type"].startswith(prefix)
    ]


async def traversals(run: Program) -> list[Json]:
    """The changes of the stack, newest first."""
    found: list[Json] = (await run.stack_request("GET", "s", "/versions"))["traversals"]
    return found


async def drift_of(run: Program) -> list[Json]:
    found: list[Json] = (await run.stack_request("GET", "s", "/drift"))["resources"]
    return found


async def test_drift_is_reported_once_and_its_end_too(run: Program, things: Things) -> None:
    physical = await created(run, {"a": thing(things), "b": thing(things)}, NOTIFY)
    await observe(run)
    assert await reports(run) == []
    found = things.objects[physical["a"]]
    found["size"] = 7
    for _ in range(2):
        await observe(run)
    assert await reports(run) == [("detected", "a", "changed")]
    (event,) = [
        one for one in (await run.stack_request("GET", "s", "/history"))["events"]
        if one["type"] == "headgate.resource.drift.detected"
    ]  # fmt: skip
    assert event["data"]["drift"]["differences"] == [
        {"path": "$.size", "desired": 1, "observed": 7}
    ]
    assert event["data"]["operation"] == "drift" and event["data"]["resource"]["name"] == "a"
    # An endpoint that fails meanwhile changes nothing; another difference is reported again.
    things.faults = [503]
    await observe(run)
    things.faults = []
    found["size"] = 8
    await observe(run)
    del things.objects[physical["a"]]
    await observe(run)
    things.objects[physical["a"]] = found | {"size": 1}
    for _ in range(2):
        await observe(run)
    assert await reports(run) == [
        ("detected", "a", "changed"),
        ("detected", "a", "changed"),
        ("detected", "a", "missing"),
        ("resolved", "a", "present"),
    ]
    assert (await run.stack("s"))["stack_status"] == "CREATE_COMPLETE"
    assert len(await traversals(run)) == 1


@pytest.mark.parametrize("is_kept", [True, False], ids=["replaced", "removed"])
async def test_reported_drift_counts_at_its_end_if_the_stack_still_has_the_resource(
    run: Program, things: Things, is_kept: bool
) -> None:
    """It lets the stack be observed sooner. The drift was found eight days before."""
    resources = {"a": thing(things), "b": thing(things)}
    physical = await created(run, resources, NOTIFY)
    del things.objects[physical["a"]]
    await observe(run)
    assert await reports(run) == [("detected", "a", "missing")]
    pool = run.database.pool
    await pool.execute("update observation_schedule set drifted_at = now() - interval '8d'")
    if is_kept:
        await run.stack_request("PATCH", "s", "/resources/a", {"mark_unhealthy": True})
        await run.update("s")
    else:
        await run.update("s", template=template({"b": resources["b"]}))
    assert await run.until_ended("s") == "UPDATE_COMPLETE"
    await observe(run)
    assert await drift_of(run) == []
    is_recent = "select drifted_at > now() - interval '1d' from observation_schedule"
    assert await pool.fetchval(is_recent) is is_kept


async def test_drift_is_not_reported_without_a_reaction(run: Program, world: World) -> None:
    await created(run, {"a": simple()}, {"observe": {"every": "10m"}})
    world.things.clear()
    await observe(run)
    assert await reports(run) == [] and len(await drift_of(run)) == 1


async def test_tolerated_and_unknown_drift_is_not_reported(run: Program, world: World) -> None:
    await created(run, {"a": simple(), "b": simple()}, NOTIFY | {"tolerate": "1h"})
    world.observed["b"] = Observation(ObservedState.UNKNOWN, reason="it is slow")
    world.things.clear()
    await observe(run)
    assert await reports(run) == []
    await run.database.pool.execute("update observation set since = since - interval '61m'")
    await observe(run)
    assert await reports(run) == [("detected", "a", "missing")]


async def test_an_update_that_repairs_drift_resolves_it(run: Program, world: World) -> None:
    await created(run, {"a": simple()}, NOTIFY)
    world.things.clear()
    await observe(run)
    await put(run, "s", {"a": simple(place="there")}, environment={"convergence": NOTIFY})
    assert await run.until_ended("s") == "UPDATE_COMPLETE"
    await observe(run)
    assert [one[0] for one in await reports(run)] == ["detected", "resolved"]
    assert await run.database.pool.fetchval("select count(*) from observation") == 0


async def test_a_repair_updates_the_resource_and_its_dependents(
    run: Program, things: Things, world: World
) -> None:
    reader = simple({"get_resource": "a"})
    resources = {"a": thing(things), "reader": reader, "other": thing(things), "b": simple()}
    physical = await created(run, resources, REPAIR)
    del things.objects[physical["a"]]
    things.requests.clear()
    await observe(run)
    assert await run.until_ended("s") == "UPDATE_COMPLETE", await run.events("s")
    now = await ids(run)
    assert now["a"] != physical["a"] and now["a"] in things.objects
    assert world.things[now["reader"]] == now["a"]
    assert things.requests["create"] == 1 and things.requests["update"] == 0
    assert world.operations("b") == ["create"]
    newest, _ = await traversals(run)
    assert newest["requested_by"] == "observer"
    await observe(run)
    assert [one[0] for one in await reports(run)] == ["detected", "resolved"]
    assert len(await traversals(run)) == 2


async def test_a_repair_changes_nothing_else(run: Program, world: World) -> None:
    await created(run, {"a": simple(), "b": simple()}, REPAIR)
    await run.update(
        "s", template={
            "heat_template_version": "2018-08-31",
            "resources": {"a": simple(), "b": simple(2)},
        }, only=["a"],
    )  # fmt: skip
    assert await run.until_ended("s") == "UPDATE_COMPLETE"
    world.observed["a"] = Observation(ObservedState.DEGRADED, reason="it is slow")
    await observe(run)
    assert await run.until_ended("s") == "UPDATE_COMPLETE"
    assert len(await traversals(run)) == 3
    assert world.operations("b") == ["create"]


async def test_repairs_stop_at_their_limit_and_say_so(run: Program, world: World) -> None:
    await created(run, {"a": simple()}, REPAIR | {"repairs_per_day": 2})
    for count in (2, 3, 3, 3):
        world.things.clear()
        await observe(run)
        assert (await run.until_ended("s")).endswith("_COMPLETE")
        assert len(await traversals(run)) == count
    moments = [one[0] for one in await reports(run)]
    assert moments.count("unrepaired") == 1
    (found,) = await drift_of(run)
    assert "2 times within a day" in found["unrepaired"]
    assert "repairs_per_day" in found["unrepaired"]
    (unrepaired,) = (await run.stack_request("GET", "s", "/why"))["unrepaired"]
    assert unrepaired["resources"] == ["a"] and "2 times within a day" in unrepaired["sentence"]
    # A day later, the next repair may start.
    await run.database.pool.execute("update traversal set started_at = started_at - interval '2d'")
    await observe(run)
    assert (await run.until_ended("s")) == "UPDATE_COMPLETE"
    assert len(await traversals(run)) == 4


def days_from_now(number: int) -> list[str]:
    return [DAYS[(datetime.now(UTC) + timedelta(days=number)).weekday()]]


async def test_a_repair_waits_for_its_window(run: Program, world: World) -> None:
    closed = {"days": days_from_now(3), "from": "00:00", "to": "24:00"}
    policy = REPAIR | {"observe": {"every": "30d"}}
    await created(run, {"a": simple()}, policy | {"window": closed})
    world.things.clear()
    for _ in range(2):
        await observe(run)
    assert [one[0] for one in await reports(run)] == ["detected"]
    assert len(await traversals(run)) == 1
    shown = (await run.stack_request("GET", "s", "/drift"))["policy"]["window"]
    opens = datetime.fromisoformat(shown.pop("opens_at"))
    assert shown == closed | {"timezone": "UTC"}
    # It is observed soon after the window opens, not after its interval.
    planned = await run.database.pool.fetchval("select next_at from observation_schedule")
    assert opens <= planned < opens + timedelta(minutes=5)
    await run.update("s", environment={"convergence": policy | {"window": ALWAYS}})
    assert await run.until_ended("s") == "UPDATE_COMPLETE"
    assert (await run.stack_request("GET", "s", "/drift"))["policy"]["window"]["opens_at"] is None
    await observe(run)
    assert await run.until_ended("s") == "UPDATE_COMPLETE"
    assert len(world.things) == 1


async def test_a_repair_that_fails_is_not_rolled_back_or_repeated(
    run: Program, world: World
) -> None:
    await created(run, {"a": simple()}, REPAIR, disable_rollback=False)
    stack = await run.stack("s")
    path = f"/stacks/s/{stack['id']}/resources/a"
    assert (await run.call("PATCH", path, {"protect": True}))[0] == 200
    world.things.clear()
    for _ in range(3):
        await observe(run)
        await run.until_ended("s")
    stack = await run.stack("s")
    assert stack["stack_status"] == "UPDATE_FAILED"
    assert "protected" in stack["stack_status_reason"]
    assert len(await traversals(run)) == 2


@pytest.mark.parametrize("settings", [COMMANDS])
async def test_a_command_without_update_is_not_replaced_if_its_check_fails(
    configured: Program, tmp_path: Path
) -> None:
    up, runs = tmp_path / "up", tmp_path / "runs"
    service: Json = {
        "type": "Headgate::Command",
        "properties": {
            "create": ["/bin/sh", "-c", f"touch {up}; echo create >> {runs}"],
            "check": ["/bin/sh", "-c", f"test -e {up}"],
            "delete": ["/bin/sh", "-c", f"rm -f {up}; echo delete >> {runs}"],
        },
    }
    physical = await created(configured, {"a": service}, REPAIR)
    up.unlink()
    await observe(configured)
    assert await configured.until_ended("s") == "UPDATE_FAILED", await configured.events("s")
    assert await reports(configured) == [("detected", "a", "degraded")]
    up.touch()
    await configured.update("s", existing=True)
    assert await configured.until_ended("s") == "UPDATE_COMPLETE", await configured.events("s")
    assert await ids(configured) == physical and runs.read_text() == "create\n"


async def test_a_repair_waits_for_no_change_and_supersedes_none(run: Program, world: World) -> None:
    await created(run, {"a": simple(), "b": simple()}, REPAIR)
    world.script("update", "b", LONG_WAIT)
    await put(run, "s", {"a": simple(), "b": simple(2)}, environment={"convergence": REPAIR})
    await run.until_parked("s", 1)
    world.observed["a"] = Observation(ObservedState.MISSING)
    await observe(run)
    assert [one[0] for one in await reports(run)] == ["detected"]
    newest, *_ = await traversals(run)
    assert newest["requested_by"] != "observer" and newest["state"] == "running"


async def test_a_repair_of_drift_that_is_gone_is_not_started(run: Program, world: World) -> None:
    await created(run, {"a": simple()}, REPAIR)
    stack_id = UUID(str((await run.stack("s"))["id"]))
    resource_id = await run.database.pool.fetchval("select id from resource")
    gone = RepairableStack(stack_id, datetime.now(UTC), ["a"], [resource_id])
    async with run.database.connection() as conn:
        section = await read_section(conn, stack_id)
    await run.engine.repairs.start(run.project, gone, ConvergencePolicy(), section)
    assert len(await traversals(run)) == 1
    await run.act("s", "suspend")
    assert await run.until_ended("s") == "SUSPEND_COMPLETE"
    world.things.clear()
    await observe(run)
    assert len(await traversals(run)) == 2 and await reports(run) == []


async def test_an_error_of_one_repair_leaves_the_others(
    run: Program, world: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name in ("s", "t"):
        await created(run, {"a": simple()}, REPAIR, name)
    world.things.clear()
    # Stacks are repaired in the order of the answer of the database: the first one fails.
    wrong: list[UUID] = []
    start = run.engine.repairs.start

    async def failing(
        project: str, one: RepairableStack, policy: ConvergencePolicy, section: Json
    ) -> bool:
        if not wrong or one.root_id in wrong:
            wrong.append(one.root_id)
            raise ValueError("a bug")
        return await start(project, one, policy, section)

    monkeypatch.setattr(run.engine.repairs, "start", failing)
    await observe(run)
    ended = [await run.until_ended(name) for name in ("s", "t")]
    assert sorted(ended) == ["CREATE_COMPLETE", "UPDATE_COMPLETE"]


async def test_a_repair_excludes_the_requesters_of_what_it_may_apply(
    run: Program, world: World
) -> None:
    """A rule may exclude the requester: not the observer, but who wrote what was not applied."""
    await created(run, {"a": simple(), "b": simple()}, REPAIR)
    select = "select excluded from traversal where requested_by = 'observer' order by number"
    changed = template({"a": simple(), "b": simple(2)})
    for only, excluded in ((["a"], True), ([], False)):
        await run.update("s", template=changed, only=only)
        assert await run.until_ended("s") == "UPDATE_COMPLETE"
        world.things.clear()
        await observe(run)
        assert await run.until_ended("s") == "UPDATE_COMPLETE"
        row = (await run.database.pool.fetch(select))[-1]
        assert bool(row["excluded"]) is excluded


async def test_a_repair_of_a_member_updates_its_group(run: Program, world: World) -> None:
    group = {
        "type": "OS::Heat::ResourceGroup", "properties": {"count": 2, "resource_def": simple()},
    }  # fmt: skip
    await created(run, {"group": group, "a": simple()}, REPAIR)
    gone = next(key for key in world.things if key.startswith("1-"))
    del world.things[gone]
    await observe(run)  # schedules the nested stack
    await observe(run)
    assert await run.until_ended("s") == "UPDATE_COMPLETE", await run.events("s")
    assert ("detected", "group/1", "missing") in await reports(run)
    assert world.operations("1").count("create") == 2
    assert world.operations("0").count("create") == world.operations("a").count("create") == 1


async def test_two_observers_start_one_repair(run: Program, world: World) -> None:
    group = {
        "type": "OS::Heat::ResourceGroup", "properties": {"count": 2, "resource_def": simple()},
    }  # fmt: skip
    await created(run, {"g": group, "h": group, "a": simple()}, REPAIR | {"repairs_per_day": 1})
    await observe(run)
    world.things.clear()
    await run.database.pool.execute("update observation_schedule set next_at = now()")
    async with asyncio.TaskGroup() as tasks:
        for _ in range(2):
            tasks.create_task(observer_of(run).observe_due())
    assert await run.until_ended("s") == "UPDATE_COMPLETE", await run.events("s")
    assert len(await traversals(run)) == 2


async def test_a_converge_of_some_resources_leaves_the_drift_of_others(
    run: Program, world: World
) -> None:
    await created(run, {"a": simple(), "b": simple()}, NOTIFY)
    world.things.clear()
    await run.act("s", "observe")
    await observer_of(run).observe_due()
    async with asyncio.TaskGroup() as tasks:
        observing = tasks.create_task(keep_observing(run))
        await run.update("s", converge=True, only=["a"])
        observing.cancel()
    assert await run.until_ended("s") == "UPDATE_COMPLETE", await run.events("s")
    statuses = {key: one["resource_status"] for key, one in (await run.resources("s")).items()}
    assert statuses["b"] == "CREATE_COMPLETE"
    assert [one["resource_name"] for one in await drift_of(run)] == ["b"]


async def keep_observing(run: Program) -> None:
    observer = observer_of(run)
    while True:
        await observer.observe_due()
        await asyncio.sleep(0.01)


@pytest.mark.parametrize(
    "settings", [HTTP_SETTINGS | {"hooks.rules": [{"on": ["pre-update"], "at": "a"}]}], ids=["rule"]
)
async def test_a_repair_waits_at_an_operator_rule(configured: Program, world: World) -> None:
    await created(configured, {"a": simple()}, REPAIR)
    world.things.clear()
    for _ in range(2):
        await observe(configured)
    (hook,) = await configured.waiting_hooks("s")
    assert hook["requested_by"] == "observer"
    assert world.operations("a") == ["create"]
    assert len(await traversals(configured)) == 2
    assert (await configured.signal(hook))[0] == 200
    assert await configured.until_ended("s") == "UPDATE_COMPLETE", await configured.events("s")
    assert len(world.things) == 1


@pytest.mark.parametrize(
    ("convergence", "place", "reason", "remedy"),
    [
        ({"on_drift": "repiar"}, "convergence.on_drift", "not a reaction", '"repair"'),
        ({"on_drift": "repair"}, "convergence.on_drift", "never observed", "every: 10m"),
        (NOTIFY | {"observe": "never"}, "convergence.on_drift", "never observed", "every"),
        (NOTIFY | {"repairs_per_day": 2}, "convergence.repairs_per_day", "no effect", "repair"),
        (REPAIR | {"repairs_per_day": 0}, "convergence.repairs_per_day", "1 to 1000", "notify"),
        (NOTIFY | {"tolerate": "soon"}, "convergence.tolerate", "not a duration", "90s"),
        (NOTIFY | {"window": ALWAYS}, "convergence.window", "no effect", "repair"),
        (REPAIR | {"window": {"from": "02:00", "to": "02:00"}}, "convergence.window",
         "never opens", "24:00"),
        ({"observe": {"every": "1h"}, "tolerate": "1h"}, "convergence.tolerate", "no effect",
         "notify or hold or repair"),
    ],
)  # fmt: skip
async def test_policies_that_contradict_are_refused(
    run: Program, convergence: Json, place: str, reason: str, remedy: str
) -> None:
    await created(run, {"a": simple()}, {"observe": "never"})
    body = {"environment": {"convergence": convergence}, "existing": True}
    status, error = await expect_error(
        run, "PUT", "s", "",
        body | {"template": {
            "heat_template_version": "2018-08-31", "resources": {"a": simple()},
        }},
    )  # fmt: skip
    assert status == 400, error
    (found,) = error["findings"]
    assert found["place"] == place
    assert reason in found["reason"] and remedy in found["remedy"]


async def test_drift_of_an_external_resource_is_reported_and_not_repaired(
    run: Program, things: Things
) -> None:
    things.objects["foreign"] = {"id": "foreign", "size": 1, "state": "ready"}
    resources = {"a": {**thing(things), "external_id": "foreign"}, "b": thing(things)}
    physical = await created(run, resources, REPAIR)
    del things.objects["foreign"]
    for _ in range(3):
        await observe(run)
    assert things.requests["create"] == 1 and len(await traversals(run)) == 1
    known = [("detected", "a", "missing"), ("unrepaired", "a", "missing")]
    assert await reports(run) == known
    (one,) = await drift_of(run)
    assert one["unrepaired"] == "the stack does not own the physical resource"
    # Other drift is repaired as usual.
    del things.objects[physical["b"]]
    await observe(run)
    assert await run.until_ended("s") == "UPDATE_COMPLETE", await run.events("s")
    assert things.requests["create"] == 2 and len(await traversals(run)) == 2
    assert (await ids(run))["a"] == "foreign"
    await observe(run)
    assert [one["resource_name"] for one in await drift_of(run)] == ["a"]
    assert (await reports(run))[:2] == known and len(await traversals(run)) == 2


async def test_a_thing_recreated_under_another_id_is_missing_and_the_other_is_left_alone(
    run: Program, things: Things
) -> None:
    physical = await created(run, {"a": thing(things)}, REPAIR)
    things.objects["other"] = {**things.objects.pop(physical["a"]), "id": "other"}
    await observe(run)
    assert await run.until_ended("s") == "UPDATE_COMPLETE", await run.events("s")
    now = (await ids(run))["a"]
    assert now not in (physical["a"], "other")
    assert set(things.objects) == {now, "other"}
    await observe(run)
    assert await reports(run) == [("detected", "a", "missing"), ("resolved", "a", "present")]


async def test_flapping_drift_is_reported_each_time_or_tolerated(
    run: Program, things: Things
) -> None:
    physical = await created(run, {"a": thing(things)}, NOTIFY)
    tolerant = {"convergence": NOTIFY | {"tolerate": "30m"}}
    await run.create("t", {"a": thing(things)}, environment=tolerant)
    assert await run.until_ended("t") == "CREATE_COMPLETE"
    flapping = {physical["a"], (await ids(run, "t"))["a"]}
    for _ in range(3):
        gone = {one: things.objects.pop(one) for one in flapping}
        await observe(run)
        # Each time, it was gone for less than tolerated, and longer in all.
        await run.database.pool.execute("update observation set since = since - interval '20m'")
        things.objects |= gone
        await observe(run)
    moments = [("detected", "a", "missing"), ("resolved", "a", "present")]
    assert await reports(run) == moments * 3
    assert await reports(run, "t") == []
    assert len(await traversals(run)) == 1


async def test_a_slow_service_is_unknown_and_delays_no_other(run: Program, things: Things) -> None:
    await created(run, {"a": thing(things)}, REPAIR)
    async with serve_things() as quick:
        other = (await created(run, {"b": thing(quick)}, REPAIR, "t"))["b"]
        del quick.objects[other]
        things.objects.clear()
        gate = things.gate = asyncio.Event()
        slow = Observer(
            run.database, *paused_observer(run), repair=run.engine.repairs.start,
            page_timeout=timedelta(milliseconds=500),
        )  # fmt: skip
        await observe(run, slow)
        (found,) = await drift_of(run)
        assert (found["state"], found["reason"]) == (
            "unknown", "there was no answer within 0.5 s",
        )  # fmt: skip
        assert len(await traversals(run)) == 1
        assert await run.until_ended("t") == "UPDATE_COMPLETE"
        assert (await ids(run, "t"))["b"] in quick.objects
    (pause,) = await run.database.pool.fetch("select endpoint from provider_failure")
    assert pause["endpoint"] == things.url
    # When it is quick again, what has changed is repaired.
    gate.set()
    things.gate = None
    await observe(run)
    assert await run.until_ended("s") == "UPDATE_COMPLETE"
    assert (await ids(run))["a"] in things.objects


async def test_drift_during_a_stop_is_repaired_after_the_change_is_complete(
    run: Program, world: World
) -> None:
    policy = {"convergence": REPAIR}
    await created(
        run, {"a": simple(), "b": simple(), "c": simple() | {"depends_on": ["b"]}}, REPAIR
    )
    world.script("update", "b", LONG_WAIT)
    resources = {"a": simple(), "b": simple(2), "c": simple(2) | {"depends_on": ["b"]}}
    await put(run, "s", resources, environment=policy)
    await run.until_parked("s", 1)
    await run.act("s", "stop")
    assert await run.until_ended("s") == "UPDATE_STOPPED"
    gone = (await ids(run))["a"]
    del world.things[gone]
    for _ in range(2):
        await observe(run)
    # It is reported once, at once; the repair does not start from a change that is not complete.
    assert await reports(run) == [("detected", "a", "missing")]
    newest, *before = await traversals(run)
    assert newest["requested_by"] != "observer" and len(before) == 1
    assert (await run.stack("s"))["stack_status"] == "UPDATE_STOPPED"
    await run.stack_request("POST", "s", "/resources/b/signal", {})
    await put(run, "s", resources, environment=policy)
    assert await run.until_ended("s") == "UPDATE_COMPLETE", await run.events("s")
    assert world.operations("a") == ["create"] and world.operations("c") == ["create", "update"]
    await observe(run)
    assert await run.until_ended("s") == "UPDATE_COMPLETE", await run.events("s")
    assert world.operations("a").count("create") == 2
    await observe(run)
    assert await reports(run) == [("detected", "a", "missing"), ("resolved", "a", "present")]


async def test_drift_during_a_hook_is_repaired_after_the_change_is_complete(
    run: Program, world: World
) -> None:
    await created(run, {"a": simple(), "b": simple()}, REPAIR)
    breakpoints = {"resources": {"b": {"hooks": "pre-update"}}}
    await put(
        run, "s", {"a": simple(), "b": simple(2)},
        environment={"convergence": REPAIR, "resource_registry": breakpoints},
    )  # fmt: skip
    (hook,) = await run.waiting_hooks("s")
    del world.things[(await ids(run))["a"]]
    world.observed["b"] = Observation(ObservedState.DEGRADED, reason="it is slow")
    for _ in range(2):
        await observe(run)
    # Also that of the resource whose hook waits is reported once, and nothing supersedes the change.
    detected = [("detected", "a", "missing"), ("detected", "b", "degraded")]
    assert await reports(run) == detected
    assert [one["id"] for one in await run.waiting_hooks("s")] == [hook["id"]]
    newest, *before = await traversals(run)
    assert newest["requested_by"] != "observer" and len(before) == 1
    del world.observed["b"]
    assert (await run.signal(hook))[0] == 200
    assert await run.until_ended("s") == "UPDATE_COMPLETE", await run.events("s")
    assert world.operations("a") == ["create"] and world.operations("b") == ["create", "update"]
    await observe(run)
    assert await run.until_ended("s") == "UPDATE_COMPLETE", await run.events("s")
    await observe(run)
    assert world.operations("a").count("create") == 2 and world.operations("b")[1:] == ["update"]
    resolved = [("resolved", "a", "present"), ("resolved", "b", "present")]
    assert sorted(await reports(run)) == sorted(detected + resolved)
