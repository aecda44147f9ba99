"""Locks of stacks. The row of a stack orders all changes of the stack.

Every writer of a stack's nodes, hooks or events locks the row first; several stacks in the order of
their IDs. A lock lasts until the transaction ends.
"""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from datetime import datetime
from uuid import UUID

from engine.principal import Principal
from engine.store.connection import Connection

LOCK_STACKS = "select id from stack where id = any ($1::uuid[]) order by id for no key update"
LOCK_STACK = "select * from lock_stack($1, $2)"
LOCK_NAMED = """
select id, name from stack
 where project = $1 and deleted_at is null and (name = any ($2) or id::text = any ($2))
 order by id for no key update
"""
LOCK_WITH_PARENT = """
select id from stack where id = $1 or id = (select parent_id from stack where id = $1)
 order by id for no key update
"""
LOCK_WITH_ANCESTORS = """
with recursive ancestor as (
    select id, parent_id from stack where id = $1
    union all
    select p.id, p.parent_id from ancestor a
     cross join lateral (select id, parent_id from stack where id = a.parent_id offset 0) p
)
select s.id from stack s where s.id = any (array(select id from ancestor))
 order by s.id for no key update
"""
LOCK_TREES = """
with recursive tree (id) as (
    select id from stack
     where project = $1 and deleted_at is null and (name = any ($2) or id::text = any ($2))
    union
    select c.id from tree t
     cross join lateral (select id from stack where parent_id = t.id offset 0) c
)
select s.id from stack s where s.id = any (array(select id from tree))
 order by s.id for no key update
"""


@dataclass(frozen=True, slots=True)
class LockedStack:
    """A stack under lock, with its current traversal.

    version: the wanted template version. newest: the highest template version. state, action,
    requested_by, excluded (as in `Rule`): of the traversal. now: the transaction's time. root: name
    of the root stack; None: this is a root stack. path: resource names that lead to it from the
    root stack (``web/db``), or "". region: as `Call.region`.
    """

    id: UUID
    project: str
    name: str
    version: int
    newest: int
    traversal: int
    deleted: bool
    disable_rollback: bool
    state: str
    action: str
    requested_by: Principal
    excluded: list[str]
    now: datetime
    root: str | None
    path: str
    tags: list[str]
    region: str

    @property
    def path_names(self) -> list[str]:
        return split_path(self.path)


def split_path(path: str) -> list[str]:
    """The names of the resources that lead to a stack from its root stack: `web/db`."""
    return list(filter(None, path.split("/")))


async def lock_stacks(conn: Connection, stack_ids: Iterable[UUID]) -> None:
    """IDs without a row are skipped."""
    await conn.execute(LOCK_STACKS, list(set(stack_ids)))


async def lock_stack(conn: Connection, project: str | None, stack_id: UUID) -> LockedStack | None:
    """None: the project has no such stack. project: None: any project."""
    row = await conn.fetchrow(LOCK_STACK, stack_id, project)
    if row is None:
        return None
    fields = dict(row)
    by = Principal(fields.pop("requested_by_id"), fields.pop("requested_by"))
    return LockedStack(requested_by=by, **fields)


async def lock_stacks_by_name(
    conn: Connection, project: str, names: Sequence[str]
) -> dict[str, UUID]:
    """Lock stacks by name or ID. Returns their IDs by both; missing stacks are left out."""
    rows = await conn.fetch(LOCK_NAMED, project, list(names))
    return {name: row["id"] for row in rows for name in (row["name"], str(row["id"]))}


async def lock_with_parent(conn: Connection, stack_id: UUID) -> None:
    await conn.execute(LOCK_WITH_PARENT, stack_id)


async def lock_with_ancestors(conn: Connection, stack_id: UUID) -> None:
    """Lock a stack, its parent stack, and so on to the root stack."""
    await conn.execute(LOCK_WITH_ANCESTORS, stack_id)


async def lock_trees(conn: Connection, project: str, names: Sequence[str]) -> None:
    """Lock stacks by name or ID with their nested stacks."""
    await conn.execute(LOCK_TREES, project, list(names))
