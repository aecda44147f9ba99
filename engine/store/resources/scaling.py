"""Reads scaling policies, and the groups that they scale."""

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime
from typing import Any
from uuid import UUID

from engine.store.connection import Connection
from engine.store.encryption.encrypted_rows import decrypt_record
from engine.store.encryption.secret_values import Scope, decrypt
from engine.words import Json

READ_PROPERTIES = """
select r.properties, s.project
  from resource r join stack s on s.id = r.stack_id where r.stack_id = $1 and r.id = $2
"""
READ_PROPERTIES_BY_REFERENCE = """
select r.properties, r.masked_properties is not null as has_secrets, s.project
  from resource r join stack s on s.id = r.stack_id
 where r.stack_id = $1 and r.physical_id = $2 and r.replaced_by is null
"""
READ_GROUP = """
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
    """A group. size: number of members that have not failed."""

    id: UUID
    name: str
    type: str
    action: str
    status: str
    properties: Mapping[str, Json] | None
    data: Mapping[str, Json] | None
    now: datetime
    size: int


async def read_properties(
    conn: Connection, stack_id: UUID, resource_id: UUID
) -> Mapping[str, Json]:
    """The resolved properties of a resource; empty if it has none yet. Raises DecryptionFailed."""
    return _properties(stack_id, await conn.fetchrow(READ_PROPERTIES, stack_id, resource_id)) or {}


async def find_properties(
    conn: Connection, stack_id: UUID, reference: str
) -> tuple[Mapping[str, Json] | None, bool]:
    """The resolved properties of the resource with this reference, and whether one is secret.
    Raises DecryptionFailed."""
    row = await conn.fetchrow(READ_PROPERTIES_BY_REFERENCE, stack_id, reference)
    return _properties(stack_id, row), row is not None and row["has_secrets"]


def _properties(stack_id: UUID, row: Any) -> Mapping[str, Json] | None:
    if row is None:
        return None
    found: Mapping[str, Json] | None = decrypt(
        row["properties"], Scope(row["project"], stack_id, "resource.properties")
    )
    return found


async def find_group(conn: Connection, stack_id: UUID, reference: str) -> GroupRecord | None:
    """reference: the value of get_resource. Raises DecryptionFailed."""
    row = await conn.fetchrow(READ_GROUP, stack_id, reference)
    return decrypt_record(GroupRecord, row, stack_id, "resource") if row else None
