"""Keeps PostgreSQL's estimate of the hot tables' sizes true when a large stack is stored.

PostgreSQL estimates how many rows a table has from the last `vacuum` or `analyze`. When that came
just after most rows were deleted, it takes a table of 10,000 rows for one of a single row; every
index then looks as good as any other, and statements read whole stacks until the next analyze. A
table that was never analysed is estimated by the size of its file, which does no harm.
"""

from engine.store.connection import Connection

#: New nodes of a traversal from which a wrong estimate costs more than looking at it.
LARGE = 100
#: $1: rows that a table has at least.
ESTIMATED_TOO_SMALL = """
select exists (
    select from pg_class c
     where c.oid = any ('{node,resource}'::regclass[]) and c.relpages > 0 and c.reltuples >= 0
       and c.reltuples / c.relpages * pg_relation_size(c.oid)
           / current_setting('block_size')::integer < $1)
"""
#: One column is enough for the number of rows. Another process that is at it does it for all.
COUNT_AGAIN = "analyze (skip_locked) node (id), resource (id)"


async def correct_estimates(conn: Connection, nodes: int) -> None:
    """Analyse the hot tables if they are taken for smaller than the nodes just stored here."""
    if nodes >= LARGE and await conn.fetchval(ESTIMATED_TOO_SMALL, nodes):
        await conn.execute(COUNT_AGAIN)
