"""Reads projects that move to another cell: a pool of connections for each, which is open as long
as the rows of the project are in a schema of their own (ADR 16)."""

import asyncio
from dataclasses import dataclass
from functools import partial

import structlog
from structlog.typing import FilteringBoundLogger

from engine.errors import Unavailable
from engine.store.database import Database
from engine.store.encryption.secret_values import Keyring
from engine.store.maintenance.moving_schemas import open_schema
from hub.api.cells import Cell, unavailable
from hub.program.cell_services import make_moving_cell
from hub.program.loops import Loops

log: FilteringBoundLogger = structlog.get_logger()

#: Seconds that a request waits for the first connection; less than cell_states.py waits.
OPEN_WAIT = 1.5
#: Seconds after which an attempt to connect is given up.
OPEN_TIMEOUT = 15.0
#: Code in the log of an attempt that takes longer than a request waits.
SLOW = "slow"


@dataclass(frozen=True, slots=True)
class _Reader:
    database: Database
    cell: Cell


class MovingReaders:
    """Of the projects that move from one cell. cell, loops: its services."""

    def __init__(self, cell: Cell, loops: Loops, keyring: Keyring) -> None:
        self._cell, self._loops, self._keyring = cell, loops, keyring
        # By schema:
        self._opened: dict[str, _Reader] = {}
        self._attempts: dict[str, asyncio.Task[Cell]] = {}
        self._logged: dict[str, str] = {}  # code of the last error
        self._closing: set[asyncio.Task[None]] = set()

    async def cell_of(self, schema: str) -> Cell:
        """The services that read a schema. Raises Unavailable.

        All requests wait for the same attempt to connect, and none ends it. After an attempt that
        was slow, they do not wait for the next ones.
        """
        if (reader := self._opened.get(schema)) is not None:
            return reader.cell
        if (attempt := self._attempts.get(schema)) is None:
            attempt = asyncio.create_task(self._open(schema), name=f"open {schema}")
            self._attempts[schema] = attempt
            attempt.add_done_callback(partial(self._end_attempt, schema))
        if self._logged.get(schema) != SLOW:
            await asyncio.wait([attempt], timeout=OPEN_WAIT)
            if not attempt.done():
                self._record_slow(schema)
        if not attempt.done() or attempt.cancelled():
            raise unavailable([self._cell.name])
        return attempt.result()

    async def _open(self, schema: str) -> Cell:
        now = asyncio.get_running_loop().time
        start = now()
        try:
            async with asyncio.timeout(OPEN_TIMEOUT):
                connector = self._loops.database.connector
                database = await open_schema(connector, schema, self._keyring)
        except (Unavailable, TimeoutError) as error:
            if isinstance(error, TimeoutError) or now() - start >= OPEN_WAIT:
                self._record_slow(schema)
                raise unavailable([self._cell.name]) from error
            self._record(schema, error.code, str(error))
            raise
        self._logged.pop(schema, None)
        cell = make_moving_cell(self._cell, self._loops, database)
        self._opened[schema] = _Reader(database, cell)
        return cell

    def _end_attempt(self, schema: str, attempt: asyncio.Task[Cell]) -> None:
        if self._attempts.get(schema) is attempt:
            del self._attempts[schema]
        if not attempt.cancelled():
            attempt.exception()  # read, so that it is not logged

    def _record_slow(self, schema: str) -> None:
        self._record(schema, SLOW, f"no connection in {OPEN_WAIT:g} seconds")

    def _record(self, schema: str, code: str, reason: str) -> None:
        """Log changes."""
        if self._logged.get(schema) != code:
            self._logged[schema] = code
            log.warning("cell.moving_project_unread", cell=self._cell.name, reason=reason)

    def keep(self, schemas: set[str]) -> None:
        """Close the connections to other schemas, without waiting for their reads."""
        for schema in self._attempts.keys() - schemas:
            self._attempts[schema].cancel()
        for schema in self._logged.keys() - schemas:
            del self._logged[schema]
        for schema in self._opened.keys() - schemas:
            reader = self._opened.pop(schema)
            reader.cell.context.feed.stop()
            task = asyncio.create_task(reader.database.close())
            self._closing.add(task)
            task.add_done_callback(self._closing.discard)

    async def close(self) -> None:
        attempts = list(self._attempts.values())
        for attempt in attempts:
            attempt.cancel()
        await asyncio.gather(*attempts, return_exceptions=True)
        self.keep(set())
        await asyncio.gather(*self._closing, return_exceptions=True)
