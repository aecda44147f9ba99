"""The end of a traversal. Called by the workers for each `End` they claim."""

from collections.abc import Sequence
from dataclasses import dataclass
from uuid import UUID

from engine.plan.verdict import EndedNode, Verdict
from engine.principal import Principal
from engine.store.archived_graphs import forget_all_nodes
from engine.store.connection import Connection
from engine.store.nested import lock_with_parent
from engine.words import Action, State

ENDING = """
select t.state = 'running' as late, t.action, t.version, t.requested_by, t.requested_by_id,
       s.project, s.name, s.disable_rollback,
       (select max(version) from template v where v.stack_id = s.id) as newest
  from traversal t join stack s on s.id = t.stack_id and s.traversal = t.number
 where t.stack_id = $1 and t.number = $2
   and (t.state = 'ending' or t.state = 'running'
        and working_time_over_at(t.worked, t.working_since, t.time_limit) <= clock_timestamp())
"""
LAST_COMPLETE = """
select version from traversal
 where stack_id = $1 and state = 'complete'
   and action in ('CREATE', 'UPDATE', 'ROLLBACK', 'ADOPT', 'RESTORE')
 order by number desc limit 1
"""
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
with gone as (delete from resource where stack_id = $1),
     snapshots as (delete from snapshot where stack_id = $1),
     held_by_snapshots as (
         delete from resource_snapshot k using traversal t
          where k.stack_id = $1 and t.stack_id = k.stack_id and t.number = k.traversal
            and t.action = 'SNAPSHOT'),
     sent as (delete from resource_signal where stack_id = $1),
     held as (delete from breakpoint where stack_id = $1)
update stack set deleted_at = clock_timestamp() where id = $1
"""
_MOST_UNWELL = 1000


@dataclass(frozen=True, slots=True)
class Ending:
    """A traversal to be ended. late: its time is over, though something is left to do."""

    late: bool
    action: Action
    version: int
    requested_by: Principal
    project: str
    name: str
    disable_rollback: bool
    newest: int


async def lock_ending(conn: Connection, stack_id: UUID, traversal: int) -> Ending | None:
    """Lock the stack, and the one around it; None when it is not to be ended (any more)."""
    await lock_with_parent(conn, stack_id)
    row = await conn.fetchrow(ENDING, stack_id, traversal)
    if row is None:
        return None
    fields = dict(row)
    by = Principal(fields.pop("requested_by_id"), fields.pop("requested_by"))
    return Ending(requested_by=by, **fields | {"action": Action(row["action"])})


async def last_complete(conn: Connection, stack_id: UUID) -> int | None:
    """The version that was the last to be reached whole."""
    version: int | None = await conn.fetchval(LAST_COMPLETE, stack_id)
    return version


async def failed_nodes(conn: Connection, stack_id: UUID, traversal: int) -> Sequence[EndedNode]:
    """The nodes that failed or stopped, in the order of their ends."""
    rows = await conn.fetch(UNWELL, stack_id, traversal, _MOST_UNWELL)
    return [
        EndedNode(row["name"], row["type"], row["operation"], State(row["state"]), row["reason"])
        for row in rows
    ]


async def end_traversal(conn: Connection, stack_id: UUID, traversal: int, verdict: Verdict) -> None:
    """Write the verdict; what still waited for something is dropped."""
    await conn.execute(DROP_WAITING, stack_id, traversal)
    await conn.execute(END_TRAVERSAL, stack_id, traversal, verdict.state.value, verdict.reason)


async def mark_deleted(conn: Connection, stack_id: UUID) -> None:
    """The stack was deleted; its rows and its snapshots go. Its events, its graphs and what
    deletion_policy: Snapshot kept stay."""
    await forget_all_nodes(conn, stack_id)
    await conn.execute(BURY, stack_id)
