"""Ends steps into nested stacks whose traversals have not begun.

`set_step_into` (engine/store/hooks.py) stores such a step with the node that starts the traversal.
"""

from collections.abc import Sequence
from uuid import UUID

from engine.store.connection import Connection
from engine.store.hooks import LockedHook

CLEAR_NODE = """
update node set step_into = false
 where stack_id = $1 and traversal = $2 and id = $3 and step_into
"""
CLEAR_ALL = """
update node n set step_into = false
  from unnest($1::uuid[], $2::integer[]) s (stack_id, traversal)
 where n.stack_id = s.stack_id and n.traversal = s.traversal and n.step_into
"""
CLEAR_OWNERS = """
update node n set step_into = false
  from unnest($1::uuid[], $2::integer[]) s (stack_id, traversal)
 cross join lateral (select parent_id from stack where id = s.stack_id offset 0) c
 cross join lateral (
       select parent_traversal, parent_node from traversal
        where stack_id = s.stack_id and number = s.traversal offset 0) t
 where n.stack_id = c.parent_id and n.traversal = t.parent_traversal and n.id = t.parent_node
   and n.step_into
"""


async def clear_node(conn: Connection, hook: LockedHook) -> None:
    """The hook's node starts its next nested traversal without stepping."""
    await conn.execute(CLEAR_NODE, hook.stack_id, hook.traversal, hook.node)


async def clear_all(conn: Connection, traversals: Sequence[tuple[UUID, int]]) -> None:
    """No node of these traversals (stack, number) starts a nested traversal in step mode."""
    if traversals:
        await conn.execute(CLEAR_ALL, *map(list, zip(*traversals, strict=True)))


async def clear_owners(conn: Connection, traversals: Sequence[tuple[UUID, int]]) -> None:
    """The nodes that started these nested traversals (stack, number) start their next ones without
    stepping: those of a group, which has a nested traversal for each batch."""
    if traversals:
        await conn.execute(CLEAR_OWNERS, *map(list, zip(*traversals, strict=True)))
