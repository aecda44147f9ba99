"""Sessions of browsers on a server with several cells: each is stored in the cell of the project
with which the user has signed in, and is valid in all cells."""

import secrets
from collections.abc import Awaitable, Callable, Mapping, Sequence
from contextlib import suppress
from functools import partial
from typing import TypeVar
from uuid import UUID

from engine.errors import HeadgateError, Unavailable
from engine.store.database import Database
from hub.api.cell_search import find_in_cells
from hub.api.cells import unavailable
from hub.auth.gatekeeper import UNAUTHORIZED
from hub.auth.sessions import BrowserSession, Sessions, session_ended
from hub.settings.settings import Settings

T = TypeVar("T")


class CellSessions(Sessions):
    """own: the cell whose requests use them, where new sessions are stored. connected: the sessions
    of each cell that is connected, by its name; away: the names of the others."""

    def __init__(
        self,
        own: str,
        settings: Settings,
        database: Database,
        connected: Callable[[], Mapping[str, Sessions]],
        away: Callable[[], Sequence[str]],
    ) -> None:
        super().__init__(
            database,
            mode=settings.auth.mode,
            lasts=settings.auth.session,
            random_bytes=secrets.token_bytes,
        )
        self._own, self._connected, self._away = own, connected, away

    async def read(self, cookie: str, block: str) -> BrowserSession:
        """Also raises Unavailable, if the session can be in a cell that is away."""
        return await self._find(lambda sessions: sessions.read(cookie, block))

    async def check(self, session: BrowserSession) -> None:
        """Also raises Unavailable, as `read`."""

        async def check(sessions: Sessions) -> bool:
            await sessions.check(session)
            return True

        await self._find(check)

    async def end(self, session_id: bytes, token_id: UUID | None = None) -> bool:
        """Also raises Unavailable, as `read`."""

        async def end(sessions: Sessions) -> bool | None:
            return await sessions.end(session_id, token_id) or None

        connected = self._connected()
        asked = {name: partial(end, sessions) for name, sessions in connected.items()}
        search = await find_in_cells(asked, self._own)
        if search.found is None and (away := [*self._away(), *search.away]):
            raise unavailable(away)
        return search.found is not None

    async def replace(self, cookie: str) -> None:
        """A session in a cell that is away ends with its duration."""
        with suppress(Unavailable):
            await super().replace(cookie)

    async def _find(self, read: Callable[[Sessions], Awaitable[T]]) -> T:
        """The result of the cell that has the session."""

        async def read_existing(sessions: Sessions) -> T | None:
            try:
                return await read(sessions)
            except HeadgateError as error:
                if error.code != UNAUTHORIZED:
                    raise
                return None

        connected = self._connected()
        asked = {name: partial(read_existing, sessions) for name, sessions in connected.items()}
        search = await find_in_cells(asked, self._own)
        if search.found is not None:
            return search.found
        if away := [*self._away(), *search.away]:
            raise unavailable(away)
        raise session_ended()
