"""The cell of a project: the one that changes it, and where it is read while it moves."""

import asyncio
from collections.abc import Iterable, Mapping, Sequence
from functools import partial

from engine.cells import CellPlacement
from engine.store.maintenance.project_moves import MoveRecord
from engine.store.projects import cells as store
from engine.words import MoveState
from hub.api.cell_search import find_in_cells
from hub.api.cells import (
    Cell,
    ReadPlace,
    ReadPlaces,
    naming_cell,
    refuse_moving,
    refuse_two_cells,
    unavailable,
)
from hub.program.cells.cell_states import CellStates, read_in_time
from hub.program.cells.placement_agreement import PlacementAgreement
from hub.program.cells.project_moves import MoveStates, ProjectMoves, version_of


class ProjectDirectory:
    """The methods that `hub.api.cells.Cells` has, too, are documented there."""

    def __init__(self, cells: CellStates, placement: CellPlacement) -> None:
        self._cells = cells
        #: Cells in which projects are recorded, by project: only of projects that have not moved.
        self._owners: dict[str, str] = {}
        self.moves = ProjectMoves(cells, self._forget)
        self.agreement = PlacementAgreement(cells, placement, self.moves)

    def _forget(self, moved: Iterable[str]) -> None:
        for project in moved:
            self._owners.pop(project, None)

    async def find(self, project: str) -> Cell:
        if states := self.moves.states_of(project):
            return self._choose(project, await self.moves.current_states(project, states))
        if (owner := self._owners.get(project)) is not None:
            return self._cells.serve(owner)
        possible = await self.agreement.possible_cells(project)
        if len(possible) > 1:
            search = await find_in_cells(
                {one: partial(self._has, one, project) for one in possible}
            )
            if search.found is not None:
                self._owners[project] = search.found.name
                return search.found
            if search.away:
                raise unavailable(search.away)
        return self._cells.serve(possible[0])

    async def _has(self, name: str, project: str) -> Cell | None:
        """The cell, if the project is recorded in it. Raises Unavailable."""
        cell = self._cells.serve(name)
        async with cell.context.database.connection() as conn:
            return cell if await store.has_project(conn, project) else None

    def _choose(self, project: str, states: MoveStates) -> Cell:
        """The cell of a project that moves or has moved. Raises Unavailable if none can serve it
        now."""
        for state in (None, MoveState.ANNOUNCED):
            for name, one in states.items():
                if one.state is state:
                    return self._cells.serve(name)
        targets = {one.moving_to for one in states.values() if one.state is MoveState.MOVED}
        if away := [name for name in targets - {*states} if name in self._cells.away()]:
            raise unavailable(away)
        raise refuse_moving(project)

    async def locate(self, project: str) -> ReadPlace:
        if not (known := self.moves.states_of(project)):
            return ReadPlace(await self.find(project), ())
        states = await self.moves.current_states(project, known)
        version = version_of(states)
        if (source := self._moving_from(states)) is None:
            return ReadPlace(self._choose(project, states), version)
        return ReadPlace(await self._reader_of(*source), version)

    async def is_current(self, project: str, place: ReadPlace) -> bool:
        await self.moves.refresh(place.cell.name)
        states = await self.moves.current_states(project, self.moves.states_of(project))
        return place.version == version_of(states)

    async def locate_all(self) -> ReadPlaces:
        reachable, moves = self._cells.reachable(), dict[str, MoveStates]()
        for cell, known in zip(reachable, await self.moves.refresh_all(reachable), strict=True):
            if known is not None:
                moves[cell.name] = known
        left = self._between_cells(moves)
        readers = await asyncio.gather(
            *(read_in_time(partial(self._reader_of, *one)) for one in left)
        )
        unread = {name for (name, _), one in zip(left, readers, strict=True) if one is None}
        return ReadPlaces(
            [*(one for one in reachable if one.name in moves), *filter(None, readers)],
            {name: version_of(states) for name, states in moves.items()},
            [name for name in self._cells.states if name not in moves or name in unread],
        )

    def _between_cells(self, moves: Mapping[str, MoveStates]) -> Sequence[tuple[str, MoveRecord]]:
        """The projects that are in no cell, because they have left one and are not in the other one
        yet: the names of the cells, and the moves. moves: by cell and project."""
        left: list[tuple[str, MoveRecord]] = []
        for name, states in moves.items():
            for project, one in states.items():
                if one.state is MoveState.TAKEN and one.filled:
                    known = {other: of[project] for other, of in moves.items() if project in of}
                    if one.moving_to in moves and self._moving_from(known) == (name, one):
                        left.append((name, one))
        return left

    async def are_current(self, places: ReadPlaces, away: Sequence[str]) -> bool:
        names = {*places.version} - {*away}
        cells = [one for one in self._cells.reachable() if one.name in names]
        known = await self.moves.refresh_all(cells)
        return all(
            states is not None and version_of(states) == places.version[cell.name]
            for cell, states in zip(cells, known, strict=True)
        )

    def _moving_from(self, states: MoveStates) -> tuple[str, MoveRecord] | None:
        """The cell that a project has left, where it is read until it is in the other one. None:
        there is none, or the other one is away, and can have changed the project by now."""
        if any(one.state in (None, MoveState.ANNOUNCED) for one in states.values()):
            return None  # a cell has it, also if an earlier move was never finished
        for name, one in states.items():
            target = states.get(one.moving_to)
            left_again = target is not None and target.has_left_after(one)
            is_away = one.moving_to not in self._cells.states or one.moving_to in self._cells.away()
            if one.state is MoveState.TAKEN and one.schema and not (left_again or is_away):
                return name, one
        return None

    async def _reader_of(self, name: str, record: MoveRecord) -> Cell:
        """Where to read a project that has left a cell. Raises Unavailable."""
        cell, readers = self._cells.serve(name), self._cells.readers(name)
        if not record.filled:  # the rows are still in their tables
            return cell
        if readers is None:
            raise unavailable([name])
        with naming_cell(name):
            return await readers.cell_of(record.schema)

    async def add_project(self, cell: Cell, project: str) -> None:
        if states := self.moves.states_of(project):
            if len(found := self.moves.cells_with(project)) > 1:
                raise refuse_two_cells(project, found)
            current = await self.moves.current_states(project, states)
            if (state := current.get(cell.name)) is None or state.state is not None:
                raise refuse_moving(project)
            return
        if project in self._owners:
            return
        async with cell.context.database.connection() as conn:
            if not await store.has_project(conn, project):
                await store.add_project(conn, project, self.agreement.revision_of_additions())
        self._owners[project] = cell.name
