"""Behind PgBouncer: session pooling works as PostgreSQL does, transaction pooling with a connection
to the server itself beside it; all else is refused at start."""

import asyncio

import asyncpg
import pytest

from engine import errors
from engine.store.connection import connect
from engine.store.database import Database, open_database
from engine.store.pooler_check import Pooling, check_pooling, find_pooling
from engine.store.schema.upgrade import migrate
from engine.store.server_check import check_pooler_url
from hub.checks.database import CheckState, check_pooler
from tests.integration.conftest import DatabaseOutage
from tests.support.admin_command import run_admin
from tests.support.keys import key_file
from tests.support.pooler import pooled
from tests.support.postgres import TestServer
from tests.support.program import Program, eventually, program, resource, template

TIMEOUTS = {
    "jit": "off",
    "TimeZone": "UTC",
    "statement_timeout": "30s",
    "lock_timeout": "15s",
    "idle_in_transaction_session_timeout": "1min",
    "application_name": "headgate",
}


async def shown(url: str, pooler_url: str = "") -> dict[str, str]:
    database = await open_database(url, size=1, pooler_url=pooler_url)
    try:
        async with database.connection() as conn:
            return {
                name: await conn.fetchval("select current_setting($1)", name) for name in TIMEOUTS
            }
    finally:
        await database.close()


async def test_a_server_works_with_session_pooling(database_url: str) -> None:
    """With the pooler's defaults: it ignores no parameter, and LISTEN reaches the worker."""
    async with pooled(database_url, "session") as url:
        assert await check_pooling(url) is Pooling.SESSION
        hooks = {"hooks": [{"at": "a", "on": "pre-create"}]}
        async with program(url) as running:
            await running.create("s", {"a": resource()}, environment=hooks)
            (hook,) = await running.waiting_hooks("s")
            await running.signal(hook)
            assert await running.until_ended("s") == "CREATE_COMPLETE"


async def test_the_timeouts_of_sessions_hold_behind_a_pooler(database_url: str) -> None:
    """Also on a server connection that another client has used before."""
    assert await shown(database_url) == TIMEOUTS
    async with pooled(database_url, "session") as url:
        for _ in range(2):
            assert await shown(url) == TIMEOUTS
        connection = await connect(url)
        try:
            await connection.execute("set statement_timeout = '50ms'")
            with pytest.raises(asyncpg.QueryCanceledError):
                await connection.execute("select pg_sleep(30)")
        finally:
            await connection.close()


HOOKED = {"resources": {"a": {"hooks": "pre-create"}}}
#: Many more resources than one statement inserts: the rest of the rows are copied.
WIDE = 60


@pytest.mark.parametrize("mode", ["transaction", "session"])
async def test_a_server_works_through_a_pooler_beside_its_server(
    database_url: str, mode: str
) -> None:
    """Each transaction gets another server process, so nothing may depend on a session."""
    async with pooled(database_url, mode, round_robin=True) as url:
        await check_pooler_url(database_url, url)
        async with program(database_url, {"database.pooler_url": url}) as running:
            await use(running)
            assert await is_pooled(running.database)


async def use(running: Program) -> None:
    """Create stacks at the same time, answer their hooks, update, observe and delete them."""
    numbers = range(4)
    hooks = {"hooks": [{"at": "a", "on": "pre-create"}]}
    resources = {"a": resource()} | {f"r{n}": resource(depends_on="a") for n in range(WIDE)}
    for number in numbers:
        await running.create(f"s{number}", resources, environment=hooks)

    async def finish(name: str) -> None:
        (hook,) = await running.waiting_hooks(name)
        await running.signal(hook)
        assert await running.until_ended(name) == "CREATE_COMPLETE"
        await running.update(name, "PUT", template=template({"a": resource()}))
        assert await running.until_ended(name) == "UPDATE_COMPLETE"

    await asyncio.gather(*(finish(f"s{number}") for number in numbers))
    status, listed = await running.call("GET", "/stacks")
    assert status == 200 and len(listed["stacks"]) == len(numbers)
    status, _ = await running.call("GET", "/stacks/nowhere")
    assert status == 404
    for number in numbers:
        stack = await running.stack(f"s{number}")
        path = f"/stacks/s{number}/{stack['id']}"
        assert (await running.call("DELETE", path))[0] == 204

    async def deleted() -> bool:
        _, listed = await running.call("GET", "/stacks")
        return not listed["stacks"]

    await eventually(deleted)


#: As docs/how-to/run-in-production.md says, but shorter.
AWAY_SOON = "query_wait_timeout = 1\nserver_login_retry = 0.2"


async def test_an_outage_behind_the_pooler_is_reported_and_ends(
    database_url: str, database_outage: DatabaseOutage
) -> None:
    async with (
        pooled(database_url, "transaction", settings=AWAY_SOON) as url,
        program(database_url, {"database.pooler_url": url}) as running,
    ):
        await running.create("s", {"a": resource()}, environment={"resource_registry": HOOKED})
        (hook,) = await running.waiting_hooks("s")
        async with database_outage():
            for path in ("//readyz", "/stacks", "/hooks"):
                assert (await running.call("GET", path))[0] == 503

        async def available() -> bool:
            return (await running.call("GET", "//readyz"))[0] == 200

        await eventually(available)
        await running.signal(hook)
        assert await running.until_ended("s") == "CREATE_COMPLETE"


async def is_pooled(database: Database) -> bool:
    """Whether the pool's connections have another server process than the one that they know."""
    async with database.connection() as conn:
        return bool(await conn.fetchval("select pg_backend_pid()") != conn.get_server_pid())


async def test_the_settings_of_transactions_hold_and_end_with_them(database_url: str) -> None:
    async with pooled(database_url, "transaction", round_robin=True) as url:
        for _ in range(3):
            assert await shown(database_url, url) == TIMEOUTS
        other = await asyncpg.connect(url, statement_cache_size=0)
        try:
            for _ in range(3):
                async with other.transaction():
                    assert await other.fetchval("show statement_timeout") == "0"
        finally:
            await other.close()
        database = await open_database(database_url, size=2, pooler_url=url)
        try:
            async with database.snapshot() as conn:
                with pytest.raises(asyncpg.ReadOnlySQLTransactionError):
                    await conn.execute("create table t (a integer)")
            async with database.connection() as conn:
                assert await conn.fetchval("show transaction_isolation") == "read committed"
        finally:
            await database.close()


async def test_each_statement_is_a_transaction_with_the_settings(database_url: str) -> None:
    """However it is executed: a pooler could give another server process to each of its parts."""
    table = "create table t (a integer, shown text default current_setting('statement_timeout'))"
    query = "select current_setting('statement_timeout') where $1"
    async with pooled(database_url, "transaction", round_robin=True) as url:
        database = await open_database(database_url, size=2, pooler_url=url)
        try:
            async with database.connection() as conn:
                await conn.execute(table)
                await conn.execute("insert into t values (1)")
                await conn.execute("insert into t values ($1)", 2)
                await conn.executemany("insert into t values ($1)", [(3,), (4,)])
                await conn.copy_records_to_table("t", records=[(5,)], columns=["a"])
                assert [one[0] for one in await conn.fetch(query, True)] == ["30s"]
                found = await conn.fetchrow(query, True)
                assert found is not None and found[0] == "30s"
                assert await conn.fetchval(query, True) == "30s"
                rows = await conn.fetch("select a, shown from t order by a")
                assert [tuple(one) for one in rows] == [(n, "30s") for n in range(1, 6)]
                with pytest.raises(asyncpg.UniqueViolationError):
                    await conn.execute("create unique index on t (shown)")
                assert not conn.is_in_transaction()
        finally:
            await database.close()


async def test_a_cancelled_statement_releases_its_connection(database_url: str) -> None:
    async with pooled(database_url, "transaction") as url:
        database = await open_database(database_url, size=1, pooler_url=url)
        try:
            for _ in range(3):
                with pytest.raises(TimeoutError):
                    async with asyncio.timeout(0.2), database.connection() as conn:
                        await conn.fetchval("select pg_sleep(20)")
                async with database.connection() as conn:
                    assert await conn.fetchval("select 1") == 1
        finally:
            await database.close()


async def test_a_cancelled_statement_does_not_end_the_next_one(
    database_url: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Its connection is terminated only if it does not answer in this time."""
    monkeypatch.setattr("engine.store.connection.CANCEL_TIMEOUT", 0.2)
    async with pooled(database_url, "transaction") as url:
        database = await open_database(database_url, size=1, pooler_url=url)
        try:
            with pytest.raises(TimeoutError):
                async with asyncio.timeout(0.1), database.connection() as conn:
                    await conn.fetchval("select pg_sleep(20)")
            async with database.transaction() as conn:
                assert await conn.fetchval("select true from pg_sleep(0.6)")
        finally:
            await database.close()


async def test_a_pooler_of_another_database_or_without_transactions_is_refused(
    database_url: str, postgres: TestServer
) -> None:
    async with postgres.new_database() as other, pooled(other, "transaction") as url:
        with pytest.raises(errors.Conflict, match="leads to another database") as refused:
            await check_pooler_url(database_url, url)
        assert refused.value.code == "UnsuitablePooler"
    async with pooled(database_url, "statement") as url:
        with pytest.raises(errors.Conflict, match="statement mode") as refused:
            await check_pooler_url(database_url, url)
        assert "pool_mode = transaction" in refused.value.finding.remedy
    with pytest.raises(errors.Unavailable):  # it has ended
        await check_pooler_url(database_url, url)


@pytest.mark.parametrize("round_robin", [False, True])
@pytest.mark.parametrize("mode", ["transaction", "statement"])
async def test_transaction_pooling_is_refused_at_start(
    database_url: str, mode: str, round_robin: bool
) -> None:
    async with pooled(database_url, mode, round_robin=round_robin) as url:
        with pytest.raises(errors.Conflict, match="does not use session mode") as refused:
            await migrate(url)
        assert refused.value.code == "TransactionPooling"
        assert "[database] pooler_url" in refused.value.finding.remedy


@pytest.mark.parametrize("round_robin", [False, True])
async def test_transaction_pooling_is_detected_while_other_clients_are_busy(
    database_url: str, round_robin: bool
) -> None:
    """Clients that connect between two transactions get the server connection that was just
    released.
    """
    async with pooled(database_url, "transaction", round_robin=round_robin) as url:
        stop = asyncio.Event()

        async def work() -> None:
            connection = await asyncpg.connect(url, statement_cache_size=0)
            try:
                while not stop.is_set():
                    await connection.execute("select pg_sleep(0.001)")
            finally:
                await connection.close()

        async with asyncio.TaskGroup() as group:
            for _ in range(6):
                group.create_task(work())
            for _ in range(20):
                assert await find_pooling(url) is Pooling.TRANSACTION
            stop.set()


async def test_session_pooling_is_never_reported_as_transaction_pooling(database_url: str) -> None:
    async with pooled(database_url, "session") as url:
        assert {await find_pooling(url) for _ in range(10)} == {Pooling.SESSION}


async def test_an_unavailable_database_is_not_reported_as_a_pooler(postgres: TestServer) -> None:
    with pytest.raises(errors.Unavailable, match='database "nowhere" does not exist'):
        await find_pooling(postgres.url_of("nowhere"))


async def test_the_doctor_names_the_pooler(database_url: str) -> None:
    result = await check_pooler(database_url)
    assert (result.state, result.reason) == (
        CheckState.OK,
        "there is no connection pooler in front of PostgreSQL",
    )
    async with pooled(database_url, "session") as url:
        result = await check_pooler(url)
        assert result.state == CheckState.OK and "uses session mode" in result.reason
    async with pooled(database_url, "transaction") as url:
        done = await run_admin(
            "doctor", "--json", url=database_url,
            CREDENTIALS__KEY_FILE=str(key_file()), DATABASE__POOLER_URL=url,
        )  # fmt: skip
        reasons = [one["reason"] for one in done.document if one["check"] == "pooler"]
        assert reasons[1:] == ["pooler_url leads to the database, and has transactions"]
    async with pooled(database_url, "transaction") as url:
        done = await run_admin("doctor", "--json", url=url, CREDENTIALS__KEY_FILE=str(key_file()))
        assert done.code == 1
        last = done.document[-1]
        assert (last["check"], last["state"]) == ("pooler", "error")
        assert "does not use session mode" in last["reason"] and "pooler_url" in last["remedy"]
        done = await run_admin("backup-check", url=url)
        assert done.code == 1 and "does not use session mode" in done.err
