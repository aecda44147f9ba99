"""Resources that are servers, by the IDs of their servers."""

from dataclasses import dataclass, field
from uuid import UUID

from engine.store.connection import Connection
from engine.store.encryption.encrypted_rows import decrypt_row
from engine.words import Json

#: The index has the beginning of each ID.
FIND_BY_SERVER = """
select r.stack_id, r.id, r.attributes, r.metadata, r.data
  from resource r join stack s on s.id = r.stack_id
 where left(r.physical_id, 200) = left($2, 200) and r.physical_id = $2
   and s.project = $1 and s.deleted_at is null
 order by r.stack_id, r.id
"""


@dataclass(frozen=True, slots=True)
class ServerResource:
    """A resource whose physical resource is a server. data: of its type."""

    stack_id: UUID
    id: UUID
    attributes: Json = field(repr=False)
    metadata: Json = field(repr=False)
    data: Json = field(repr=False)


async def find_server_resources(
    conn: Connection, project: str, server_id: str
) -> list[ServerResource]:
    """Also a resource that a replacement has succeeded, until it is deleted."""
    rows = await conn.fetch(FIND_BY_SERVER, project, server_id)
    return [
        ServerResource(**decrypt_row(row, project, row["stack_id"], "resource")) for row in rows
    ]
