"""Reads for scaling a group: the properties of its policy, and its current state."""

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime
from typing import Any
from uuid import UUID

from engine.store.connection import Connection
from engine.store.encryption import Scope, reveal
from engine.store.secret_rows import reveal_row
from engine.words import Json

POLICY = """
select r.properties, s.project
  from resource r join stack s on s.id = r.stack_id where r.stack_id = $1 and r.id = $2
"""
NAMED = """
select r.properties, s.project
  from resource r join stack s on s.id = r.stack_id
 where r.stack_id = $1 and r.physical_id = $2 and r.replaced_by is null
"""
#: By what get_resource gives; members that failed are not counted.
GROUP = """
select g.id, g.name, g.type, g.action, g.status, g.properties, g.data, now() as now,
       (select count(*) from resource m
         where m.stack_id = c.id and m.replaced_by is null and m.status <> 'FAILED'
           and m.action <> 'INIT') as size, s.project
  from resource g join stack s on s.id = g.stack_id
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
    """The resolved properties of a resource; empty while it has none. Raises Sealed."""
    return _properties(stack_id, await conn.fetchrow(POLICY, stack_id, resource_id)) or {}


async def named_by(conn: Connection, stack_id: UUID, reference: str) -> Mapping[str, Json] | None:
    """The resolved properties of the resource of which get_resource gives this. Raises Sealed."""
    return _properties(stack_id, await conn.fetchrow(NAMED, stack_id, reference))


def _properties(stack_id: UUID, row: Any) -> Mapping[str, Json] | None:
    if row is None:
        return None
    found: Mapping[str, Json] | None = reveal(
        row["properties"], Scope(row["project"], stack_id, "resource.properties")
    )
    return found


async def group_of(conn: Connection, stack_id: UUID, reference: str) -> GroupRecord | None:
    """Raises Sealed."""
    row = await conn.fetchrow(GROUP, stack_id, reference)
    if row is None:
        return None
    revealed = reveal_row(row, row["project"], stack_id, "resource")
    del revealed["project"]
    return GroupRecord(**revealed)
