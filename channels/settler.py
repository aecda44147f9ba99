"""Group commit of settlements: whoever has one waits; all that wait are written in one go."""

import asyncio
from collections.abc import Sequence

import structlog
from structlog.typing import FilteringBoundLogger

from channels.store.records import Settlement
from channels.store.settle import settle
from engine.errors import Unavailable
from engine.store.database import Database

log: FilteringBoundLogger = structlog.get_logger()

#: Seconds until the next try when the database does not answer. What is not written by the end of
#: its lease is delivered again.
PAUSE = 0.5
MOST_AT_ONCE = 500

#: How often a batch is tried that fails for a reason of its own.
TRIES = 2


class Settler:
    def __init__(self, database: Database, *, disable_after: int) -> None:
        self._database = database
        self._disable_after = disable_after
        self._waiting: list[tuple[Settlement, asyncio.Future[None]]] = []
        self._wake = asyncio.Event()

    def write(self, settlement: Settlement) -> asyncio.Future[None]:
        """Done once it is durable, or was found to be somebody else's or impossible to write.

        What is handed in first is written first, or together with what comes after it.
        """
        written: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        self._waiting.append((settlement, written))
        self._wake.set()
        return written

    async def run(self) -> None:
        """Runs until cancelled, which loses nothing: what is not written is delivered again."""
        while True:
            await self._wake.wait()
            self._wake.clear()
            while self._waiting:
                batch = self._waiting[:MOST_AT_ONCE]
                del self._waiting[:MOST_AT_ONCE]
                await self._write([one for one, _ in batch])
                for _, written in batch:
                    if not written.done():
                        written.set_result(None)

    async def _write(self, batch: Sequence[Settlement]) -> None:
        """One that cannot be written at all shall not take the others with it."""
        if await self._written(batch):
            return
        if len(batch) == 1:
            log.error("settle.dropped", delivery=str(batch[0].id), state=batch[0].state)
            return
        for one in batch:
            await self._write([one])

    async def _written(self, batch: Sequence[Settlement]) -> bool:
        """Wait for the database as long as it takes; for anything else try a second time."""
        broken = 0
        while broken < TRIES:
            try:
                await settle(self._database, batch, disable_after=self._disable_after)
            except Unavailable as error:
                log.warning("settle.unavailable", reason=str(error), waiting=len(batch))
            except Exception:
                broken += 1
                log.exception("settle.broken", waiting=len(batch))
            else:
                return True
            await asyncio.sleep(PAUSE)
        return False
