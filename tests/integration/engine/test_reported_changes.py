"""Reports that physical resources have changed: what is observed, and what is refused."""

import asyncio
import re
from collections.abc import AsyncIterator, Mapping, Sequence
from datetime import timedelta
from itertools import product
from typing import Any

import pytest

from engine.store.observer import observation_schedule
from engine.types.contract import Call
from engine.types.observation import Difference, Observation
from engine.types.registry import TypeRegistry
from engine.words import ObservedState, ResourceAction, ResourceId
from engine.work.observer.observer import Observer
from tests.integration.api.test_access import bearer, run_with_tokens, token
from tests.support.changes import observed, thing, until_deleted
from tests.support.paused_observers import run_observers
from tests.support.plans import full_scans, plan
from tests.support.program import Json, Program, eventually, program
from tests.support.scripted_type import SharedThing, Thing, World

EVERY_10M: Json = {"convergence": {"observe": {"every": "10m"}}}
NOTHING = {"resources": 0, "stacks": 0, "unknown": 0}
LEASE = timedelta(minutes=1)


class WatchedThing(SharedThing):
    """It records the names of the resources that each call observes. All of the same key are
    observed together."""

    def __init__(self, worlds: dict[str, World]) -> None:
        super().__init__(worlds)
        self.looked: list[list[str]] = []

    def observation_key(self, call: Call) -> str:
        return "all"

    def observe(self, calls: Sequence[Call]) -> dict[ResourceId, Observation]:
        self.looked.append(sorted(call.resource_name for call in calls))
        return super().observe(calls)


@pytest.fixture(scope="module")
def things_settings(paused_observers: None) -> Mapping[str, Any]:
    return {}


@pytest.fixture(scope="module")
def shared_type(worlds: dict[str, World]) -> WatchedThing:
    return WatchedThing(worlds)


@pytest.fixture
def type_(shared_type: WatchedThing) -> WatchedThing:
    shared_type.looked = []
    return shared_type


@pytest.fixture
async def watched(
    database_url: str, world: World, worlds: dict[str, World], type_: WatchedThing
) -> AsyncIterator[Program]:
    settings = {"engine.poll": "1s"}
    with run_observers():
        async with program(database_url, settings, types=[type_]) as running:
            worlds[running.project] = world
            yield running


@pytest.fixture
def unobserved(things_in_own_project: Program, type_: WatchedThing) -> Program:
    """A program whose observer does not run, so that tests run their own."""
    return things_in_own_project


def observer_of(run: Program, type_: Thing) -> Observer:
    return Observer(run.database, TypeRegistry([type_]))


async def created(run: Program, *names: str, stack: str = "s", **more: Json) -> dict[str, str]:
    """Create a stack; return the physical ID of each resource."""
    await run.create(stack, {name: thing() for name in names}, **more)
    assert await run.until_ended(stack) == "CREATE_COMPLETE"
    found = await run.resources(stack)
    return {name: one["physical_resource_id"] for name, one in found.items()}


async def report(run: Program, *ids: str, **more: Json) -> Json:
    body = {"observations": [{"physical_resource_id": one, **more} for one in ids]}
    status, response = await run.call("POST", "/observations", body)
    assert status == 202, response
    return response


async def drift_of(run: Program, stack: str = "s") -> Any:
    return await run.stack_request("GET", stack, "/drift")


async def states(run: Program, stack: str = "s") -> Mapping[str, str]:
    found = (await drift_of(run, stack))["resources"]
    return {one["resource_name"]: one["state"] for one in found}


async def test_exactly_the_reported_resources_are_observed(
    watched: Program, world: World, type_: WatchedThing
) -> None:
    physical = await created(watched, "a", "b", "c")
    world.things.clear()
    assert await report(watched, physical["b"]) == NOTHING | {"resources": 1, "stacks": 1}

    async def found() -> bool:
        drift = await drift_of(watched)
        return not drift["observing"] and bool(drift["resources"])

    await eventually(found)
    assert await states(watched) == {"b": "missing"}
    (missing,) = (await watched.stack_request("GET", "s", "/drift"))["resources"]
    assert missing["found_by"] == "report"
    assert type_.looked == [["b"]]
    drift = await drift_of(watched)
    assert drift["observed_at"] is None  # the stack as a whole
    assert drift["next_observation_at"] is None
    # A report says nothing about the state.
    world.things[physical["b"]] = 1
    await report(watched, physical["b"])

    async def ended() -> bool:
        drift = await drift_of(watched)
        return not drift["observing"] and not drift["resources"]

    await eventually(ended)
    assert len((await observed(watched))["resources"]) == 2


async def inspected(run: Program, name: str) -> Json:
    found = await run.stack_request("GET", "s", f"/resources/{name}/inspect")
    return found["observed"]


async def test_inspect_says_what_was_observed_and_how(
    watched: Program, world: World, type_: WatchedThing
) -> None:
    value = {"type": "OS::Heat::Value", "properties": {"value": 1}}
    await watched.create("s", {"a": thing(), "b": thing(), "v": value})
    assert await watched.until_ended("s") == "CREATE_COMPLETE"
    physical = (await watched.resources("s"))["b"]["physical_resource_id"]
    created_as = await inspected(watched, "a")
    assert (created_as["state"], created_as["source"]) == ("present", "operation")
    assert (created_as["since"], created_as["differences"]) == (None, [])
    # It cannot be observed.
    assert await inspected(watched, "v") is None
    drift = await observed(watched)
    polled = await inspected(watched, "a")
    assert (polled["state"], polled["source"]) == ("present", "poll")
    assert polled["observed_at"] == drift["observed_at"] > created_as["observed_at"]
    world.observed["b"] = Observation(ObservedState.CHANGED, [Difference("size", 1, 7)])
    await report(watched, physical)

    async def found() -> Json:
        one = await inspected(watched, "b")
        return one if one["state"] == "changed" else None

    by_event = await eventually(found)
    assert by_event["source"] == "event"
    assert polled["observed_at"] < by_event["since"] <= by_event["observed_at"]
    assert by_event["differences"] == [{"path": "size", "desired": 1, "observed": 7}]
    world.observed["a"] = Observation.unknown("no answer", "no answer")
    await observed(watched)
    unknown = await inspected(watched, "a")
    assert (unknown["state"], unknown["source"]) == ("unknown", "poll")
    assert unknown["reason"] == "no answer" and unknown["since"] <= unknown["observed_at"]


async def test_changes_of_several_stacks_are_observed_together(
    unobserved: Program, world: World, type_: WatchedThing
) -> None:
    found = [await created(unobserved, "a", "b", stack=name) for name in ("s", "t", "u")]
    ids = [one["a"] for one in found]
    assert await report(unobserved, *ids, *ids) == NOTHING | {"resources": 3, "stacks": 3}
    assert await observer_of(unobserved, type_).observe_due() == 3
    assert type_.looked == [["a", "a", "a"]]


async def test_stacks_that_are_due_by_policy_are_observed_apart(
    unobserved: Program, type_: WatchedThing
) -> None:
    await created(unobserved, "c", "d", stack="t", environment=EVERY_10M)
    physical = await created(unobserved, "a", "b")
    await unobserved.database.pool.execute("update observation_schedule set next_at = now()")
    await report(unobserved, physical["a"])
    assert await observer_of(unobserved, type_).observe_due() == 2
    assert type_.looked == [["a"], ["c", "d"]]


async def test_a_request_precedes_reports_and_includes_them(
    unobserved: Program, type_: WatchedThing
) -> None:
    physical = await created(unobserved, "a", "b")
    other = await created(unobserved, "c", stack="t")
    await report(unobserved, physical["a"], other["c"])
    await unobserved.act("s", "observe")
    assert await observer_of(unobserved, type_).observe_due() == 2
    assert type_.looked == [["a", "b"], ["c"]]


async def test_many_reported_resources_are_read_in_pages(
    unobserved: Program, world: World, type_: WatchedThing, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("engine.work.observer.observer.PAGE", 2)
    physical = await created(unobserved, *"abcdef")
    other = await created(unobserved, "x", "y", stack="t")
    ids = [one for name, one in physical.items() if name != "f"]
    await report(unobserved, *ids, other["x"])
    assert await observer_of(unobserved, type_).observe_due() == 2
    assert sorted(name for one in type_.looked for name in one) == ["a", "b", "c", "d", "e", "x"]
    assert not (await drift_of(unobserved))["observing"]


async def test_ids_of_other_projects_are_unknown(unobserved: Program, type_: WatchedThing) -> None:
    physical = await created(unobserved, "a")
    before = await unknown_ids(unobserved)
    other = Program(unobserved.session, unobserved.url, f"{unobserved.project}-other")
    unknown = await report(other, physical["a"], "nowhere")
    assert unknown == NOTHING | {"unknown": 2}
    assert await report(unobserved, physical["a"], type="Test::Other") == NOTHING | {"unknown": 1}
    assert await observer_of(unobserved, type_).observe_due() == 0
    await unobserved.stack_request("DELETE", "s")
    await until_deleted(unobserved, "s")
    assert await report(unobserved, physical["a"]) == NOTHING | {"unknown": 1}
    assert await unknown_ids(unobserved) == before + 4


async def unknown_ids(run: Program) -> float:
    _, metrics = await run.call("GET", "//metrics")
    found = re.search(r'headgate_reported_changes_total{outcome="unknown"} (.*)', metrics)
    return float(found[1]) if found else 0


LIMIT = 10


@pytest.fixture
async def limited(database_url: str, world: World) -> AsyncIterator[Program]:
    """At most LIMIT unknown IDs at once, and per second."""
    settings = {"server.unknown_ids_per_user": LIMIT}
    with run_observers():
        async with program(database_url, settings, types=[Thing(world)]) as run:
            yield run


async def send_report(run: Program, *ids: str, user: str = "") -> tuple[int, Json, str]:
    """The status and the body of the response, and its header Retry-After."""
    body = {"observations": [{"physical_resource_id": one} for one in ids]}
    headers = {"X-Auth-User": user} if user else {}
    url = f"{run.url}/v1/{run.project}/observations"
    async with run.session.post(url, json=body, headers=headers) as response:
        return response.status, await response.json(), response.headers.get("Retry-After", "")


def unknown(count: int) -> list[str]:
    return [f"nowhere-{number}" for number in range(count)]


async def test_unknown_ids_up_to_the_limit_are_accepted(limited: Program) -> None:
    """Each counts once, in one request or in several of other users."""
    status, response, _ = await send_report(limited, *unknown(LIMIT), *unknown(LIMIT))
    assert (status, response) == (202, NOTHING | {"unknown": LIMIT})
    for user in ("ann", "bob"):
        for number in range(LIMIT):
            status, _, _ = await send_report(limited, f"nowhere-{number}", user=user)
            assert status == 202


@pytest.mark.parametrize("known", [False, True], ids=["unknown alone", "with a known one"])
async def test_too_many_unknown_ids_are_refused(
    limited: Program, world: World, known: bool
) -> None:
    """One more than the limit. The known one is taken, and the response says so."""
    physical = await created(limited, "a")
    world.observed["a"] = Observation(ObservedState.CHANGED, [Difference("size", 1, 7)])
    ids = [*unknown(LIMIT + 1), *([physical["a"]] if known else [])]
    status, response, after = await send_report(limited, *ids)
    assert (status, response["error"]["type"]) == (429, "TooManyRequests")
    assert 1 <= int(after) <= 2
    reason = str(response["error"])
    assert f"the report has {LIMIT + 1} IDs that no resource of the project has" in reason
    assert f"at most {LIMIT} of them at once" in reason
    count = 1 if known else 0
    assert f"{count} resources of {count} stacks will be observed" in reason
    assert "[server] unknown_ids_per_user" in response["error"]["remedy"]
    if known:
        await eventually(lambda: _differs(limited))


async def _differs(run: Program) -> bool:
    return (await states(run)) == {"a": "changed"}


async def test_ids_of_refused_reports_count_and_later_ones_are_not_looked_up(
    limited: Program,
) -> None:
    physical = await created(limited, "a")
    status, _, after = await send_report(limited, *unknown(500))
    assert status == 429 and 45 <= int(after) <= 50
    status, response, after = await send_report(limited, physical["a"])
    assert status == 429 and int(after) > 30
    assert "no ID of this report was looked up" in str(response["error"])
    assert not (await drift_of(limited))["observing"]
    # Another client and another project are not affected.
    assert (await send_report(limited, physical["a"], user="ann"))[0] == 202
    other = Program(limited.session, limited.url, f"{limited.project}-other")
    elsewhere = await created(other, "a")
    status, response, _ = await send_report(other, elsewhere["a"])
    assert (status, response) == (202, NOTHING | {"resources": 1, "stacks": 1})


async def test_concurrent_reports_with_too_many_unknown_ids_are_looked_up_once(
    limited: Program,
) -> None:
    """The others of the same client are refused by what the first one counted."""
    users = [name for name in ("ann", "bob") for _ in range(6)]
    found = await asyncio.gather(
        *(send_report(limited, *unknown(LIMIT + 1), user=user) for user in users)
    )
    assert {status for status, _, _ in found} == {429}
    for user in ("ann", "bob"):
        reasons = [
            str(one["error"]) for (_, one, _), of in zip(found, users, strict=True) if of == user
        ]
        assert sum("was looked up" not in reason for reason in reasons) == 1


async def next_at(run: Program) -> Any:
    return await run.database.pool.fetchval("select next_at from observation_schedule")


async def test_the_schedule_of_a_policy_stays(
    unobserved: Program, world: World, type_: WatchedThing
) -> None:
    physical = await created(unobserved, "a", "b", environment=EVERY_10M)
    planned = await next_at(unobserved)
    observer = observer_of(unobserved, type_)
    for _ in range(2):
        await report(unobserved, physical["a"])
        assert await observer.observe_due() == 1
        assert await next_at(unobserved) == planned
    world.things.clear()
    await unobserved.database.pool.execute(
        "update observation_schedule set next_at = now() - interval '1s'"
    )
    assert await observer.observe_due() == 1
    assert await states(unobserved) == {"a": "missing", "b": "missing"}


async def test_a_report_during_an_observation_causes_another_one(
    unobserved: Program, type_: WatchedThing
) -> None:
    physical = await created(unobserved, "a", "b", environment=EVERY_10M)
    await report(unobserved, physical["a"])
    async with unobserved.database.connection() as conn:
        (first,) = await observation_schedule.claim(conn, 10, LEASE)
        assert first.reported and len(first.resources or ()) == 1
        assert await observation_schedule.claim(conn, 10, LEASE) == []
        await report(unobserved, physical["b"])
        ended = observation_schedule.FinishedObservation(first, timedelta(minutes=10), 0, 0)
        await observation_schedule.finish(conn, [ended])
        (second,) = await observation_schedule.claim(conn, 10, LEASE)
        assert second.resources is not None and first.resources is not None
        assert set(second.resources) > set(first.resources)
        ended = observation_schedule.FinishedObservation(second, timedelta(minutes=10), 0, 0)
        await observation_schedule.finish(conn, [ended])
        assert await observation_schedule.claim(conn, 10, LEASE) == []
    assert not (await drift_of(unobserved))["observing"]


async def test_after_a_crash_the_whole_stack_is_observed(
    unobserved: Program, type_: WatchedThing
) -> None:
    physical = await created(unobserved, "a", "b")
    await report(unobserved, physical["a"])
    async with unobserved.database.connection() as conn:
        (lost,) = await observation_schedule.claim(conn, 10, timedelta(0))
    assert lost.resources is not None
    assert await observer_of(unobserved, type_).observe_due() == 1
    assert type_.looked == [["a", "b"]]
    assert not (await drift_of(unobserved))["observing"]


async def test_a_failing_endpoint_is_left_alone(
    unobserved: Program, world: World, type_: WatchedThing
) -> None:
    physical = await created(unobserved, "a")
    world.observed["a"] = Observation(ObservedState.UNKNOWN, reason="no answer")
    observer = observer_of(unobserved, type_)
    for _ in range(3):
        await report(unobserved, physical["a"])
        assert await observer.observe_due() == 1
    assert type_.looked == [["a"]]
    assert await states(unobserved) == {"a": "unknown"}


async def test_drift_that_a_report_finds_is_reported_to_subscribers(
    watched: Program, world: World
) -> None:
    policy = {"observe": {"every": "1d"}, "on_drift": "notify"}
    physical = await created(watched, "a", "b", environment={"convergence": policy})
    world.things.clear()
    await report(watched, physical["a"])

    async def names() -> list[str]:
        _, history = await watched.call("GET", f"{await path_of(watched)}/history")
        return [one["subject"] for one in history["events"] if ".drift.detected" in one["type"]]

    assert await eventually(names) == ["a"]


async def path_of(run: Program) -> str:
    return f"/stacks/s/{(await run.stack('s'))['id']}"


@pytest.mark.parametrize(
    ("body", "place"),
    [
        ({}, "observations"),
        ({"observations": []}, "observations"),
        ({"observations": [{}]}, "observations.0.physical_resource_id"),
        ({"observations": [{"physical_resource_id": ""}]}, "observations.0.physical_resource_id"),
        ({"observations": [{"physical_resource_id": 7}]}, "observations.0.physical_resource_id"),
        ({"observations": [{"physical_resource_id": "x" * 1001}]},
         "observations.0.physical_resource_id"),
        ({"observations": [{"physical_resource_id": "x", "state": "missing"}]},
         "observations.0.state"),
        ({"observations": [{"physical_resource_id": "x"}] * 1001}, "observations"),
        ({"observations": [{"physical_resource_id": "x\0"}]},
         "observations[0].physical_resource_id"),
    ],
    ids=["nothing", "none", "no ID", "empty", "number", "long", "state", "many", "NUL"],
)  # fmt: skip
async def test_a_wrong_report_is_refused(unobserved: Program, body: Json, place: str) -> None:
    status, response = await unobserved.call("POST", "/observations", body)
    assert status == 400
    assert place in str(response["error"])


@pytest.mark.parametrize(
    ("key", "place", "known"),
    [
        ("resource_type", "observations.0.resource_type", "type"),
        ("tpye", "observations.0.tpye", "type"),
        ("id", "observations.0.id", "physical_resource_id"),
        ("physical_id", "observations.0.physical_id", "physical_resource_id"),
        ("resource_id", "observations.0.resource_id", "physical_resource_id"),
        ("physicalResourceId", "observations.0.physicalResourceId", "physical_resource_id"),
        ("observation", "observation", "observations"),
    ],
)
async def test_a_misspelt_key_of_a_report_is_answered_with_the_right_one(
    unobserved: Program, key: str, place: str, known: str
) -> None:
    one = {"physical_resource_id": "x"}
    inside = place.startswith("observations.")
    body = {"observations": [one | {key: "y"}]} if inside else {"observations": [one], key: []}
    status, response = await unobserved.call("POST", "/observations", body)
    assert status == 400
    (found,) = response["error"]["findings"]
    assert (found["place"], found["reason"]) == (place, "is not a known key")
    assert found["remedy"] == f'Did you mean "{known}"?'


async def test_another_key_of_a_report_is_answered_with_those_of_its_place(
    unobserved: Program,
) -> None:
    body = {"observations": [{"physical_resource_id": "x", "size": 1}]}
    _, response = await unobserved.call("POST", "/observations", body)
    (found,) = response["error"]["findings"]
    assert found["remedy"] == "Known: physical_resource_id, type."


async def test_long_ids_are_found_exactly(
    unobserved: Program, world: World, type_: WatchedThing
) -> None:
    physical = await created(unobserved, "a", "b")
    rename = "update resource set physical_id = $2 where physical_id = $1"
    start = "ü" * 900
    for name, one in physical.items():
        await unobserved.database.pool.execute(rename, one, start + name)
    assert (await report(unobserved, start + "a", start))["unknown"] == 1
    assert await observer_of(unobserved, type_).observe_due() == 1
    assert type_.looked == [["a"]]


async def test_ids_are_found_by_key(unobserved: Program) -> None:
    await unobserved.database.pool.execute(
        """
        insert into resource (stack_id, id, name, type, action, status, reason, physical_id,
                              attributes, data, metadata, digest, requires)
        select gen_random_uuid(), gen_random_uuid(), n::text, 't', 'CREATE', 'COMPLETE', '',
               'id ' || n, '{}', '{}', '{}', '', '{}'
          from generate_series(1, 10000) n
        """
    )
    async with unobserved.database.connection() as conn:
        for analyzed in (False, True):
            if analyzed:
                await conn.execute("analyze resource")
            for mode in ("generic", "custom"):
                found = await plan(conn, observation_schedule.REPORT_CHANGES, mode)
                assert full_scans(found, {"resource"}) == []


async def test_a_reporter_can_only_report(database_url: str, world: World) -> None:
    async with run_with_tokens(database_url, types=[Thing(world)]) as (run, admin):
        reporter = bearer(await token(run, admin, "events", "reporter"))
        body = {"observations": [{"physical_resource_id": "x"}]}
        status, response = await run.call("POST", "/observations", body, headers=reporter)
        assert (status, response) == (202, NOTHING | {"unknown": 1})
        for method, path in (("GET", "/stacks"), ("POST", "/stacks"), ("GET", "/hooks")):
            assert (await run.call(method, path, {}, headers=reporter))[0] == 403
        reader = bearer(await token(run, admin, "ann", "reader"))
        status, _ = await run.call("POST", "/observations", body, headers=reader)
        assert status == 403


async def test_resources_are_observed_unless_their_state_is_not_that_of_a_running_stack(
    unobserved: Program, type_: WatchedThing
) -> None:
    physical = await created(unobserved, "a")
    found = set[str]()
    for action, status in product(ResourceAction, ("COMPLETE", "FAILED", "IN_PROGRESS")):
        changed = "update resource set action = $1, status = $2"
        await unobserved.database.pool.execute(changed, action, status)
        assert (await report(unobserved, physical["a"]))["resources"] == 1
        assert await observer_of(unobserved, type_).observe_due() == 1
        if type_.looked:
            found.add(f"{action}_{status}")
        type_.looked.clear()
    assert found == {
        "CREATE_COMPLETE", "UPDATE_COMPLETE", "ADOPT_COMPLETE", "CHECK_COMPLETE",
        "RESUME_COMPLETE", "SNAPSHOT_COMPLETE",
        "CREATE_FAILED", "UPDATE_FAILED", "CHECK_FAILED", "SNAPSHOT_FAILED",
    }  # fmt: skip
