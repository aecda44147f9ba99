"""Telling plug-ins how what they let pass has ended: after it is durable, and at least once."""

import asyncio
from datetime import timedelta

import structlog
from structlog.typing import FilteringBoundLogger

from engine.errors import Unavailable
from engine.lifecycle.contract import Ended
from engine.lifecycle.plugins import Plugins
from engine.lifecycle.view import view_of
from engine.store.database import Database
from engine.store.watched import claim_ended, told

log: FilteringBoundLogger = structlog.get_logger()

#: How many ends are told in a row before the next are claimed.
BATCH = 20
#: How long who tells has for a batch, until somebody else tells it again.
LEASE = timedelta(minutes=15)


class Telling:
    """One loop; asleep while there are no plug-ins, or nothing has ended."""

    def __init__(self, database: Database, plugins: Plugins, *, poll: timedelta) -> None:
        self._database = database
        self._plugins = plugins
        self._poll = poll.total_seconds()
        self._wake = asyncio.Event()

    def wake(self) -> None:
        self._wake.set()

    async def run(self, stop: asyncio.Event) -> None:
        while not stop.is_set():
            self._wake.clear()
            try:
                if await self.tell_ended() == BATCH:
                    continue
            except Unavailable as error:
                log.warning("telling.unavailable", reason=str(error))
            try:
                async with asyncio.timeout(self._poll):
                    await self._wake.wait()
            except TimeoutError:
                continue

    async def tell_ended(self) -> int:
        """Tell of what has ended; return of how many."""
        if not self._plugins:
            return 0
        async with self._database.transaction() as conn:
            ended = await claim_ended(conn, LEASE, BATCH)
        for one in ended:
            if one.began:
                await self._plugins.after(view_of(one.view), Ended(one.state, one.reason))
            async with self._database.transaction() as conn:
                await told(conn, one.stack_id, one.number)
        return len(ended)
