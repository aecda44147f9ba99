"""Nested stacks: created, found and queried for the node that owns them, which they wake.

A change of a nested stack locks its parent, too: stacks in the order of their IDs.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any
from uuid import UUID

from engine.principal import Principal
from engine.store.advance import Claim
from engine.store.connection import Connection
from engine.store.secret_rows import reveal_row
from engine.store.stack_locks import lock_stacks
from engine.words import Json, TraversalState

#: With its parent stack, if there is one.
LOCK_WITH_PARENT = """
select id from stack where id = $1 or id = (select parent_id from stack where id = $1)
 order by id for no key update
"""
#: A stack and all its parents.
LOCK_LINEAGE = """
with recursive around as (
    select id, parent_id from stack where id = $1
    union all
    select p.id, p.parent_id from around a join stack p on p.id = a.parent_id
)
select s.id from stack s where s.id in (select id from around) order by s.id for no key update
"""
#: The next update of the root stack includes this stack, also if its template is the same.
MARK_STALE_AROUND = """
with recursive around as (
    select parent_id, parent_resource from stack where id = $1
    union all
    select p.parent_id, p.parent_resource from around a join stack p on p.id = a.parent_id
)
update resource r set digest = ''
  from around a where r.stack_id = a.parent_id and r.id = a.parent_resource
"""
#: Stacks by name or ID, with their nested stacks.
LOCK_TREES = """
with recursive tree (id) as (
    select id from stack
     where project = $1 and deleted_at is null and (name = any ($2) or id::text = any ($2))
    union
    select c.id from tree t join stack c on c.parent_id = t.id
)
select s.id from stack s where s.id in (select id from tree) order by s.id for no key update
"""
#: The resource that it belongs to has another name.
RENAME_INSIDE = """
with recursive renamed (id, cut, path) as (
    select c.id, length(c.path) + 1, ltrim(p.path || '/' || $3::text, '/')
      from stack p join stack c on c.parent_id = p.id and c.parent_resource = $2 where p.id = $1
    union all
    select c.id, r.cut, r.path from renamed r join stack c on c.parent_id = r.id
)
update stack s set path = r.path || substr(s.path, r.cut) from renamed r where s.id = r.id
"""
INSIDE = """
select path from stack where parent_id = $1 and deleted_at is null order by path
"""
INSERT_CHILD = """
insert into stack (id, project, name, owner, tags, timeout_mins, disable_rollback, version,
                   traversal, parent_id, parent_resource, root_id, path, traceparent)
select $1, p.project, $2, p.owner, p.tags, p.timeout_mins, true, 1, 1, p.id, $4,
       coalesce(p.root_id, p.id), ltrim(p.path || '/' || $5::text, '/'), p.traceparent
  from stack p where p.id = $3
"""
FIND_CHILD = """
select c.id, c.name, c.deleted_at is not null as deleted, c.traversal, c.version, t.state, t.reason,
       t.parent_key, t.step
  from stack c join traversal t on t.stack_id = c.id and t.number = c.traversal
 where c.parent_id = $1 and (c.parent_resource = $2 or c.id::text = $3)
 order by c.deleted_at nulls first, c.created_at desc limit 1
"""
#: Whether the worker still has the node's claim, and the state of its traversal.
HELD = """
select t.state, t.version, t.requested_by, t.requested_by_id, t.asked, t.cleared
  from node n join traversal t on t.stack_id = n.stack_id and t.number = n.traversal
 where n.stack_id = $1 and n.traversal = $2 and n.id = $3 and n.claim = $4 and n.state = 'running'
"""
CHILDREN = """
select coalesce(r.physical_id, c.id::text) as physical_id, c.id, c.name
  from stack c left join resource r on r.stack_id = c.parent_id and r.id = c.parent_resource
 where c.parent_id = $1 and c.deleted_at is null
"""
MEMBERS = """
select r.name, r.type, r.action, r.status, r.physical_id, r.reference, r.attributes, r.created_at,
       r.secret, s.project
  from resource r join stack s on s.id = r.stack_id
 where r.stack_id = $1 and r.replaced_by is null order by r.created_at, r.name
"""
#: The parent has worked at least as long as its nested stack, when that has ended.
COUNT_TIME = """
update traversal p
   set worked = p.worked + greatest('0', c.worked - working_time(p.worked, p.working_since,
                                                                clock_timestamp()))
  from stack s join traversal c on c.stack_id = s.id
 where s.id = $1 and c.number = $2 and p.stack_id = s.parent_id and p.number = c.parent_traversal
returning p.stack_id, p.number, c.parent_node
"""
WAKE = "select wake_nodes(array[row ($1, $2, $3)::node_key])"


@dataclass(frozen=True, slots=True)
class ChildRecord:
    """A stack inside. state, reason: of its traversal; parent_key, step: what began that."""

    id: UUID
    name: str
    deleted: bool
    traversal: int
    version: int
    state: str
    reason: str
    parent_key: UUID | None
    step: str | None

    def is_brought_by(self, key: UUID) -> bool:
        """Whether this operation began what is under way, and will be told of its end. What a stack
        inside does of its own nobody around is told of."""
        under_way = self.state in (TraversalState.RUNNING, TraversalState.ENDING)
        return under_way and self.parent_key == key


@dataclass(frozen=True, slots=True)
class ThereRecord:
    """A nested stack with the name of its resource."""

    physical_id: str
    id: UUID
    name: str


@dataclass(frozen=True, slots=True)
class Held:
    """The traversal of the node that asks. asked, cleared: see `insert_traversal`."""

    state: str
    version: int
    requested_by: Principal
    asked: list[Json]
    cleared: list[str]


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
    secret: list[str] | None


async def lock_both(conn: Connection, stacks: Sequence[UUID]) -> None:
    await lock_stacks(conn, stacks)


async def lock_trees(conn: Connection, project: str, names: Sequence[str]) -> None:
    await conn.execute(LOCK_TREES, project, list(names))


async def rename_inside(conn: Connection, stack_id: UUID, resource_id: UUID, to: str) -> None:
    """Their paths follow. The whole tree is locked."""
    await conn.execute(RENAME_INSIDE, stack_id, resource_id, to)


async def inside(conn: Connection, stack_id: UUID) -> list[str]:
    """The paths of the direct nested stacks of a stack."""
    return [row["path"] for row in await conn.fetch(INSIDE, stack_id)]


async def lock_with_parent(conn: Connection, stack_id: UUID) -> None:
    await conn.execute(LOCK_WITH_PARENT, stack_id)


async def lock_lineage(conn: Connection, stack_id: UUID) -> None:
    await conn.execute(LOCK_LINEAGE, stack_id)


async def mark_stale_around(conn: Connection, stack_id: UUID) -> None:
    """The resources that contain the stack; the caller has locked all of their stacks."""
    await conn.execute(MARK_STALE_AROUND, stack_id)


async def held(conn: Connection, claim: Claim) -> Held | None:
    """None: another worker has claimed the node."""
    row = await conn.fetchrow(HELD, *claim)
    if row is None:
        return None
    fields = dict(row)
    by = Principal(fields.pop("requested_by_id"), fields.pop("requested_by"))
    return Held(requested_by=by, **fields)


async def insert_child(
    conn: Connection, stack_id: UUID, name: str, parent_id: UUID, resource_id: UUID, resource: str
) -> None:
    """Values that the nested stack lacks are those of its parent."""
    await conn.execute(INSERT_CHILD, stack_id, name, parent_id, resource_id, resource)


async def find_child(
    conn: Connection, parent_id: UUID, resource_id: UUID, physical_id: str | None
) -> ChildRecord | None:
    """The newest that the resource has, or had."""
    row = await conn.fetchrow(FIND_CHILD, parent_id, resource_id, physical_id)
    return ChildRecord(**row) if row else None


async def children(conn: Connection, stack_id: UUID) -> dict[str, ThereRecord]:
    """The nested stacks of a stack, by the physical IDs of their resources."""
    rows = await conn.fetch(CHILDREN, stack_id)
    return {row["physical_id"]: ThereRecord(**row) for row in rows}


async def members(conn: Connection, stack_id: UUID) -> list[MemberRecord]:
    """The first made first. Raises Sealed."""
    return [_member(stack_id, row) for row in await conn.fetch(MEMBERS, stack_id)]


def _member(stack_id: UUID, row: Any) -> MemberRecord:
    revealed = reveal_row(row, row["project"], stack_id, "resource")
    del revealed["project"]
    return MemberRecord(**revealed)


async def wake_parent(conn: Connection, stack_id: UUID, traversal: int) -> tuple[UUID, int] | None:
    """The node around goes on, now that the traversal it began has ended. Both stacks are locked.

    Returns the stack around and its traversal; None when there is none.
    """
    row = await conn.fetchrow(COUNT_TIME, stack_id, traversal)
    if row is None:
        return None
    await conn.execute(WAKE, row["stack_id"], row["number"], row["parent_node"])
    return row["stack_id"], row["number"]
