"""Ending a traversal before its time: in favour of a newer one, or because somebody said so.

What acts goes on to its outcome; a newer traversal waits for it where it must.
"""

from collections.abc import Sequence
from uuid import UUID

from engine.node.node import DROPPED_WHEN_SUPERSEDED
from engine.store.connection import Connection
from engine.store.credentials import forget
from engine.words import TraversalState

#: A node that was answered to in the middle of its operation has begun: it is told, and goes on.
DROP_NODES = """
update node n
   set state = 'dropped', reason = $5, claim = n.claim + 1, wake_at = null,
       ended_at = clock_timestamp()
  from unnest($3::text[], $4::text[]) d (state, phase)
 where n.stack_id = $1 and n.traversal = $2 and n.state = d.state and n.phase = d.phase
   and not (n.phase = 'act' and n.confirmed is not null)
"""
#: What asks inside its operation goes on with it, and is told that nobody wants it any more.
REFUSE_CONFIRMATIONS = """
update node n
   set state = 'ready', phase = 'act', claim = n.claim + 1, wake_at = clock_timestamp(),
       confirmed = jsonb_build_object('step', substr(n.passed[cardinality(n.passed)], 9),
                                      'accepted', false, 'by', $3::text, 'reason', $4::text)
 where n.stack_id = $1 and n.traversal = $2 and n.state = 'parked' and n.phase = 'confirm'
"""
SUPERSEDE_HOOKS = """
with closed as (
    update hook set state = 'superseded', decided_at = clock_timestamp(), decided_by = $3
     where stack_id = $1 and traversal = $2 and state = 'waiting'
    returning stack_id, id, resource_name, point, mode, node, traversal
), told as (
    select array_agg(row (c.stack_id, 'headgate.hook.superseded', c.resource_name, n.type,
                     r.physical_id, r.action, r.status,
                     'Hook ' || c.point || ' was closed: ' || $4,
                     jsonb_build_object('hook_id', c.id, 'point', c.point, 'mode', c.mode)
                     )::event_draft) as events
      from closed c
      join node n on n.stack_id = c.stack_id and n.traversal = c.traversal and n.id = c.node
      left join resource r on r.stack_id = c.stack_id and r.id = n.resource_id
)
select record_events(events) from told where events is not null
"""
#: What waits for somebody is called again, and told: nobody may want any more what it waits for.
WAKE_WAITING = """
select wake_nodes(array_agg(row (stack_id, traversal, id)::node_key))
  from node
 where stack_id = $1 and traversal = $2 and phase = 'act' and state in ('parked', 'running')
   and type like any ($3)
"""
END_EARLY = """
update traversal
   set state = $3, reason = $4, ended_at = clock_timestamp(), working_since = null,
       worked = worked + coalesce(clock_timestamp() - working_since, '0'),
       wake_at = (select min(wake_at) from node where stack_id = $1 and traversal = $2)
 where stack_id = $1 and number = $2 and state in ('running', 'ending')
"""


async def supersede(
    conn: Connection, stack_id: UUID, traversal: int, by: str, giving_up: Sequence[str]
) -> None:
    """End a traversal in favour of a newer one: drop what has not begun, close its hooks."""
    reason = "superseded by a newer change"
    await end_early(conn, stack_id, traversal, by, TraversalState.SUPERSEDED, reason, giving_up)


async def end_early(
    conn: Connection,
    stack_id: UUID,
    traversal: int,
    by: str,
    state: TraversalState,
    reason: str,
    giving_up: Sequence[str],
) -> None:
    """End a traversal now, in this state; nothing new of it begins. giving_up: types whose
    operations are not to wait any longer, as patterns of SQL."""
    states, phases = zip(*sorted(DROPPED_WHEN_SUPERSEDED), strict=True)
    dropped = "superseded" if state is TraversalState.SUPERSEDED else reason
    await conn.execute(DROP_NODES, stack_id, traversal, states, phases, dropped)
    await conn.execute(REFUSE_CONFIRMATIONS, stack_id, traversal, by, dropped)
    await conn.execute(SUPERSEDE_HOOKS, stack_id, traversal, by, reason)
    await conn.execute(WAKE_WAITING, stack_id, traversal, list(giving_up))
    await conn.execute(END_EARLY, stack_id, traversal, state.value, dropped)
    await forget(conn, stack_id)
