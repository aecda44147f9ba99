"""Data sent to resources that wait for it: kept with the resource, within limits, until it goes."""

from dataclasses import dataclass
from uuid import UUID

from engine.store.database import Connection
from engine.words import Json

#: A replacement that is being made is the resource from now on.
TARGET = """
select coalesce(n.replacement_id, r.id) as id, r.type, r.physical_id, r.action, r.status,
       (select count(*) from resource_signal g
         where g.stack_id = r.stack_id and g.resource_id = coalesce(n.replacement_id, r.id)) as kept
  from resource r
  left join node n on n.stack_id = r.stack_id and n.resource_id = r.id and n.phase = 'act'
   and n.operation = 'replace' and n.started_at is not null and n.ended_at is null
 where r.stack_id = $1 and r.name = $2 and r.replaced_by is null
"""
INSERT = """
insert into resource_signal (stack_id, resource_id, number, data, by)
values ($1, $2, $3, $4, $5)
"""
#: An operation that waits is called again now, and so is not polled.
WAKE = """
select wake_nodes(array_agg(row (stack_id, traversal, id)::node_key))
  from node where stack_id = $1 and name = $2 and phase = 'act' and state in ('parked', 'running')
"""


@dataclass(frozen=True, slots=True)
class Target:
    """The resource that a signal is for. kept: how many signals it has already."""

    id: UUID
    type: str
    physical_id: str | None
    action: str
    status: str
    kept: int


async def target(conn: Connection, stack_id: UUID, name: str) -> Target | None:
    row = await conn.fetchrow(TARGET, stack_id, name)
    return Target(**row) if row else None


async def insert_signal(
    conn: Connection, stack_id: UUID, name: str, at: Target, data: Json, by: str
) -> None:
    """Keep it, and have the operation called that waits for it, if one does."""
    await conn.execute(INSERT, stack_id, at.id, at.kept + 1, data, by)
    await conn.execute(WAKE, stack_id, name)
