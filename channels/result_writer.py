"""Group commit of delivery results: writes all waiting results in one transaction."""

import asyncio
from collections.abc import Sequence

from channels.store.delivery_results import fail_delivery, write_results
from channels.store.records import DeliveryResult
from engine.errors import TimedOut
from engine.loop_guard import Fault, Supervisor
from engine.store.database import Database

#: Maximum seconds between two tries while the database is not available. A delivery whose result is
#: not written before its lease expires is delivered again.
MAX_PAUSE = 5.0
MAX_BATCH = 500


class ResultWriter:
    def __init__(
        self, database: Database, *, disable_after: int, supervisor: Supervisor | None = None
    ) -> None:
        self._database = database
        self._disable_after = disable_after
        self._waiting: list[tuple[DeliveryResult, asyncio.Future[None]]] = []
        self._wake = asyncio.Event()
        self._guard = (supervisor or Supervisor()).guard("delivery_results", max_pause=MAX_PAUSE)

    def write(self, result: DeliveryResult) -> asyncio.Future[None]:
        """A future that is done when the result is durable, or cannot be written because another
        process has claimed the delivery or an internal error was raised.

        Results are written in the order of the calls, several in one transaction.
        """
        written: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        self._waiting.append((result, written))
        self._wake.set()
        return written

    async def run(self) -> None:
        """Run until cancelled. A delivery without a written result is delivered again."""
        while True:
            await self._wake.wait()
            self._wake.clear()
            while self._waiting:
                batch = self._waiting[:MAX_BATCH]
                del self._waiting[:MAX_BATCH]
                await self._write([one for one, _ in batch])
                for _, written in batch:
                    if not written.done():
                        written.set_result(None)

    async def _write(self, batch: Sequence[DeliveryResult]) -> None:
        """Retry until the database accepts the batch. A result that cannot be written fails
        alone."""
        done = asyncio.Event()

        async def turn() -> None:
            await self._guard.attempt(self._split(batch))
            done.set()

        await self._guard.run(turn, done)

    async def _split(self, batch: Sequence[DeliveryResult]) -> None:
        try:
            await self._guard.split(batch, self._write_results, self._fail, _log_fields)
        except TimedOut as error:
            # The other results are written; this delivery is repeated when its lease expires.
            self._guard.report(error)

    async def _write_results(self, batch: Sequence[DeliveryResult]) -> None:
        await write_results(self._database, batch, disable_after=self._disable_after)

    async def _fail(self, one: DeliveryResult, fault: Fault) -> None:
        await fail_delivery(self._database, one.key, str(fault))


def _log_fields(one: DeliveryResult) -> dict[str, str]:
    return {"delivery": str(one.id), "subscription": str(one.key.subscription_id)}
