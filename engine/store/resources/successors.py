"""Resources that have replaced others with the same physical ID."""

from collections.abc import Mapping, Sequence
from uuid import UUID

from engine.store.connection import Connection
from engine.store.encryption.encrypted_rows import decrypt_row
from engine.types.successor import Successor

#: $1, $2: stacks, and replaced resources.
READ = """
select k.stack_id, k.resource_id, c.properties, c.data, s.project
  from unnest($1::uuid[], $2::uuid[]) k (stack_id, resource_id)
 cross join lateral (select name, type, physical_id from resource
                      where stack_id = k.stack_id and id = k.resource_id
                        and replaced_by is not null offset 0) r
 cross join lateral (select type, physical_id, properties, data from resource
                      where stack_id = k.stack_id and name = r.name
                        and replaced_by is null offset 0) c
 cross join lateral (select project from stack where id = k.stack_id offset 0) s
 where c.type = r.type and c.physical_id = r.physical_id
"""
#: Encrypted columns of a resource.
ENCRYPTED = ("properties", "data")


async def read_successors(
    conn: Connection, keys: Sequence[tuple[UUID, UUID]]
) -> Mapping[tuple[UUID, UUID], Successor]:
    """By (stack, replaced resource). Raises DecryptionFailed."""
    found: dict[tuple[UUID, UUID], Successor] = {}
    for row in await conn.fetch(READ, *map(list, zip(*keys, strict=True))):
        plain = decrypt_row(row, row["project"], row["stack_id"], "resource", ENCRYPTED)
        key = row["stack_id"], row["resource_id"]
        found[key] = Successor(plain["properties"] or {}, plain["data"] or {})
    return found
