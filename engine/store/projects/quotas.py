"""The usage of a project's quotas. Counts stop slightly above the limit."""

from engine.store.connection import Connection

STACKS = """
select count(*)
  from (select id from stack
         where project = $1 and deleted_at is null and parent_id is null limit $2) s
"""
RESOURCES = """
select count(*)
  from (select r.id from stack s join resource r on r.stack_id = s.id
         where s.project = $1 and s.deleted_at is null
           and not (r.action = 'DELETE' and r.status = 'COMPLETE') limit $2) r
"""
WAITING_HOOKS = """
select count(*)
  from (select id from hook where project = $1 and state = 'waiting'
         order by opened_at, id limit $2) h
"""
CHECKS = """
select count(*)
  from (select stack_id from traversal
         where project = $1 and action = 'CHECK' and started_at > now() - interval '1 day'
         limit $2) t
"""
#: Serializes requests near a limit until the end of the transaction.
LOCK = "select pg_advisory_xact_lock(hashtextextended('quota ' || $1, 0))::text as locked"

#: The maximum number of concurrent requests, which do not see each other's rows.
MARGIN = 200
#: Counts stop here if there is no limit.
NO_LIMIT = 1_000_000


async def count(conn: Connection, statement: str, project: str, limit: int) -> int:
    """statement: one of the counts above."""
    number: int = await conn.fetchval(statement, project, (limit or NO_LIMIT) + MARGIN)
    return number


async def usage(
    conn: Connection, statement: str, project: str, limit: int, *, more: int = 0
) -> int:
    """The usage including this transaction's rows; exact near the limit.

    more: number of rows that will be added. Call it last in a transaction: near the limit it waits
    for earlier transactions.
    """
    number = await count(conn, statement, project, limit)
    if number + more + MARGIN > limit:
        await conn.execute(LOCK, project)
        number = await count(conn, statement, project, limit)
    return number + more
