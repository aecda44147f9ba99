"""Consistency checks of the database. Each query finds the rows that break one rule.

$1: the stack to check; null: all stacks.
"""

from collections.abc import Mapping
from types import MappingProxyType
from uuid import UUID

import asyncpg

from engine import errors
from engine.store.connection import Connection

STACK_HAS_ITS_ROWS = """
select s.id from stack s
 where ($1::uuid is null or s.id = $1)
   and not (exists (select from traversal t where t.stack_id = s.id and t.number = s.traversal)
            and exists (select from template v where v.stack_id = s.id and v.version = s.version))
"""
ROWS_HAVE_THEIR_STACK = """
with rows as (
    select stack_id from traversal union all select stack_id from template
    union all select stack_id from node union all select stack_id from resource
    union all select stack_id from hook union all select stack_id from snapshot
    union all select stack_id from resource_snapshot union all select stack_id from breakpoint
    union all select stack_id from resource_signal union all select stack_id from credential
    union all select stack_id from past_graph
)
select distinct r.stack_id from rows r
 where ($1::uuid is null or r.stack_id = $1)
   and not exists (select from stack s where s.id = r.stack_id)
"""
NODES_HAVE_THEIR_TRAVERSAL = """
select n.stack_id, n.traversal, n.id from node n
 where ($1::uuid is null or n.stack_id = $1)
   and not exists (select from traversal t
                    where t.stack_id = n.stack_id and t.number = n.traversal)
"""
GRAPHS_HAVE_THEIR_TRAVERSAL = """
select p.stack_id, p.traversal from past_graph p
 where ($1::uuid is null or p.stack_id = $1)
   and not exists (select from traversal t
                    where t.stack_id = p.stack_id and t.number = p.traversal)
"""
#: No node is in both.
GRAPHS_ARE_OF_WHAT_IS_GONE = """
select n.stack_id, n.traversal, n.id from past_graph p
  join node n on n.stack_id = p.stack_id and n.traversal = p.traversal and n.id = any (p.ids)
 where $1::uuid is null or p.stack_id = $1
"""
#: Data of a snapshot is deleted with it. What deletion_policy: Snapshot saved was written by
#: another action, and stays with its traversal.
SNAPSHOTS_HOLD_THEIR_RESOURCES = """
select k.stack_id, k.traversal, k.name from resource_snapshot k
  left join traversal t on t.stack_id = k.stack_id and t.number = k.traversal
 where ($1::uuid is null or k.stack_id = $1)
   and (t.number is null
        or t.action = 'SNAPSHOT' and not exists (
            select from snapshot p where p.stack_id = k.stack_id and p.traversal = k.traversal))
"""
ACTIVE_IS_COUNTED = """
select t.stack_id, t.number, t.active, n.active from traversal t cross join lateral (
    select count(*) filter (where n.state in ('ready', 'running', 'parked')
           or n.state = 'waiting' and exists (
               select from node o where o.stack_id = n.stack_id
                  and o.traversal < n.traversal and o.successor = n.id
                  and o.state in ('ready', 'running', 'parked'))) as active
      from node n where n.stack_id = t.stack_id and n.traversal = t.number) n
 where ($1::uuid is null or t.stack_id = $1) and t.state = 'running' and t.active <> n.active
"""
HELD_IS_COUNTED = """
select t.stack_id, t.number from traversal t
 where ($1::uuid is null or t.stack_id = $1) and t.state = 'running' and t.held <> (
     select count(*) from node n where n.stack_id = t.stack_id
        and n.traversal = t.number and n.state = 'parked' and n.wake_at is null)
"""
WAITS_ARE_COUNTED = """
with before as (
    select b.stack_id, b.traversal, r.id, count(*) as many
      from node b cross join unnest(b.requirers) r (id)
     where ($1::uuid is null or b.stack_id = $1) and b.state <> 'done'
     group by b.stack_id, b.traversal, r.id
), older as (
    select o.stack_id, o.successor as id, count(*) as many from node o
     where ($1::uuid is null or o.stack_id = $1) and o.successor is not null
       and o.state in ('ready', 'running', 'parked')
     group by o.stack_id, o.successor
)
select n.stack_id, n.traversal, n.id, n.waits from node n
  join stack s on s.id = n.stack_id
  left join before b on (b.stack_id, b.traversal, b.id) = (n.stack_id, n.traversal, n.id)
  left join older o on (o.stack_id, o.id) = (n.stack_id, n.id) and n.traversal = s.traversal
 where ($1::uuid is null or n.stack_id = $1) and n.state = 'waiting'
   and n.waits <> coalesce(b.many, 0) + coalesce(o.many, 0)
"""
ONLY_THE_CURRENT_RUNS = """
select t.stack_id, t.number from traversal t join stack s on s.id = t.stack_id
 where ($1::uuid is null or s.id = $1)
   and t.state in ('running', 'ending') and t.number <> s.traversal
"""
HOOKS_WAIT_AT_PARKED_NODES = """
select h.stack_id, h.id from hook h left join node n on n.stack_id = h.stack_id
   and n.traversal = h.traversal and n.id = h.node
 where ($1::uuid is null or h.stack_id = $1) and h.state = 'waiting'
   and (n.state is distinct from 'parked' or n.phase = 'act')
"""
PARKED_NODES_HAVE_ONE_HOOK = """
select n.stack_id, n.traversal, n.id from node n
 where ($1::uuid is null or n.stack_id = $1) and n.state = 'parked' and n.phase <> 'act'
   and 1 <> (select count(*) from hook h where h.stack_id = n.stack_id
                and h.traversal = n.traversal and h.node = n.id and h.state = 'waiting')
"""
ONE_ROW_FOR_A_NAME = """
select stack_id, name from resource
 where ($1::uuid is null or stack_id = $1) and replaced_by is null
 group by stack_id, name having count(*) > 1
"""
# Old events may be purged; the newest exist.
#: The node around it that began it waits, and will hear of its end. What a stack inside does of its
#: own, as a group that is scaled there, nobody waits for.
STACKS_INSIDE_ARE_WAITED_FOR = """
select c.id from stack c join traversal t on t.stack_id = c.id and t.number = c.traversal
 where ($1::uuid is null or c.id = $1) and c.parent_id is not null
   and t.parent_traversal is not null and t.state in ('running', 'ending')
   and not exists (select from node n
                    where n.stack_id = c.parent_id and n.traversal = t.parent_traversal
                      and n.id = t.parent_node and n.operation_key = t.parent_key
                      and n.phase = 'act' and n.state in ('running', 'parked'))
"""
EVENTS_ARE_NUMBERED = """
select s.id, s.sequence from stack s cross join lateral (
    select max(sequence) as last, min(sequence) as first, count(*) as many
      from event e where e.stack_id = s.id) e
 where ($1::uuid is null or s.id = $1) and e.many > 0 and e.last <> s.sequence
    or ($1::uuid is null or s.id = $1) and e.many = 0 and s.deleted_at is null and s.sequence > 0
"""
EVENTS_ARE_QUEUED = """
select o.stack_id, o.id from outbox o
 where ($1::uuid is null or o.stack_id = $1)
   and (select count(*) from event e
         where e.stack_id = o.stack_id and e.sequence between o.first and o.last)
       <> o.last - o.first + 1
"""
POSITIONS_ARE_GIVEN = """
select o.id from outbox o, publishing p
 where ($1::uuid is null or o.stack_id = $1) and o.position > p.position
"""
DELIVERIES_HAVE_EVENT_AND_SUBSCRIPTION = """
select d.stack_id, d.id from delivery d
 where ($1::uuid is null or d.stack_id = $1)
   and not (exists (select from event e
                     where e.stack_id = d.stack_id and e.sequence = d.sequence)
            and exists (select from subscription s where s.id = d.subscription_id))
"""

#: Rule -> the query that finds its breaches.
INVARIANTS: Mapping[str, str] = MappingProxyType(
    {
        "a stack has its current traversal and version": STACK_HAS_ITS_ROWS,
        "rows have the stack that they are of": ROWS_HAVE_THEIR_STACK,
        "nodes have their traversal": NODES_HAVE_THEIR_TRAVERSAL,
        "graphs that are kept have their traversal": GRAPHS_HAVE_THEIR_TRAVERSAL,
        "graphs that are kept are of nodes that are gone": GRAPHS_ARE_OF_WHAT_IS_GONE,
        "resource snapshots have their snapshot or their delete": SNAPSHOTS_HOLD_THEIR_RESOURCES,
        "the counter of active nodes is what it is derived from": ACTIVE_IS_COUNTED,
        "the counter of held nodes is what it is derived from": HELD_IS_COUNTED,
        "a node waits for as many as have not ended": WAITS_ARE_COUNTED,
        "only the current traversal is under way": ONLY_THE_CURRENT_RUNS,
        "a hook waits where its node is parked, and nowhere else": HOOKS_WAIT_AT_PARKED_NODES,
        "a node parked at a breakpoint has one waiting hook": PARKED_NODES_HAVE_ONE_HOOK,
        "one row stands for a name": ONE_ROW_FOR_A_NAME,
        "a stack inside that is under way is waited for": STACKS_INSIDE_ARE_WAITED_FOR,
        "the newest event of a stack is there": EVENTS_ARE_NUMBERED,
        "what is to be published is there": EVENTS_ARE_QUEUED,
        "no place was given that is still to be given": POSITIONS_ARE_GIVEN,
        "deliveries have event and subscription": DELIVERIES_HAVE_EVENT_AND_SUBSCRIPTION,
    }
)


async def breaches(conn: Connection, stack_id: UUID | None = None) -> dict[str, list[str]]:
    """Every rule that does not hold now -> what breaks it, in words.

    Raises Unavailable when a rule cannot be checked within the connection's statement timeout.
    """
    found = {}
    for rule, query in INVARIANTS.items():
        try:
            rows = await conn.fetch(query, stack_id)
        except asyncpg.QueryCanceledError as error:
            raise errors.Unavailable(
                f'the rule "{rule}" could not be checked: {error}',
                place="[database]",
                remedy="Check a restored backup with `headgate admin backup-check`",
            ) from error
        if rows:
            found[rule] = [", ".join(map(str, row.values())) for row in rows]
    return found


COUNTS = """
select (select count(*) from stack where deleted_at is null) as stacks,
       (select count(*) from stack where deleted_at is not null) as deleted_stacks,
       (select count(*) from resource) as resources,
       (select count(*) from traversal where state in ('running', 'ending')) as under_way,
       (select count(*) from hook where state = 'waiting') as hooks_waiting,
       (select count(*) from decision) as decisions, (select count(*) from event) as events,
       (select count(*) from subscription) as subscriptions,
       (select count(*) from delivery where state = 'pending') as deliveries_pending
"""
NEWEST = """
select extract(epoch from clock_timestamp() - max(created_at))::double precision from outbox
"""


async def counts(conn: Connection) -> dict[str, int]:
    row = await conn.fetchrow(COUNTS)
    return dict(row or {})


async def newest(conn: Connection) -> float | None:
    """Seconds since the newest commit with events; None: there is none."""
    age: float | None = await conn.fetchval(NEWEST)
    return age
