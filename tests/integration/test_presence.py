"""The list of processes that report that they run."""

import asyncio
from datetime import timedelta
from uuid import UUID

from engine.store.database import Database
from engine.store.maintenance.processes import OtherEngines, Process, list_processes, report
from engine.store.schema.upgrade import own_program
from engine.work.presence import Presence
from tests.support.program import Program, eventually

PERIOD = timedelta(seconds=60)
PROGRAM = own_program("1.0.0")


def process(number: int, *roles: str) -> Process:
    return Process(UUID(int=number), f"h{number}", roles, PERIOD, PROGRAM)


async def age(database: Database, number: int, by: timedelta) -> None:
    await database.pool.execute(
        "update process set seen_at = seen_at - $2::interval where id = $1", UUID(int=number), by
    )


async def listed(database: Database) -> dict[str, bool]:
    async with database.connection() as conn:
        return {one.host: one.up for one in await list_processes(conn)}


async def test_a_silent_process_is_down_and_later_removed(database: Database) -> None:
    async with database.connection() as conn:
        for number in (1, 2, 3):
            await report(conn, process(number, "engine"))
    await age(database, 2, 3 * PERIOD)
    await age(database, 3, timedelta(days=2))
    assert await listed(database) == {"h1": True, "h2": False, "h3": False}
    async with database.connection() as conn:
        await report(conn, process(1, "engine"))
    assert await listed(database) == {"h1": True, "h2": False}
    async with database.connection() as conn:
        await report(conn, process(2, "engine"))
    assert await listed(database) == {"h1": True, "h2": True}


async def test_a_process_reports_periodically_and_removes_itself_at_its_end(
    database: Database,
) -> None:
    stop = asyncio.Event()
    often = Process(UUID(int=1), "h1", ["api"], timedelta(milliseconds=20), PROGRAM)
    running = asyncio.create_task(Presence(database, often).run(stop))

    async def is_up() -> bool:
        return (await listed(database)) == {"h1": True}

    await eventually(is_up)
    await age(database, 1, PERIOD)
    await eventually(is_up)
    stop.set()
    async with asyncio.timeout(10):
        await running
    assert await listed(database) == {}


async def test_a_report_returns_the_other_engines_with_a_label_of_its_own(
    database: Database,
) -> None:
    own = Process(UUID(int=9), "own", ("engine",), PERIOD, PROGRAM, labels=("", "region=eu"))
    async with database.connection() as conn:
        await report(conn, process(1, "engine"))
        assert await report(conn, own) == OtherEngines(1, 1), "also in the first report"
        assert await report(conn, own) == OtherEngines(1, 1)
        for number, roles in enumerate((("engine", "purge"), ("api",)), start=2):
            await report(conn, process(number, *roles))
        other_label = Process(
            UUID(int=4), "h4", ("engine",), PERIOD, PROGRAM, labels=("region=us",)
        )
        assert await report(conn, other_label) == OtherEngines(0, 0)
        assert await report(conn, own) == OtherEngines(2, 1)
        assert await report(conn, process(1, "engine")) == OtherEngines(2, 0)
        assert await report(conn, process(2, "engine", "purge")) == OtherEngines(2, 2)
    await age(database, 1, 3 * PERIOD)
    found: list[OtherEngines] = []
    presence = Presence(database, own, set_other_engines=found.append)
    await presence.report()
    assert found == [OtherEngines(1, 0)]


async def test_services_are_unavailable_without_an_engine_process(running: Program) -> None:
    status, response = await running.call("GET", "/services")
    assert status == 200
    shown = {one["topic"]: one["status"] for one in response["services"]}
    assert shown == dict.fromkeys(("api", "dispatch", "engine", "purge"), "up")
    await running.database.pool.execute("update process set seen_at = seen_at - interval '1 hour'")
    async with running.database.connection() as conn:
        await report(conn, process(1, "api"))
    status, response = await running.call("GET", "/services")
    assert (status, response["error"]["type"]) == (503, "HTTPServiceUnavailable")
    assert "headgate serve --role engine" in response["error"]["message"]
