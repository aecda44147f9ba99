"""Graphs of traversals whose nodes were deleted."""

from collections.abc import Sequence
from uuid import UUID

from engine.store.connection import Connection
from engine.store.records import NodeRecord
from engine.store.stack_tree import Walk

FORGET_ENDED = "select archive_nodes($1, $2, false)"
FORGET_ALL = "select archive_nodes(id, traversal + 1, true) from stack where id = $1"
#: Of stacks inside the last one that a traversal began there, and so on; also of those that are
#: gone.
READ_WALKS = """
with recursive walk as (
    select s.id, s.name, s.path, $2::integer as traversal, s.sequence, s.traversal = $2 as current
      from stack s where s.id = $1
    union all
    select c.id, c.name, c.path, t.number, c.sequence, c.traversal = t.number
      from walk w
      join stack c on c.parent_id = w.id
     cross join lateral (
           select max(number) as number from traversal
            where stack_id = c.id and parent_traversal = w.traversal) t
     where $3 and t.number is not null
)
select * from walk
"""
READ = """
select p.stack_id, p.traversal, n.id, n.name as resource_name, n.type, n.operation, n.direction,
       n.state, n.phase, n.requirers::integer[] as requirers, n.reason
  from unnest($1::uuid[], $2::integer[]) k (stack_id, traversal)
  join past_graph p on p.stack_id = k.stack_id and p.traversal = k.traversal
  left join lateral unnest(p.ids, p.names, p.types, p.operations, p.directions, p.states, p.phases,
                           p.requirers, p.reasons)
       n (id, name, type, operation, direction, state, phase, requirers, reason) on true
"""


async def archive_nodes(conn: Connection, stack_id: UUID, before: int) -> None:
    """Keep of the nodes of traversals before this one that have ended their graphs alone."""
    await conn.execute(FORGET_ENDED, stack_id, before)


async def forget_all_nodes(conn: Connection, stack_id: UUID) -> None:
    """The same of whatever nodes the stack has: it is at its end."""
    await conn.execute(FORGET_ALL, stack_id)


async def read_archived_traversals(
    conn: Connection, stack_id: UUID, traversal: int, *, nested: bool
) -> list[Walk]:
    """The traversal; nested: and those that it began in stacks inside."""
    return [Walk(**row) for row in await conn.fetch(READ_WALKS, stack_id, traversal, nested)]


async def read_past_nodes(
    conn: Connection, traversals: Sequence[tuple[UUID, int]]
) -> dict[UUID, list[NodeRecord]]:
    """By stack, those of whose traversals, (stack, number), a graph was kept."""
    rows = await conn.fetch(READ, *map(list, zip(*traversals, strict=True)))
    found: dict[UUID, list[NodeRecord]] = {}
    for row in rows:
        nodes = found.setdefault(row["stack_id"], [])
        if row["id"] is not None:
            nodes.append(_node(dict(row)))
    return found


def _node(row: dict[str, object]) -> NodeRecord:
    row.pop("traversal")
    nothing = dict.fromkeys(("rules", "wake_at", "started_at", "ended_at"))
    return NodeRecord(**row, **nothing, waits=0)  # type: ignore[arg-type]
