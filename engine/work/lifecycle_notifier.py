"""Notifies lifecycle plug-ins of ended actions: after the end is durable, at least once."""

import asyncio
from datetime import timedelta

from engine.bounded_wait import wait_at_most
from engine.lifecycle.contract import Ended
from engine.lifecycle.gate import view_of
from engine.lifecycle.plugins import Plugins
from engine.loop_guard import Supervisor
from engine.store.database import Database
from engine.store.traversals.end import EndedTraversal, claim_ended, mark_notified

#: How many ended traversals one batch reports.
BATCH = 20
#: The time for a batch, after which another process may report it again.
LEASE = timedelta(minutes=15)


class LifecycleNotifier:
    """One loop. It sleeps while there are no plug-ins or no ended actions."""

    def __init__(
        self,
        database: Database,
        plugins: Plugins,
        *,
        poll: timedelta,
        supervisor: Supervisor | None = None,
    ) -> None:
        self._database = database
        self._plugins = plugins
        self._poll = poll.total_seconds()
        self._wake = asyncio.Event()
        self._guard = (supervisor or Supervisor()).guard("lifecycle", max_pause=self._poll)

    def wake(self) -> None:
        self._wake.set()

    async def run(self, stop: asyncio.Event) -> None:
        await self._guard.run(self._turn, stop)

    async def _turn(self) -> None:
        self._wake.clear()
        if await self.notify_ended() < BATCH:
            await wait_at_most(self._wake, self._poll)

    async def notify_ended(self) -> int:
        """Notify plug-ins of a batch of ended traversals; return how many there were."""
        if not self._plugins:
            return 0
        async with self._database.transaction() as conn:
            ended = await claim_ended(conn, LEASE, BATCH)
        for one in ended:
            await self._guard.attempt(
                self._notify(one), stack_id=str(one.stack_id), traversal=one.number
            )
        return len(ended)

    async def _notify(self, traversal: EndedTraversal) -> None:
        """Notify plug-ins of one traversal. After an internal error it is repeated when the lease
        expires.
        """
        if traversal.accepted:
            await self._plugins.after(
                view_of(traversal.lifecycle_view), Ended(traversal.state, traversal.reason)
            )
        async with self._database.transaction() as conn:
            await mark_notified(conn, traversal.stack_id, traversal.number)
