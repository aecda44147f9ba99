"""Sessions of browsers on a server with several cells: each is stored in the cell of the project
with which the user has signed in, and is valid in all cells."""

import secrets
from collections.abc import Awaitable, Callable, Mapping, Sequence
from typing import TypeVar
from uuid import UUID

from engine.errors import HeadgateError, Unavailable
from engine.store.database import Database
from hub.api.cells import unavailable
from hub.auth.gatekeeper import UNAUTHORIZED
from hub.auth.sessions import BrowserSession, Sessions
from hub.settings.settings import Settings

T = TypeVar("T")


class CellSessions(Sessions):
    """database: where new sessions are stored. connected: the sessions of each cell that is
    connected, by its name; away: the names of the others."""

    def __init__(
        self,
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
        self._connected, self._away = connected, away

    async def read(self, cookie: str, block: str) -> BrowserSession:
        """Also raises Unavailable, if the session can be in a cell that is away."""
        return await self._find(lambda sessions: sessions.read(cookie, block))

    async def check(self, session: BrowserSession) -> None:
        """Also raises Unavailable, as `read`."""
        await self._find(lambda sessions: sessions.check(session))

    async def end(self, session_id: bytes, token_id: UUID | None = None) -> None:
        for sessions in self._connected().values():
            await sessions.end(session_id, token_id)

    async def _find(self, read: Callable[[Sessions], Awaitable[T]]) -> T:
        """The result of the first cell that has the session."""
        away, refusal = [*self._away()], None
        for name, sessions in self._connected().items():
            try:
                return await read(sessions)
            except Unavailable:
                away.append(name)
            except HeadgateError as error:
                if error.code != UNAUTHORIZED:
                    raise
                refusal = error
        if away or refusal is None:
            raise unavailable(away)
        raise refusal
