"""Brings the tokens that are valid in every project, and their revocations, to all cells."""

import asyncio
from collections.abc import Awaitable, Callable, Sequence
from typing import TypeVar

import structlog
from structlog.typing import FilteringBoundLogger

from engine.bounded_wait import wait_at_most
from engine.store.access.token_copies import InCell, share_tokens
from engine.store.access.tokens import MODE
from engine.store.connection import Connection
from hub.api.cells import Cell, unavailable
from hub.program.cells.cell_states import CellStates, read_in_time

log: FilteringBoundLogger = structlog.get_logger()

T = TypeVar("T")

#: Seconds in which a cell that returns waits for the tokens of the other cells. One of them that
#: does not respond is known to be away earlier than this (probe.py).
TOKENS_TIMEOUT = 8.0
#: Seconds between two attempts to read them.
TOKENS_INTERVAL = 0.1


class TokenSharing:
    """mode: of `[auth]`; only built-in tokens are shared. stop: set when the process stops."""

    def __init__(self, cells: CellStates, mode: str, stop: asyncio.Event) -> None:
        self.cells, self._has_tokens, self._stop = cells, mode == MODE, stop
        #: How often tokens have changed, by this process or another one, or a cell has become
        #: available, whose tokens others can lack.
        self._changes = 0

    async def share(self) -> None:
        """After a change of this process. A cell that does not respond is away from now on, so that
        it serves no request with the former tokens."""
        self.count_change()
        cells = self.cells.reachable()
        for name in await self.compare(*cells):
            self.cells.states[name].record(unavailable([name]))
        for cell in cells:
            cell.admission.gatekeeper.authenticator.forget()

    async def share_changes(self) -> None:
        """Share changes of other processes and of commands, which do not notify this process."""
        await self.compare(*self.cells.reachable())

    def count_change(self) -> None:
        """A comparison of tokens that is under way may lack this change."""
        self._changes += 1

    async def compare(self, *cells: Cell) -> Sequence[str]:
        """Bring the tokens that are valid in every project to all these cells; the names of those
        that did not respond."""
        if not self._has_tokens:
            return ()
        return await share_tokens({one.name: _work_in(one) for one in cells})

    async def complete(self, cell: Cell) -> None:
        """Bring a cell that was away the tokens of the others, and what happened to them, also what
        changes meanwhile. Make it available without waiting for anything after this. An available
        cell that does not respond is asked again, for a limited time. Raises Unavailable."""
        now = asyncio.get_running_loop().time
        end = now() + TOKENS_TIMEOUT
        while True:
            changes = self._changes
            failed = await self.compare(*self.cells.reachable(), cell)
            if cell.name in failed:
                raise unavailable([cell.name])
            is_complete = changes == self._changes and not failed
            if is_complete or now() >= end or self._stop.is_set():
                break
            if failed:
                await wait_at_most(self._stop, TOKENS_INTERVAL)
        if not (is_complete or self._stop.is_set()):
            log.warning("cell.tokens_incomplete", cell=cell.name, not_read=[*failed])
        self.count_change()
        # Its notifications may have been lost.
        cell.admission.gatekeeper.authenticator.forget()


def _work_in(cell: Cell) -> InCell:
    async def work_in_cell(work: Callable[[Connection], Awaitable[T]]) -> T | None:
        async def do_work() -> T:
            async with cell.context.database.connection() as conn:
                return await work(conn)

        return await read_in_time(do_work)

    return work_in_cell
