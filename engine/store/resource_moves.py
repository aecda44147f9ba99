"""Moves a resource to another name or stack, without changing the physical resource."""

from dataclasses import dataclass
from uuid import UUID

from engine.store.connection import Connection
from engine.store.encryption import Hidden, Scope, SealedDocument
from engine.store.nested_stacks import rename_inside
from engine.store.secret_rows import reveal_row
from engine.words import Json

MOVABLE = """
select r.id, r.type, r.action, r.physical_id,
       exists (select from stack c
                where c.parent_id = r.stack_id and c.parent_resource = r.id) as nests,
       exists (select from node n
                where n.stack_id = r.stack_id and n.resource_id = r.id
                  and n.state in ('running', 'parked', 'ready')
                  and n.phase in ('act', 'confirm')) as busy
  from resource r
 where r.stack_id = $1 and r.name = $2 and r.replaced_by is null
"""
#: Columns with values whose encryption is bound to the previous stack.
ENCRYPTED = """
select r.reference, r.properties, r.attributes, r.data, r.metadata,
       o.project as from_project, n.project as to_project
  from resource r join stack o on o.id = r.stack_id join stack n on n.id = $3
 where r.stack_id = $1 and r.id = $2
"""
REBIND = """
update resource set reference = $3, properties = $4, attributes = $5, data = $6, metadata = $7
 where stack_id = $1 and id = $2
"""
MOVE = """
update resource set stack_id = $3, name = $4, digest = '', updated_at = clock_timestamp(),
       requires = case when $3 = $1 then requires else '{}' end
 where stack_id = $1 and id = $2
"""
#: Resources of the previous stack no longer require it.
FORGET_MOVED = """
update resource set requires = array_remove(requires, $2)
 where stack_id = $1 and $2 = any (requires)
"""
MOVED_EVENT = """
select record_events(array[row ($1::uuid, 'headgate.resource.move.completed', $2::text, $3::text,
                                $4::text, 'UPDATE', 'COMPLETE', $5::text, $6::jsonb)::event_draft])
"""


@dataclass(frozen=True, slots=True)
class Movable:
    """nests: it holds a stack. busy: an operation runs on it."""

    id: UUID
    type: str
    action: str
    physical_id: str | None
    nests: bool
    busy: bool


@dataclass(frozen=True, slots=True)
class Way:
    """From which name to which, and the ids of their stacks."""

    from_stack: UUID
    from_name: str
    to_stack: UUID
    to_name: str


async def movable(conn: Connection, stack_id: UUID, name: str) -> Movable | None:
    row = await conn.fetchrow(MOVABLE, stack_id, name)
    return Movable(**row) if row else None


async def move(conn: Connection, stack_id: UUID, resource: UUID, to_stack: UUID, to: str) -> None:
    """Move the row. The caller has locked both stacks and their nested stacks. Raises Sealed."""
    rebound = await _rebound(conn, stack_id, resource, to_stack)
    await conn.execute(MOVE, stack_id, resource, to_stack, to)
    if to_stack != stack_id:
        await conn.execute(FORGET_MOVED, stack_id, resource)
        await conn.execute(REBIND, to_stack, resource, *rebound)
    else:
        await rename_inside(conn, stack_id, resource, to)


async def _rebound(conn: Connection, stack_id: UUID, resource: UUID, to_stack: UUID) -> list[Json]:
    """Its encrypted columns, bound to the new stack."""
    row = await conn.fetchrow(ENCRYPTED, stack_id, resource, to_stack)
    if row is None:
        raise LookupError(f"there is no resource {resource} in stack {stack_id}")
    plain = reveal_row(row, row["from_project"], stack_id, "resource")
    return [
        Hidden(plain[name], Scope(row["to_project"], to_stack, f"resource.{name}"))
        if isinstance(row[name], SealedDocument)
        else row[name]
        for name in ("reference", "properties", "attributes", "data", "metadata")
    ]


async def record_moved(
    conn: Connection, stack_id: UUID, name: str, moved: Movable, reason: str, way: Way
) -> None:
    data = {
        "operation": "move",
        "moved": {
            "from": {"stack_id": way.from_stack, "resource": way.from_name},
            "to": {"stack_id": way.to_stack, "resource": way.to_name},
        },
    }
    await conn.execute(MOVED_EVENT, stack_id, name, moved.type, moved.physical_id, reason, data)
