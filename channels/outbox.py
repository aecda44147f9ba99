"""The publishing loop: publishes committed events from the outbox in order."""

import asyncio

from channels.store.publish import Horizon, Published, pass_over, publish
from engine.loops import BatchSize, Supervisor, wait_at_most
from engine.store.database import Database


class OutboxPublisher:
    """rows: outbox rows published in one transaction at most. poll: seconds.

    A commit that cannot be published is skipped: streams contain its events, subscriptions do not.
    """

    def __init__(
        self,
        database: Database,
        *,
        horizon: Horizon,
        rows: int,
        poll: float,
        supervisor: Supervisor | None = None,
    ) -> None:
        self._database = database
        self._horizon = horizon
        self._size = BatchSize(rows)
        self._poll = poll
        self._guard = (supervisor or Supervisor()).guard("publish", longest=poll)
        self.wake = asyncio.Event()

    async def run(self, stop: asyncio.Event) -> None:
        """Until cancelled, or `stop` and `wake` are set."""
        await self._guard.run(self._turn, stop)

    async def _turn(self) -> None:
        self.wake.clear()
        rows = self._size.now
        try:
            done = await self._publish(rows)
        except Exception as error:
            if self._size.shrink(error):
                self._guard.report(error, **await pass_over(self._database))
            return
        self._size.grow()
        if done is None or done.rows < rows:
            await wait_at_most(self.wake, self._poll)

    async def _publish(self, rows: int) -> Published | None:
        return await publish(
            self._database, horizon=self._horizon, limit=rows, report=self._guard.report
        )
