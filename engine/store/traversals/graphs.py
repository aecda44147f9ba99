"""Traversals and the nodes of their graphs, also of graphs whose nodes were archived."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import NamedTuple
from uuid import UUID

from engine.store.connection import Connection
from engine.store.records import NodeRecord, TraversalRecord
from engine.store.stacks.stack_tree import read_stack_tree, self_and_nested

READ_CURRENT_TRAVERSAL = "select id, name, path, traversal, sequence from stack where id = $1"
#: With the last traversals that it started in nested stacks, also in deleted ones.
READ_EARLIER_TRAVERSAL = """
with recursive traversals as (
    select s.id, s.name, s.path, $2::integer as traversal, s.sequence, s.traversal = $2 as current
      from stack s where s.id = $1
    union all
    select c.id, c.name, c.path, t.number, c.sequence, c.traversal = t.number
      from traversals w
     cross join lateral (select * from stack where parent_id = w.id offset 0) c
     cross join lateral (
           select max(number) as number from traversal
            where stack_id = c.id and parent_traversal = w.traversal) t
     where $3 and t.number is not null
)
select * from traversals
"""
READ_TRAVERSALS = """
select number, action, state, reason, digest, version, out_of_date, requested_by, started_at,
       ended_at,
       extract(epoch from working_time_at(working_time, working_since, clock_timestamp())
               )::double precision as working_time
  from traversal where stack_id = $1 order by number desc limit $2
"""
READ_TRAVERSALS_OF = """
select t.stack_id, t.number, t.action, t.state, t.reason, t.digest, t.version, t.out_of_date,
       t.requested_by, t.started_at, t.ended_at,
       extract(epoch from working_time_at(t.working_time, t.working_since, clock_timestamp())
               )::double precision as working_time
  from unnest($1::uuid[], $2::integer[]) k (stack_id, number)
  join traversal t on t.stack_id = k.stack_id and t.number = k.number
"""
READ_TRAVERSAL_SPAN = """
select action, state, traceparent, ended_at is not null as over,
       extract(epoch from clock_timestamp() - started_at)::double precision as seconds
  from traversal where stack_id = $1 and number = $2
"""
READ_NODES = """
select n.stack_id, n.id, n.name as resource_name, n.type, n.operation, n.direction, n.state,
       n.phase, n.pending_dependencies, n.dependents, n.rules, n.reason, n.wake_at, n.started_at,
       n.ended_at, n.label,
       case when n.signal_resource_id is not null then
           (select q.name from resource q
             where q.stack_id = n.stack_id and q.id = n.signal_resource_id)
            end as signal_resource_name,
       (select c.id from stack c
         where c.parent_id = n.stack_id and c.deleted_at is null
           and c.parent_resource in (n.resource_id, n.replacement_id)
         order by c.created_at desc limit 1) as nested_stack_id
  from unnest($1::uuid[], $2::integer[]) k (stack_id, traversal)
  join node n on n.stack_id = k.stack_id and n.traversal = k.traversal
 order by n.stack_id, n.id
"""
#: Also one row for each traversal whose graph waits to be archived, without a node.
READ_ARCHIVED_NODES = """
select k.stack_id, k.traversal, n.id, n.name as resource_name, n.type, n.operation, n.direction,
       n.state, n.phase, n.dependents::integer[] as dependents, n.reason
  from unnest($1::uuid[], $2::integer[]) k (stack_id, traversal)
  left join archived_graph p on p.stack_id = k.stack_id and p.traversal = k.traversal
  left join lateral unnest(p.ids, p.names, p.types, p.operations, p.directions, p.states, p.phases,
                           p.dependents, p.reasons)
       n (id, name, type, operation, direction, state, phase, dependents, reason) on true
 where p.stack_id is not null
    or (select true from archive_queue q
         where q.stack_id = k.stack_id and q.traversal = k.traversal)
"""


class StackTraversal(NamedTuple):
    """A traversal of a stack. name, path: of the stack. sequence: number of its newest event.
    current: it is the stack's current traversal."""

    id: UUID
    name: str
    path: str
    traversal: int
    sequence: int
    current: bool = True


@dataclass(frozen=True, slots=True)
class TraversalSpan:
    """A traversal for tracing. seconds: since its start."""

    action: str
    state: str
    traceparent: str | None
    over: bool
    seconds: float


async def read_current_traversals(
    conn: Connection, stack_id: UUID, *, nested: bool
) -> list[StackTraversal]:
    """The stack's traversal; nested: with those that it started in nested stacks."""
    if nested:
        return [
            StackTraversal(one.id, one.name, one.path, one.traversal, one.sequence)
            for one in self_and_nested(await read_stack_tree(conn, stack_id))
        ]
    return [StackTraversal(**row) for row in await conn.fetch(READ_CURRENT_TRAVERSAL, stack_id)]


async def read_earlier_traversals(
    conn: Connection, stack_id: UUID, traversal: int, *, nested: bool
) -> list[StackTraversal]:
    """A traversal; nested: with those that it started in nested stacks."""
    return [
        StackTraversal(**row)
        for row in await conn.fetch(READ_EARLIER_TRAVERSAL, stack_id, traversal, nested)
    ]


async def read_traversals(conn: Connection, stack_id: UUID, limit: int) -> list[TraversalRecord]:
    """Newest first."""
    return [TraversalRecord(**row) for row in await conn.fetch(READ_TRAVERSALS, stack_id, limit)]


async def read_traversals_of(
    conn: Connection, traversals: Sequence[tuple[UUID, int]]
) -> dict[UUID, TraversalRecord]:
    """Traversals (stack, number), by stack."""
    rows = await conn.fetch(READ_TRAVERSALS_OF, *map(list, zip(*traversals, strict=True)))
    return {row["stack_id"]: TraversalRecord(*tuple(row)[1:]) for row in rows}


async def read_traversal_span(
    conn: Connection, stack_id: UUID, number: int
) -> TraversalSpan | None:
    row = await conn.fetchrow(READ_TRAVERSAL_SPAN, stack_id, number)
    return TraversalSpan(**row) if row else None


async def read_nodes(conn: Connection, traversals: Sequence[tuple[UUID, int]]) -> list[NodeRecord]:
    """The nodes of traversals (stack, number), by stack and ID."""
    rows = await conn.fetch(READ_NODES, *map(list, zip(*traversals, strict=True)))
    return [NodeRecord(**row) for row in rows]


async def read_archived_nodes(
    conn: Connection, traversals: Sequence[tuple[UUID, int]]
) -> dict[UUID, list[NodeRecord]]:
    """The archived nodes of traversals (stack, number), by stack: those of a graph that is being
    archived are a part of its nodes. Traversals whose graph is current or purged are left out."""
    rows = await conn.fetch(READ_ARCHIVED_NODES, *map(list, zip(*traversals, strict=True)))
    found: dict[UUID, list[NodeRecord]] = {}
    for row in rows:
        nodes = found.setdefault(row["stack_id"], [])
        if row["id"] is not None:
            nodes.append(_node(dict(row)))
    return found


def _node(row: dict[str, object]) -> NodeRecord:
    row.pop("traversal")
    unknown = dict.fromkeys(("rules", "wake_at", "started_at", "ended_at"))
    return NodeRecord(**row, **unknown, pending_dependencies=0)  # type: ignore[arg-type]
