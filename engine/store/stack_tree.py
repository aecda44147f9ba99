"""The stacks of a tree that a change includes, and their lock."""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import NamedTuple
from uuid import UUID

from engine.errors import Unavailable
from engine.store.connection import Connection
from engine.store.database import all_or_nothing
from engine.store.stack_locks import lock_stacks
from engine.words import Pace

#: A stack is of the change when its traversal was begun by the traversal of the stack around.
READ = """
with recursive around as (
    select s.id, s.traversal, s.parent_id, t.parent_traversal, 0 as level
      from stack s join traversal t on t.stack_id = s.id and t.number = s.traversal
     where s.id = $1
    union all
    select p.id, p.traversal, p.parent_id, t.parent_traversal, a.level - 1
      from around a
      join stack p on p.id = a.parent_id and p.traversal = a.parent_traversal
      join traversal t on t.stack_id = p.id and t.number = p.traversal
), inside as (
    select id, traversal, level from around where level = 0
    union all
    select c.id, c.traversal, i.level + 1
      from inside i
      join stack c on c.parent_id = i.id and c.deleted_at is null
      join traversal t on t.stack_id = c.id and t.number = c.traversal
       and t.parent_traversal = i.traversal
)
select s.id, k.level, s.path, s.traversal, t.state in ('running', 'ending') as under_way, t.pace,
       s.sequence, s.name
  from (select id, level from around union select id, level from inside) k
  join stack s on s.id = k.id
  join traversal t on t.stack_id = s.id and t.number = s.traversal
 order by s.id
"""
READ_WALK = "select id, name, path, traversal, sequence from stack where id = $1"
LOCK_NEWER = """
select id from stack where id = any ($1) order by id for no key update skip locked
"""
#: Nested stacks can be created during the wait for a lock; fewer each time.
TRIES = 20


@dataclass(frozen=True, slots=True)
class StackTreeMember:
    """A stack that a change goes through. level: 0 for the one in question, less around it, more
    inside. path: from the outermost stack. under_way: its traversal has not ended. sequence: of
    its newest event."""

    id: UUID
    level: int
    path: str
    traversal: int
    under_way: bool
    pace: Pace | None
    sequence: int = 0
    name: str = ""

    @property
    def names(self) -> list[str]:
        """Names of the resources that lead to it from the root stack."""
        return list(filter(None, self.path.split("/")))


class Walk(NamedTuple):
    """A traversal of a stack. path: of the stack. sequence: of its newest event. current: it is
    the last one there."""

    id: UUID
    name: str
    path: str
    traversal: int
    sequence: int
    current: bool = True


class _NotAll(Exception):
    """New nested stacks were created, which another transaction has locked."""


async def read_stack_tree(conn: Connection, stack_id: UUID) -> list[StackTreeMember]:
    """In the order of their ids."""
    rows = await conn.fetch(READ, stack_id)
    return [
        StackTreeMember(**{**row, "pace": Pace(row["pace"]) if row["pace"] else None})
        for row in rows
    ]


async def read_traversal_states(conn: Connection, stack_id: UUID, *, nested: bool) -> list[Walk]:
    """The stack's own traversal; nested: and those that it began inside."""
    if nested:
        return [
            Walk(one.id, one.name, one.path, one.traversal, one.sequence)
            for one in within(await read_stack_tree(conn, stack_id))
        ]
    return [Walk(**row) for row in await conn.fetch(READ_WALK, stack_id)]


async def lock_stack_tree(conn: Connection, stack_id: UUID) -> list[StackTreeMember]:
    """Lock all stacks that the stack's change goes through; nothing comes to be in them then.

    Raises Unavailable when too much comes and goes to hold all of it.
    """
    for _ in range(TRIES):
        known = await read_stack_tree(conn, stack_id)
        try:
            async with all_or_nothing(conn):
                return await _locked(conn, stack_id, {one.id for one in known})
        except _NotAll:
            continue
    raise Unavailable("the stack changes too fast to be held", remedy="Try it again.")


async def _locked(conn: Connection, stack_id: UUID, known: set[UUID]) -> list[StackTreeMember]:
    await lock_stacks(conn, known)
    now = await read_stack_tree(conn, stack_id)
    newer = sorted({one.id for one in now} - known)
    # After the locked ones in the order of IDs, so there is no wait.
    if newer and len(await conn.fetch(LOCK_NEWER, newer)) < len(newer):
        raise _NotAll
    return await read_stack_tree(conn, stack_id) if newer else now


def within(kin: Iterable[StackTreeMember]) -> Sequence[StackTreeMember]:
    """The given stack and its nested stacks."""
    return [one for one in kin if one.level >= 0]
