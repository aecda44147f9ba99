"""What projects use by day: computed from rows that exist, and rolled up after the day."""

import csv
import io
from collections.abc import AsyncIterator, Mapping
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest

from engine.store.projects.usage import add_observed
from engine.types.registry import TypeRegistry
from engine.work.observer.drift_hooks import OBSERVER
from engine.work.observer.observer import Observer
from engine.work.purge import purge_old
from engine.work.usage_roll_up import UsageRollUp
from hub.cli.commands.usage import csv_of, row_of
from tests.support.changes import thing
from tests.support.http_things import HTTP_SETTINGS, Things, serve_things
from tests.support.http_things import thing as http_thing
from tests.support.program import Json, Program, program
from tests.support.purging import hold_purge_lock
from tests.support.scripted_type import Thing, World

REPAIR: Json = {"observe": {"every": "10m"}, "on_drift": "repair"}
#: The resource types of the program.
REGISTRIES: list[TypeRegistry] = []
NOTHING = dict.fromkeys(
    ("observations", "provider_requests", "drift_found", "repairs", "operations", "hooks",
     "hook_seconds", "resource_hours"), 0,
)  # fmt: skip


@pytest.fixture
async def things() -> AsyncIterator[Things]:
    async with serve_things() as service:
        yield service


@pytest.fixture
async def run(
    database_url: str, world: World, monkeypatch: pytest.MonkeyPatch
) -> AsyncIterator[Program]:
    """A program whose observer and roll-up do not run, so that tests run their own."""

    async def keep(self: Observer, stop: Any) -> None:
        REGISTRIES.append(self.registry)
        await stop.wait()

    monkeypatch.setattr(Observer, "run", keep)
    monkeypatch.setattr(UsageRollUp, "run", lambda self, stop: stop.wait())
    REGISTRIES.clear()
    async with program(database_url, HTTP_SETTINGS, types=[Thing(world)]) as running:
        yield running


async def observe(run: Program) -> None:
    await run.database.pool.execute(
        "update observation_schedule set next_at = now() - interval '1s' where next_at is not null"
    )
    repair = run.engine.repairs.start
    await Observer(run.database, REGISTRIES[0], repair=repair).observe_due()


async def roll_up(run: Program) -> None:
    await UsageRollUp(run.database, OBSERVER).roll_up()


async def usage(run: Program, query: str = "") -> list[dict[str, Any]]:
    status, found = await run.call("GET", f"/usage{query}")
    assert status == 200, found
    days: list[dict[str, Any]] = found["usage"]
    return days


def without_times(day: Mapping[str, Any]) -> dict[str, Any]:
    return {key: value for key, value in day.items() if key != "day"}


async def create(run: Program, name: str, resources: Json, **environment: Json) -> None:
    await run.create(name, resources, environment=environment)
    assert (await run.until_ended(name)) == "CREATE_COMPLETE", await run.events(name)


async def move_to_yesterday(run: Program) -> None:
    """All that happened, happened a day before; the days up to the one before are rolled up."""
    for statement in (
        "update traversal set ended_at = ended_at - interval '1 day' where ended_at is not null",
        "update hook set decided_at = decided_at - interval '1 day',"
        " opened_at = opened_at - interval '1 day' where decided_at is not null",
        "update observer_usage set day = day - 1",
        "update resource_sample set at = at - interval '1 day'",
        "update usage_roll_up set day = day - 1",
    ):
        await run.database.pool.execute(statement)


async def test_everything_is_counted_on_its_day(run: Program, world: World) -> None:
    assert await usage(run) == []
    hook = [
        {"at": "b", "on": ["pre-create"]},
        {"at": "a", "on": ["pre-create"], "mode": "notify"},
    ]
    await run.create(
        "s", {"a": thing(), "b": thing()}, environment={"convergence": REPAIR, "hooks": hook}
    )
    (waiting,) = await run.waiting_hooks("s")
    await run.database.pool.execute("update hook set opened_at = opened_at - interval '90s'")
    await run.signal(waiting)
    assert await run.until_ended("s") == "CREATE_COMPLETE"
    await observe(run)
    world.things = {key: one for key, one in world.things.items() if not key.startswith("a-")}
    for _ in range(2):
        await observe(run)
        assert await run.until_ended("s") == "UPDATE_COMPLETE"
    await roll_up(run)
    await roll_up(run)  # the resources of an hour are counted once
    other = Program(run.session, run.url, "other")
    await create(other, "t", {"c": thing()})
    (day,) = await usage(run)
    assert abs(day["hook_seconds"] - 90) < 60
    assert without_times(day) | {"hook_seconds": 0} == NOTHING | {
        "observations": 6, "provider_requests": 3, "drift_found": 1, "repairs": 1,
        # Two creates, and a replacement: a create and a delete.
        "operations": 4, "hooks": 1, "resource_hours": 2,
    }  # fmt: skip
    (theirs,) = await usage(other)
    assert without_times(theirs) == NOTHING | {"operations": 1}


async def test_metrics_export_the_usage_of_the_day(
    run: Program, world: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Of all projects, without their names."""
    monkeypatch.setattr("hub.metrics.FRESH", 0)
    monkeypatch.setattr("hub.metrics.USAGE_FRESH", 0)
    other = Program(run.session, run.url, "other")
    kinds = ("repairs", "hook_seconds", "resource_hours")

    async def exported() -> dict[str, float]:
        async with run.session.get(f"{run.url}/metrics") as response:
            lines = (await response.text()).splitlines()
        found = dict(one.split(" ") for one in lines if one.startswith("headgate_usage_"))
        return {kind: float(found[f"headgate_usage_{kind}"]) for kind in kinds}

    assert await exported() == dict.fromkeys(kinds, 0)
    hooks = [
        {"at": "a", "on": ["pre-create"]},
        {"at": "b", "on": ["pre-create"], "mode": "notify"},
    ]
    environment = {"convergence": REPAIR, "hooks": hooks}
    for project in (run, other):
        await project.create("s", {"a": thing(), "b": thing()}, environment=environment)
        (waiting,) = await project.waiting_hooks("s")
        await run.database.pool.execute(
            "update hook set opened_at = opened_at - interval '90s' where id = $1", waiting["id"]
        )
        await project.signal(waiting)
        assert await project.until_ended("s") == "CREATE_COMPLETE"
    # A hook that waits, and one of yesterday, do not count.
    await other.create("t", {"a": thing()}, environment={"hooks": hooks[:1]})
    await other.waiting_hooks("t")
    await observe(run)
    gone = next(key for key in world.things if key.startswith("b-"))
    del world.things[gone]
    for _ in range(2):
        await observe(run)
        for project in (run, other):
            assert await project.until_ended("s") in ("CREATE_COMPLETE", "UPDATE_COMPLETE")
    await roll_up(run)
    notify = "update hook set opened_at = opened_at - interval '1h' where mode = 'notify'"
    await run.database.pool.execute(notify)
    found = await exported()
    days = [*await usage(run), *await usage(other)]
    assert len(days) == 2
    assert found == {kind: sum(day[kind] for day in days) for kind in kinds}
    assert found["repairs"] == 1 and found["hook_seconds"] >= 180 and found["resource_hours"] == 4
    await move_to_yesterday(run)
    assert await exported() == dict.fromkeys(kinds, 0)


async def test_a_finished_day_is_rolled_up_and_stays_the_same(run: Program, world: World) -> None:
    await create(run, "s", {"a": thing()}, convergence=REPAIR)
    await observe(run)
    await roll_up(run)
    pool = run.database.pool
    for _ in range(2):  # the day before yesterday has settled at any time
        await move_to_yesterday(run)
    (before,) = await usage(run)
    assert without_times(before) == NOTHING | {
        "observations": 1, "provider_requests": 1, "operations": 1, "resource_hours": 1,
    }  # fmt: skip
    assert await pool.fetch("select from project_usage") == []
    for _ in range(2):
        await roll_up(run)
    assert len(await pool.fetch("select from project_usage")) == 1
    assert (await usage(run))[0] == before
    assert await pool.fetchval("select count(*) from observer_usage") == 0
    # What it was computed from may be purged.
    await pool.execute("delete from traversal")
    assert (await usage(run))[0] == before
    recorded = await pool.fetch("select type, sequence from event where type like '%usage%'")
    assert [(one["type"], one["sequence"]) for one in recorded] == [("headgate.usage.recorded", 1)]


async def test_old_usage_is_purged_if_the_operator_wishes(run: Program) -> None:
    pool = run.database.pool
    for ago in (400, 400, 40, 0):
        await pool.execute(
            "insert into project_usage values (gen_random_uuid()::text,"
            " (now() at time zone 'UTC')::date - $1::integer, 1, 1, 1, 1, 1, 1, 1, 1)",
            ago,
        )
    async with hold_purge_lock(run.database) as conn:
        purged = await purge_old(conn, {"usage": timedelta(days=365)}, batch=1)
    assert purged == {"usage": 2}
    assert await pool.fetchval("select count(*) from project_usage") == 2


async def test_archived_operations_are_counted(run: Program, world: World) -> None:
    await create(run, "s", {"a": thing(), "b": thing()})
    before = await usage(run)
    await run.database.pool.execute(
        """
        insert into archived_graph (stack_id, traversal, ids, names, types, operations, directions,
                                    states, phases, reasons, dependents)
        select stack_id, traversal, array_agg(id), array_agg(name), array_agg(type),
               array_agg(operation), array_agg(direction), array_agg(state), array_agg(phase),
               array_agg(''::text), array_agg('{}'::text)
          from node group by stack_id, traversal
        """
    )
    await run.database.pool.execute("delete from node")
    assert await usage(run) == before and before[0]["operations"] == 2


async def test_several_days_are_rolled_up_at_once(run: Program) -> None:
    pool = run.database.pool
    await pool.execute("update usage_roll_up set day = day - 10")
    today = datetime.now(UTC).date()
    for ago in (9, 5, 0):
        for project in ("p", "other"):
            await pool.execute(
                "insert into observer_usage values ($1, $2, 3, 10, 5, 1), ($1, $2, 4, 1, 1, 0)",
                project, today - timedelta(days=ago),
            )  # fmt: skip
    await roll_up(run)
    days = await usage(run)
    assert [(one["day"], one["observations"]) for one in days] == [
        (str(today - timedelta(days=ago)), 11) for ago in (9, 5, 0)
    ]
    some = await usage(run, f"?from={today - timedelta(days=6)}&to={today - timedelta(days=1)}")
    assert [one["day"] for one in some] == [str(today - timedelta(days=5))]
    numbers = await pool.fetch(
        "select sequence from event where type = 'headgate.usage.recorded' order by sequence"
    )
    assert [one["sequence"] for one in numbers] == [1, 1, 2, 2]


async def test_requests_to_providers_are_counted(run: Program, things: Things) -> None:
    resources = {f"r{number}": http_thing(things) for number in range(8)}
    await create(run, "s", resources, convergence={"observe": {"every": "10m"}})
    things.requests.clear()
    await observe(run)
    (day,) = await usage(run)
    assert day["provider_requests"] == things.requests["list"] == 3
    assert day["observations"] == 8
    await observe(run)
    _, found = await run.call("GET", "/usage")
    assert found["endpoints"] == [
        {"endpoint": things.url, "requests": 6, "requests_per_minute": None, "used": None}
    ]
    await move_to_yesterday(run)
    _, found = await run.call("GET", "/usage")
    assert found["endpoints"] == []


async def test_the_endpoints_with_the_most_requests_of_a_day_are_counted(run: Program) -> None:
    async with run.database.connection() as conn:
        for first in (0, 60):
            requests = {f"http://h{n}": n for n in range(first, first + 61)}
            await add_observed(conn, "p", 1, observations=1, requests=requests, drift=0)
        stored = "select count(*) from observer_usage cross join jsonb_object_keys(endpoints)"
        assert await conn.fetchval(stored) == 100
    _, found = await run.call("GET", "/usage")
    assert (found["usage"][0]["provider_requests"], len(found["endpoints"])) == (
        2 * 60 + sum(range(60)) + sum(range(61, 121)), 100,
    )  # fmt: skip
    assert [(one["endpoint"], one["requests"]) for one in found["endpoints"][:2]] == [
        ("http://h120", 120), ("http://h60", 120),
    ]  # fmt: skip


async def test_the_event_of_a_day_reaches_the_stream(run: Program) -> None:
    await run.database.pool.execute("update usage_roll_up set day = day - 2")
    await run.database.pool.execute(
        "insert into observer_usage values ('p', (now() at time zone 'UTC')::date - 1, 1, 7, 2, 1)"
    )
    async with run.session.get(f"{run.url}/v1/p/events/stream") as stream:
        # Roll up as if the day had settled.
        await roll_up(run)
        if not await run.database.pool.fetch("select from project_usage"):
            return  # within 15 minutes after midnight
        found = b""
        async for chunk in stream.content.iter_any():
            found += chunk
            if b"headgate.usage.recorded" in found:
                break
    assert b'"observations":7' in found


@pytest.mark.parametrize(
    ("query", "place"),
    [
        ("?from=yesterday", "from"),
        ("?to=2026-02-30", "to"),
        ("?to=20261126", "to"),
        ("?from=2026-W01-1", "from"),
        ("?from=0001-01-01", "from"),
        ("?from=2026-11-02&to=2026-11-01", "to"),
        ("?from=2024-01-01&to=2026-01-01", "from"),
    ],
)
async def test_wrong_days_are_refused(in_own_project: Program, query: str, place: str) -> None:
    for path in ("/usage", "/usage.csv"):
        status, document = await in_own_project.call("GET", path + query)
        assert (status, document["error"]["place"]) == (400, place), document
        assert document["error"]["remedy"]


async def test_csv_has_the_same_values(run: Program) -> None:
    await create(run, "s", {"a": thing()})
    days = await usage(run)
    _, text = await run.call("GET", "/usage.csv")
    rows = list(csv.DictReader(io.StringIO(text)))
    assert rows == [{key: str(value) for key, value in one.items()} for one in days]
    assert list(csv.DictReader(io.StringIO(csv_of(days)))) == rows
    assert csv_of([]) == ""


def test_the_waiting_time_of_hooks_is_shown_in_hours() -> None:
    assert row_of({"hook_seconds": 3723})["waited"] == "1:02:03"
