"""The connection pool, its errors, and LISTEN across reconnections."""

import asyncio
from contextlib import AsyncExitStack
from dataclasses import replace
from pathlib import Path
from typing import Any
from uuid import UUID

import asyncpg
import pytest
import uvloop

from engine import errors
from engine.store.built_in_types import BuiltInTypesConnection
from engine.store.connection import Connection, connect, connect_with
from engine.store.database import Database, open_database
from engine.store.embedded.server import EmbeddedServer
from engine.store.listener import ONE_HOST
from engine.store.read_database import ReadDatabase
from engine.store.server_connector import ServerConnector
from engine.words import Json
from tests.support.keys import KEYRING
from tests.support.postgres import TestServer
from tests.support.receiver import until

#: The OID of uuid[].
UUID_ARRAY = 2951
KILL_LISTENERS = """
select count(pg_terminate_backend(pid)) from pg_stat_activity
 where datname = current_database() and query ilike 'listen%'
"""


class Calls:
    """Counts callbacks, and waits for one."""

    def __init__(self) -> None:
        self.count = 0
        self._called = asyncio.Event()

    def __call__(self) -> None:
        self.count += 1
        self._called.set()

    async def next(self) -> None:
        async with asyncio.timeout(10):
            await self._called.wait()
        self._called.clear()


@pytest.mark.parametrize(
    "value",
    [{"a": [1, 2.5, None, True, "ü\U0001f600"]}, [], "text", 0, False, {"nested": {"deep": [{}]}}],
)
async def test_json_is_stored_and_read_unchanged(database: Database, value: Json) -> None:
    async with database.connection() as connection:
        assert await connection.fetchval("select $1::jsonb", value) == value
        assert await connection.fetchval("select $1::jsonb is null", None)


async def test_json_works_in_arrays(database: Database) -> None:
    values: list[Json] = [{"a": 1}, None, "text", {"b": []}]
    async with database.connection() as connection:
        assert await connection.fetchval("select $1::jsonb[]", values) == values
        rows = await connection.fetch("select * from unnest($1::jsonb[])", values)
        assert [row[0] for row in rows] == values


async def test_a_transaction_is_atomic(database: Database) -> None:
    async with database.transaction() as connection:
        await connection.execute("create table kept (value integer)")
    with pytest.raises(ZeroDivisionError):
        async with database.transaction() as connection:
            await connection.execute("insert into kept values (1)")
            raise ZeroDivisionError
    async with database.connection() as connection:
        assert await connection.fetchval("select count(*) from kept") == 0


async def _runs_at_the_server(database: Database, statement: str) -> None:
    """Wait until a statement runs: the server ignores a cancel request that arrives before the
    statement.
    """
    async with database.connection() as connection:
        while not await connection.fetchval(
            "select exists (select from pg_stat_activity where state = 'active' and query = $1)",
            statement,
        ):
            await asyncio.sleep(0.01)


async def test_a_cancelled_statement_leaves_no_transaction_open(database: Database) -> None:
    async def sleep() -> None:
        async with database.transaction() as connection:
            await connection.execute("create table half_done ()")
            begun.set()
            await connection.execute("select pg_sleep(60)")

    begun = asyncio.Event()
    task = asyncio.create_task(sleep())
    async with asyncio.timeout(20):
        await begun.wait()
        await _runs_at_the_server(database, "select pg_sleep(60)")
        task.cancel()
        await asyncio.wait([task])
        async with database.connection() as connection:
            assert await connection.fetchval("select to_regclass('half_done')") is None
            assert not connection.is_in_transaction()


async def test_errors_of_statements_are_raised_unchanged(database: Database) -> None:
    async with database.connection() as connection:
        with pytest.raises(asyncpg.UndefinedTableError):
            await connection.execute("select * from nowhere")
    with pytest.raises(asyncpg.UniqueViolationError):
        async with database.transaction() as connection:
            await connection.execute("insert into instance values (true, 'a'), (true, 'b')")


@pytest.mark.parametrize(
    "cause",
    [
        "select pg_terminate_backend(pg_backend_pid())",
        "set local statement_timeout = '20ms'; select pg_sleep(60)",
    ],
)
async def test_other_database_errors_are_unavailable(database: Database, cause: str) -> None:
    with pytest.raises(errors.Unavailable, match="database cannot be used now"):
        async with database.transaction() as connection:
            await connection.execute(cause)
    async with database.transaction() as connection:  # the pool continues
        assert await connection.fetchval("select 1") == 1


async def test_every_session_has_timeouts(database: Database) -> None:
    async with database.connection() as connection:
        for name in ("statement_timeout", "lock_timeout", "idle_in_transaction_session_timeout"):
            assert await connection.fetchval(f"select current_setting('{name}')") != "0"
        assert await connection.fetchval("select current_setting('TimeZone')") == "UTC"


@pytest.mark.parametrize(
    "url",
    [
        "postgresql:///headgate?host=/nowhere",
        "postgresql://user:geheim@127.0.0.1:1/headgate",
    ],
)
async def test_an_unreachable_server_is_unavailable(url: str) -> None:
    for attempt in (open_database, connect):
        with pytest.raises(errors.Unavailable) as refused:
            await attempt(url)
        assert "geheim" not in str(refused.value)


async def test_an_exhausted_pool_is_reported(
    database_url: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("engine.store.database.ACQUIRE_TIMEOUT", 0.05)
    database = await open_database(database_url, size=1, keyring=KEYRING)
    try:
        async with database.connection():
            with pytest.raises(errors.Unavailable):
                async with database.connection():
                    pass
    finally:
        await database.close()


PID = "select pg_backend_pid()"


async def pid_of(database: Database) -> int:
    async with database.connection() as connection:
        return int(await connection.fetchval(PID))


async def test_a_returned_connection_is_used_next_without_the_pool(database: Database) -> None:
    first = await pid_of(database)
    idle = database.pool.get_idle_size()
    assert database.in_use == 0
    async with database.connection() as connection:
        assert await connection.fetchval(PID) == first
        assert (database.in_use, database.pool.get_idle_size()) == (1, idle)


async def test_half_of_the_connections_stay_in_the_pool(database: Database) -> None:
    size = database.pool.get_max_size()
    async with AsyncExitStack() as stack:
        for _ in range(size):
            await stack.enter_async_context(database.connection())
        assert (database.in_use, database.pool.get_idle_size()) == (size, 0)
    assert (database.in_use, database.pool.get_idle_size()) == (0, size // 2)


async def test_a_lost_connection_is_not_used_again(database: Database, database_url: str) -> None:
    lost = await pid_of(database)
    other = await connect(database_url)
    try:
        await other.execute("select pg_terminate_backend($1)", lost)
        running = "select exists (select from pg_stat_activity where pid = $1)"
        while await other.fetchval(running, lost):
            await asyncio.sleep(0.01)
    finally:
        await other.close()
    await asyncio.sleep(0)  # the end of the connection is read
    assert await pid_of(database) != lost


async def test_a_connection_in_a_transaction_is_reset(database: Database) -> None:
    async with database.connection() as connection:
        await connection.execute("begin")
    async with database.connection() as connection:
        assert not connection.is_in_transaction()


async def test_a_returned_connection_goes_to_a_task_that_waits(database_url: str) -> None:
    database = await open_database(database_url, size=2, keyring=KEYRING)
    try:
        async with asyncio.timeout(10), database.connection():
            async with database.connection():
                waiting = asyncio.create_task(pid_of(database))
                await asyncio.sleep(0)
            await waiting
        assert database.in_use == 0
    finally:
        await database.close()


async def test_some_returns_go_to_the_pool(
    database: Database, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("engine.store.database.RETURN_EACH", 3)
    idle = []
    for _ in range(3):
        await pid_of(database)
        idle.append(database.pool.get_idle_size())
    assert idle == [0, 0, 1]


async def test_a_notification_calls_the_listener(database: Database) -> None:
    calls = Calls()
    async with database.listen("headgate_work", calls), database.connection() as connection:
        await connection.execute("notify headgate_elsewhere")
        await connection.execute("notify headgate_work")
        await calls.next()
        assert calls.count == 1


async def test_after_a_reconnection_the_listener_is_called_and_continues(
    database: Database,
) -> None:
    calls = Calls()
    async with database.listen("headgate_work", calls), database.connection() as connection:
        assert calls.count == 0
        assert await connection.fetchval(KILL_LISTENERS) == 1
        await calls.next()  # a notification may have been missed
        await connection.execute("notify headgate_work")
        await calls.next()


async def test_a_silent_connection_is_found_dead(
    database: Database, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Some networks drop packets without an error, so the listener must test its connection."""
    monkeypatch.setattr("engine.store.listener.ONE_HOST", replace(ONE_HOST, interval=0.02))
    statements: list[str] = []
    execute = asyncpg.Connection.execute

    async def never_return(self: Any, query: str, *args: Any, **options: Any) -> str:
        if query == "select 1" and not statements:
            statements.append(query)
            raise TimeoutError
        return await execute(self, query, *args, **options)

    monkeypatch.setattr(asyncpg.Connection, "execute", never_return)
    calls = Calls()
    async with database.listen("headgate_work", calls):
        await calls.next()
    assert statements


@pytest.mark.parametrize("losses", [0, 1])
async def test_an_ended_listener_leaves_no_connection(database: Database, losses: int) -> None:
    count = "select count(*) from pg_stat_activity where datname = current_database()"
    calls = Calls()
    async with database.connection() as connection:
        before = await connection.fetchval(count)
        async with database.listen("headgate_work", calls):
            for _ in range(losses):
                await connection.fetchval(KILL_LISTENERS)
                await calls.next()
            assert await connection.fetchval(count) == before + 1
        async with asyncio.timeout(10):
            while await connection.fetchval(count) != before:
                await asyncio.sleep(0.01)


async def test_listeners_share_one_connection_until_the_last_ends(
    database: Database,
) -> None:
    work, hooks = Calls(), Calls()
    async with database.connection() as connection:
        async with database.listen("headgate_hook", hooks):
            async with asyncio.TaskGroup() as group, database.listen("headgate_work", work):
                group.create_task(_listened(database, "headgate_elsewhere"))
                await connection.execute("notify headgate_work")
                await work.next()
                assert await connection.fetchval(KILL_LISTENERS) == 1
                await work.next()
                await hooks.next()
                await connection.execute("notify headgate_work")
                await work.next()
            await connection.execute("notify headgate_work")
            await connection.execute("notify headgate_hook")
            await hooks.next()
            assert (work.count, hooks.count) == (3, 2)
        async with database.listen("headgate_work", work):
            await connection.execute("notify headgate_work")
            await work.next()


async def _listened(database: Database, channel: str) -> None:
    async with database.listen(channel, lambda: None):
        pass


async def test_a_listener_that_starts_during_a_reconnection_gets_notifications(
    database: Database, monkeypatch: pytest.MonkeyPatch
) -> None:
    work, hooks = Calls(), Calls()
    may = asyncio.Event()

    async def connect_later(connector: ServerConnector) -> Connection:
        await may.wait()
        return await connect_with(connector)

    async with database.connection() as connection, database.listen("headgate_work", work):
        monkeypatch.setattr("engine.store.listener.connect_with", connect_later)
        assert await connection.fetchval(KILL_LISTENERS) == 1
        await until(lambda: database._listener._connection is None)
        async with asyncio.timeout(10), database.listen("headgate_hook", hooks):
            may.set()
            await hooks.next()  # a notification may have been missed
            await connection.execute("notify headgate_hook")
            await hooks.next()


async def test_a_listener_that_starts_while_others_are_restored_gets_notifications(
    database: Database, monkeypatch: pytest.MonkeyPatch
) -> None:
    work, hooks = Calls(), Calls()
    listening, may = asyncio.Event(), asyncio.Event()
    add_listener = asyncpg.Connection.add_listener

    async def listen_slowly(self: Any, channel: str, callback: Any) -> None:
        listening.set()
        await may.wait()
        await add_listener(self, channel, callback)

    async with database.connection() as connection, database.listen("headgate_work", work):
        monkeypatch.setattr(asyncpg.Connection, "add_listener", listen_slowly)
        assert await connection.fetchval(KILL_LISTENERS) == 1
        async with asyncio.timeout(10):
            await listening.wait()
            async with database.listen("headgate_hook", hooks):
                may.set()
                await hooks.next()  # a notification may have been missed
                await connection.execute("notify headgate_hook")
                await hooks.next()


async def test_a_restarted_server_is_found_again(data_directory: Path) -> None:
    server = EmbeddedServer(data_directory)
    database = await open_database(await server.start(), keyring=KEYRING)
    calls = Calls()
    try:
        async with database.listen("headgate_work", calls):
            await server.stop()
            with pytest.raises(errors.Unavailable):
                async with database.connection() as connection:
                    await connection.execute("select 1")
            await server.start()
            await calls.next()
            async with database.connection() as connection:
                assert await connection.fetchval("select 1") == 1
    finally:
        await database.close()
        await server.stop()


async def test_closing_the_pool_waits_a_bounded_time_for_busy_connections(
    database_url: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    database = await open_database(database_url, size=1, keyring=KEYRING)
    held = await database.pool.acquire()
    monkeypatch.setattr("engine.store.database.CONNECT_TIMEOUT", 0.05)
    async with asyncio.timeout(10):
        await database.close()
    with pytest.raises(asyncpg.InterfaceError):
        await held.execute("select 1")


async def test_the_pool_runs_on_uvloop(postgres: TestServer) -> None:
    async def work() -> Json:
        async with postgres.new_database() as url:
            database = await open_database(url, keyring=KEYRING)
            try:
                async with database.transaction() as connection:
                    return await connection.fetchval("select $1::jsonb", {"a": 1})
            finally:
                await database.close()

    assert await asyncio.to_thread(uvloop.run, work()) == {"a": 1}


async def test_a_snapshot_transaction_sees_one_state(database: Database) -> None:
    count = "select count(*) from outbox_cursor"
    async with database.snapshot() as conn:
        before = await conn.fetchval("select position from outbox_cursor")
        async with database.connection() as other:
            await other.execute("update outbox_cursor set position = position + 1")
        assert await conn.fetchval("select position from outbox_cursor") == before
        with pytest.raises(asyncpg.ReadOnlySQLTransactionError):
            await conn.execute("update outbox_cursor set position = 0")
    async with database.connection() as conn:
        assert await conn.fetchval("select position from outbox_cursor") == before + 1
        assert await conn.fetchval(count) == 1


async def test_a_list_is_read_again_after_a_migration_changed_its_columns(
    database: Database,
) -> None:
    """Prepared statements are outdated then, and in a transaction asyncpg repeats none."""
    lists = ReadDatabase(database)

    async def read_together() -> list[list[str]]:
        """On three connections, each with its own prepared statement."""
        arrived, attempts = asyncio.Barrier(3), 0

        async def read(conn: Connection) -> list[str]:
            nonlocal attempts
            attempts += 1
            if attempts <= 3:  # not a repetition
                await arrived.wait()
            rows = await conn.fetch("select * from listed")
            return [*rows[0].keys()]

        return await asyncio.gather(*(lists.page(read) for _ in range(3)))

    async with database.connection() as conn:
        await conn.execute("create table listed (a integer); insert into listed values (1)")
    assert await read_together() == [["a"]] * 3
    async with database.connection() as conn:
        await conn.execute("alter table listed add column b integer")
    assert await read_together() == [["a", "b"]] * 3


async def test_a_connection_does_not_ask_about_arrays_that_another_has_read(
    database_url: str,
) -> None:
    """asyncpg asks the server about each array type; its answer is the same on each connection."""
    statement = "select $1::uuid[], $2::jsonb[], $3::int8[]"
    values = ([UUID(int=1)], [{"a": 1}], [7])
    sent: list[str] = []
    for _ in range(2):
        sent.clear()
        connection = await connect(database_url)
        try:
            with connection.query_logger(lambda query: sent.append(query.query)):
                row = await connection.fetchrow(statement, *values)
                assert tuple(row or ()) == values
        finally:
            await connection.close()
    assert sent == [statement]


async def test_the_types_of_users_are_not_kept(database_url: str) -> None:
    """A type that a user defines may have the same OID in another database, and another form."""
    connection = await connect(database_url)
    try:
        await connection.execute("create type one as (a int)")
        assert await connection.fetchval("select $1::one[]", [(1,)]) == [(1,)]
        assert await connection.fetchval("select $1::uuid[]", []) == []
        own = await connection.fetchval("select 'one[]'::regtype::oid")
        assert {UUID_ARRAY} <= BuiltInTypesConnection.known.keys() and (
            own not in BuiltInTypesConnection.known
        )
    finally:
        await connection.close()
