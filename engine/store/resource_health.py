"""Marks resources as unhealthy or healthy, and as protected."""

from dataclasses import dataclass
from uuid import UUID

from engine.store.connection import Connection

MARKED = """
select r.id, r.name, r.type, r.physical_id, r.action, r.status,
       exists (select from node n
                where n.stack_id = r.stack_id and n.resource_id = r.id
                  and n.state in ('running', 'parked', 'ready')
                  and n.phase in ('act', 'confirm')) as busy
  from resource r
 where r.stack_id = $1 and (r.name = $2 or r.physical_id = $2) and r.replaced_by is null
 order by r.name = $2 desc limit 1
"""
MARK_HEALTH = """
with marked as (
    update resource set action = 'CHECK', status = case when $3 then 'FAILED' else 'COMPLETE' end,
           broken = $3, reason = $4, updated_at = clock_timestamp()
     where stack_id = $1 and id = $2
    returning stack_id, name, type, physical_id, action, status, reason
)
select record_events(array_agg(row (stack_id, 'headgate.resource.check.'
           || case when $3 then 'failed' else 'completed' end, name, type, physical_id, action,
           status, reason, '{"operation": "check"}')::event_draft)) from marked
"""
PROTECT = """
with marked as (
    update resource set protected = $3, updated_at = clock_timestamp()
     where stack_id = $1 and id = $2 and protected <> $3
    returning stack_id, name, type, physical_id, action, status
)
select record_events(array_agg(row (stack_id, 'headgate.resource.'
           || case when $3 then 'protect' else 'unprotect' end || '.completed', name, type,
           physical_id, action, status, $4, jsonb_build_object('operation',
           case when $3 then 'protect' else 'unprotect' end))::event_draft))
  from marked having count(*) > 0
"""


@dataclass(frozen=True, slots=True)
class Marked:
    """busy: an operation runs on it."""

    id: UUID
    name: str
    type: str
    physical_id: str | None
    action: str
    status: str
    busy: bool


async def marked(conn: Connection, stack_id: UUID, name: str) -> Marked | None:
    """Find a resource by name or physical ID. The caller has locked the stack."""
    row = await conn.fetchrow(MARKED, stack_id, name)
    return Marked(**row) if row else None


async def mark_health(
    conn: Connection, stack_id: UUID, resource: UUID, *, unhealthy: bool, reason: str
) -> None:
    await conn.execute(MARK_HEALTH, stack_id, resource, unhealthy, reason)


async def protect(
    conn: Connection, stack_id: UUID, resource: UUID, *, protected: bool, reason: str
) -> None:
    await conn.execute(PROTECT, stack_id, resource, protected, reason)
