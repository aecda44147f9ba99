"""headgate admin move-project --discard: removes the rows of a project from one of two cells.

Two cells have a project after a failover of one of them to a standby that lacked a move, or when an
older backup was restored. The discarded rows are deleted as those of a project that has moved, so
the command can be killed at any time: `--to` with the other cell continues it.
"""

from collections.abc import Mapping, Sequence
from contextlib import AsyncExitStack
from dataclasses import dataclass
from uuid import uuid4

from engine.errors import Conflict
from engine.store.connection import Connection
from engine.store.fault_points import reach
from engine.store.maintenance import project_moves as moves
from engine.store.maintenance.project_moves import LEFT, MoveRecord
from engine.words import MoveState
from hub.cli.commands.project_move import (
    COMMAND,
    ProjectMove,
    Report,
    check_cell_name,
    connect_cells,
    delete_moved,
    exclude_others,
    find_here,
    refuse_away,
)
from hub.program.wiring import make_keyring
from hub.settings.settings import Settings


@dataclass(frozen=True, slots=True)
class DiscardPlan:
    """kept: the cell that keeps the project. whole: the project is in the other cell, too;
    otherwise that has only copies. facts: what each cell has, one line each."""

    kept: str
    whole: bool
    facts: Sequence[str]


async def plan_discard(settings: Settings, project: str, cell: str) -> DiscardPlan:
    """What `discard_project` would delete. Raises Conflict as it does."""
    async with AsyncExitStack() as stack:
        return await _plan(await _connect(stack, settings, cell), project, cell)


async def discard_project(
    settings: Settings, project: str, cell: str, *, report: Report
) -> ProjectMove:
    """Delete the rows of a project in a cell if another one has the project, too, or if they are
    copies that a move has left. Raises Conflict if they are neither."""
    async with AsyncExitStack() as stack:
        connections = await _connect(stack, settings, cell)
        await stack.enter_async_context(exclude_others(settings, project, connections))
        plan, conn = await _plan(connections, project, cell), connections[cell]
        if plan.whole:
            move, kept = uuid4(), connections[plan.kept]
            await moves.decide_outcome(kept, move, arrived=True)
            await moves.keep_project(kept, project, cell)
            await moves.set_discarded(conn, project, plan.kept, move)
            # Another command can have discarded it there at the same time.
            state = await moves.read_state(kept, project)
            if state is None or state.state is not None:
                await moves.end_discarded(conn, project, move)
                raise moves.refuse_other(project)
            reach("move.switched")
            await delete_moved(conn, cell, project, report)
        else:
            await moves.delete_copies(conn, project, LEFT)
        return ProjectMove(project, cell, plan.kept, finished=True)


async def _connect(
    stack: AsyncExitStack, settings: Settings, cell: str
) -> Mapping[str, Connection]:
    check_cell_name(settings, cell, "--discard")
    connections, away = await connect_cells(stack, settings, make_keyring(settings))
    if away:
        raise refuse_away(away, [*away])
    return connections


async def _plan(connections: Mapping[str, Connection], project: str, cell: str) -> DiscardPlan:
    states = {name: await moves.read_state(one, project) for name, one in connections.items()}
    here = find_here(states)
    kept = [name for name in here if name != cell]
    is_moving = any(one is not None and one.state in moves.MOVING for one in states.values())
    whole = cell in here
    if not kept or is_moving or not (whole or await moves.has_copies(connections[cell], project)):
        raise _refuse(project, cell, here)
    record = states[cell]
    if not whole and record is not None and record.state is MoveState.MOVED:
        raise await _refuse_former(connections, record, project, cell)
    found = {name: await moves.summarize(connections[name], project) for name in (*kept, cell)}
    facts = [f"{name}, which stays: {found[name]}" for name in kept]
    deleted = found[cell] if whole else f"{found[cell].rows} copies of rows"
    facts.append(f"{cell}, which is deleted: {deleted}")
    return DiscardPlan(kept[0], whole, facts)


async def _refuse_former(
    connections: Mapping[str, Connection], record: MoveRecord, project: str, cell: str
) -> Conflict:
    """What to raise for rows that a move from this cell has left: the other cell can have lost
    them, or its standbys do not have them yet."""
    target = record.moving_to
    if target not in connections:
        raise refuse_away({}, [target])
    if await moves.read_outcome(connections[target], project, cell, record):
        remedy = f"Finish the move with --to {target}, which deletes them"
    else:
        remedy = (
            f'The cell "{target}" does not have them any more. Put them back with --undo; then'
            " discard the project in one of the cells, if both have it"
        )
    return Conflict(
        f'the rows of the project "{project}" in the cell "{cell}" are those of its move to'
        f' "{target}"',
        place=COMMAND,
        remedy=remedy,
        code="MoveLeftovers",
    )


def _refuse(project: str, cell: str, here: Sequence[str]) -> Conflict:
    where = f"; it is in {', '.join(here)}" if here else ""
    return Conflict(
        f'the cell "{cell}" has no rows of the project "{project}" that are also in another'
        f" cell{where}",
        place=COMMAND,
        remedy="Continue a move with --to, or end it with --undo",
        code="NoMove",
    )
