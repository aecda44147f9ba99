"""What a stack is made of, as it is written down for another place; and a stack let go."""

from dataclasses import dataclass
from uuid import UUID

from engine.store.connection import Connection
from engine.store.past_graphs import forget_all_nodes
from engine.words import Json

EXPORTED = """
select r.name, r.physical_id, r.type, r.action, r.status, r.metadata, r.data
  from resource r where r.stack_id = $1 and r.replaced_by is null order by r.name
"""
LET_GO = """
with resources as (delete from resource where stack_id = $1),
     snapshots as (delete from snapshot where stack_id = $1)
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
    return [Exported(**row) for row in await conn.fetch(EXPORTED, stack_id)]


async def let_go(conn: Connection, stack_id: UUID) -> None:
    """The stack is deleted here; nothing real is. Its events and graphs stay."""
    await forget_all_nodes(conn, stack_id)
    await conn.execute(LET_GO, stack_id)
