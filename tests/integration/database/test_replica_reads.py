"""Lists and histories that a replica of the database serves: never less than was committed before,
and what happens when the replica is behind, away, promoted or of another database.
"""

import asyncio
from collections import Counter
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import AsyncExitStack, asynccontextmanager
from datetime import timedelta
from typing import Any

import pytest
from structlog.testing import capture_logs

from engine.errors import Conflict, NotFound, TimedOut
from engine.store.connection import Connection
from engine.store.database import Database, open_database
from engine.store.read_database import ReadDatabase, open_replica
from engine.store.replica import ReadOutcome, read_position, read_state
from engine.store.server_check import check_replicas
from hub.checks.database import CheckResult
from hub.checks.doctor import run_checks
from hub.program.app import ROLES, running
from hub.settings.settings import Settings, load_settings
from tests.support.keys import key_file
from tests.support.program import PATIENCE, Program, eventually, program, resource
from tests.support.replication import PostgresNode, ReplicatedPair, running_pair

PORT = "select inet_server_port()"
#: A session that has looked whether the replica has replayed the log, and looks again soon.
WAITING = """
select count(*) > 0 from pg_stat_activity
 where query like '%pg_last_wal_replay_lsn%' and state = 'idle'
"""
SLEEPING = "select count(*) > 0 from pg_stat_activity where wait_event = 'PgSleep'"
LONG = timedelta(seconds=PATIENCE)


@pytest.fixture
async def pair() -> AsyncIterator[ReplicatedPair]:
    async with running_pair(synchronous=False) as pair:
        await pair.first.execute("create table t (n integer)", database="headgate")
        yield pair


@pytest.fixture(autouse=True)
def _short_bounds(monkeypatch: pytest.MonkeyPatch) -> None:
    """A silent host is given up soon; a read on a busy machine still has seconds."""
    monkeypatch.setattr("engine.store.read_database.HOST_TIMEOUT", 5.0)
    monkeypatch.setattr("engine.store.read_database.READ_TIMEOUT", 5.0)


class CountedReads:
    """Reads of one process. outcomes: of all reads so far."""

    def __init__(self, primary: Database, replica: Database, lag: timedelta) -> None:
        self.primary = primary
        self.outcomes: list[ReadOutcome] = []
        self.lists = ReadDatabase(primary, replica, lag=lag, record=self.outcomes.append)

    async def port(self) -> int:
        """The port of the server that serves a read."""
        return int(await self.lists.page(lambda conn: conn.fetchval(PORT)))

    async def insert(self, number: int) -> None:
        async with self.primary.connection() as conn:
            await conn.execute("insert into t values ($1)", number)

    async def numbers(self) -> tuple[int, list[int]]:
        """The port of the server, and the rows that it has."""

        async def read(conn: Connection) -> tuple[int, list[int]]:
            rows = await conn.fetch("select n from t order by n")
            return await conn.fetchval(PORT), [row["n"] for row in rows]

        return await self.lists.read(read)

    async def until_served_by(self, node: PostgresNode) -> None:
        async def served() -> bool:
            return await self.port() == node.port

        await eventually(served)


@asynccontextmanager
async def counted_reads(
    primary_url: str, read_url: str, lag: timedelta = LONG
) -> AsyncIterator[CountedReads]:
    async with AsyncExitStack() as stack:
        primary = await open_database(primary_url, size=5)
        stack.push_async_callback(primary.close)
        replica = await open_replica(read_url, size=5, keyring=None)
        stack.push_async_callback(replica.close)
        yield CountedReads(primary, replica, lag)


def settings_for(url: str, read_url: str) -> Settings:
    values = {
        "server.listen": "127.0.0.1:0",
        "database.url": url,
        "database.read_url": read_url,
        "credentials.key_file": str(key_file()),
    }
    return load_settings(None, values, environment={})


async def replica_check(pair: ReplicatedPair, read_url: str) -> CheckResult:
    """The result of doctor."""
    results = await run_checks(settings_for(pair.first.url(), read_url), None)
    (one,) = [one for one in results if one.check == "replicas"]
    return one


async def outcomes(run: Program) -> Counter[str]:
    """The reads of a program by outcome, from its metrics."""
    _, text = await run.call("GET", "//metrics")
    prefix = 'headgate_replica_reads_total{outcome="'
    lines = [line.removeprefix(prefix) for line in text.splitlines() if line.startswith(prefix)]
    return Counter({line.partition('"')[0]: int(float(line.split()[-1])) for line in lines})


async def names(run: Program) -> set[str]:
    status, response = await run.call("GET", "/stacks")
    assert status == 200, response
    return {one["stack_name"] for one in response["stacks"]}


async def test_each_process_lists_from_the_replica_what_another_one_has_just_created(
    pair: ReplicatedPair,
) -> None:
    replica = {"database.read_url": pair.second.url(), "database.read_lag": "1m"}
    async with (
        program(pair.first.url(), replica) as first,
        program(pair.first.url(), replica) as second,
    ):
        await pair.second.execute("alter system set recovery_min_apply_delay = '100ms'")
        await pair.second.execute("select pg_reload_conf()")
        for number in range(5):
            await first.create(f"s{number}", {})
            assert f"s{number}" in await names(second)
        assert await outcomes(second) == {"replica": 5}


#: Lists and histories of the API, below the project and below the stack.
OF_PROJECT = (
    "/stacks", "/overview", "/hooks", "/decisions", "/subscriptions", "/software_configs",
)  # fmt: skip
OF_STACK = ("/events", "/history", "/versions", "/decisions", "/resources")


async def test_the_replica_serves_all_lists_and_histories(pair: ReplicatedPair) -> None:
    replica = {"database.read_url": pair.second.url(), "database.read_lag": "1m"}
    async with program(pair.first.url(), replica) as run:
        stack = await run.create("s", {"a": resource()})
        await run.until_ended("s")
        body = {"target": "http://127.0.0.1:9/", "events": ["none"]}
        status, made = await run.call("POST", "/subscriptions", body)
        assert status == 201, made
        paths = [
            *OF_PROJECT,
            *(f"/stacks/s/{stack}{path}" for path in OF_STACK),
            f"/subscriptions/{made['id']}/deliveries",
        ]
        for number, path in enumerate(paths, 1):
            status, response = await run.call("GET", path)
            assert status == 200, (path, response)
            assert await outcomes(run) == {"replica": number}, path


async def test_a_read_waits_for_a_replica_that_is_behind(pair: ReplicatedPair) -> None:
    async with counted_reads(pair.first.url(), pair.second.url()) as reads:
        assert await reads.port() == pair.second.port
        await pair.second.execute("select pg_wal_replay_pause()")
        await reads.insert(1)
        reading = asyncio.create_task(reads.numbers())
        await eventually(lambda: pair.second.execute(WAITING))
        await pair.second.execute("select pg_wal_replay_resume()")
        assert await reading == (pair.second.port, [1])
        assert reads.outcomes == ["replica", "replica"]


#: A record over several blocks.
WRITE_RECORD = "select pg_logical_emit_message(true, 'test', repeat('x', 20000))"
IS_CUT = "select mod(pg_current_wal_flush_lsn() - '0/0', 8192) = 0"


async def test_a_read_does_not_wait_for_the_rest_of_a_record_that_is_not_flushed(
    pair: ReplicatedPair,
) -> None:
    lag = timedelta(seconds=5)
    async with counted_reads(pair.first.url(), pair.second.url(), lag) as reads:
        assert await reads.port() == pair.second.port
        async with reads.primary.transaction() as conn:

            async def cut() -> bool:
                await conn.execute(WRITE_RECORD)
                return bool(await pair.first.execute(IS_CUT))

            await eventually(cut)
            assert await reads.port() == pair.second.port
        assert reads.outcomes == ["replica", "replica"]


async def test_the_primary_serves_reads_while_the_replica_is_too_far_behind(
    pair: ReplicatedPair,
) -> None:
    lag = timedelta(milliseconds=100)
    async with counted_reads(pair.first.url(), pair.second.url(), lag) as reads:
        await reads.until_served_by(pair.second)
        del reads.outcomes[:]
        await pair.second.execute("select pg_wal_replay_pause()")
        with capture_logs() as logs:
            for number in range(3):
                await reads.insert(number)
                assert await reads.numbers() == (pair.first.port, [*range(number + 1)])
            assert reads.outcomes[0] == "behind"
            await eventually(lambda: _tried_again(reads, pair, ReadOutcome.BEHIND))
            assert {*reads.outcomes} == {"behind", "paused"}
            state = await replica_check(pair, pair.second.url())
            assert state.state == "warning"
            assert "more than 1 s behind" in state.reason
            await pair.second.execute("select pg_wal_replay_resume()")
            await reads.until_served_by(pair.second)
        assert await reads.numbers() == (pair.second.port, [0, 1, 2])
        assert [(one["event"], one.get("reason")) for one in logs] == [
            ("replica.unusable", "it is more than 0.1 s behind the primary"),
            ("replica.usable", None),
        ]
    assert (await replica_check(pair, pair.second.url())).state == "ok"


async def read_and_sleep(conn: Connection, elsewhere: PostgresNode) -> int:
    """The port of the server. On one server, it takes long, and reads a table."""
    port = await conn.fetchval(PORT)
    if port == elsewhere.port:
        await conn.fetchval("select (select count(*) from t) + length(pg_sleep(60)::text)")
    return int(port)


async def during_read(
    pair: ReplicatedPair, reads: CountedReads, act: Callable[[], Awaitable[object]]
) -> None:
    """Do something while the replica serves a read; then the primary has served it."""
    reading = asyncio.create_task(reads.lists.read(lambda conn: read_and_sleep(conn, pair.second)))
    await eventually(lambda: pair.second.execute(SLEEPING))
    await act()
    assert await reading == pair.first.port


async def test_a_read_is_repeated_on_the_primary_if_the_replica_is_lost(
    pair: ReplicatedPair,
) -> None:
    async with counted_reads(pair.first.url(), pair.second.url()) as reads:

        async def kill() -> None:
            pair.second.kill()

        await during_read(pair, reads, kill)
        assert await reads.port() == pair.first.port
        assert reads.outcomes == ["away", "paused"]
        assert (await replica_check(pair, pair.second.url())).state == "warning"
        await pair.second.start()
        await reads.until_served_by(pair.second)


async def test_a_read_is_repeated_on_the_primary_if_the_network_drops_packets(
    pair: ReplicatedPair, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("engine.store.read_database.HOST_TIMEOUT", 0.2)
    monkeypatch.setattr("engine.store.read_database.READ_TIMEOUT", 0.2)
    async with counted_reads(pair.first.url(), pair.second.url(), timedelta(0)) as reads:
        await reads.until_served_by(pair.second)
        del reads.outcomes[:]

        started = asyncio.Event()

        async def read(conn: Connection) -> int:
            port = int(await conn.fetchval(PORT))
            if port == pair.second.port:
                started.set()
                await conn.execute("select pg_sleep(60)")
            return port

        reading = asyncio.create_task(reads.lists.read(read))
        await started.wait()
        pair.second.relay.silence()
        async with asyncio.timeout(PATIENCE / 3):  # asyncpg gives up later
            assert await reading == pair.first.port
        assert reads.outcomes == ["away"]
        # The next attempt, on another connection, finds no answer either.
        await eventually(lambda: _tried_again(reads, pair, ReadOutcome.AWAY))
        pair.second.relay.restore()
        await reads.until_served_by(pair.second)


async def _tried_again(reads: CountedReads, pair: ReplicatedPair, outcome: ReadOutcome) -> bool:
    assert await reads.port() == pair.first.port
    return reads.outcomes.count(outcome) == 2


async def test_a_read_that_the_replica_cancels_is_repeated_on_the_primary(
    pair: ReplicatedPair,
) -> None:
    await pair.second.execute("alter system set max_standby_streaming_delay = 0")
    await pair.second.execute("select pg_reload_conf()")
    async with counted_reads(pair.first.url(), pair.second.url()) as reads:
        await during_read(
            pair, reads, lambda: pair.first.execute("truncate t", database="headgate")
        )
        assert await reads.port() == pair.second.port
        assert reads.outcomes == ["repeated", "replica"]


async def test_errors_of_the_read_itself_are_not_repeated(pair: ReplicatedPair) -> None:
    calls: list[int] = []

    async def refuse(conn: Connection) -> None:
        calls.append(await conn.fetchval(PORT))
        raise NotFound("there is none", place="x", remedy="", code="EntityNotFound")

    async def take_long(conn: Connection) -> None:
        calls.append(await conn.fetchval(PORT))
        await conn.execute("set local statement_timeout = 1")
        await conn.execute("select pg_sleep(60)")

    async with counted_reads(pair.first.url(), pair.second.url()) as reads:
        with pytest.raises(NotFound):
            await reads.lists.read(refuse)
        with pytest.raises(TimedOut):
            await reads.lists.read(take_long)
        assert calls == [pair.second.port] * 2
        assert await reads.port() == pair.second.port


async def test_replicas_of_another_database_are_refused_at_the_start(
    pair: ReplicatedPair,
) -> None:
    other = PostgresNode(pair.first.data.parent, "other")
    await other.initialize()
    await pair.first.execute("create database second")
    await eventually(lambda: pair.second.execute("select true from pg_database"
                                                 " where datname = 'second'"))  # fmt: skip
    try:
        await other.start()
        await other.execute("create database headgate")
        for url, reason in (
            (f"postgresql://headgate@127.0.0.1:{other.port}/headgate", "another database cluster"),
            (pair.second.url("second"), "another database of the cluster"),
        ):
            with pytest.raises(Conflict, match=reason) as refused:
                async with running(settings_for(pair.first.url(), url), ROLES, asyncio.Event()):
                    pass
            assert refused.value.code == "NotItsReplica"
            found = await replica_check(pair, url)
            assert (found.state, reason in found.reason) == ("error", True)
            # The same for a process that runs when the server is replaced.
            async with counted_reads(pair.first.url(), url) as reads:
                assert await reads.port() == pair.first.port
                assert reads.outcomes == ["unsuitable"]
    finally:
        other.kill()


async def test_a_promoted_replica_serves_no_reads(pair: ReplicatedPair) -> None:
    async with counted_reads(pair.first.url(), pair.second.url()) as reads:
        assert await reads.port() == pair.second.port
        await pair.second.promote()
        assert await reads.port() == pair.first.port
        assert reads.outcomes == ["replica", "unsuitable"]
    found = await replica_check(pair, pair.second.url())
    assert (found.state, "accepts writes" in found.reason) == ("warning", True)


async def test_a_replica_of_a_former_primary_serves_no_reads(pair: ReplicatedPair) -> None:
    """Its log is longer than that of the new primary, and has other commits."""
    third = PostgresNode(pair.first.data.parent, "third")
    try:
        await third.copy(pair.first.port)
        await third.start()
        await pair.second.promote()
        await pair.first.execute("insert into t select generate_series(1, 100000)",
                                 database="headgate")  # fmt: skip
        await eventually(lambda: _has_rows(third))
        url = f"postgresql://headgate@127.0.0.1:{third.port}/headgate"
        async with counted_reads(pair.second.url(), url) as reads:
            assert await reads.numbers() == (pair.second.port, [])
            assert reads.outcomes == ["unsuitable"]
        states = await check_replicas(pair.second.url(), url)
        assert states == {"the server": "it is on timeline 1, and the primary on 2"}
    finally:
        third.kill()


async def _has_rows(node: PostgresNode) -> Any:
    return await node.execute("select count(*) = 100000 from t", database="headgate")


async def test_connections_go_to_each_replica_and_past_those_that_are_away(
    pair: ReplicatedPair,
) -> None:
    third = PostgresNode(pair.first.data.parent, "third")
    try:
        await third.copy(pair.first.port)
        await third.start()
        url = (
            f"postgresql://headgate@127.0.0.1:{pair.first.port},127.0.0.1:{third.port},"
            f"127.0.0.1:{pair.second.port}/headgate"
        )
        async with counted_reads(pair.first.url(), url) as reads:
            both = {third.port, pair.second.port}
            assert {*await asyncio.gather(*(_slow_port(reads) for _ in range(4)))} == both
            third.kill()

            async def served() -> bool:
                return await reads.port() == pair.second.port

            await eventually(served)
    finally:
        third.kill()


async def _slow_port(reads: CountedReads) -> int:
    async def read(conn: Connection) -> int:
        await conn.execute("select pg_sleep(0.1)")
        return int(await conn.fetchval(PORT))

    return await reads.lists.read(read)


async def test_without_a_primary_that_tells_its_position_the_primary_serves_reads(
    pair: ReplicatedPair,
) -> None:
    await pair.first.execute("create role limited login", database="headgate")
    limited = pair.first.url().replace("headgate@", "limited@")
    async with counted_reads(limited, pair.second.url().replace("headgate@", "limited@")) as reads:
        await reads.until_served_by(pair.second)  # no more rights than these are necessary
    revoke = "revoke execute on function pg_control_system() from public"
    await pair.first.execute(revoke, database="headgate")
    async with counted_reads(limited, pair.second.url()) as reads:
        assert await reads.port() == pair.first.port
        assert reads.outcomes == ["unsuitable"]
    states = await check_replicas(limited, pair.second.url())
    assert states == {"the server": "the primary does not tell the end of its log"}


async def test_the_statements_about_servers_work_on_the_newest_version(database: Database) -> None:
    async with database.connection() as conn:
        position = await read_position(conn)
        assert position is not None
        state = await read_state(conn, position)
        assert (state.system, state.database) == (position.system, position.database)
        assert (state.standby, state.timeline) == (False, position.timeline)
