"""Renews the leases of the stacks that a process observes, like those of the nodes of a worker."""

import asyncio
from collections.abc import AsyncIterator, Iterator, Sequence
from contextlib import asynccontextmanager, contextmanager
from datetime import timedelta

from engine.loop_guard import Supervisor
from engine.store.database import Database
from engine.store.observer import observation_schedule
from engine.store.observer.observation_schedule import ClaimedStack


class ClaimRenewal:
    """lease: of claims, which are renewed three times in it."""

    def __init__(self, database: Database, lease: timedelta, supervisor: Supervisor) -> None:
        self._database = database
        self._lease = lease
        self._pause = lease.total_seconds() / 3
        self._guard = supervisor.guard("observation_leases", max_pause=self._pause)
        self._held: list[Sequence[ClaimedStack]] = []

    @contextmanager
    def holding(self, batch: Sequence[ClaimedStack]) -> Iterator[None]:
        """Renew these claims in this context, until they end."""
        self._held.append(batch)
        try:
            yield
        finally:
            self._held[:] = [one for one in self._held if one is not batch]

    @asynccontextmanager
    async def running(self) -> AsyncIterator[None]:
        """Renew the claims that are held in this context."""
        task = asyncio.create_task(self._guard.run(self._turn, asyncio.Event()))
        try:
            yield
        finally:
            task.cancel()
            await asyncio.wait([task])

    async def _turn(self) -> None:
        """An error of the database is one of this turn: there are two more in each lease."""
        await asyncio.sleep(self._pause)
        if claims := [one for batch in self._held for one in batch]:
            async with self._database.connection() as conn:
                await observation_schedule.renew_unlocked(conn, claims, self._lease)
