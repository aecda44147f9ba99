"""Which processes say that they are at work."""

import asyncio
from datetime import timedelta
from uuid import UUID

from engine.store.database import Database
from engine.store.processes import Process, beat, list_processes
from engine.work.presence import Presence
from tests.support.program import Program, eventually

BRIEFLY = timedelta(seconds=60)


def process(number: int, *roles: str) -> Process:
    return Process(UUID(int=number), f"h{number}", roles, BRIEFLY)


async def aged(database: Database, number: int, by: timedelta) -> None:
    await database.pool.execute(
        "update process set seen_at = seen_at - $2::interval where id = $1", UUID(int=number), by
    )


async def seen(database: Database) -> dict[str, bool]:
    async with database.connection() as conn:
        return {one.host: one.up for one in await list_processes(conn)}


async def test_who_falls_silent_is_down_and_in_time_forgotten(database: Database) -> None:
    async with database.connection() as conn:
        for number in (1, 2, 3):
            await beat(conn, process(number, "engine"))
    await aged(database, 2, 3 * BRIEFLY)
    await aged(database, 3, timedelta(days=2))
    assert await seen(database) == {"h1": True, "h2": False, "h3": False}
    async with database.connection() as conn:
        await beat(conn, process(1, "engine"))
    assert await seen(database) == {"h1": True, "h2": False}
    async with database.connection() as conn:
        await beat(conn, process(2, "engine"))
    assert await seen(database) == {"h1": True, "h2": True}


async def test_a_process_says_so_again_and_again_and_takes_it_back(database: Database) -> None:
    stop, often = asyncio.Event(), Process(UUID(int=1), "h1", ["api"], timedelta(milliseconds=20))
    running = asyncio.create_task(Presence(database, often).run(stop))

    async def is_up() -> bool:
        return (await seen(database)) == {"h1": True}

    await eventually(is_up)
    await aged(database, 1, BRIEFLY)
    await eventually(is_up)
    stop.set()
    async with asyncio.timeout(10):
        await running
    assert await seen(database) == {}


async def test_services_are_refused_when_no_engine_is_at_work(running: Program) -> None:
    status, said = await running.call("GET", "/services")
    assert status == 200
    shown = {one["topic"]: one["status"] for one in said["services"]}
    assert shown == dict.fromkeys(("api", "dispatch", "engine", "purge"), "up")
    await running.database.pool.execute("update process set seen_at = seen_at - interval '1 hour'")
    async with running.database.connection() as conn:
        await beat(conn, process(1, "api"))
    status, said = await running.call("GET", "/services")
    assert (status, said["error"]["type"]) == (503, "HTTPServiceUnavailable")
    assert "headgate serve --role engine" in said["error"]["message"]
