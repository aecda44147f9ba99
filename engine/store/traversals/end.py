"""Ends traversals: with a result, superseded by a newer one, or stopped on request.

The node machine decides what happens to each kind of node when a traversal ends early; one
statement applies the decision to all of them. A node whose operation runs ends with the outcome
of the operation, and a newer traversal waits for it where it must.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import timedelta
from uuid import UUID

from engine.node.machine import decide
from engine.node.node import ENDED, Cancelled, InvalidInput, Node, NotifyType, Step, Superseded
from engine.plan.traversal_result import UNSUCCESSFUL, EndedNode, TraversalResult
from engine.principal import Principal
from engine.store.connection import Connection
from engine.store.stacks.stack_locks import lock_with_parent
from engine.store.traversals import traversal_credentials
from engine.store.traversals.advance import TraversalToEnd
from engine.words import Action, Json, Operation, Phase, State, TraversalState

#: The states in which the node machine decides: a few kinds, independent of the number of nodes.
NODE_KINDS = """
select distinct operation, state, phase, breakpoints_hit from node
 where stack_id = $1 and traversal = $2 and state = any ($3)
"""
MOVE_NODES = """
update node n
   set state = d.state, phase = d.phase, reason = coalesce(d.reason, n.reason),
       claim = n.claim + 1,
       confirmation = coalesce(nullif(d.confirmation, 'null'), n.confirmation),
       wake_at = case when not d.ended then clock_timestamp() end,
       ended_at = case when d.ended then clock_timestamp() end
  from jsonb_to_recordset($3) as d (kind jsonb, state text, phase text, reason text,
       confirmation jsonb, ended boolean)
 cross join jsonb_to_record(d.kind)
       as k (operation text, state text, phase text, breakpoints_hit text[])
 where n.stack_id = $1 and n.traversal = $2 and n.operation = k.operation and n.state = k.state
   and n.phase = k.phase and n.breakpoints_hit = k.breakpoints_hit
"""
SUPERSEDE_HOOKS = """
with closed as (
    update hook set state = 'superseded', decided_at = clock_timestamp(), decided_by = $3
     where stack_id = $1 and traversal = $2 and state = 'waiting'
    returning stack_id, id, resource_name, point, mode, node, traversal
), drafts as (
    select array_agg(row (c.stack_id, 'headgate.hook.superseded', c.resource_name, n.type,
                     r.physical_id, r.action, r.status,
                     'Hook ' || c.point || ' was closed: ' || $4,
                     jsonb_build_object('hook_id', c.id, 'point', c.point, 'mode', c.mode)
                     )::event_draft) as events
      from closed c
      join node n on n.stack_id = c.stack_id and n.traversal = c.traversal and n.id = c.node
      left join lateral (select * from resource
                          where stack_id = c.stack_id and id = n.resource_id offset 0) r on true
)
select record_events(events) from drafts where events is not null
"""
#: Calls waiting operations again, so that they can stop waiting.
WAKE_WAITING = """
select wake_nodes(array_agg(row (stack_id, traversal, id)::node_key))
  from node
 where stack_id = $1 and traversal = $2 and phase = 'execute' and state in ('parked', 'running')
   and type like any ($3)
"""
#: The operations of the stack that have begun, in all traversals: as `_busy` in
#: engine/store/resources/current_resources.py. $2: operations. $3: LIKE patterns of the types to
#: wake.
CANCEL_OPERATIONS = """
with cancelled as (
    update node n set cancelled = true
      from traversal t
     where t.stack_id = $1 and t.active_nodes > 0
       and (t.number = (select traversal from stack where id = $1)
            or t.number in (select traversal from archive_queue where stack_id = $1))
       and n.stack_id = t.stack_id and n.traversal = t.number and n.phase = 'execute'
       and n.state in ('ready', 'running', 'parked') and n.operation = any ($2)
       and not n.cancelled
    returning n.traversal, n.id, n.type, n.state
)
select array_agg(traversal) as traversals, array_agg(id) as nodes,
       bool_or(state = 'running') as called
  from cancelled where type like any ($3)
"""
WAKE_CANCELLED = """
select wake_nodes(array(select row ($1, traversal, id)::node_key
                          from unnest($2::integer[], $3::integer[]) k (traversal, id)))
"""
#: Tells workers that an operation that they call is cancelled.
NOTIFY_CANCELLED = "select pg_notify('headgate_cancelled', '')"
END_EARLY = """
update traversal
   set state = $3, reason = $4, ended_at = clock_timestamp(), working_since = null,
       working_time = working_time_at(working_time, working_since, clock_timestamp()),
       wake_at = (select min(n.wake_at) from node n
                   where n.stack_id = $1 and n.traversal = $2
                     and (not traversal.labelled or n.label = ''))
 where stack_id = $1 and number = $2 and state in ('running', 'ending')
"""


async def supersede(
    conn: Connection,
    stack_id: UUID,
    traversal: int,
    by: Principal,
    supersedable_types: Sequence[str],
) -> None:
    """End a traversal because of a newer one: drop the nodes not started, close its hooks."""
    reason = "superseded by a newer change"
    await end_early(
        conn, stack_id, traversal, by, TraversalState.SUPERSEDED, reason, supersedable_types
    )


async def end_early(
    conn: Connection,
    stack_id: UUID,
    traversal: int,
    by: Principal,
    state: TraversalState,
    reason: str,
    supersedable_types: Sequence[str],
) -> None:
    """End a traversal now, in this state; no further node starts. supersedable_types: LIKE patterns
    of types whose operations stop waiting."""
    dropped = "superseded" if state is TraversalState.SUPERSEDED else reason
    await _end_nodes(conn, stack_id, traversal, Superseded(by.name, dropped))
    await conn.execute(SUPERSEDE_HOOKS, stack_id, traversal, by.name, reason)
    await conn.execute(WAKE_WAITING, stack_id, traversal, list(supersedable_types))
    await conn.execute(END_EARLY, stack_id, traversal, state.value, dropped)
    await traversal_credentials.delete_unused(conn, stack_id)


async def cancel_operations(
    conn: Connection, stack_id: UUID, cancellable_types: Sequence[str]
) -> None:
    """Cancel the operations of the stack that have begun, in all its traversals. cancellable_types:
    LIKE patterns of types whose operations are called again, to end early."""
    row = await conn.fetchrow(
        CANCEL_OPERATIONS, stack_id, CANCELLED_OPERATIONS, list(cancellable_types)
    )
    if row is None or row["nodes"] is None:
        return
    await conn.execute(WAKE_CANCELLED, stack_id, row["traversals"], row["nodes"])
    if row["called"]:
        await conn.execute(NOTIFY_CANCELLED)


#: The operations that the node machine cancels.
CANCELLED_OPERATIONS = [
    operation.value
    for operation in Operation
    if not isinstance(
        decide(Node(operation, State.PARKED, Phase.EXECUTE), Cancelled()), InvalidInput
    )
]


async def _end_nodes(conn: Connection, stack_id: UUID, traversal: int, ended: Superseded) -> None:
    """Apply the machine's decisions to all nodes. Nodes for which it refuses the input stay
    unchanged: they end with the outcome of their operation."""
    kinds = await conn.fetch(NODE_KINDS, stack_id, traversal, sorted(set(State) - ENDED))
    moves = [
        _move(kind, step)
        for kind in map(dict, kinds)
        if not isinstance(step := decide(_node_of(kind), ended), InvalidInput)
    ]
    if moves:
        await conn.execute(MOVE_NODES, stack_id, traversal, moves)


def _node_of(kind: Mapping[str, Json]) -> Node:
    return Node(
        operation=Operation(kind["operation"]),
        state=State(kind["state"]),
        phase=Phase(kind["phase"]),
        breakpoints_hit=tuple(kind["breakpoints_hit"]),
    )


def _move(kind: Json, step: Step) -> Json:
    node = step.node
    notes = (effect.as_json() for effect in step.effects if isinstance(effect, NotifyType))
    return {
        "kind": kind,
        "state": node.state,
        "phase": node.phase,
        "reason": node.reason,
        "confirmation": next(notes, None),
        "ended": node.state in ENDED,
    }


ENDING = """
select t.state = 'running' as timed_out, t.action, t.version, t.requested_by, t.requested_by_id,
       s.project, s.name, s.region, s.disable_rollback, s.parent_id is not null as nested,
       exists (select from credential c where c.stack_id = s.id) as has_credentials,
       (select max(version) from template v where v.stack_id = s.id) as newest
  from traversal t join stack s on s.id = t.stack_id and s.traversal = t.number
 where t.stack_id = $1 and t.number = $2
   and must_end(t.state, t.working_time, t.working_since, t.time_limit, clock_timestamp())
"""
LAST_COMPLETE = """
select version from traversal
 where stack_id = $1 and state = 'complete'
   and action in ('CREATE', 'UPDATE', 'ROLLBACK', 'ADOPT', 'RESTORE')
 order by number desc limit 1
"""
FAILED_NODES = """
select name, type, operation, state, coalesce(reason, '') as reason
  from node
 where stack_id = $1 and traversal = $2 and state = any ($3)
 order by ended_at, id limit $4
"""
END_TRAVERSAL = """
update traversal set state = $3, reason = $4, wake_at = null, ended_at = clock_timestamp()
 where stack_id = $1 and number = $2
"""
COMPLETE_TRAVERSALS = """
select e.stack_id, e.traversal, c.p_parents_due as parents_due
  from complete_traversals(
       array(select row (stack_id, traversal, null)::node_key
               from unnest($1::uuid[], $2::integer[]) e (stack_id, traversal)), $3, $4) c
  left join lateral unnest(c.p_ended) e on true
"""
_MAX_FAILED_NODES = 1000


@dataclass(frozen=True, slots=True)
class EndingTraversal:
    """A traversal to end. timed_out: its time limit is reached before its nodes have ended. nested:
    its stack has a parent. has_credentials: credentials of its stack are stored. region: of its
    stack, as `Call.region`."""

    timed_out: bool
    action: Action
    version: int
    requested_by: Principal
    project: str
    name: str
    region: str
    disable_rollback: bool
    newest: int
    nested: bool = False
    has_credentials: bool = False


async def lock_ending(conn: Connection, stack_id: UUID, traversal: int) -> EndingTraversal | None:
    """Lock the stack and its parent. None: the traversal has ended, or has active nodes and time
    left."""
    await lock_with_parent(conn, stack_id)
    row = await conn.fetchrow(ENDING, stack_id, traversal)
    if row is None:
        return None
    fields = dict(row)
    by = Principal(fields.pop("requested_by_id"), fields.pop("requested_by"))
    return EndingTraversal(requested_by=by, **fields | {"action": Action(row["action"])})


async def last_complete(conn: Connection, stack_id: UUID) -> int | None:
    """The last completed template version."""
    version: int | None = await conn.fetchval(LAST_COMPLETE, stack_id)
    return version


async def failed_nodes(conn: Connection, stack_id: UUID, traversal: int) -> Sequence[EndedNode]:
    """The nodes in UNSUCCESSFUL states, in the order of their ends."""
    rows = await conn.fetch(FAILED_NODES, stack_id, traversal, UNSUCCESSFUL, _MAX_FAILED_NODES)
    return [
        EndedNode(row["name"], row["type"], row["operation"], State(row["state"]), row["reason"])
        for row in rows
    ]


async def end_traversal(
    conn: Connection, stack_id: UUID, traversal: int, result: TraversalResult
) -> None:
    """Write the result, and end the nodes that still wait: none of a complete traversal does."""
    if result.state is not TraversalState.COMPLETE:
        ended = Superseded(reason="a dependency did not succeed")
        await _end_nodes(conn, stack_id, traversal, ended)
    await conn.execute(END_TRAVERSAL, stack_id, traversal, result.state.value, result.reason)


@dataclass(frozen=True, slots=True)
class CompletedTraversals:
    """ended: these traversals have ended. parents_due: nodes of parent stacks are due."""

    ended: frozenset[TraversalToEnd]
    parents_due: bool


async def complete_traversals(
    conn: Connection, ends: Sequence[TraversalToEnd], results: Mapping[str, Json]
) -> CompletedTraversals:
    """End the traversals whose nodes have all succeeded, in one statement. Those that it must leave
    to `lock_ending` (routines/4_complete_traversals.sql) are not in the result.

    results: of a complete traversal, by action: the event's type, state, status, shown and reason.
    """
    stacks, numbers = zip(*ends, strict=True)
    rows = await conn.fetch(COMPLETE_TRAVERSALS, stacks, numbers, results, UNSUCCESSFUL)
    ended = {TraversalToEnd(row["stack_id"], row["traversal"]) for row in rows if row["stack_id"]}
    return CompletedTraversals(frozenset(ended), rows[0]["parents_due"])


CLAIM_ENDED = """
with due as (
    select stack_id, number from traversal
     where lifecycle_view is not null and ended_at is not null
       and (notify_at is null or notify_at <= statement_timestamp())
     order by ended_at limit $2 for update skip locked
)
update traversal t set notify_at = clock_timestamp() + $1
  from due where t.stack_id = due.stack_id and t.number = due.number
returning t.stack_id, t.number, t.state, t.reason, t.accepted, t.lifecycle_view
"""
MARK_NOTIFIED = """
update traversal set lifecycle_view = null, notify_at = null
 where stack_id = $1 and number = $2
"""


@dataclass(frozen=True, slots=True)
class EndedTraversal:
    """An ended traversal. began: it has passed its first gate."""

    stack_id: UUID
    number: int
    state: str
    reason: str
    accepted: bool
    lifecycle_view: Json


async def claim_ended(conn: Connection, lease: timedelta, limit: int) -> list[EndedTraversal]:
    """Claim ended traversals; after the lease they can be claimed again."""
    return [EndedTraversal(**row) for row in await conn.fetch(CLAIM_ENDED, lease, limit)]


async def mark_notified(conn: Connection, stack_id: UUID, number: int) -> None:
    await conn.execute(MARK_NOTIFIED, stack_id, number)
