"""The resources that a repair of drift may change."""

from collections.abc import Collection, Sequence
from dataclasses import dataclass
from uuid import UUID

from engine.store.connection import Connection

READ_ROOT = """
select id, name, requires from resource where stack_id = $1 and replaced_by is null
"""
#: $2: names of resources of the root stack $1. Those of the nested stacks that these own, too.
READ_SCOPE = """
select t.id as stack_id, r.id, r.type
  from stacks_of_roots(array[$1::uuid]) t
 cross join lateral (select id, name, type from resource
                      where stack_id = t.id and replaced_by is null offset 0) r
 where coalesce(t.top, r.name) = any ($2)
 order by t.id, r.id
"""


@dataclass(frozen=True, slots=True)
class RootResource:
    """A resource of a root stack. requires: the IDs of those that it depends on."""

    id: UUID
    name: str
    requires: Sequence[UUID]


@dataclass(frozen=True, slots=True)
class ResourceInScope:
    stack_id: UUID
    id: UUID
    type: str


async def read_root(conn: Connection, root_id: UUID) -> list[RootResource]:
    return [RootResource(**row) for row in await conn.fetch(READ_ROOT, root_id)]


async def read_scope(
    conn: Connection, root_id: UUID, names: Collection[str]
) -> list[ResourceInScope]:
    """The resources with these names of a root stack, and all those of their nested stacks, by
    stack and ID."""
    return [ResourceInScope(**row) for row in await conn.fetch(READ_SCOPE, root_id, [*names])]
