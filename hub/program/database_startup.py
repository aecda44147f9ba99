"""Startup while the database is away: the process waits for it, and reports so.

Meanwhile a process with the role ``api`` answers /healthz with 200, and everything else with 503:
/readyz says why. What waiting does not mend (a wrong password, a database that does not exist, a
schema that is newer) ends the process at once.
"""

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import AsyncExitStack, asynccontextmanager
from typing import TypeVar

import structlog
from aiohttp import web
from structlog.typing import FilteringBoundLogger

from engine.errors import Unavailable
from engine.loops import wait_at_most
from engine.store.connection import is_refusal
from hub.api import response_headers
from hub.api.client_limits import CLIENTS, ClientLimits
from hub.api.parts import answer
from hub.api.problems import own_form, status_of
from hub.http.listener import listening
from hub.settings.access import Server

log: FilteringBoundLogger = structlog.get_logger()

T = TypeVar("T")

#: Seconds between two attempts to reach the database.
RETRY_INTERVAL = 3.0


class Stopped(Exception):
    """The process was told to stop before the database could be reached."""


class DatabaseStartup:
    """server: where to answer while waiting; None: this process has no API."""

    def __init__(self, server: Server | None, stop: asyncio.Event) -> None:
        self._server = server
        self._stop = stop
        self._reason = ""

    async def when_available(self, work: Callable[[], Awaitable[T]]) -> T:
        """Repeat `work` until the database can be used. Raises Stopped, and what `work` raises."""
        async with AsyncExitStack() as answering:
            while True:
                try:
                    return await self._unless_stopped(work)
                except Unavailable as error:
                    if is_refusal(error):
                        raise
                    if self._server is not None and not self._reason:
                        await answering.enter_async_context(self._answering(self._server))
                    self._reason = str(error)
                log.warning("database.waiting", reason=self._reason, again_in=RETRY_INTERVAL)
                if await wait_at_most(self._stop, RETRY_INTERVAL):
                    raise Stopped

    async def _unless_stopped(self, work: Callable[[], Awaitable[T]]) -> T:
        """Stop without waiting for an attempt to connect, which may take long."""
        working = asyncio.ensure_future(work())
        stopping = asyncio.ensure_future(self._stop.wait())
        try:
            await asyncio.wait((working, stopping), return_when=asyncio.FIRST_COMPLETED)
            if not working.done():
                raise Stopped
            return working.result()
        finally:
            working.cancel()
            stopping.cancel()
            await asyncio.gather(working, stopping, return_exceptions=True)

    @asynccontextmanager
    async def _answering(self, server: Server) -> AsyncIterator[None]:
        application = web.Application()
        application[CLIENTS] = ClientLimits(server)
        application.router.add_route("*", "/{path:.*}", self._answer)
        async with listening(server, application):
            yield

    async def _answer(self, request: web.Request) -> web.Response:
        if request.path == "/healthz":
            response = answer({"alive": True})
        elif request.path == "/readyz":
            response = answer({"ready": False, "missing": [self._reason]}, 503)
        else:
            error = Unavailable(self._reason)
            response = answer(own_form(error), status_of(error))
        response_headers.add_to(response, request, ())
        return response
