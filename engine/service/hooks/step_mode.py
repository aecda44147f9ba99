"""Applies a stepping mode (`run`, `step`) to every stack of the change under way."""

from collections.abc import Sequence

from engine.hooks.step_mode import StepModeChange
from engine.store.connection import Connection
from engine.store.hooks import Held, lock_hooks, set_paces, waiting_of
from engine.store.stack_tree import StackTreeMember, within


async def set_step_mode(
    conn: Connection, mode_change: StepModeChange, tree: Sequence[StackTreeMember]
) -> list[Held]:
    """Set the step modes of the traversals; returns the waiting hooks to continue, locked.

    tree: the stacks of the change, locked.
    """
    await set_paces(
        conn,
        [
            (one.id, one.traversal, mode_change.at(one.level)[one.pace])
            for one in tree
            if one.under_way and one.pace in mode_change.at(one.level)
        ],
    )
    running = [(one.id, one.traversal) for one in within(tree) if one.under_way]
    waiting = await waiting_of(conn, running)
    hooks = await lock_hooks(conn, waiting) if waiting else []
    return [one for one in hooks if mode_change.resumes(one.asked.rule)]
