"""Changes of single resources without an operation: health marks, protection and moves."""

from collections.abc import Sequence
from dataclasses import dataclass
from uuid import UUID

from engine.store.connection import Connection
from engine.store.encryption.encrypted_rows import decrypt_row
from engine.store.encryption.secret_values import EncryptedDocument, Scope, Secret
from engine.store.traversals.nested_stacks import rename_nested_paths
from engine.words import Json

FIND_RESOURCE = """
select r.id, r.name, r.type, r.physical_id, r.action, r.status,
       exists (select from stack c
                where c.parent_id = r.stack_id and c.parent_resource = r.id
               offset 0) as has_nested_stack,
       exists (select from node n
                where n.stack_id = r.stack_id and n.resource_id = r.id
                  and is_operating(n.state, n.phase) offset 0) as busy
  from resource r
 where r.stack_id = $1 and (r.name = $2 or $3 and r.physical_id = $2) and r.replaced_by is null
 order by r.name = $2 desc limit 1
"""
EXISTING_NAMES = """
select name from resource
 where stack_id = $1 and name = any ($2) and replaced_by is null and action <> 'INIT'
"""
MARK_HEALTH = """
with marked as (
    update resource set action = 'CHECK', status = case when $3 then 'FAILED' else 'COMPLETE' end,
           lifecycle = case when $3 then coalesce(lifecycle, '{}') || '{"unhealthy": true}'
                            else nullif(lifecycle - 'unhealthy', '{}') end,
           tainted = $3, reason = $4, updated_at = clock_timestamp()
     where stack_id = $1 and id = $2
    returning stack_id, name, type, physical_id, action, status, reason
)
select record_events(array_agg(row (stack_id, 'headgate.resource.check.'
           || case when $3 then 'failed' else 'completed' end, name, type, physical_id, action,
           status, reason, '{"operation": "check"}')::event_draft)) from marked
"""
PROTECT = """
with changed as (
    update resource set protected = $3, updated_at = clock_timestamp()
     where stack_id = $1 and id = $2 and protected <> $3
    returning stack_id, name, type, physical_id, action, status
)
select record_events(array_agg(row (stack_id, 'headgate.resource.'
           || case when $3 then 'protect' else 'unprotect' end || '.completed', name, type,
           physical_id, action, status, $4, jsonb_build_object('operation',
           case when $3 then 'protect' else 'unprotect' end))::event_draft))
  from changed having count(*) > 0
"""
#: The columns that can have encrypted values, and the projects of both stacks.
READ_ENCRYPTED = """
select r.reference, r.properties, r.attributes, r.data, r.metadata,
       o.project as from_project, n.project as to_project
  from resource r join stack o on o.id = r.stack_id join stack n on n.id = $3
 where r.stack_id = $1 and r.id = $2
"""
WRITE_ENCRYPTED = """
update resource set reference = $3, properties = $4, attributes = $5, data = $6, metadata = $7
 where stack_id = $1 and id = $2
"""
MOVE = """
update resource set stack_id = $3, name = $4, digest = '', updated_at = clock_timestamp(),
       requires = case when $3 = $1 then requires else '{}' end,
       -- Its digests are encrypted for the stack.
       lifecycle = case when $3 = $1 then lifecycle else lifecycle - 'replace_when' end
 where stack_id = $1 and id = $2
"""
REMOVE_REQUIREMENTS = """
update resource set requires = array_remove(requires, $2)
 where stack_id = $1
   and id = any (array(select id from resource
                        where requires @> array[$2::uuid] and requires <> '{}'))
"""
RECORD_MOVE = """
select record_events(array[row ($1::uuid, 'headgate.resource.move.completed', $2::text, $3::text,
                                $4::text, 'UPDATE', 'COMPLETE', $5::text, $6::jsonb)::event_draft])
"""


@dataclass(frozen=True, slots=True)
class ResourceRow:
    """busy: an operation runs on it."""

    id: UUID
    name: str
    type: str
    physical_id: str | None
    action: str
    status: str
    has_nested_stack: bool
    busy: bool


@dataclass(frozen=True, slots=True)
class ResourceMove:
    """from_stack, to_stack: IDs of the stacks. from_name, to_name: names of the resource there."""

    from_stack: UUID
    from_name: str
    to_stack: UUID
    to_name: str


async def find_resource(
    conn: Connection, stack_id: UUID, name: str, *, by_physical_id: bool = False
) -> ResourceRow | None:
    """Find a resource by name; by_physical_id: also by physical ID. The caller has locked the
    stack."""
    row = await conn.fetchrow(FIND_RESOURCE, stack_id, name, by_physical_id)
    return ResourceRow(**row) if row else None


async def existing_names(conn: Connection, stack_id: UUID, names: Sequence[str]) -> set[str]:
    """Which of these resources exist, that is, have been created or adopted."""
    rows = await conn.fetch(EXISTING_NAMES, stack_id, list(names))
    return {row["name"] for row in rows}


async def mark_health(
    conn: Connection, stack_id: UUID, resource: UUID, *, unhealthy: bool, reason: str
) -> None:
    await conn.execute(MARK_HEALTH, stack_id, resource, unhealthy, reason)


async def protect(
    conn: Connection, stack_id: UUID, resource: UUID, *, protected: bool, reason: str
) -> None:
    await conn.execute(PROTECT, stack_id, resource, protected, reason)


async def move(conn: Connection, stack_id: UUID, resource: UUID, to_stack: UUID, to: str) -> None:
    """Move the row. The caller has locked both stacks and their nested stacks.

    Raises DecryptionFailed.
    """
    encrypted = await _bind_to(conn, stack_id, resource, to_stack)
    await conn.execute(MOVE, stack_id, resource, to_stack, to)
    if to_stack != stack_id:
        await conn.execute(REMOVE_REQUIREMENTS, stack_id, resource)
        await conn.execute(WRITE_ENCRYPTED, to_stack, resource, *encrypted)
    else:
        await rename_nested_paths(conn, stack_id, resource, to)


async def _bind_to(conn: Connection, stack_id: UUID, resource: UUID, to_stack: UUID) -> list[Json]:
    """The columns that can have encrypted values, bound to the new stack."""
    row = await conn.fetchrow(READ_ENCRYPTED, stack_id, resource, to_stack)
    if row is None:
        raise LookupError(f"there is no resource {resource} in stack {stack_id}")
    plain = decrypt_row(row, row["from_project"], stack_id, "resource")
    return [
        Secret(plain[name], Scope(row["to_project"], to_stack, f"resource.{name}"))
        if isinstance(row[name], EncryptedDocument)
        else row[name]
        for name in ("reference", "properties", "attributes", "data", "metadata")
    ]


async def record_move(
    conn: Connection,
    stack_id: UUID,
    name: str,
    moved: ResourceRow,
    reason: str,
    between: ResourceMove,
) -> None:
    """Record the event of a move in one of its stacks. name: of the resource there."""
    data = {
        "operation": "move",
        "moved": {
            "from": {"stack_id": between.from_stack, "resource": between.from_name},
            "to": {"stack_id": between.to_stack, "resource": between.to_name},
        },
    }
    await conn.execute(RECORD_MOVE, stack_id, name, moved.type, moved.physical_id, reason, data)
