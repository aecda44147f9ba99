"""Resources as people read them, of a stack and of the stacks inside of it."""

from collections.abc import Sequence
from typing import Any
from uuid import UUID

from engine.store.connection import Connection
from engine.store.records import ResourceRecord
from engine.store.secret_rows import show_row

READ_RESOURCES = """
with recursive tree (id, project, name, depth, way, parent_resource) as (
    select s.id, s.project, s.name, 0, array[]::text[], null::text from stack s where s.id = $1
    union all
    select c.id, c.project, c.name, t.depth + 1, t.way || q.name, q.name
      from tree t
      join stack c on c.parent_id = t.id and c.deleted_at is null
      join resource q on q.stack_id = t.id and q.id = c.parent_resource and q.replaced_by is null
     where t.depth < $3
)
select t.id as stack_id, t.project, t.name as stack_name, t.parent_resource, c.id as nested_id,
       c.name as nested_name, r.id, r.name, r.type, r.physical_id, r.shown_action as action,
       r.shown_status as status, r.shown_reason as reason, r.properties, r.shown, r.secret,
       r.attributes, r.metadata,
       array(select q.name from resource q where q.stack_id = r.stack_id and q.id = any (r.requires)
              order by q.name) as requires,
       r.deletion_policy, r.protected, r.created_at, r.updated_at
  from tree t
  join resource_now r on r.stack_id = t.id and r.replaced_by is null
  left join stack c
    on c.parent_id = r.stack_id and c.parent_resource = r.id and c.deleted_at is null
 where $2::text is null or r.name = $2
 order by t.depth, t.way, r.created_at, r.name
"""
READ_DESCRIPTIONS = """
select t.stack_id, r.key as name, d.description
  from stack s
  join template t on t.stack_id = s.id and t.version = s.version
 cross join jsonb_each(coalesce(nullif(t.template -> 'resources', 'null'),
                                nullif(t.template -> 'Resources', 'null'), '{}')) r
 cross join coalesce(r.value ->> 'description', r.value ->> 'Description') as d (description)
 where s.id = any ($1::uuid[]) and d.description is not null and ($2::text is null or r.key = $2)
"""


async def read_resources(
    conn: Connection, stack_id: UUID, name: str | None = None, *, depth: int = 0
) -> list[ResourceRecord]:
    """Those of the stack first, then those of the stacks inside, down to so many levels."""
    rows = await conn.fetch(READ_RESOURCES, stack_id, name, depth)
    return [_shown(row) for row in rows]


def _shown(row: Any) -> ResourceRecord:
    shown = show_row(row, row["project"], row["stack_id"], "resource")
    del shown["project"]
    return ResourceRecord(**shown)


async def read_descriptions(
    conn: Connection, stacks: Sequence[UUID], name: str | None
) -> dict[tuple[UUID, str], str]:
    """By stack and name of the resource, where the template says one. name: only of this one."""
    rows = await conn.fetch(READ_DESCRIPTIONS, list(stacks), name)
    return {(row["stack_id"], row["name"]): row["description"] for row in rows}
