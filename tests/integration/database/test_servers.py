"""Servers of a database that a process refuses at its start, and failovers of its connections."""

import asyncio
import re
import time

import asyncpg
import pytest

from engine.errors import Conflict, Unavailable
from engine.store.database import Database, open_database
from engine.store.server_check import check_servers
from engine.store.server_connector import Connection, Failover
from hub.checks.doctor import run_checks
from hub.program.app import ROLES, running
from hub.settings.settings import Settings, load_settings
from tests.support.keys import key_file
from tests.support.ports import free_port
from tests.support.postgres import TestServer
from tests.support.program import PATIENCE, eventually
from tests.support.replication import PostgresNode, ReplicatedPair, running_pair

#: A function of the database that hides the one of PostgreSQL.
WRONG_CLOCK = """
create schema wrong;
create function wrong.clock_timestamp() returns timestamptz language sql
    as $$ select pg_catalog.clock_timestamp() + interval '10 minutes' $$;
"""
HIDE = "alter database {} set search_path = wrong, pg_catalog, public"


def settings_for(url: str) -> Settings:
    values = {
        "server.listen": f"127.0.0.1:{free_port()}",
        "database.url": url,
        "credentials.key_file": str(key_file()),
    }
    return load_settings(None, values, environment={})


async def refusal(url: str) -> Conflict:
    """Start a process on these servers; it refuses them."""
    with pytest.raises(Conflict) as refused:
        async with running(settings_for(url), ROLES, asyncio.Event()):
            pass
    (servers,) = [
        one for one in await run_checks(settings_for(url), None) if one.check == "servers"
    ]
    assert (servers.state, servers.reason) == (
        "error",
        f"[database] url: {refused.value.finding.reason}",
    )
    return refused.value


@pytest.fixture
def patient_connects(monkeypatch: pytest.MonkeyPatch) -> None:
    """A host that answers late is not taken for one that is down."""
    monkeypatch.setattr("engine.store.server_connector.HOST_TIMEOUT", PATIENCE)


@pytest.mark.usefixtures("patient_connects")
async def test_wrong_servers_are_refused_at_the_start() -> None:
    async with running_pair(synchronous=False) as pair:
        replica = await refusal(pair.second.url())
        assert replica.code == "ReplicaNotPrimary"
        await check_servers(pair.url, time.time)
        other = PostgresNode(pair.first.data.parent, "other")
        await other.initialize()
        try:
            await other.start()
            await other.execute("create database headgate")
            clusters = await refusal(
                pair.url.replace("/headgate?", f",127.0.0.1:{other.port}/headgate?")
            )
            assert clusters.code == "DifferentClusters"
            assert f"127.0.0.1:{other.port}" in str(clusters)
        finally:
            other.kill()
        await pair.second.promote()
        both = await refusal(pair.url)
        assert both.code == "TwoPrimaries"


async def test_clocks_that_differ_are_refused_at_the_start(
    database_url: str, postgres: TestServer
) -> None:
    name = database_url.partition("///")[2].partition("?")[0]
    connection = await asyncpg.connect(database_url, timeout=10)
    try:
        await connection.execute(WRONG_CLOCK)
        await connection.execute(HIDE.format(name))
    finally:
        await connection.close(timeout=5)
    began = time.monotonic()
    refused = await refusal(database_url)
    seconds = time.monotonic() - began
    assert refused.code == "ClocksApart"
    found = re.search(r"(\d+) s ahead of the clock of this machine", str(refused))
    # The clock of the server is read at some time during the query.
    assert found is not None and abs(int(found[1]) - 600) <= 1 + seconds


async def port_of(database: Database) -> int:
    async with database.connection() as conn:
        port: int = await conn.fetchval("select inet_server_port()")
    return port


async def test_connections_follow_the_primary_and_never_return_to_a_former_one() -> None:
    async with running_pair(synchronous=True) as pair:
        database = await open_database(pair.url, size=3)
        try:
            await _fail_over(pair, database)
        finally:
            await database.close()


async def _fail_over(pair: ReplicatedPair, database: Database) -> None:
    failovers: list[Failover] = []
    called = asyncio.Event()

    async def note(conn: Connection, failover: Failover) -> None:
        assert await conn.fetchval("select not pg_is_in_recovery()")
        failovers.append(failover)

    database.connector.on_failover(note)
    async with database.listen("anything", called.set), database.connection() as waiting:
        assert await port_of(database) == pair.first.port
        statement = asyncio.create_task(waiting.fetchval("select pg_sleep(60)"))
        await asyncio.sleep(0)
        pair.first.relay.silence()
        await pair.second.promote()
        async with asyncio.timeout(PATIENCE):
            with pytest.raises(asyncpg.PostgresConnectionError):
                await statement  # ended long before its timeout
            await called.wait()
        assert await port_of(database) == pair.second.port
        (failover,) = failovers
        former, current = failover.former.timeline, failover.current.timeline
        assert former is not None and current == former + 1
        # The former primary is reachable again, and the current one is not.
        pair.first.relay.restore()
        pair.second.relay.cut()

        async def refused() -> bool:
            try:
                await port_of(database)
            except Unavailable as error:
                return "is a former primary" in str(error)
            return False

        await eventually(refused)
        pair.second.relay.restore()

        async def found() -> bool:
            try:
                return await port_of(database) == pair.second.port
            except Unavailable:
                return False

        await eventually(found)
        assert len(failovers) == 1
