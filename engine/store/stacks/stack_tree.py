"""The stacks of a tree that a change includes, and their lock."""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from uuid import UUID

from engine.errors import Unavailable
from engine.store.connection import Connection
from engine.store.database import savepoint
from engine.store.stacks.stack_locks import lock_stacks, split_path
from engine.words import StepMode

#: A nested stack belongs to the change if its parent's current traversal started its traversal.
READ = """
with recursive ancestor as (
    select s.id, s.traversal, s.parent_id, t.parent_traversal, 0 as level
      from stack s
     cross join lateral (
           select parent_traversal from traversal
            where stack_id = s.id and number = s.traversal offset 0) t
     where s.id = $1
    union all
    select p.id, p.traversal, p.parent_id, t.parent_traversal, a.level - 1
      from ancestor a
     cross join lateral (
           select id, traversal, parent_id from stack where id = a.parent_id offset 0) p
     cross join lateral (
           select parent_traversal from traversal
            where stack_id = p.id and number = p.traversal offset 0) t
     where p.traversal = a.parent_traversal
), nested as (
    select id, traversal, level from ancestor where level = 0
    union all
    select c.id, c.traversal, i.level + 1
      from nested i
     -- Without "deleted_at" inside: the index stack_by_name has all stacks that are not deleted.
     cross join lateral (
           select id, traversal, deleted_at from stack where parent_id = i.id offset 0) c
     cross join lateral (
           select parent_traversal from traversal
            where stack_id = c.id and number = c.traversal offset 0) t
     where c.deleted_at is null and t.parent_traversal = i.traversal
)
select s.id, k.level, s.path, s.traversal, t.state in ('running', 'ending') as under_way,
       t.step_mode,
       s.sequence, s.name
  from (select id, level from ancestor union select id, level from nested) k
 cross join lateral (select * from stack where id = k.id offset 0) s
 cross join lateral (
       select state, step_mode from traversal
        where stack_id = s.id and number = s.traversal offset 0) t
 order by s.id
"""
READ_BUSY_ANCESTOR = """
with recursive ancestor as (
    select parent_id as id from stack where id = $1 and parent_id is not null
    union all
    select p.parent_id from ancestor a
     cross join lateral (
        select parent_id from stack where id = a.id and parent_id is not null offset 0
     ) p
)
select s.name from ancestor a
 cross join lateral (select id, name, traversal from stack where id = a.id offset 0) s
 cross join lateral (
    select state from traversal where stack_id = s.id and number = s.traversal offset 0
 ) t
 where t.state in ('running', 'ending')
 limit 1
"""
LOCK_NEWER = """
select id from stack where id = any ($1) order by id for no key update skip locked
"""
#: Nested stacks can be created during the wait for a lock; fewer each time.
TRIES = 20


@dataclass(frozen=True, slots=True)
class StackTreeMember:
    """A stack of a change. level: 0: the stack for which the tree was read; less: its ancestors;
    more: its nested stacks. path: from the root stack. under_way: its traversal has not ended.
    sequence: number of its newest event."""

    id: UUID
    level: int
    path: str
    traversal: int
    under_way: bool
    step_mode: StepMode | None
    sequence: int = 0
    name: str = ""

    @property
    def path_names(self) -> list[str]:
        return split_path(self.path)


class _LockConflict(Exception):
    """New nested stacks were created, which another transaction has locked."""


async def read_stack_tree(conn: Connection, stack_id: UUID) -> list[StackTreeMember]:
    """In the order of the IDs."""
    rows = await conn.fetch(READ, stack_id)
    return [
        StackTreeMember(
            **{**row, "step_mode": StepMode(row["step_mode"]) if row["step_mode"] else None}
        )
        for row in rows
    ]


async def busy_ancestor(conn: Connection, stack_id: UUID) -> str | None:
    """The name of a stack above this one that has an action in progress, if there is one."""
    name: str | None = await conn.fetchval(READ_BUSY_ANCESTOR, stack_id)
    return name


async def lock_stack_tree(conn: Connection, stack_id: UUID) -> list[StackTreeMember]:
    """Lock all stacks of the stack's change, so that it gets no more nested stacks.

    Raises Unavailable if nested stacks are created and deleted too fast.
    """
    for _ in range(TRIES):
        known = await read_stack_tree(conn, stack_id)
        try:
            async with savepoint(conn):
                return await _lock(conn, stack_id, {one.id for one in known})
        except _LockConflict:
            continue
    raise Unavailable("the stack changes too fast to be locked", remedy="Try it again.")


async def _lock(conn: Connection, stack_id: UUID, known: set[UUID]) -> list[StackTreeMember]:
    await lock_stacks(conn, known)
    now = await read_stack_tree(conn, stack_id)
    newer = sorted({one.id for one in now} - known)
    # These locks are not in the order of the IDs, so they must not wait.
    if newer and len(await conn.fetch(LOCK_NEWER, newer)) < len(newer):
        raise _LockConflict
    return await read_stack_tree(conn, stack_id) if newer else now


def self_and_nested(members: Iterable[StackTreeMember]) -> Sequence[StackTreeMember]:
    """The stack for which the tree was read, and its nested stacks."""
    return [one for one in members if one.level >= 0]
