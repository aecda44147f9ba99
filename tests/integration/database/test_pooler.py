"""Behind PgBouncer: session pooling works as PostgreSQL does, other modes are refused at start."""

import asyncio

import asyncpg
import pytest

from engine import errors
from engine.store.connection import connect
from engine.store.database import open_database
from engine.store.pooler_check import Pooling, check_pooling, find_pooling
from engine.store.schema.upgrade import migrate
from hub.checks.database import CheckState, check_pooler
from tests.support.admin_command import run_admin
from tests.support.keys import key_file
from tests.support.pooler import pooled
from tests.support.postgres import TestServer
from tests.support.program import program, resource

TIMEOUTS = {
    "jit": "off",
    "TimeZone": "UTC",
    "statement_timeout": "30s",
    "lock_timeout": "15s",
    "idle_in_transaction_session_timeout": "1min",
    "application_name": "headgate",
}


async def shown(url: str) -> dict[str, str]:
    database = await open_database(url, size=1)
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


@pytest.mark.parametrize("round_robin", [False, True])
@pytest.mark.parametrize("mode", ["transaction", "statement"])
async def test_transaction_pooling_is_refused_at_start(
    database_url: str, mode: str, round_robin: bool
) -> None:
    async with pooled(database_url, mode, round_robin=round_robin) as url:
        with pytest.raises(errors.Conflict, match="does not use session mode") as refused:
            await migrate(url)
        assert refused.value.code == "TransactionPooling"
        assert "pool_mode = session" in refused.value.finding.remedy


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
        done = await run_admin("doctor", "--json", url=url, CREDENTIALS__KEY_FILE=str(key_file()))
        assert done.code == 1
        last = done.document[-1]
        assert (last["check"], last["state"]) == ("pooler", "error")
        assert "does not use session mode" in last["reason"] and "pool_mode" in last["remedy"]
        done = await run_admin("backup-check", url=url)
        assert done.code == 1 and "does not use session mode" in done.err
