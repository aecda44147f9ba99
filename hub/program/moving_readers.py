"""Reads projects that move to another cell: a pool of connections for each, which is open as long
as the rows of the project are in a schema of their own (ADR 16)."""

import asyncio
from dataclasses import dataclass

import structlog
from structlog.typing import FilteringBoundLogger

from engine.errors import Unavailable
from engine.store.database import Database
from engine.store.encryption.secret_values import Keyring
from engine.store.maintenance.moving_schemas import open_schema
from hub.api.cells import Cell
from hub.program.cell_services import make_moving_cell
from hub.program.loops import Loops

log: FilteringBoundLogger = structlog.get_logger()


@dataclass(frozen=True, slots=True)
class _Reader:
    database: Database
    cell: Cell


class MovingReaders:
    """Of the projects that move from one cell. cell, loops: its services."""

    def __init__(self, cell: Cell, loops: Loops, keyring: Keyring) -> None:
        self._cell, self._loops, self._keyring = cell, loops, keyring
        self._opened: dict[str, _Reader] = {}  # by schema
        self._opening = asyncio.Lock()
        self._closing: set[asyncio.Task[None]] = set()

    async def cell_of(self, schema: str) -> Cell:
        """The services that read a schema. Raises Unavailable."""
        async with self._opening:
            reader = self._opened.get(schema)
            if reader is None:
                connector = self._loops.database.connector
                try:
                    database = await open_schema(connector, schema, self._keyring)
                except Unavailable as error:
                    log.warning(
                        "cell.moving_project_unread", cell=self._cell.name, reason=str(error)
                    )
                    raise
                cell = make_moving_cell(self._cell, self._loops, database)
                reader = self._opened[schema] = _Reader(database, cell)
        return reader.cell

    def keep(self, schemas: set[str]) -> None:
        """Close the connections to other schemas, without waiting for their reads."""
        for schema in self._opened.keys() - schemas:
            reader = self._opened.pop(schema)
            reader.cell.context.feed.stop()
            task = asyncio.create_task(reader.database.close())
            self._closing.add(task)
            task.add_done_callback(self._closing.discard)

    async def close(self) -> None:
        self.keep(set())
        await asyncio.gather(*self._closing, return_exceptions=True)
