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
#: $1, $2: stacks and IDs of resources that own nested stacks. The types in the last templates of
#: those nested stacks that do not exist any more, and of stacks nested in them; null: not known.
READ_LOST_TYPES = """
with recursive deleted as materialized (
    select s.id
      from unnest($1::uuid[], $2::uuid[]) o (stack_id, id)
      left join lateral (select id from stack
                          where parent_id = o.stack_id and parent_resource = o.id
                          order by created_at desc, id limit 1 offset 0) s on true
     where not exists (select from stack n
                        where n.parent_id = o.stack_id and n.parent_resource = o.id
                          and n.deleted_at is null offset 0)
), tree (id) as (
    select id from deleted
    union
    select c.id from tree t
     cross join lateral (select id from stack where parent_id = t.id offset 0) c
)
select distinct d.value ->> 'type' as type
  from tree t
  left join lateral (select version from stack where id = t.id offset 0) s on true
  left join lateral (select template from template
                      where stack_id = t.id and version = s.version offset 0) v on true
  left join lateral jsonb_each(v.template -> 'resources') d on true
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


async def read_lost_types(conn: Connection, owners: Sequence[ResourceInScope]) -> set[str | None]:
    """The types of the resources that a repair creates in nested stacks that do not exist any more;
    None: of some. owners: resources that own nested stacks, existing ones or not."""
    stacks, ids = [one.stack_id for one in owners], [one.id for one in owners]
    return {row["type"] for row in await conn.fetch(READ_LOST_TYPES, stacks, ids)}
