"""The versions of the token key as this process knows them, kept up with the database."""

import asyncio
from collections.abc import Callable
from typing import TypeVar

import structlog
from structlog.typing import FilteringBoundLogger

from engine.errors import HeadgateError
from engine.hooks.tokens import TokenKeys
from engine.store.database import Database
from engine.store.encryption import Sealer
from engine.store.token_keys import read_token_keys

log: FilteringBoundLogger = structlog.get_logger()

#: Seconds between refreshes that nothing has asked for; and at least between those that a token
#: asks for that no known version has made.
REFRESH, PATIENCE = 60.0, 1.0
Found = TypeVar("Found")


class StoredTokenKeys:
    """keys: those that tokens are made and checked with."""

    def __init__(self, database: Database, sealer: Sealer) -> None:
        self.keys = TokenKeys([])
        self._database = database
        self._sealer = sealer
        self._refreshed = 0.0
        self._wake = asyncio.Event()

    def wake(self) -> None:
        """The versions have changed."""
        self._wake.set()

    async def refresh(self) -> None:
        """Raises Unavailable, Sealed."""
        async with self._database.connection() as conn:
            found = await read_token_keys(conn, self._sealer)
        self._refreshed = asyncio.get_running_loop().time()
        self.keys.replace(found)

    async def checked(self, check: Callable[[], Found]) -> Found:
        """What `check` makes of a token, by the versions that are accepted now: one that was
        revoked opens nothing, on any process. Raises Unavailable."""
        found = check()
        if not found and asyncio.get_running_loop().time() - self._refreshed < PATIENCE:
            return found
        await self.refresh()
        return check()

    async def run(self, stop: asyncio.Event) -> None:
        """Keep up until `stop` is set."""
        stopped = asyncio.create_task(stop.wait())
        try:
            while not stop.is_set():
                woken = asyncio.create_task(self._wake.wait())
                await asyncio.wait(
                    {woken, stopped}, timeout=REFRESH, return_when=asyncio.FIRST_COMPLETED
                )
                woken.cancel()
                self._wake.clear()
                if not stop.is_set():
                    await self._refreshed_or_logged()
        finally:
            stopped.cancel()

    async def _refreshed_or_logged(self) -> None:
        try:
            await self.refresh()
        except HeadgateError as error:
            log.warning("token_keys.unavailable", reason=str(error))
