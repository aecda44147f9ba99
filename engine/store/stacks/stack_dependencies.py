"""Stacks that read outputs of other stacks. Template versions have the IDs of these (`sources`)."""

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from uuid import UUID

from engine.store.connection import Connection

#: Root stacks with the template versions that read a stack, of them and of their nested stacks.
READ_DEPENDENTS = """
select r.id, r.name
  from template t
  join stack s on s.id = t.stack_id and s.version = t.version and s.deleted_at is null
  join stack r on r.id = coalesce(s.root_id, s.id)
 where t.sources @> array[$1::uuid] and t.sources <> '{}'
 group by r.id, r.name order by r.name, r.id
"""
#: Versions of a stack and its nested stacks that read outputs.
READ_READING_VERSIONS = """
select t.stack_id, t.version
  from stack s join template t on t.stack_id = s.id and t.version = s.version
 where (s.id = $1 or s.root_id = $1) and s.deleted_at is null and t.sources <> '{}'
 order by t.stack_id
"""
READ_NAMES = """
select id, name from stack
 where id = any ($1::uuid[])
   and case when deleted_at is null then true end -- not by an index of all that exist
"""
#: Until the end of the transaction, no other one of the project records what a stack reads, and
#: none begins to delete or abandon a stack. Acquire locks of stacks before it.
LOCK_TO_READ = "select pg_advisory_xact_lock(hashtextextended('outputs ' || $1, 0))::text as locked"
LOCK_TO_DELETE = """
select pg_advisory_xact_lock_shared(hashtextextended('outputs ' || $1, 0))::text as locked
"""
#: Of the sources, how many exist; and the name of one that reads the stack's tree, if any.
CHECK_SOURCES = """
with recursive root as (
    select coalesce(root_id, id) as id from stack where id = $1
), upstream (id, source) as (
    select id, id from unnest($2::uuid[]) id
    union
    select n.id, u.source
      from upstream u
     cross join lateral (
           select unnest(t.sources) as id
             from stack s join template t on t.stack_id = s.id and t.version = s.version
            where (s.id = u.id or s.root_id = u.id) and s.deleted_at is null
              and t.sources <> '{}' offset 0) n
)
select (select count(*) from stack s
          join traversal t on t.stack_id = s.id and t.number = s.traversal
         where s.id = any ($2::uuid[])
           and case when s.deleted_at is null then true end -- as in READ_NAMES
           and t.action <> 'DELETE') as existing,
       (select s.name from upstream u join stack s on s.id = u.source
         where u.id = (select id from root) order by s.name limit 1) as circular
"""


@dataclass(frozen=True, slots=True)
class Dependent:
    """A root stack that reads outputs of another stack."""

    id: UUID
    name: str


@dataclass(frozen=True, slots=True)
class SourceState:
    """deleted: a source does not exist, or is being deleted. circular: a source that reads the
    stack, or None."""

    deleted: bool
    circular: str | None


async def lock_to_read(conn: Connection, project: str) -> None:
    """Lock what the stacks of a project read, to change it."""
    await conn.execute(LOCK_TO_READ, project)


async def lock_to_delete(conn: Connection, project: str) -> None:
    """Lock what the stacks of a project read, to delete a stack that none reads."""
    await conn.execute(LOCK_TO_DELETE, project)


async def read_dependents(conn: Connection, stack_id: UUID) -> list[Dependent]:
    """The root stacks whose current versions read outputs of a stack, by name."""
    return [Dependent(**row) for row in await conn.fetch(READ_DEPENDENTS, stack_id)]


async def read_reading_versions(conn: Connection, stack_id: UUID) -> list[tuple[UUID, int]]:
    """(stack, version) of the current versions of a stack tree that read outputs."""
    rows = await conn.fetch(READ_READING_VERSIONS, stack_id)
    return [(row["stack_id"], row["version"]) for row in rows]


async def read_names(conn: Connection, stacks: Collection[UUID]) -> Mapping[UUID, str]:
    """The names of the stacks that exist."""
    return {row["id"]: row["name"] for row in await conn.fetch(READ_NAMES, list(stacks))}


async def check_sources(conn: Connection, stack_id: UUID, sources: Sequence[UUID]) -> SourceState:
    (row,) = await conn.fetch(CHECK_SOURCES, stack_id, list(sources))
    return SourceState(row["existing"] < len(sources), row["circular"])
