"""Nested stacks, and the nodes of their parent stacks, which wait for them.

A change of a nested stack also locks its parent stack (engine/store/stacks/stack_locks.py).
"""

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime
from uuid import UUID

from engine.principal import Principal
from engine.store.connection import Connection
from engine.store.encryption.encrypted_rows import decrypt_record
from engine.store.traversals.advance import Claim
from engine.words import Json, TraversalState

#: Without a digest, the next update of the root stack includes this stack.
RESET_ANCESTOR_DIGESTS = """
with recursive ancestor as (
    select parent_id, parent_resource from stack where id = $1
    union all
    select p.parent_id, p.parent_resource from ancestor a join stack p on p.id = a.parent_id
)
update resource r set digest = ''
  from ancestor a
 where r.stack_id = a.parent_id and r.id = a.parent_resource
   and r.stack_id = any (array(select parent_id from ancestor))
   and r.id = any (array(select parent_resource from ancestor))
"""
RENAME_NESTED_PATHS = """
with recursive renamed (id, suffix_start, path) as (
    select c.id, length(c.path) + 1, ltrim(p.path || '/' || $3::text, '/')
      from stack p join stack c on c.parent_id = $1 and c.parent_resource = $2 where p.id = $1
    union all
    select c.id, r.suffix_start, r.path from renamed r
     cross join lateral (select id from stack where parent_id = r.id offset 0) c
)
update stack s set path = r.path || substr(s.path, r.suffix_start) from renamed r
 where s.id = r.id and s.id = any (array(select id from renamed))
"""
READ_NESTED_TREE = """
with recursive tree (id, level) as (
    select id, 1 from stack where parent_id = $1 and deleted_at is null
    union all
    select c.id, t.level + 1 from tree t
     cross join lateral (
           select id from stack where parent_id = t.id and deleted_at is null offset 0) c
)
select id from tree order by level, id
"""
INSERT_NESTED_STACK = """
insert into stack (id, project, name, owner, tags, timeout_mins, disable_rollback, version,
                   traversal, parent_id, parent_resource, root_id, path, traceparent, region)
select $1, p.project, $2, p.owner, p.tags, p.timeout_mins, true, 1, 1, p.id, $4,
       coalesce(p.root_id, p.id), ltrim(p.path || '/' || $5::text, '/'), p.traceparent, p.region
  from stack p where p.id = $3
"""
STORE_PARENT_RULES = """
update stack set parent_rules = $2 where id = $1 and parent_rules is distinct from $2
"""
READ_PARENT_RULES = "select parent_rules from stack where id = $1"
FIND_NESTED_STACK = """
select c.id, c.name, c.deleted_at is not null as deleted, c.traversal, c.version, t.state, t.reason,
       t.parent_operation_key, t.parent_step
  from stack c join traversal t on t.stack_id = c.id and t.number = c.traversal
 where c.parent_id = $1 and (c.parent_resource = $2 or c.id::text = $3)
 order by c.deleted_at nulls first, c.created_at desc limit 1
"""
READ_CLAIMED_TRAVERSAL = """
select t.state, t.version, t.requested_by, t.requested_by_id, t.nested_breakpoints,
       t.cleared_breakpoints, t.excluded
  from node n join traversal t on t.stack_id = n.stack_id and t.number = n.traversal
 where n.stack_id = $1 and n.traversal = $2 and n.id = $3 and n.claim = $4 and n.state = 'running'
"""
READ_NESTED_STACKS = """
select coalesce(r.physical_id, c.id::text) as physical_id, c.id, c.name
  from stack c
  left join lateral (
       select physical_id from resource
        where stack_id = c.parent_id and id = c.parent_resource offset 0) r on true
 where c.parent_id = $1 and c.deleted_at is null
"""
READ_MEMBERS = """
with under_way as materialized (
    select n.resource_id
      from traversal t join node n on n.stack_id = t.stack_id and n.traversal = t.number
     where t.stack_id = $1 and t.active_nodes > 0 and is_operating(n.state, n.phase)
), unapplied as materialized (
    select n.resource_id
      from stack s
      join traversal t on t.stack_id = s.id and t.number = s.traversal and t.state <> 'complete'
      join node n on n.stack_id = s.id and n.traversal = s.traversal
     where s.id = $1 and n.direction = 'forward' and is_ended(n.state)
       and n.state <> 'done'
)
select r.name, r.type, r.action, r.status, r.physical_id, r.reference, r.attributes, r.created_at,
       r.secret_attributes, s.project, r.id in (select resource_id from under_way) as under_way,
       r.id not in (select resource_id from unapplied) as up_to_date,
       r.marked_at is not null as marked
  from resource r join stack s on s.id = r.stack_id
 where r.stack_id = $1 and r.replaced_by is null order by r.created_at, r.name
"""
UPDATE_PARENT_TIME = """
update traversal p
   set working_time = working_time_after_nested(
           p.working_time, p.working_since, c.working_time, clock_timestamp())
  from stack s join traversal c on c.stack_id = s.id
 where s.id = $1 and c.number = $2 and p.stack_id = s.parent_id and p.number = c.parent_traversal
returning p.stack_id, p.number, c.parent_node
"""
WAKE = "select wake_nodes(array[row ($1, $2, $3)::node_key])"


@dataclass(frozen=True, slots=True)
class NestedStackRecord:
    """A nested stack with its current traversal. parent_operation_key, parent_step: the operation
    of the parent stack that started the traversal, and its step."""

    id: UUID
    name: str
    deleted: bool
    traversal: int
    version: int
    state: str
    reason: str
    parent_operation_key: UUID | None
    parent_step: str | None

    def is_run_by(self, key: UUID) -> bool:
        """Whether its traversal is under way and was started by this operation, which waits for its
        end. The end of an action of the nested stack itself wakes no operation."""
        under_way = self.state in (TraversalState.RUNNING, TraversalState.ENDING)
        return under_way and self.parent_operation_key == key


@dataclass(frozen=True, slots=True)
class NestedStackName:
    """physical_id: of the resource that owns the nested stack."""

    physical_id: str
    id: UUID
    name: str


@dataclass(frozen=True, slots=True)
class ClaimedTraversal:
    """The traversal of a claimed node. nested_breakpoints, cleared_breakpoints, excluded: see
    `NestedContext`."""

    state: str
    version: int
    requested_by: Principal
    nested_breakpoints: list[Json]
    cleared_breakpoints: list[str]
    excluded: list[str]


@dataclass(frozen=True, slots=True)
class MemberRecord:
    name: str
    type: str
    action: str
    status: str
    physical_id: str | None
    reference: Json
    attributes: dict[str, Json]
    created_at: datetime
    secret_attributes: list[str] | None
    up_to_date: bool
    under_way: bool
    marked: bool


async def rename_nested_paths(conn: Connection, stack_id: UUID, resource_id: UUID, to: str) -> None:
    """Update the paths of nested stacks after a resource was renamed. The tree is locked."""
    await conn.execute(RENAME_NESTED_PATHS, stack_id, resource_id, to)


async def read_nested_tree(conn: Connection, stack_id: UUID) -> list[UUID]:
    """The nested stacks of a stack at all levels, parents first."""
    return [row["id"] for row in await conn.fetch(READ_NESTED_TREE, stack_id)]


async def reset_ancestor_digests(conn: Connection, stack_id: UUID) -> None:
    """Reset the digests of the resources that own the stack and its ancestors. The caller has
    locked these stacks."""
    await conn.execute(RESET_ANCESTOR_DIGESTS, stack_id)


async def read_claimed_traversal(conn: Connection, claim: Claim) -> ClaimedTraversal | None:
    """None: another worker has claimed the node."""
    row = await conn.fetchrow(READ_CLAIMED_TRAVERSAL, *claim)
    if row is None:
        return None
    fields = dict(row)
    by = Principal(fields.pop("requested_by_id"), fields.pop("requested_by"))
    return ClaimedTraversal(requested_by=by, **fields)


async def insert_nested_stack(
    conn: Connection, stack_id: UUID, name: str, parent_id: UUID, resource_id: UUID, resource: str
) -> None:
    """Project, owner, tags, time limit and trace are those of the parent stack."""
    await conn.execute(INSERT_NESTED_STACK, stack_id, name, parent_id, resource_id, resource)


async def store_parent_rules(conn: Connection, stack_id: UUID, rules: Sequence[Json]) -> None:
    """Store the rules that the parent stack passes on with each change: rows of
    `NestedContext.nested_breakpoints`."""
    await conn.execute(STORE_PARENT_RULES, stack_id, list(rules))


async def read_parent_rules(conn: Connection, stack_id: UUID) -> list[Json]:
    rules: list[Json] = await conn.fetchval(READ_PARENT_RULES, stack_id)
    return rules


async def find_nested_stack(
    conn: Connection, parent_id: UUID, resource_id: UUID, physical_id: str | None
) -> NestedStackRecord | None:
    """The nested stack of a resource; if it was deleted, the last one."""
    row = await conn.fetchrow(FIND_NESTED_STACK, parent_id, resource_id, physical_id)
    return NestedStackRecord(**row) if row else None


async def read_nested_stacks(conn: Connection, stack_id: UUID) -> dict[str, NestedStackName]:
    """The nested stacks of a stack, by the physical IDs of their resources."""
    rows = await conn.fetch(READ_NESTED_STACKS, stack_id)
    return {row["physical_id"]: NestedStackName(**row) for row in rows}


async def read_members(conn: Connection, stack_id: UUID) -> list[MemberRecord]:
    """The resources of a group's nested stack, oldest first. Raises DecryptionFailed."""
    rows = await conn.fetch(READ_MEMBERS, stack_id)
    return [decrypt_record(MemberRecord, row, stack_id, "resource") for row in rows]


async def wake_parent(conn: Connection, stack_id: UUID, traversal: int) -> tuple[UUID, int] | None:
    """Wake the parent's node that waits for an ended traversal. Both stacks are locked.

    Returns the parent stack and its traversal; None: no node waits.
    """
    row = await conn.fetchrow(UPDATE_PARENT_TIME, stack_id, traversal)
    if row is None:
        return None
    await conn.execute(WAKE, row["stack_id"], row["number"], row["parent_node"])
    return row["stack_id"], row["number"]
