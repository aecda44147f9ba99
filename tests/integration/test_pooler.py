"""Behind PgBouncer: a pool of sessions works as PostgreSQL does, others are refused at start."""

import asyncio

import asyncpg
import pytest

from engine import errors
from engine.store.connection import connect
from engine.store.database import open_database
from engine.store.pooler_check import Pooling, check_pooling, find_pooling
from engine.store.schema_upgrade import migrate
from hub.checks.database import check_pooler
from hub.checks.results import State
from tests.support.admin import admin
from tests.support.keys import key_file
from tests.support.pooler import pooled
from tests.support.postgres import TestServer
from tests.support.program import program, resource

BOUNDS = {
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
                name: await conn.fetchval("select current_setting($1)", name) for name in BOUNDS
            }
    finally:
        await database.close()


async def test_a_server_works_behind_a_pool_of_sessions(database_url: str) -> None:
    """With the pooler's defaults: no parameter is to be ignored; LISTEN reaches the worker."""
    async with pooled(database_url, "session") as url:
        assert await check_pooling(url) is Pooling.SESSION
        hooks = {"hooks": [{"at": "a", "on": "pre-create"}]}
        async with program(url) as running:
            await running.create("s", {"a": resource()}, environment=hooks)
            (hook,) = await running.waiting("s")
            await running.signal(hook)
            assert await running.until_ended("s") == "CREATE_COMPLETE"


async def test_the_bounds_hold_behind_a_pooler(database_url: str) -> None:
    """Also on a server process that another client has used before."""
    assert await shown(database_url) == BOUNDS
    async with pooled(database_url, "session") as url:
        for _ in range(2):
            assert await shown(url) == BOUNDS
        connection = await connect(url)
        try:
            await connection.execute("set statement_timeout = '50ms'")
            with pytest.raises(asyncpg.QueryCanceledError):
                await connection.execute("select pg_sleep(30)")
        finally:
            await connection.close()


@pytest.mark.parametrize("round_robin", [False, True])
@pytest.mark.parametrize("mode", ["transaction", "statement"])
async def test_a_pool_of_transactions_is_refused_at_start(
    database_url: str, mode: str, round_robin: bool
) -> None:
    async with pooled(database_url, mode, round_robin=round_robin) as url:
        with pytest.raises(errors.Conflict, match="pools transactions") as refused:
            await migrate(url)
        assert refused.value.code == "TransactionPooling"
        assert "pool_mode = session" in refused.value.finding.remedy


@pytest.mark.parametrize("round_robin", [False, True])
async def test_a_pool_of_transactions_is_found_while_others_work(
    database_url: str, round_robin: bool
) -> None:
    """Clients that come between two transactions take the server process that was just free."""
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


async def test_a_pool_of_sessions_is_never_taken_for_another(database_url: str) -> None:
    async with pooled(database_url, "session") as url:
        assert {await find_pooling(url) for _ in range(10)} == {Pooling.SESSION}


async def test_a_database_that_is_away_is_not_a_pool(postgres: TestServer) -> None:
    with pytest.raises(errors.Unavailable, match='database "nowhere" does not exist'):
        await find_pooling(postgres.url_of("nowhere"))


async def test_the_doctor_names_the_pooler(database_url: str) -> None:
    looked = await check_pooler(database_url)
    assert (looked.state, looked.said) == (State.OK, "connections reach PostgreSQL directly")
    async with pooled(database_url, "session") as url:
        looked = await check_pooler(url)
        assert looked.state == State.OK and "pools sessions" in looked.said
    async with pooled(database_url, "transaction") as url:
        said = await admin("doctor", "--json", url=url, CREDENTIALS__KEY_FILE=str(key_file()))
        assert said.code == 1
        last = said.document[-1]
        assert (last["what"], last["state"]) == ("pooler", "wrong")
        assert "pools transactions" in last["said"] and "pool_mode" in last["remedy"]
        said = await admin("backup-check", url=url)
        assert said.code == 1 and "pools transactions" in said.err
