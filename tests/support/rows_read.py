"""Counts the rows that PostgreSQL reads.

A plan that finds rows by key reads as many as it returns; a scan, or a join that filters after its
index, reads more. PostgreSQL counts both, also within functions, for every plan.
"""

from collections import Counter
from collections.abc import Awaitable, Callable

from engine.store.connection import Connection

#: Rows that sequential scans and index scans fetched, by table.
ROWS_READ = """
select relname, seq_tup_read + coalesce(idx_tup_fetch, 0) as read from pg_stat_user_tables
"""
#: Makes the counts of this session visible.
FLUSH = "select pg_stat_force_next_flush()"
WITHOUT_STATISTICS = """
select format('alter table %I set (autovacuum_enabled = false)', relname) as statement
  from pg_class where relkind = 'r' and relnamespace = 'public'::regnamespace
"""


async def without_statistics(conn: Connection) -> None:
    """Disable automatic analysis of tables, as in a new installation."""
    for row in await conn.fetch(WITHOUT_STATISTICS):
        await conn.execute(row["statement"])
    analysed = "select count(*) from pg_stats where schemaname = 'public'"
    assert await conn.fetchval(analysed) == 0


async def rows_read_so_far(conn: Connection) -> Counter[str]:
    """Rows read by ended sessions since the database was created, by table."""
    return Counter({row["relname"]: row["read"] for row in await conn.fetch(ROWS_READ)})


async def rows_read_by(conn: Connection, read: Callable[[Connection], Awaitable[None]]) -> int:
    """Rows of all tables that a function reads, while nothing else uses the database."""
    await conn.execute(FLUSH)
    before = (await rows_read_so_far(conn)).total()
    await read(conn)
    await conn.execute(FLUSH)
    return (await rows_read_so_far(conn)).total() - before
