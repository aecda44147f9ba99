"""Group commit of settlements: whoever has one waits; all that wait are written in one go."""

import asyncio
from collections.abc import Sequence

from channels.store.delivery_results import fail_delivery, settle
from channels.store.records import Settlement
from engine.errors import TimedOut
from engine.loops import Fault, Supervisor
from engine.store.database import Database

#: Seconds at most until the next try when the database does not answer. What is not written by the
#: end of its lease is delivered again.
LONGEST_PAUSE = 5.0
MOST_AT_ONCE = 500


class Settler:
    def __init__(
        self, database: Database, *, disable_after: int, supervisor: Supervisor | None = None
    ) -> None:
        self._database = database
        self._disable_after = disable_after
        self._waiting: list[tuple[Settlement, asyncio.Future[None]]] = []
        self._wake = asyncio.Event()
        self._guard = (supervisor or Supervisor()).guard("settle", longest=LONGEST_PAUSE)

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
        """Wait for the database as long as it takes. One that cannot be written fails alone."""
        done = asyncio.Event()

        async def turn() -> None:
            await self._guard.attempt(self._split(batch))
            done.set()

        await self._guard.run(turn, done)

    async def _split(self, batch: Sequence[Settlement]) -> None:
        try:
            await self._guard.split(batch, self._settle, self._fail, _named)
        except TimedOut as error:
            # The others are written; this one comes again when its lease is over.
            self._guard.report(error)

    async def _settle(self, batch: Sequence[Settlement]) -> None:
        await settle(self._database, batch, disable_after=self._disable_after)

    async def _fail(self, one: Settlement, fault: Fault) -> None:
        await fail_delivery(self._database, one.key, str(fault))


def _named(one: Settlement) -> dict[str, str]:
    return {"delivery": str(one.id), "subscription": str(one.key.subscription_id)}
