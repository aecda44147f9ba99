"""What scaling a group needs to know: the policy's properties, and the group as it is."""

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime
from uuid import UUID

from engine.store.connection import Connection
from engine.words import Json

POLICY = "select properties from resource where stack_id = $1 and id = $2"
NAMED = """
select properties from resource where stack_id = $1 and physical_id = $2 and replaced_by is null
"""
#: By what get_resource gives; members that failed are not counted.
GROUP = """
select g.id, g.name, g.type, g.action, g.status, g.properties, g.data, now() as now,
       (select count(*) from resource m
         where m.stack_id = c.id and m.replaced_by is null and m.status <> 'FAILED'
           and m.action <> 'INIT') as size
  from resource g
  left join stack c on c.parent_id = g.stack_id and c.id::text = g.physical_id
 where g.stack_id = $1 and g.physical_id = $2 and g.replaced_by is null
"""


@dataclass(frozen=True, slots=True)
class GroupRecord:
    """A resource that holds others. size: members that did not fail."""

    id: UUID
    name: str
    type: str
    action: str
    status: str
    properties: Mapping[str, Json] | None
    data: Mapping[str, Json] | None
    now: datetime
    size: int


async def policy_of(conn: Connection, stack_id: UUID, resource_id: UUID) -> Mapping[str, Json]:
    """The resolved properties of a resource; empty while it has none."""
    return await conn.fetchval(POLICY, stack_id, resource_id) or {}


async def named_by(conn: Connection, stack_id: UUID, reference: str) -> Mapping[str, Json] | None:
    """The resolved properties of the resource of which get_resource gives this."""
    found: Mapping[str, Json] | None = await conn.fetchval(NAMED, stack_id, reference)
    return found


async def group_of(conn: Connection, stack_id: UUID, reference: str) -> GroupRecord | None:
    row = await conn.fetchrow(GROUP, stack_id, reference)
    return GroupRecord(**row) if row else None
