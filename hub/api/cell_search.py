"""Asks several cells at once, within a time, so that none delays the requests of another.

The time holds also if a cell does not respond to the cancellation of a statement, which delays the
return of its connection.
"""

import asyncio
from collections.abc import Awaitable, Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Generic, TypeVar

from engine.bounded_wait import abandon
from engine.errors import Unavailable

T = TypeVar("T")

#: Seconds that a cell has to say whether it has a session or a project, or accepts a token.
FIND_TIMEOUT = 2.0
#: Seconds until the other cells are asked, too.
HEAD_START = 0.1


@dataclass(frozen=True, slots=True)
class CellSearch(Generic[T]):
    """found: None: no cell that responded has it. away: the names of the others."""

    found: T | None
    away: Sequence[str]


async def find_in_cells(
    asked: Mapping[str, Callable[[], Awaitable[T | None]]], first: str = ""
) -> CellSearch[T]:
    """The first result that a cell returns; None: it has none. All cells are asked at once, and
    have `FIND_TIMEOUT` to respond, unless the server has one database.

    asked: by the name of the cell. first: of the cell that probably has it: the others are asked if
    it has not, or takes longer than `HEAD_START`. Raises the errors of the cells but Unavailable.
    """
    if [*asked] == [""]:
        return CellSearch(await asked[""](), ())
    search = _Search[T]()
    try:
        if first in asked:
            search.ask(first, asked[first])
            await search.run(HEAD_START)
        if search.found is None:
            for name, ask in asked.items():
                if name != first:
                    search.ask(name, ask)
            await search.run(FIND_TIMEOUT)
        return CellSearch(search.found, [*search.failed, *search.waiting.values()])
    finally:
        for task in search.waiting:
            abandon(task)


class _Search(Generic[T]):
    """waiting: the cells that have not responded, by their task. failed: those that are away."""

    def __init__(self) -> None:
        self.found: T | None = None
        self.waiting: dict[asyncio.Future[T | None], str] = {}
        self.failed: list[str] = []

    def ask(self, name: str, ask: Callable[[], Awaitable[T | None]]) -> None:
        self.waiting[asyncio.ensure_future(ask())] = name

    async def run(self, seconds: float) -> None:
        """Wait for a result, for all cells, or for the time."""
        now = asyncio.get_running_loop().time
        end = now() + seconds
        while self.found is None and self.waiting and now() < end:
            done, _ = await asyncio.wait(
                self.waiting, timeout=end - now(), return_when=asyncio.FIRST_COMPLETED
            )
            for task in done:
                name = self.waiting.pop(task)
                try:
                    self.found = task.result() if self.found is None else self.found
                except Unavailable:
                    self.failed.append(name)
