"""Signals sent to resources: stored, within limits, until the resource is deleted."""

from dataclasses import dataclass
from uuid import UUID

from engine.store.connection import Connection
from engine.words import Json

#: A replacement that is being made is the resource from now on.
TARGET = """
select coalesce(n.replacement_id, r.id) as id, r.name, coalesce(n.type, r.type) as type,
       r.physical_id, r.action, r.status,
       (select count(*) from resource_signal g
         where g.stack_id = r.stack_id and g.resource_id = coalesce(n.replacement_id, r.id)) as kept
  from resource r
  left join node n on n.stack_id = r.stack_id and n.resource_id = r.id and n.phase = 'act'
   and n.operation = 'replace' and n.started_at is not null and n.ended_at is null
 where r.stack_id = $1 and r.name = $2 and r.replaced_by is null
"""
#: Nodes with a running operation have a wake_at, so an index finds them.
TARGET_BY_ID = """
select $2 as id, r.name, coalesce(at.type, r.type) as type, r.physical_id, r.action, r.status,
       (select count(*) from resource_signal g
         where g.stack_id = $1 and g.resource_id = $2) as kept
  from (select q.id as resource_id, null as type from resource q
         where q.stack_id = $1 and q.id = $2
        union all
        select n.resource_id, n.type from node n
         where n.stack_id = $1 and n.replacement_id = $2 and n.wake_at is not null
           and n.phase = 'act' and n.operation = 'replace' and n.started_at is not null
         limit 1) at
  join resource r on r.stack_id = $1 and r.id = at.resource_id
"""
INSERT = """
insert into resource_signal (stack_id, resource_id, number, data, by)
values ($1, $2, $3, $4, $5)
"""
#: An operation that waits is called again now, and so is not polled.
WAKE = """
select wake_nodes(array_agg(row (stack_id, traversal, id)::node_key))
  from node
 where stack_id = $1 and phase = 'act' and state in ('parked', 'running')
   and $2 = coalesce(awaits, case operation when 'replace' then replacement_id
                                            else resource_id end)
"""


@dataclass(frozen=True, slots=True)
class Target:
    """The resource that a signal is for. kept: number of its stored signals."""

    id: UUID
    name: str
    type: str
    physical_id: str | None
    action: str
    status: str
    kept: int


async def target(conn: Connection, stack_id: UUID, named: str | UUID) -> Target | None:
    """named: its name, for whatever has that name now; or its id, also while it is being made."""
    statement = TARGET_BY_ID if isinstance(named, UUID) else TARGET
    row = await conn.fetchrow(statement, stack_id, named)
    return Target(**row) if row else None


async def insert_signal(conn: Connection, stack_id: UUID, at: Target, data: Json, by: str) -> None:
    """Keep it, and have the operation called that waits for it, if one does."""
    await conn.execute(INSERT, stack_id, at.id, at.kept + 1, data, by)
    await wake(conn, stack_id, at.id)


async def wake(conn: Connection, stack_id: UUID, resource_id: UUID) -> None:
    """Have the operation called that waits for something, if one does. The stack is locked."""
    await conn.execute(WAKE, stack_id, resource_id)
