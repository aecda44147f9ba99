"""How much of its quotas a project uses. Each count ends a little above its limit: what is far
beyond is not counted."""

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
select count(*) from (select id from hook where project = $1 and state = 'waiting' limit $2) h
"""
CHECKS = """
select count(*)
  from (select stack_id from traversal
         where project = $1 and action = 'CHECK' and started_at > now() - interval '1 day'
         limit $2) t
"""
#: Requests close to a limit are serialized from here to the end of the transaction.
LOCK = "select pg_advisory_xact_lock(hashtextextended('quota ' || $1, 0))::text as locked"

#: Requests that may be under way at the same time, and do not see each other.
NEAR = 200


#: Where nothing is the limit, no more than this is counted.
FAR = 1_000_000


async def count(conn: Connection, measure: str, project: str, limit: int) -> int:
    found: int = await conn.fetchval(measure, project, (limit or FAR) + NEAR)
    return found


async def used(conn: Connection, measure: str, project: str, limit: int, *, more: int = 0) -> int:
    """How many there are, this transaction's own among them; exact where that matters.

    more: what will be there besides. The last thing to do in a transaction: near the limit it
    waits for those before it.
    """
    found = await count(conn, measure, project, limit)
    if found + more + NEAR > limit:
        await conn.execute(LOCK, project)
        found = await count(conn, measure, project, limit)
    return found + more
