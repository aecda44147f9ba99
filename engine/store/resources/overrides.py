"""Adopted values of resources (engine/plan/overrides.py). They are in the column `lifecycle`."""

from dataclasses import dataclass
from uuid import UUID

from engine.plan.overrides import Override, decode_overrides
from engine.store.connection import Connection
from engine.words import Json

#: Properties with secrets have no adopted values.
READ_OVERRIDES = """
select name, lifecycle -> 'overrides' as overrides from resource
 where stack_id = $1 and replaced_by is null and lifecycle ? 'overrides'
   and masked_properties is null
"""
#: Of a stack and its nested stacks.
READ_TREE_OVERRIDES = """
with recursive tree (id, name, path) as (
    select id, name, '' from stack where id = $1
    union all
    select c.id, c.name, c.path from tree t
     cross join lateral (select id, name, path from stack
                          where parent_id = t.id and deleted_at is null offset 0) c
)
select t.id as stack_id, t.path, r.name, r.lifecycle -> 'overrides' as overrides
  from tree t
 cross join lateral (select name, lifecycle from resource
                      where stack_id = t.id and replaced_by is null and lifecycle ? 'overrides'
                        and masked_properties is null offset 0) r
 order by t.path, r.name
"""
#: The overrides of resources of a stack that ended since the last complete change of its root
#: stack, and those that have not ended: an operation that runs now may end them. $2: whether the
#: root stack is rolled back now; else, its current traversal says that.
READ_ENDED = """
with root as materialized (
    select r.id, r.traversal from stack s
      join stack r on r.id = coalesce(s.root_id, s.id) where s.id = $1
), last as materialized (
    select coalesce(max(t.ended_at), '-infinity') as ended_at
      from traversal t join root on t.stack_id = root.id
     where t.state = 'complete'
       and t.action in ('CREATE', 'UPDATE', 'ROLLBACK', 'ADOPT', 'RESTORE')
)
select r.name, case when (r.lifecycle #>> '{ended,at}')::timestamptz > last.ended_at
                    then r.lifecycle #> '{ended,overrides}'
                    else r.lifecycle -> 'overrides' end as overrides
  from resource r cross join last
 where r.stack_id = $1 and r.replaced_by is null
   and ($2 or exists (select from traversal t join root on t.stack_id = root.id
                       where t.number = root.traversal and t.action = 'ROLLBACK'))
   and (r.lifecycle ? 'overrides'
        or (r.lifecycle #>> '{ended,at}')::timestamptz > last.ended_at)
"""


@dataclass(frozen=True, slots=True)
class AdoptedValue:
    """An adopted value of a resource. path: of its stack."""

    stack_id: UUID
    path: str
    name: str
    override: Override


async def read_overrides(conn: Connection, stack_id: UUID) -> dict[str, list[Override]]:
    """The overrides of a stack, by resource name."""
    rows = await conn.fetch(READ_OVERRIDES, stack_id)
    return {row["name"]: decode_overrides(row["overrides"]) for row in rows}


async def read_tree_overrides(conn: Connection, stack_id: UUID) -> list[AdoptedValue]:
    """The overrides of a stack and its nested stacks."""
    return [
        AdoptedValue(row["stack_id"], row["path"], row["name"], one)
        for row in await conn.fetch(READ_TREE_OVERRIDES, stack_id)
        for one in decode_overrides(row["overrides"])
    ]


async def read_ended_overrides(
    conn: Connection, stack_id: UUID, *, rolls_back: bool = False
) -> dict[str, Json]:
    """The overrides that a rollback of a stack brings back, as they are stored, by resource name.
    rolls_back: a rollback of this root stack is about to start; else, there are none unless its
    root stack is rolled back."""
    rows = await conn.fetch(READ_ENDED, stack_id, rolls_back)
    return {row["name"]: row["overrides"] for row in rows}
