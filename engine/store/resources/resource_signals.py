"""Signals sent to resources: stored, within limits, until the resource is deleted."""

from dataclasses import dataclass
from uuid import UUID

from engine.store.connection import Connection
from engine.words import Json

#: While a replacement is being created, signals are for the replacement.
FIND_TARGET = """
select coalesce(n.replacement_id, r.id) as id, r.name, coalesce(n.type, r.type) as type,
       r.physical_id, r.action, r.status,
       (select count(*) from resource_signal g
         where g.stack_id = r.stack_id and g.resource_id = coalesce(n.replacement_id, r.id)
       ) as stored
  from resource r
  left join node n on n.stack_id = r.stack_id and n.resource_id = r.id and n.phase = 'execute'
   and n.operation = 'replace' and n.started_at is not null and n.ended_at is null
 where r.stack_id = $1 and r.name = $2 and r.replaced_by is null
"""
#: Nodes with a running operation have a wake_at: an index finds them.
FIND_TARGET_BY_ID = """
select $2 as id, r.name, coalesce(at.type, r.type) as type, r.physical_id, r.action, r.status,
       (select count(*) from resource_signal g
         where g.stack_id = $1 and g.resource_id = $2) as stored
  from (select q.id as resource_id, null as type from resource q
         where q.stack_id = $1 and q.id = $2
        union all
        select n.resource_id, n.type from node n
         where n.stack_id = $1 and n.replacement_id = $2 and n.wake_at is not null
           and n.phase = 'execute' and n.operation = 'replace' and n.started_at is not null
         limit 1) at
  join resource r on r.stack_id = $1 and r.id = at.resource_id
"""
INSERT = """
insert into resource_signal (stack_id, resource_id, number, data, sent_by)
values ($1, $2, $3, $4, $5)
"""
WAKE = """
select wake_nodes(array_agg(row (stack_id, traversal, id)::node_key))
  from node
 where stack_id = $1 and phase = 'execute' and state in ('parked', 'running')
   and $2 = coalesce(signal_resource_id, case operation when 'replace' then replacement_id
                                                         else resource_id end)
"""


@dataclass(frozen=True, slots=True)
class SignalTarget:
    """The resource that gets a signal. stored: number of its stored signals."""

    id: UUID
    name: str
    type: str
    physical_id: str | None
    action: str
    status: str
    stored: int


async def find_target(conn: Connection, stack_id: UUID, named: str | UUID) -> SignalTarget | None:
    """named: the current name of the resource; or its ID, also while it is being created."""
    statement = FIND_TARGET_BY_ID if isinstance(named, UUID) else FIND_TARGET
    row = await conn.fetchrow(statement, stack_id, named)
    return SignalTarget(**row) if row else None


async def insert_signal(
    conn: Connection, stack_id: UUID, target: SignalTarget, data: Json, by: str
) -> None:
    """Store a signal, and wake the operation that waits for it."""
    await conn.execute(INSERT, stack_id, target.id, target.stored + 1, data, by)
    await wake_operation(conn, stack_id, target.id)


async def wake_operation(conn: Connection, stack_id: UUID, resource_id: UUID) -> None:
    """Call the waiting operation of a resource again, if there is one. The stack is locked."""
    await conn.execute(WAKE, stack_id, resource_id)
