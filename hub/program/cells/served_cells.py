"""The cells that a process serves: what the API asks of them, and what keeps them connected and in
agreement."""

import asyncio
from collections.abc import Mapping, Sequence
from contextlib import suppress

from engine.errors import HeadgateError
from engine.tracing import Tracer
from hub.api.cells import Cell, ReadPlace, ReadPlaces
from hub.auth.oidc_client import OidcClient
from hub.program.cells.cell_connection import CellConnector, wait_for_first
from hub.program.cells.cell_states import CellState, CellStates
from hub.program.cells.periodic_step import repeat
from hub.program.cells.project_directory import ProjectDirectory
from hub.program.cells.token_sharing import TokenSharing
from hub.program.process_slot import ProcessSlot
from hub.settings.settings import Settings

#: Seconds that the start waits for cells.
START_TIMEOUT = 15.0
#: Errors of cells that end the process at its start: the settings are wrong.
WRONG_SETTINGS = frozenset({
    "ApiWithoutCells", "CellMissing", "DifferentClusters", "NotItsReplica", "OtherCell",
    "OtherPlacement", "ProjectsOfOtherCells", "ReplicaNotPrimary",
})  # fmt: skip


class ServedCells:
    """The methods of `hub.api.cells.Cells` are documented there. stop: set when the process
    stops."""

    def __init__(
        self,
        settings: Settings,
        slot: ProcessSlot,
        tracer: Tracer,
        stop: asyncio.Event,
        oidc: OidcClient | None = None,
    ) -> None:
        self._stop = stop
        self.cells = CellStates(settings)
        self._directory = ProjectDirectory(self.cells, settings.cells.placement)
        self.moves = self._directory.moves
        self._tokens = TokenSharing(self.cells, settings.auth.mode, stop)
        self._connector = CellConnector(
            settings, slot, tracer, stop, oidc, self.cells, self._directory.moves, self._tokens
        )
        self.limits = self._connector.limits

    @property
    def states(self) -> Mapping[str, CellState]:
        """By the names of the cells."""
        return self.cells.states

    async def find(self, project: str) -> Cell:
        return await self._directory.find(project)

    async def locate(self, project: str) -> ReadPlace:
        return await self._directory.locate(project)

    async def is_current(self, project: str, place: ReadPlace) -> bool:
        return await self._directory.is_current(project, place)

    async def locate_all(self) -> ReadPlaces:
        return await self._directory.locate_all()

    async def are_current(self, places: ReadPlaces, away: Sequence[str]) -> bool:
        return await self._directory.are_current(places, away)

    async def add_project(self, cell: Cell, project: str) -> None:
        await self._directory.add_project(cell, project)

    async def share_tokens(self) -> None:
        await self._tokens.share()

    def reachable(self) -> Sequence[Cell]:
        return self.cells.reachable()

    def away(self) -> Sequence[str]:
        return self.cells.away()

    def moving(self) -> Sequence[str]:
        return self._directory.moves.moving()

    def is_leaving(self, cell: str, project: str) -> bool:
        return self._directory.moves.is_leaving(cell, project)

    async def ready(self) -> list[str]:
        """The reasons why this process serves no cell; empty if it serves one."""
        reasons: list[str] = []
        for state in self.states.values():
            if state.available is not None:
                return []
            reasons.append(f"{state.name}: {state.error or 'not connected yet'}")
        return reasons

    async def keep_connected(self, state: CellState) -> None:
        """Connect a cell until the process stops, again whenever its services end."""
        await self._connector.keep_connected(state)

    async def keep_agreed(self) -> None:
        """Bring the placement of the settings to all cells, as soon as they are connected, and
        notice later revisions."""
        await repeat(self._directory.agreement.agree, self._stop, "cells.not_agreed")

    async def keep_tokens_shared(self) -> None:
        """Bring the tokens that are valid in every project to all cells: also those that another
        process or command has created or revoked."""
        await repeat(self._tokens.share_changes, self._stop, "cells.tokens_not_shared")

    async def check_start(self) -> None:
        """Wait a limited time for the first attempts to connect. Raises Conflict if the settings
        contradict what the cells have stored."""
        with suppress(TimeoutError):
            async with asyncio.timeout(START_TIMEOUT):
                for state in self.states.values():
                    await wait_for_first(state.tried, self._stop)
        for state in self.states.values():
            if state.error is not None and state.error.code in WRONG_SETTINGS:
                raise state.error
        try:
            await self._directory.agreement.agree()
        except HeadgateError as error:
            if error.code in WRONG_SETTINGS:
                raise
