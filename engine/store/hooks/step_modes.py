"""Writes step modes: of running traversals, and of nested traversals that have not begun.

A node starts its next nested traversal in step mode if `step_into` is set in its row.
"""

from collections.abc import Sequence
from uuid import UUID

from engine.node.machine import stepping_moves
from engine.store.connection import Connection
from engine.store.hooks.locked_hooks import LockedHook
from engine.words import StepMode

#: $4 to $7: moves of the node machine.
SET_STEP_MODES = """
with modes as (
    select * from unnest($1::uuid[], $2::integer[], $3::text[])
                  s (stack_id, traversal, step_mode)
), changed as (
    update traversal t set step_mode = s.step_mode from modes s
     where t.stack_id = s.stack_id and t.number = s.traversal
)
update node n set phase = m.phase_after
  from modes s
 cross join unnest($4::text[], $5::text[], $6::text[], $7::text[])
            m (operation, state, phase, phase_after)
 where s.step_mode = 'step' and n.stack_id = s.stack_id and n.traversal = s.traversal
   and n.operation = m.operation and n.state = m.state and n.phase = m.phase
   and n.started_at is null
"""
SET_STEP_INTO = """
update node set step_into = true where stack_id = $1 and traversal = $2 and id = $3
"""
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


#: The moves of the node machine when stepping begins: operations, states, phases, and phases after.
STEPPING_MOVES = [
    list(column)
    for column in zip(
        *(
            (operation.value, before.state.value, before.phase.value, after.phase.value)
            for operation, before, after in stepping_moves()
        ),
        strict=True,
    )
]


async def set_step_modes(
    conn: Connection, modes: Sequence[tuple[UUID, int, StepMode | None]]
) -> None:
    """modes: (stack, traversal, stepping mode); None: hook rules apply."""
    if modes:
        await conn.execute(SET_STEP_MODES, *map(list, zip(*modes, strict=True)), *STEPPING_MOVES)


async def set_step_into(conn: Connection, hook: LockedHook) -> None:
    """The nested traversal that the hook's node starts is in stepping mode `step`."""
    await conn.execute(SET_STEP_INTO, hook.stack_id, hook.traversal, hook.node)


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
