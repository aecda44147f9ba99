"""A program that tests use one after another, each with a project of its own and empty tables."""

from collections.abc import AsyncIterator, Mapping, Sequence
from contextlib import asynccontextmanager
from itertools import count
from typing import Any

import asyncpg

from engine.types.contract import ResourceType
from tests.support.postgres import TestServer
from tests.support.program import Program, eventually, program

#: Tables whose rows belong to the program and its schema, not to a project.
OF_PROGRAM = (
    "database_clock", "instance", "migration", "oldest_program", "outbox_cursor", "process",
    "routines", "token_key", "usage_roll_up",
)  # fmt: skip
TABLES = """
select relname from pg_class
 where relnamespace = current_schema()::regnamespace and relkind = 'r' and relname <> all ($1)
"""
ENDED = """
select count(*) = 0 from pg_stat_activity
 where datname = current_database() and pid <> pg_backend_pid() and xact_start < $1
"""

_projects = count(1)


class SharedProgram:
    def __init__(self, run: Program, tables: Sequence[str]) -> None:
        """tables: those to empty after each test."""
        self._run = run
        deletes = (f'delete from "{name}";' for name in tables)
        # Triggers and foreign keys are not needed, because nothing stays. Transactions of the
        # program lock stacks first, too.
        self._delete_all = (
            "set local session_replication_role = replica;"
            f" select from stack order by id for update; {''.join(deletes)}"
        )

    @asynccontextmanager
    async def in_own_project(self) -> AsyncIterator[Program]:
        opened = Program(self._run.session, self._run.url, f"p{next(_projects)}")
        opened.engine, opened.database = self._run.engine, self._run.database
        try:
            yield opened
        finally:
            await self._empty()

    async def _empty(self) -> None:
        """Delete the rows of the test, also those of transactions that have begun before: later
        ones find no stack to change."""
        pool = self._run.database.pool
        await eventually(self._delete)
        since = await pool.fetchval("select clock_timestamp()")
        await eventually(lambda: pool.fetchval(ENDED, since))
        await eventually(self._delete)

    async def _delete(self) -> bool:
        try:
            await self._run.database.pool.execute(self._delete_all)
        except (
            asyncpg.DeadlockDetectedError,
            asyncpg.LockNotAvailableError,
            asyncpg.QueryCanceledError,
        ):
            return False
        return True


@asynccontextmanager
async def running_shared(
    server: TestServer, settings: Mapping[str, Any], *, types: Sequence[ResourceType] = ()
) -> AsyncIterator[SharedProgram]:
    async with server.new_database() as url, program(url, settings, types=types) as run:
        tables = await run.database.pool.fetch(TABLES, OF_PROGRAM)
        yield SharedProgram(run, [one["relname"] for one in tables])
