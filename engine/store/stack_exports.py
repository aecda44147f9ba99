"""Exports the resources of a stack, and abandons a stack."""

from dataclasses import dataclass, fields
from typing import Any
from uuid import UUID

from engine.store.archived_graphs import forget_all_nodes
from engine.store.connection import Connection
from engine.store.secret_rows import reveal_row, show_row
from engine.words import Json

EXPORTED = """
select r.name, r.physical_id, r.type, r.action, r.status, r.metadata, r.data, s.project,
       r.reference, r.properties, r.attributes
  from resource r join stack s on s.id = r.stack_id
 where r.stack_id = $1 and r.replaced_by is null order by r.name
"""
LET_GO = """
with resources as (delete from resource where stack_id = $1),
     snapshots as (delete from snapshot where stack_id = $1),
     held_by_snapshots as (
         delete from resource_snapshot k using traversal t
          where k.stack_id = $1 and t.stack_id = k.stack_id and t.number = k.traversal
            and t.action = 'SNAPSHOT')
update stack set deleted_at = clock_timestamp() where id = $1
"""


@dataclass(frozen=True, slots=True)
class Exported:
    name: str
    physical_id: str | None
    type: str
    action: str
    status: str
    metadata: Json
    data: Json


async def exported(conn: Connection, stack_id: UUID) -> list[Exported]:
    """Raises Sealed also for values that are not exported: the resource could not be adopted."""
    rows = await conn.fetch(EXPORTED, stack_id)
    return [_exported(reveal_row(row, row["project"], stack_id, "resource")) for row in rows]


async def shown_resources(conn: Connection, stack_id: UUID) -> list[Exported]:
    """As `exported`, with the reason in place of each column that cannot be decrypted."""
    rows = await conn.fetch(EXPORTED, stack_id)
    return [_exported(show_row(row, row["project"], stack_id, "resource")) for row in rows]


def _exported(row: dict[str, Any]) -> Exported:
    return Exported(**{one.name: row[one.name] for one in fields(Exported)})


async def let_go(conn: Connection, stack_id: UUID) -> None:
    """Delete the stack without its physical resources. Its events and graphs stay."""
    await forget_all_nodes(conn, stack_id)
    await conn.execute(LET_GO, stack_id)
