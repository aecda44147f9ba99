"""How a traversal ends: with its verdict, superseded by a newer one, or stopped on request.

The node machine decides what happens to each kind of node when a traversal ends early; one
statement applies the decision to all of them. A node whose operation runs ends with the outcome
of the operation, and a newer traversal waits for it where it must.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import timedelta
from uuid import UUID

from engine.node.effects import NotifyType
from engine.node.inputs import Superseded
from engine.node.machine import decide
from engine.node.node import ENDED, Node, Refused, Step
from engine.plan.verdict import EndedNode, Verdict
from engine.principal import Principal
from engine.store.archived_graphs import forget_all_nodes
from engine.store.connection import Connection
from engine.store.credentials import forget
from engine.store.nested_stacks import lock_with_parent
from engine.words import Action, Json, Operation, Phase, State, TraversalState

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
#: Waiting operations are called again, so that they can stop waiting.
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
    conn: Connection,
    stack_id: UUID,
    traversal: int,
    by: Principal,
    cancellable_types: Sequence[str],
) -> None:
    """End a traversal because of a newer one: drop the nodes not started, close its hooks."""
    reason = "superseded by a newer change"
    await end_early(
        conn, stack_id, traversal, by, TraversalState.SUPERSEDED, reason, cancellable_types
    )


async def end_early(
    conn: Connection,
    stack_id: UUID,
    traversal: int,
    by: Principal,
    state: TraversalState,
    reason: str,
    cancellable_types: Sequence[str],
) -> None:
    """End a traversal now, in this state; nothing new of it begins. cancellable_types: types whose
    operations are not to wait any longer, as patterns of SQL."""
    dropped = "superseded" if state is TraversalState.SUPERSEDED else reason
    await _end_nodes(conn, stack_id, traversal, Superseded(by.name, dropped))
    await conn.execute(SUPERSEDE_HOOKS, stack_id, traversal, by.name, reason)
    await conn.execute(WAKE_WAITING, stack_id, traversal, list(cancellable_types))
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
    """A traversal to end. late: its time limit is reached before its nodes have ended."""

    late: bool
    action: Action
    version: int
    requested_by: Principal
    project: str
    name: str
    disable_rollback: bool
    newest: int


async def lock_ending(conn: Connection, stack_id: UUID, traversal: int) -> Ending | None:
    """Lock the stack and its parent; None if the traversal is not to be ended now."""
    await lock_with_parent(conn, stack_id)
    row = await conn.fetchrow(ENDING, stack_id, traversal)
    if row is None:
        return None
    fields = dict(row)
    by = Principal(fields.pop("requested_by_id"), fields.pop("requested_by"))
    return Ending(requested_by=by, **fields | {"action": Action(row["action"])})


async def last_complete(conn: Connection, stack_id: UUID) -> int | None:
    """The last completed template version."""
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
    """Write the verdict, and drop the nodes that still wait."""
    await conn.execute(DROP_WAITING, stack_id, traversal)
    await conn.execute(END_TRAVERSAL, stack_id, traversal, verdict.state.value, verdict.reason)


async def mark_deleted(conn: Connection, stack_id: UUID) -> None:
    """The stack was deleted; its rows and its snapshots go. Its events, its graphs and what
    deletion_policy: Snapshot kept stay."""
    await forget_all_nodes(conn, stack_id)
    await conn.execute(BURY, stack_id)


CLAIM_ENDED = """
with due as (
    select stack_id, number from traversal
     where watched is not null and ended_at is not null
       and (tell_at is null or tell_at <= statement_timestamp())
     order by ended_at limit $2 for update skip locked
)
update traversal t set tell_at = clock_timestamp() + $1
  from due where t.stack_id = due.stack_id and t.number = due.number
returning t.stack_id, t.number, t.state, t.reason, t.began, t.watched as view
"""
TOLD = """
update traversal set watched = null, tell_at = null where stack_id = $1 and number = $2
"""


@dataclass(frozen=True, slots=True)
class EndedRecord:
    """An ended traversal. began: it has passed its first gate."""

    stack_id: UUID
    number: int
    state: str
    reason: str
    began: bool
    view: Json


async def claim_ended(conn: Connection, lease: timedelta, limit: int) -> list[EndedRecord]:
    """Claim ended traversals; after the lease they can be claimed again."""
    return [EndedRecord(**row) for row in await conn.fetch(CLAIM_ENDED, lease, limit)]


async def mark_notified(conn: Connection, stack_id: UUID, number: int) -> None:
    await conn.execute(TOLD, stack_id, number)
