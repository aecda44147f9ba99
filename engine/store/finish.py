"""The end of a traversal. Called by the workers for each `End` they claim."""

from collections.abc import Sequence
from uuid import UUID

from engine.plan.verdict import EndedNode, Verdict
from engine.store.database import Connection
from engine.words import Action, State

LOCK_ENDING = """
select s.id from stack s
  join traversal t on t.stack_id = s.id and t.number = s.traversal
 where s.id = $1 and t.number = $2 and t.state = 'ending'
   for no key update of s
"""
ENDING = "select action, version from traversal where stack_id = $1 and number = $2"
UNWELL = """
select name, type, operation, state, coalesce(reason, '') as reason
  from node
 where stack_id = $1 and traversal = $2 and state in ('failed', 'stopped')
 order by ended_at, id limit $3
"""
DROP_WAITING = """
update node set state = 'dropped', reason = 'what it waits for did not end well',
       ended_at = clock_timestamp()
 where stack_id = $1 and traversal = $2 and state = 'waiting'
"""
END_TRAVERSAL = """
update traversal set state = $3, reason = $4, wake_at = null, ended_at = clock_timestamp()
 where stack_id = $1 and number = $2
"""
BURY = """
with gone as (delete from node where stack_id = $1),
     also as (delete from resource where stack_id = $1)
update stack set deleted_at = clock_timestamp() where id = $1
"""
_MOST_UNWELL = 1000


async def lock_ending(
    conn: Connection, stack_id: UUID, traversal: int
) -> tuple[Action, int] | None:
    """Lock the stack; (action, version), or None when the traversal is not ending (any more)."""
    if await conn.fetchval(LOCK_ENDING, stack_id, traversal) is None:
        return None
    row = await conn.fetchrow(ENDING, stack_id, traversal)
    return (Action(row["action"]), row["version"]) if row else None


async def unwell(conn: Connection, stack_id: UUID, traversal: int) -> Sequence[EndedNode]:
    """The nodes that failed or stopped, in the order of their ends."""
    rows = await conn.fetch(UNWELL, stack_id, traversal, _MOST_UNWELL)
    return [
        EndedNode(row["name"], row["type"], row["operation"], State(row["state"]), row["reason"])
        for row in rows
    ]


async def end_traversal(
    conn: Connection, stack_id: UUID, traversal: int, verdict: Verdict, *, bury: bool
) -> None:
    """Write the verdict. bury: the stack was deleted; its rows go, its events stay."""
    await conn.execute(DROP_WAITING, stack_id, traversal)
    await conn.execute(END_TRAVERSAL, stack_id, traversal, verdict.state.value, verdict.reason)
    if bury:
        await conn.execute(BURY, stack_id)
