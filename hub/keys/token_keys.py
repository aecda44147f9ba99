"""The versions of the token key, refreshed from the database."""

import asyncio
from collections.abc import Callable
from typing import TypeVar

import structlog
from structlog.typing import FilteringBoundLogger

from engine.errors import HeadgateError
from engine.hooks.derived_tokens import TokenKeys
from engine.store.access.token_keys import read_token_keys
from engine.store.database import Database
from engine.store.encryption.secret_values import Keyring

log: FilteringBoundLogger = structlog.get_logger()

#: Seconds between regular refreshes; the minimum between refreshes for unknown tokens.
REFRESH, MIN_REFRESH = 60.0, 1.0
Found = TypeVar("Found")


class StoredTokenKeys:
    """keys: the versions that this process has read. first: the first one of the installation,
    which rotations keep."""

    def __init__(self, database: Database, keyring: Keyring, first: bytes) -> None:
        self.keys = TokenKeys([])
        self.first = first
        self._database = database
        self._keyring = keyring
        self._refreshed = 0.0
        self._wake = asyncio.Event()

    def wake(self) -> None:
        """Refresh soon, because the versions have changed."""
        self._wake.set()

    async def refresh(self) -> None:
        """Raises Unavailable, DecryptionFailed."""
        async with self._database.connection() as conn:
            found = await read_token_keys(conn, self._keyring)
        self._refreshed = asyncio.get_running_loop().time()
        self.keys.replace(found)

    async def check_refreshed(self, check: Callable[[], Found]) -> Found:
        """The result of `check` with the current versions, so that no process accepts a revoked
        token. A check that fails is repeated at most once in MIN_REFRESH. Raises Unavailable."""
        found = check()
        if not found and asyncio.get_running_loop().time() - self._refreshed < MIN_REFRESH:
            return found
        await self.refresh()
        return check()

    async def run(self, stop: asyncio.Event) -> None:
        """Refresh until `stop` is set."""
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
                    await self._refresh_or_log()
        finally:
            stopped.cancel()

    async def _refresh_or_log(self) -> None:
        try:
            await self.refresh()
        except HeadgateError as error:
            log.warning("token_keys.unavailable", reason=str(error))
