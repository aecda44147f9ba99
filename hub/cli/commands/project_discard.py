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
from hub.api.cells import unavailable
from hub.cli.commands.project_move import (
    COMMAND,
    ProjectMove,
    Report,
    check_cell_name,
    connect_cells,
    delete_moved,
    exclude_others,
    find_here,
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
            move = uuid4()
            await moves.decide_outcome(connections[plan.kept], move, arrived=True)
            await moves.set_discarded(conn, project, plan.kept, move)
            reach("move.switched")
            await delete_moved(conn, cell, project, report)
        else:
            while await moves.delete_page(conn, project):
                pass
        return ProjectMove(project, cell, plan.kept, finished=True)


async def _connect(
    stack: AsyncExitStack, settings: Settings, cell: str
) -> Mapping[str, Connection]:
    check_cell_name(settings, cell, "--discard")
    connections, away = await connect_cells(stack, settings, make_keyring(settings))
    if away:
        raise unavailable(away)
    return connections


async def _plan(connections: Mapping[str, Connection], project: str, cell: str) -> DiscardPlan:
    states = {name: await moves.read_state(one, project) for name, one in connections.items()}
    here = find_here(states)
    kept = [name for name in here if name != cell]
    is_moving = any(one is not None and one.state in moves.MOVING for one in states.values())
    whole = cell in here
    if not kept or is_moving or not (whole or await moves.has_copies(connections[cell], project)):
        raise _refuse(project, cell, here)
    what = {**dict.fromkeys(kept, "stays"), cell: "is deleted"}
    facts = [
        f"{name}, which {verb}: {await moves.summarize(connections[name], project)}"
        for name, verb in what.items()
    ]
    return DiscardPlan(kept[0], whole, facts)


def _refuse(project: str, cell: str, here: Sequence[str]) -> Conflict:
    where = f"; it is in {', '.join(here)}" if here else ""
    return Conflict(
        f'the cell "{cell}" has no rows of the project "{project}" that are also in another'
        f" cell{where}",
        place=COMMAND,
        remedy="Continue a move with --to, or end it with --undo",
        code="NoMove",
    )
