"""A process dies at each commit of the observer: drift is reported once and repaired once, and each
round of a converge is one update."""

import asyncio
from collections import Counter
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from datetime import timedelta
from pathlib import Path

import aiohttp
import asyncpg
import pytest

from engine.store.fault_points import (
    BUDGET_POINTS,
    DRIFT_POINTS,
    ENDPOINT_POINTS,
    ROUND_POINTS,
    UNREPAIRED_POINTS,
)
from tests.support.http_things import Things, serve_things, thing
from tests.support.program import PATIENCE, Http, ServerProcess, eventually

SETTINGS = """
[engine]
lease = "1s"
poll = "1s"
[observer]
requests_per_minute = 6000
[resource_types.http]
enabled = true
allow = ["127.0.0.0/8"]
"""
#: Renewed often enough on a busy machine.
LEASES = SETTINGS.replace('lease = "1s"', 'lease = "4s"')
POLICY = {"convergence": {"observe": {"every": "10h"}, "on_drift": "repair"}}
#: Also ends the lease of a dead process.
DUE = """
with due as (update observation_schedule set next_at = now() where next_at is not null)
select pg_notify('headgate_observe', '')
"""
#: Whether no observation is due soon, and whether a reaction to drift waits.
IN_AN_HOUR = "select min(next_at) > now() + interval '1h' from observation_schedule"
WAITS = "select count(repair_root) from observation_schedule"
#: As if what waits had begun to wait six minutes ago.
AGE_WAITING = """
update observation_schedule
   set repair_waits_at = repair_waits_at - interval '6 min',
       repair_found_at = repair_found_at - interval '6 min'
"""


@pytest.fixture
async def things() -> AsyncIterator[Things]:
    async with serve_things() as service:
        yield service


@asynccontextmanager
async def undetected_loss(
    database_url: str, folder: Path, things: Things
) -> AsyncIterator[tuple[ServerProcess, asyncpg.Connection, Http]]:
    """A server, which is stopped, and its stack, of which an object is gone."""
    server = ServerProcess(folder, settings=SETTINGS, database_url=database_url)
    conn = await asyncpg.connect(database_url)
    connector = aiohttp.TCPConnector(force_close=True)
    try:
        await asyncio.to_thread(server.start)
        async with aiohttp.ClientSession(connector=connector) as session, asyncio.timeout(PATIENCE):
            http = Http(session, server.url)
            await http.create("s", {name: thing(things) for name in "ab"}, environment=POLICY)
            assert await http.until_ended("s") == "CREATE_COMPLETE"
            await asyncio.to_thread(server.stop)
            del things.objects[(await lost(conn))]
            yield server, conn, http
    finally:
        await conn.close()
        await asyncio.to_thread(server.stop)


async def die(server: ServerProcess, conn: asyncpg.Connection, point: str) -> None:
    """Start the server, which observes its stacks and dies when it passes the point."""
    await asyncio.to_thread(server.start, fault=f"{point}:1:kill")
    await conn.execute(DUE)

    async def is_dead() -> bool:
        return not server.is_running

    await eventually(is_dead)


@pytest.mark.parametrize("point", (*DRIFT_POINTS, *BUDGET_POINTS))
async def test_a_death_at_any_commit_reports_and_repairs_drift_once(
    database_url: str, tmp_path: Path, things: Things, point: str
) -> None:
    async with undetected_loss(database_url, tmp_path, things) as (server, conn, http):
        await die(server, conn, point)
        await asyncio.to_thread(server.start)
        await conn.execute(DUE)

        async def is_repaired() -> bool:
            return bool((await http.stack("s"))["stack_status"] == "UPDATE_COMPLETE")

        await eventually(is_repaired)
        # The next observation finds everything as recorded.
        await http.act("s", "observe")

        async def is_observed() -> bool:
            drift = await http.stack_request("GET", "s", "/drift")
            return not drift["observing"] and drift["resources"] == []

        await eventually(is_observed)
        history = await http.stack_request("GET", "s", "/history")
        found = Counter(
            one["type"].removeprefix("headgate.resource.drift.")
            for one in history["events"] if ".drift." in one["type"]
        )  # fmt: skip
        assert found["detected"] == 1 and found["unrepaired"] == 0
        assert things.requests["create"] == 3 and len(things.objects) == 2


async def test_drift_that_a_killed_process_has_found_is_repaired_without_a_further_interval(
    database_url: str, tmp_path: Path, things: Things
) -> None:
    async with undetected_loss(database_url, tmp_path, things) as (server, conn, http):
        await die(server, conn, "observed.after")
        await asyncio.to_thread(server.start)
        assert await conn.fetchval(IN_AN_HOUR)
        await conn.execute(AGE_WAITING)

        async def is_repaired() -> bool:
            status = (await http.stack("s"))["stack_status"]
            return status == "UPDATE_COMPLETE" and not await conn.fetchval(WAITS)

        await eventually(is_repaired)
        assert things.requests["create"] == 3 and len(things.objects) == 2


@pytest.mark.parametrize(
    ("point", "times"), [(point, times) for point in ROUND_POINTS for times in (1, 2)]
)
async def test_a_death_between_rounds_of_a_converge_loses_and_doubles_none(
    database_url: str, tmp_path: Path, things: Things, point: str, times: int
) -> None:
    """times: the observation of the stack is requested, or another round is decided."""
    server = ServerProcess(tmp_path, settings=SETTINGS, database_url=database_url)
    conn = await asyncpg.connect(database_url)
    connector = aiohttp.TCPConnector(force_close=True)
    try:
        await asyncio.to_thread(server.start, fault=f"{point}:{times}:kill")
        async with aiohttp.ClientSession(connector=connector) as session, asyncio.timeout(PATIENCE):
            http = Http(session, server.url)
            await http.create("s", {"a": thing(things)})
            assert await http.until_ended("s") == "CREATE_COMPLETE"
            (found,) = things.objects.values()
            found["size"], things.relapses = 7, 1
            await http.stack_request("POST", "s", "/actions", {"converge": {"rounds": 5}})

            async def is_dead() -> bool:
                return not server.is_running

            await eventually(is_dead)
            await asyncio.to_thread(server.start)
            await conn.execute(DUE)  # the process that died may have claimed the observation

            async def result() -> str | None:
                converge = (await http.stack_request("GET", "s", "/drift"))["converge"]
                return f"{converge['state']} {converge['round']}" if converge["reason"] else None

            assert await eventually(result) == "complete 2"
            assert things.requests["update"] == 2 and found["size"] == 1
            versions = (await http.stack_request("GET", "s", "/versions"))["traversals"]
            assert [one["action"] for one in versions] == ["UPDATE", "UPDATE", "CREATE"]
    finally:
        await conn.close()
        await asyncio.to_thread(server.stop)


@pytest.mark.parametrize("point", ENDPOINT_POINTS)
@pytest.mark.parametrize("works", [False, True], ids=["fails", "works again"])
async def test_a_death_when_an_endpoint_fails_or_works_again_leaves_it_observed(
    database_url: str, tmp_path: Path, things: Things, point: str, works: bool
) -> None:
    server = ServerProcess(tmp_path, settings=SETTINGS, database_url=database_url)
    conn = await asyncpg.connect(database_url)
    connector = aiohttp.TCPConnector(force_close=True)
    try:
        await asyncio.to_thread(server.start)
        async with aiohttp.ClientSession(connector=connector) as session, asyncio.timeout(PATIENCE):
            http = Http(session, server.url)
            await http.create("s", {name: thing(things) for name in "ab"}, environment=POLICY)
            assert await http.until_ended("s") == "CREATE_COMPLETE"
            things.faults = [503]
            if works:
                await conn.execute(DUE)
                await eventually(lambda: conn.fetchval("select count(*) from provider_failure"))
                things.faults = []
            await asyncio.to_thread(server.stop)
            await conn.execute("update provider_failure set until = now()")
            await asyncio.to_thread(server.start, fault=f"{point}:1:kill")
            await conn.execute(DUE)

            async def is_dead() -> bool:
                return not server.is_running

            await eventually(is_dead)
            del things.objects[(await lost(conn))]
            things.faults = []
            await asyncio.to_thread(server.start)
            await conn.execute("update provider_failure set until = now()")
            await conn.execute(DUE)

            async def is_repaired() -> bool:
                return bool((await http.stack("s"))["stack_status"] == "UPDATE_COMPLETE")

            await eventually(is_repaired)
            assert things.requests["create"] == 3 and len(things.objects) == 2
            assert await conn.fetchval("select count(*) from provider_failure") == 0
    finally:
        await conn.close()
        await asyncio.to_thread(server.stop)


@pytest.mark.parametrize("point", UNREPAIRED_POINTS)
async def test_a_death_when_drift_is_not_repaired_says_so_once(
    database_url: str, tmp_path: Path, things: Things, point: str
) -> None:
    server = ServerProcess(tmp_path, settings=SETTINGS, database_url=database_url)
    conn = await asyncpg.connect(database_url)
    connector = aiohttp.TCPConnector(force_close=True)
    try:
        await asyncio.to_thread(server.start)
        async with aiohttp.ClientSession(connector=connector) as session, asyncio.timeout(PATIENCE):
            http = Http(session, server.url)
            things.objects["foreign"] = {"id": "foreign", "size": 1, "state": "ready"}
            resources = {"a": {**thing(things), "external_id": "foreign"}}
            await http.create("s", resources, environment=POLICY)
            assert await http.until_ended("s") == "CREATE_COMPLETE"
            await asyncio.to_thread(server.stop)
            del things.objects["foreign"]
            await asyncio.to_thread(server.start, fault=f"{point}:1:kill")
            await conn.execute(DUE)

            async def is_dead() -> bool:
                return not server.is_running

            await eventually(is_dead)
            await asyncio.to_thread(server.start)

            async def is_observed() -> bool:
                await conn.execute(DUE)
                drift = await http.stack_request("GET", "s", "/drift")
                return any(one["unrepaired"] for one in drift["resources"])

            await eventually(is_observed)
            history = await http.stack_request("GET", "s", "/history")
            kinds = Counter(one["type"] for one in history["events"])
            assert kinds["headgate.resource.drift.unrepaired"] == 1
            assert kinds["headgate.resource.drift.detected"] == 1
    finally:
        await conn.close()
        await asyncio.to_thread(server.stop)


@pytest.mark.parametrize("by", ["a restart", "another process"])
async def test_the_observation_of_a_killed_process_is_repeated_when_its_lease_ends(
    database_url: str, tmp_path: Path, things: Things, by: str
) -> None:
    """Each resource is observed once more, also with several observers."""
    server = ServerProcess(tmp_path, settings=LEASES, database_url=database_url)
    further = [
        ServerProcess(tmp_path, settings=LEASES, database_url=database_url) for _ in range(2)
    ]
    connector = aiohttp.TCPConnector(force_close=True)
    try:
        await asyncio.to_thread(server.start)
        async with aiohttp.ClientSession(connector=connector) as session, asyncio.timeout(PATIENCE):
            http = Http(session, server.url)
            await http.create("s", {name: thing(things) for name in "ab"})
            assert await http.until_ended("s") == "CREATE_COMPLETE"
            things.gate = asyncio.Event()
            things.requests.clear()
            await http.act("s", "observe")
            await eventually(lambda: _is(things.requests["list"] == 1))
            if by == "another process":
                for one in further:
                    await asyncio.to_thread(one.start)
                http = Http(session, further[0].url)
            await asyncio.to_thread(server.kill)
            things.gate.set()
            if by == "a restart":
                await asyncio.to_thread(server.start)
            found = next(iter(things.objects.values()))
            found["size"] = 7

            async def has_drift() -> bool:
                drift = await http.stack_request("GET", "s", "/drift")
                return not drift["observing"] and len(drift["resources"]) == 1

            await eventually(has_drift)
            assert things.requests == {"list": 2}
    finally:
        for one in (server, *further):
            await asyncio.to_thread(one.stop)


async def test_an_observation_that_takes_many_leases_is_made_once(
    database_url: str, tmp_path: Path, things: Things
) -> None:
    servers = [
        ServerProcess(tmp_path, settings=LEASES, database_url=database_url) for _ in range(2)
    ]
    conn = await asyncpg.connect(database_url)
    connector = aiohttp.TCPConnector(force_close=True)
    try:
        for one in servers:
            await asyncio.to_thread(one.start)
        async with aiohttp.ClientSession(connector=connector) as session, asyncio.timeout(PATIENCE):
            http = Http(session, servers[0].url)
            await http.create("s", {"a": thing(things)})
            assert await http.until_ended("s") == "CREATE_COMPLETE"
            things.gate = asyncio.Event()
            things.requests.clear()
            await http.act("s", "observe")
            await eventually(lambda: _is(things.requests["list"] == 1))
            leases = "select next_at from observation_schedule where claimed_at is not null"
            first = await conn.fetchval(leases)

            async def is_renewed_often() -> bool:
                later = await conn.fetchval(leases)
                return bool(later and later - first > timedelta(seconds=8))

            await eventually(is_renewed_often)
            things.gate.set()

            async def is_observed() -> bool:
                drift = await http.stack_request("GET", "s", "/drift")
                return not drift["observing"] and drift["observed_at"] is not None

            await eventually(is_observed)
            assert things.requests == {"list": 1}
            assert await conn.fetchval("select claim from observation_schedule") == 1
    finally:
        await conn.close()
        for one in servers:
            await asyncio.to_thread(one.stop)


async def _is(fact: bool) -> bool:
    return fact


async def lost(conn: asyncpg.Connection) -> str:
    found: str = await conn.fetchval("select physical_id from resource where name = 'a'")
    return found
