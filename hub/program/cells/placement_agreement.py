"""Brings the placement of the settings to all cells: which projects are in which cell.

A new revision is announced in every cell first. It applies when every process with an earlier one
has had the time to notice it.
"""

import asyncio
from collections.abc import Mapping, Sequence
from functools import partial

from engine.cells import CellPlacement, merge_histories, possible_cells
from engine.errors import Conflict, Unavailable
from engine.store.projects import cells as store
from engine.store.projects.cells import CellRecord
from hub.api.cells import Cell, no_cell
from hub.program.cells.cell_states import CellStates, read_in_time
from hub.program.cells.periodic_step import RETRY_INTERVAL
from hub.program.cells.project_moves import ProjectMoves

#: Seconds in which every process notices that a revision was announced.
NOTICE_TIME = 2 * RETRY_INTERVAL


class PlacementAgreement:
    """placement: of the settings."""

    def __init__(self, cells: CellStates, placement: CellPlacement, moves: ProjectMoves) -> None:
        self._cells, self._placement, self._moves = cells, placement, moves
        self._history: Sequence[CellPlacement] = ()
        self._agreed = False
        #: A later revision that another process has announced; 0: there is none.
        self._later = 0
        self._announced_at: float | None = None

    async def agree(self) -> None:
        """Take the next step to the placement of the settings, if there is one. Raises Unavailable,
        and Conflict if the settings contradict what the cells have stored."""
        records, own = await self._read_history(), self._placement
        if not records:
            return
        announced = max(one.announced for one in records.values())
        if announced > own.revision:
            self._later, self._agreed = announced, False
            raise Conflict(
                f"this process has an earlier revision of [cells] than the cells: {own.revision}",
                place="[cells] revision",
                remedy="Restart it with the current settings; until then, it adds no projects",
                code="OutdatedPlacement",
            )
        agreed = max(one.agreed for one in records.values())
        history = merge_histories([*(one.history for one in records.values()), [own]])
        if agreed < own.revision and len(records) < len(self._cells.states):
            return
        behind = [name for name, one in records.items() if one.agreed < own.revision]
        for name in behind:
            async with self._cells.serve(name).context.database.connection() as conn:
                await store.announce(conn, own.revision)
        if 0 < agreed < own.revision and not self._was_noticed():
            return
        for name in behind:
            async with self._cells.serve(name).context.database.connection() as conn:
                await store.agree(conn, history)
        records = await self._read_history()
        self._agreed = any(one.agreed == own.revision for one in records.values())

    def _was_noticed(self) -> bool:
        """Whether processes with an earlier revision know by now that they are outdated, and read
        from the cells where a project can be."""
        now = asyncio.get_running_loop().time()
        if self._announced_at is None:
            self._announced_at = now
        return now - self._announced_at >= NOTICE_TIME

    async def _read_history(self) -> Mapping[str, CellRecord]:
        """The records of the cells that are connected and respond. The newest history applies."""

        async def read(cell: Cell) -> CellRecord | None:
            async with cell.context.database.connection() as conn:
                await self._moves.read_moves(cell.name, conn)
                return await store.read_cell(conn)

        cells = self._cells.reachable()
        found = await asyncio.gather(*(read_in_time(partial(read, one)) for one in cells))
        records = {
            cell.name: one for cell, one in zip(cells, found, strict=True) if one is not None
        }
        newest = max(records.values(), key=lambda one: one.agreed, default=None)
        if newest is not None and newest.agreed:
            self._history = newest.history
        return records

    async def possible_cells(self, project: str) -> Sequence[str]:
        """The names of the cells that a project can be in; the first one is where it is added.
        Raises NotFound if there is none, and Unavailable if the cells have not agreed yet."""
        if self._later:
            await self._read_history()
        if not self._history:
            raise self._not_agreed()
        possible = possible_cells(self._history, project)
        if not possible:
            raise no_cell(project, "path")
        return possible

    def revision_of_additions(self) -> int:
        """The revision with which a project is added. Raises Unavailable if none is added now."""
        if self._later:
            raise store.refuse_outdated(self._placement.revision, self._later)
        if not self._agreed:
            raise self._not_agreed()
        return self._placement.revision

    def _not_agreed(self) -> Unavailable:
        away = self._cells.away()
        return Unavailable(
            f"the cells have not agreed to revision {self._placement.revision} of [cells] yet, and"
            " until then no project is added"
            + (f"; not available: {', '.join(away)}" if away else ""),
            place="[cells] revision",
            remedy="Send the request again after the time in Retry-After; the log of the server has"
            " the reason.",
            code="CellsNotAgreed",
        )
