"""Consistency checks of the database. Each query finds the rows that break one rule.

$1: the stack to check; null: all stacks.
"""

from collections.abc import Mapping
from types import MappingProxyType

import asyncpg

from engine import errors
from engine.store.connection import Connection

STACK_HAS_TRAVERSAL_AND_VERSION = """
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
    union all select stack_id from archived_graph union all select stack_id from archive_queue
    union all select stack_id from converge_request
    union all select stack_id from labelled_work union all select stack_id from stack_tag
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
select p.stack_id, p.traversal from archived_graph p
 where ($1::uuid is null or p.stack_id = $1)
   and not exists (select from traversal t
                    where t.stack_id = p.stack_id and t.number = p.traversal)
"""
ARCHIVED_NODES_ARE_DELETED = """
select n.stack_id, n.traversal, n.id from archived_graph p
  join node n on n.stack_id = p.stack_id and n.traversal = p.traversal and n.id = any (p.ids)
 where $1::uuid is null or p.stack_id = $1
"""
#: The data of a snapshot is deleted with it. What deletion_policy: Snapshot saved belongs to
#: another action.
SNAPSHOTS_HAVE_THEIR_RESOURCES = """
select k.stack_id, k.traversal, k.name from resource_snapshot k
  left join traversal t on t.stack_id = k.stack_id and t.number = k.traversal
 where ($1::uuid is null or k.stack_id = $1)
   and (t.number is null
        or t.action = 'SNAPSHOT' and not exists (
            select from snapshot p where p.stack_id = k.stack_id and p.traversal = k.traversal))
"""
ACTIVE_NODES_ARE_COUNTED = """
select t.stack_id, t.number, t.active_nodes, n.count from traversal t cross join lateral (
    select count(*) filter (where n.state in ('ready', 'running', 'parked')
           or n.state = 'waiting' and exists (
               select from node o where o.stack_id = n.stack_id
                  and o.traversal < n.traversal and o.successor = n.id
                  and o.state in ('ready', 'running', 'parked'))) as count
      from node n where n.stack_id = t.stack_id and n.traversal = t.number) n
 where ($1::uuid is null or t.stack_id = $1) and t.state = 'running' and t.active_nodes <> n.count
"""
BLOCKED_NODES_ARE_COUNTED = """
select t.stack_id, t.number from traversal t
 where ($1::uuid is null or t.stack_id = $1) and t.state = 'running' and t.blocked_nodes <> (
     select count(*) from node n where n.stack_id = t.stack_id
        and n.traversal = t.number and n.state = 'parked' and n.wake_at is null)
"""
#: A change finds the running operations of earlier traversals by these.
EARLIER_OPERATIONS_ARE_FOUND = """
select distinct n.stack_id, n.traversal from node n
  join stack s on s.id = n.stack_id and n.traversal < s.traversal
  join traversal t on t.stack_id = n.stack_id and t.number = n.traversal
 where ($1::uuid is null or n.stack_id = $1)
   and (n.state in ('ready', 'running', 'parked') and t.active_nodes <= 0
        or not exists (select from archive_queue q
                        where q.stack_id = n.stack_id and q.traversal = n.traversal))
"""
PENDING_DEPENDENCIES_ARE_COUNTED = """
with before as (
    select b.stack_id, b.traversal, r.id, count(*) as count
      from node b cross join unnest(b.dependents) r (id)
     where ($1::uuid is null or b.stack_id = $1) and b.state <> 'done'
     group by b.stack_id, b.traversal, r.id
), older as (
    select o.stack_id, o.successor as id, count(*) as count from node o
     where ($1::uuid is null or o.stack_id = $1) and o.successor is not null
       and o.state in ('ready', 'running', 'parked')
     group by o.stack_id, o.successor
)
select n.stack_id, n.traversal, n.id, n.pending_dependencies from node n
  join stack s on s.id = n.stack_id
  left join before b on (b.stack_id, b.traversal, b.id) = (n.stack_id, n.traversal, n.id)
  left join older o on (o.stack_id, o.id) = (n.stack_id, n.id) and n.traversal = s.traversal
 where ($1::uuid is null or n.stack_id = $1) and n.state = 'waiting'
   and n.pending_dependencies <> coalesce(b.count, 0) + coalesce(o.count, 0)
"""
ONLY_THE_CURRENT_RUNS = """
select t.stack_id, t.number from traversal t join stack s on s.id = t.stack_id
 where ($1::uuid is null or s.id = $1)
   and t.state in ('running', 'ending') and t.number <> s.traversal
"""
HOOKS_WAIT_AT_PARKED_NODES = """
select h.stack_id, h.id from hook h left join node n on n.stack_id = h.stack_id
   and n.traversal = h.traversal and n.id = h.node
 where ($1::uuid is null or h.stack_id = $1) and h.state = 'waiting' and h.point <> 'drift'
   and (n.state is distinct from 'parked' or n.phase = 'execute')
"""
PARKED_NODES_HAVE_ONE_HOOK = """
select n.stack_id, n.traversal, n.id from node n
 where ($1::uuid is null or n.stack_id = $1) and n.state = 'parked' and n.phase <> 'execute'
   and 1 <> (select count(*) from hook h where h.stack_id = n.stack_id
                and h.traversal = n.traversal and h.node = n.id and h.state = 'waiting')
"""
ONE_ROW_FOR_A_NAME = """
select stack_id, name from resource
 where ($1::uuid is null or stack_id = $1) and replaced_by is null
 group by stack_id, name having count(*) > 1
"""
#: A traversal without parent_traversal is an action of the nested stack itself, such as scaling.
PARENTS_WAIT_FOR_NESTED_STACKS = """
select c.id from stack c join traversal t on t.stack_id = c.id and t.number = c.traversal
 where ($1::uuid is null or c.id = $1) and c.parent_id is not null
   and t.parent_traversal is not null and t.state in ('running', 'ending')
   and not exists (select from node n
                    where n.stack_id = c.parent_id and n.traversal = t.parent_traversal
                      and n.id = t.parent_node
                      and n.operation_key = t.parent_operation_key and n.phase = 'execute'
                      and n.state in ('running', 'parked'))
"""
#: Old events may be purged; the newest one exists.
EVENTS_ARE_NUMBERED = """
select s.id, s.sequence from stack s cross join lateral (
    select max(sequence) as last, min(sequence) as first, count(*) as count
      from event e where e.stack_id = s.id) e
 where ($1::uuid is null or s.id = $1) and e.count > 0 and e.last <> s.sequence
    or ($1::uuid is null or s.id = $1) and e.count = 0 and s.deleted_at is null and s.sequence > 0
"""
EVENTS_ARE_QUEUED = """
select o.stack_id, o.id from outbox o
 where ($1::uuid is null or o.stack_id = $1)
   and (select count(*) from event e
         where e.stack_id = o.stack_id and e.sequence between o.first and o.last)
       <> o.last - o.first + 1
"""
POSITIONS_ARE_ASSIGNED = """
select o.id from outbox o, outbox_cursor p
 where ($1::uuid is null or o.stack_id = $1) and o.position > p.position
"""
DELIVERIES_HAVE_EVENT_AND_SUBSCRIPTION = """
select d.stack_id, d.id from delivery d
 where ($1::uuid is null or d.stack_id = $1)
   and not (exists (select from event e
                     where e.stack_id = d.stack_id and e.sequence = d.sequence)
            and exists (select from subscription s where s.id = d.subscription_id))
"""

#: Rule -> the query that finds violations.
INVARIANTS: Mapping[str, str] = MappingProxyType(
    {
        "a stack has its current traversal and version": STACK_HAS_TRAVERSAL_AND_VERSION,
        "rows belong to an existing stack": ROWS_HAVE_THEIR_STACK,
        "nodes belong to an existing traversal": NODES_HAVE_THEIR_TRAVERSAL,
        "archived graphs belong to an existing traversal": GRAPHS_HAVE_THEIR_TRAVERSAL,
        "archived nodes are deleted": ARCHIVED_NODES_ARE_DELETED,
        "resource snapshots belong to a snapshot or to a deletion": SNAPSHOTS_HAVE_THEIR_RESOURCES,
        "the number of active nodes is right": ACTIVE_NODES_ARE_COUNTED,
        "operations of earlier traversals are found": EARLIER_OPERATIONS_ARE_FOUND,
        "the number of blocked nodes is right": BLOCKED_NODES_ARE_COUNTED,
        "the number of pending dependencies of a node is right": PENDING_DEPENDENCIES_ARE_COUNTED,
        "only the current traversal is under way": ONLY_THE_CURRENT_RUNS,
        "a hook waits only while its node is parked": HOOKS_WAIT_AT_PARKED_NODES,
        "a node parked at a breakpoint has one waiting hook": PARKED_NODES_HAVE_ONE_HOOK,
        "a resource name has one row": ONE_ROW_FOR_A_NAME,
        "a parent node waits for its nested stack": PARENTS_WAIT_FOR_NESTED_STACKS,
        "the newest event of a stack exists": EVENTS_ARE_NUMBERED,
        "events to be published exist": EVENTS_ARE_QUEUED,
        "no event has a position that is not assigned yet": POSITIONS_ARE_ASSIGNED,
        "deliveries have an event and a subscription": DELIVERIES_HAVE_EVENT_AND_SUBSCRIPTION,
    }
)


async def find_violations(conn: Connection) -> dict[str, list[str]]:
    """Violated rule -> the keys of the rows that violate it.

    Raises Unavailable if a rule cannot be checked within the connection's statement timeout.
    """
    found = {}
    for rule, query in INVARIANTS.items():
        try:
            rows = await conn.fetch(query, None)
        except asyncpg.QueryCanceledError as error:
            raise errors.Unavailable(
                f'the rule "{rule}" could not be checked: {error}',
                place="[database]",
                remedy="Check a restored backup with `headgate admin backup-check`",
            ) from error
        if rows:
            found[rule] = [", ".join(map(str, row.values())) for row in rows]
    return found
