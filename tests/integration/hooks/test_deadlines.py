"""Deadlines: many hooks that expire at once."""

from collections import Counter
from datetime import timedelta
from uuid import UUID, uuid4

import pytest

from engine.store.database import Database, open_database
from engine.store.hooks.deadlines import due_hooks
from engine.work.timers import Timers
from tests.support.engine_rows import EngineRows
from tests.support.keys import KEYRING
from tests.support.postgres import TestServer
from tests.support.rows_read import rows_read_so_far, without_statistics

BATCH, TURNS, MANY = 10, 4, 3_000
POLL = timedelta(seconds=1)
TRAVERSAL = """
insert into traversal (stack_id, number, project, action, version, state, reason, digest, active_nodes,
                       requested_by)
select id, 1, project, 'CREATE', 1, 'running', '', '', 1, 'me' from stack
"""
COPIES = """
insert into hook
select c.* from hook h cross join generate_series(1, $1) n
 cross join lateral jsonb_populate_record(null::hook, to_jsonb(h) || jsonb_build_object(
       'id', gen_random_uuid(), 'deadline', h.deadline + make_interval(secs => n / 1000.0))) c
"""


async def test_projects_take_turns_when_many_hooks_are_due(database: Database) -> None:
    engine_rows = EngineRows(database)
    projects: dict[UUID, str] = {}
    for project, count, late in (("many", 30, 60.0), ("some", 4, 20.0), ("one", 1, 10.0)):
        stack = await engine_rows.stack(project=project)
        projects[stack.id] = project
        for number in range(count):
            await engine_rows.hook(stack, f"r{number}", seconds=-late)
    waits = await engine_rows.stack(project="waits")
    await engine_rows.hook(waits)
    async with database.connection() as conn:
        counts = Counter(projects[stack_id] for stack_id, _ in await due_hooks(conn, 10))
        assert counts == {"many": 5, "some": 4, "one": 1}
        assert len(await due_hooks(conn, 100)) == 35


async def test_a_batch_of_many_due_hooks_reads_no_others(
    postgres: TestServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Also with table statistics from when the table had one row."""
    monkeypatch.setattr("engine.work.timers.BATCH", BATCH)
    async with postgres.new_database() as url:
        database = await open_database(url, keyring=KEYRING)
        try:
            async with database.connection() as conn:
                await without_statistics(conn)
            engine_rows = EngineRows(database)
            stack = await engine_rows.stack()
            await engine_rows.hook(stack, "r", seconds=-60.0)
            async with database.connection() as conn:
                await conn.execute(TRAVERSAL)
                await conn.execute("analyze")
                await conn.execute(COPIES, MANY)
            timers = Timers(database, poll=POLL, default_timeout=timedelta(hours=1), new_id=uuid4)
            assert await timers.expire_due() == BATCH
            before = await _hooks_read(database)
            for _ in range(TURNS):
                assert await timers.expire_due() == BATCH
            read = await _hooks_read(database) - before
            # Each is found, read under lock, decided and marked: once or twice each.
            assert read <= 10 * BATCH * TURNS < MANY
            left = "select count(*) from hook where state = 'waiting'"
            assert await engine_rows.value(left) == MANY + 1 - BATCH * (1 + TURNS)
        finally:
            await database.close()


async def _hooks_read(database: Database) -> int:
    """Rows of the table `hook` that sessions have read."""
    async with database.connection() as conn:
        await conn.execute("select pg_stat_force_next_flush()")
    async with database.connection() as conn:
        return (await rows_read_so_far(conn))["hook"]
