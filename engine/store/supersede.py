"""Ending a traversal before its time: in favour of a newer one, or on request.

The node machine decides what becomes of each kind of node; one statement applies that to all of
them. What acts ends by its outcome; a newer traversal waits for it where it must.
"""

from collections.abc import Mapping, Sequence
from uuid import UUID

from engine.node.effects import NotifyType
from engine.node.inputs import Superseded
from engine.node.machine import decide
from engine.node.node import ENDED, Node, Refused, Step
from engine.principal import Principal
from engine.store.connection import Connection
from engine.store.credentials import forget
from engine.words import Json, Operation, Phase, State, TraversalState

#: What tells nodes apart to the machine when their traversal ends: a handful of kinds, however many
#: nodes there are.
NODE_KINDS = """
select distinct operation, state, phase, passed from node
 where stack_id = $1 and traversal = $2 and state = any ($3)
"""
MOVE_NODES = """
update node n
   set state = d.state, phase = d.phase, reason = coalesce(d.reason, n.reason),
       claim = n.claim + 1, confirmed = coalesce(nullif(d.confirmed, 'null'), n.confirmed),
       wake_at = case when not d.ended then clock_timestamp() end,
       ended_at = case when d.ended then clock_timestamp() end
  from jsonb_to_recordset($3) as d (kind jsonb, state text, phase text, reason text,
       confirmed jsonb, ended boolean)
 cross join jsonb_to_record(d.kind) as k (operation text, state text, phase text, passed text[])
 where n.stack_id = $1 and n.traversal = $2 and n.operation = k.operation and n.state = k.state
   and n.phase = k.phase and n.passed = k.passed
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
       worked = working_time(worked, working_since, clock_timestamp()),
       wake_at = (select min(wake_at) from node where stack_id = $1 and traversal = $2)
 where stack_id = $1 and number = $2 and state in ('running', 'ending')
"""


async def supersede(
    conn: Connection, stack_id: UUID, traversal: int, by: Principal, giving_up: Sequence[str]
) -> None:
    """End a traversal in favour of a newer one: drop what has not begun, close its hooks."""
    reason = "superseded by a newer change"
    await end_early(conn, stack_id, traversal, by, TraversalState.SUPERSEDED, reason, giving_up)


async def end_early(
    conn: Connection,
    stack_id: UUID,
    traversal: int,
    by: Principal,
    state: TraversalState,
    reason: str,
    giving_up: Sequence[str],
) -> None:
    """End a traversal now, in this state; nothing new of it begins. giving_up: types whose
    operations are not to wait any longer, as patterns of SQL."""
    dropped = "superseded" if state is TraversalState.SUPERSEDED else reason
    await _end_nodes(conn, stack_id, traversal, Superseded(by.name, dropped))
    await conn.execute(SUPERSEDE_HOOKS, stack_id, traversal, by.name, reason)
    await conn.execute(WAKE_WAITING, stack_id, traversal, list(giving_up))
    await conn.execute(END_EARLY, stack_id, traversal, state.value, dropped)
    await forget(conn, stack_id)


async def _end_nodes(conn: Connection, stack_id: UUID, traversal: int, ended: Superseded) -> None:
    """Move every node that the machine moves when its traversal ends. A kind that it refuses is
    left alone: such a node ends by its operation's outcome."""
    kinds = await conn.fetch(NODE_KINDS, stack_id, traversal, sorted(set(State) - ENDED))
    moves = [
        _move(kind, step)
        for kind in map(dict, kinds)
        if not isinstance(step := decide(_node_of(kind), ended), Refused)
    ]
    if moves:
        await conn.execute(MOVE_NODES, stack_id, traversal, moves)


def _node_of(kind: Mapping[str, Json]) -> Node:
    return Node(
        operation=Operation(kind["operation"]),
        state=State(kind["state"]),
        phase=Phase(kind["phase"]),
        passed=tuple(kind["passed"]),
    )


def _move(kind: Json, step: Step) -> Json:
    node = step.node
    told = (effect.as_json() for effect in step.effects if isinstance(effect, NotifyType))
    return {
        "kind": kind,
        "state": node.state,
        "phase": node.phase,
        "reason": node.reason,
        "confirmed": next(told, None),
        "ended": node.state in ENDED,
    }
