"""What this process has read about projects that move, or have moved, between cells.

Each cell stores the moves from it and to it. They are read when a cell is connected, whenever the
agreement of the cells is checked (placement_agreement.py), and before a response if they were read
too long ago.
"""

import asyncio
from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from functools import partial

import structlog
from structlog.typing import FilteringBoundLogger

from engine.store.connection import Connection
from engine.store.maintenance import project_moves as store
from engine.store.maintenance.project_moves import MOVING, MoveRecord
from engine.words import MoveState
from hub.api.cells import Cell
from hub.program.cells.cell_states import CellStates, read_in_time

log: FilteringBoundLogger = structlog.get_logger()

#: Seconds after which the moves of a cell are read again before a response. A project leaves its
#: cell later than this after its move was announced (hub/cli/commands/project_move.py).
MAX_AGE = 8.0

#: The states of the move of a project, by cell.
MoveStates = Mapping[str, MoveRecord]
#: Differs as soon as a project can be elsewhere.
MovesVersion = tuple[tuple[str, str], ...]


def version_of(states: MoveStates) -> MovesVersion:
    """states: by cell, or by project."""
    return tuple(sorted((name, one.version) for name, one in states.items()))


class ProjectMoves:
    """forget: called with the projects whose moves were read: their cells may have changed."""

    def __init__(self, cells: CellStates, forget: Callable[[Iterable[str]], None]) -> None:
        self._cells, self._forget = cells, forget
        #: By cell and project.
        self._moves: dict[str, dict[str, MoveRecord]] = {}
        #: When they were read, by cell.
        self._read_at: dict[str, float] = {}
        #: Projects in two cells that the log has.
        self._logged: set[str] = set()

    async def read_moves(self, name: str, conn: Connection) -> None:
        """Read the projects that move from a cell, have moved from it, or to it."""
        now = asyncio.get_running_loop().time()
        # A cell that has lost the departure of a project does not know that it has moved.
        elsewhere = {
            project for cell, of_cell in self._moves.items() if cell != name for project in of_cell
        }
        self._moves[name] = await store.list_moves(conn, elsewhere)
        self._read_at[name] = now
        self._log_twice()
        if (readers := self._cells.readers(name)) is not None:
            taken = (one for one in self._moves[name].values() if one.state is MoveState.TAKEN)
            readers.keep({one.schema for one in taken})
        self._forget(self._moves[name])

    def cells_with(self, project: str) -> Sequence[str]:
        """The cells that have a project which has moved, as they were read last. More than one: a
        database has lost a move."""
        return [name for name, one in self.states_of(project).items() if one.state is None]

    def twice(self) -> Mapping[str, Sequence[str]]:
        """The projects that more than one cell has, with these cells."""
        projects = Counter(
            project
            for of_cell in self._moves.values()
            for project, one in of_cell.items()
            if one.state is None
        )
        return {one: self.cells_with(one) for one, count in projects.items() if count > 1}

    def count_moving(self) -> Mapping[str, int]:
        """The number of projects that move from each cell."""
        return {
            name: sum(one.state in MOVING for one in of_cell.values())
            for name, of_cell in self._moves.items()
        }

    def _log_twice(self) -> None:
        twice = self.twice()
        for project in twice.keys() - self._logged:
            log.error("cell.project_in_two_cells", project=project, cells=list(twice[project]))
        self._logged = {*twice}

    async def refresh(self, name: str, *, always: bool = False) -> MoveStates:
        """The projects that move or have moved, of a cell: read again if they were read too long
        ago, because a project can have left it since. Raises Unavailable."""
        now = asyncio.get_running_loop().time()
        if always or now - self._read_at.get(name, -MAX_AGE) >= MAX_AGE:
            async with self._cells.serve(name).context.database.connection() as conn:
                await self.read_moves(name, conn)
        return self._moves[name]

    async def refresh_all(self, cells: Sequence[Cell]) -> Sequence[MoveStates | None]:
        """As `refresh`, of each of the cells: the current ones if any project moves. None: the cell
        does not respond in time."""
        is_moving = bool(self.moving())
        return await asyncio.gather(
            *(read_in_time(partial(self.refresh, one.name, always=is_moving)) for one in cells)
        )

    def states_of(self, project: str) -> MoveStates:
        """By cell, as they were read last; empty: the project has never been moved."""
        read = self._moves.items()
        return {name: states[project] for name, states in read if project in states}

    async def current_states(self, project: str, states: MoveStates) -> MoveStates:
        """The states, read again if the project moves, or has arrived where it was not read."""
        settled = any(one.state is None for one in states.values())
        if any(one.state in MOVING for one in states.values()) or (states and not settled):
            return await self._read_states(project, states)
        return states

    async def _read_states(self, project: str, states: MoveStates) -> MoveStates:
        """The current states, in the cells of the move that are available."""
        names = [*states, *(one.moving_to for one in states.values())]
        found: dict[str, MoveRecord] = {}
        for name in names:
            if name in found or name not in self._cells.states:
                continue
            if (cell := self._cells.states[name].available) is None:
                continue
            async with cell.context.database.connection() as conn:
                state = await store.read_state(conn, project)
            if state is not None:
                found[name] = state
                if state.moving_to not in names:
                    names.append(state.moving_to)
        return found

    def moving(self) -> Sequence[str]:
        """The projects that are being moved to another cell."""
        return [
            project
            for states in self._moves.values()
            for project, one in states.items()
            if one.state in MOVING
        ]

    def is_leaving(self, cell: str, project: str) -> bool:
        """Whether the project moves, or has moved, from the cell to another one."""
        state = self._moves.get(cell, {}).get(project)
        return state is not None and state.state is not None
