"""Waits for the database when a process starts.

Meanwhile, a process with the role ``api`` answers /healthz with 200 and all other requests with
503; /readyz has the reason. Errors that waiting cannot resolve (a wrong password, a missing
database, a newer schema) end the process at once.
"""

import asyncio
import socket
from collections.abc import AsyncIterator, Awaitable, Callable, Sequence
from contextlib import AsyncExitStack, asynccontextmanager
from typing import TypeVar

import structlog
from aiohttp import web
from structlog.typing import FilteringBoundLogger

from engine.bounded_wait import wait_at_most
from engine.errors import Unavailable
from engine.store.database_errors import is_refusal
from hub.api import http_headers
from hub.api.client_limits import CLIENTS, ClientLimits
from hub.api.error_middleware import RETRY_SOON, own_form, status_of
from hub.api.routes import json_response
from hub.http.listener import serve_api
from hub.settings.access import ServerSection

log: FilteringBoundLogger = structlog.get_logger()

T = TypeVar("T")

#: Seconds between two attempts to reach the database.
RETRY_INTERVAL = 3.0


class StartupStopped(Exception):
    """The process was stopped before the database was available."""


class DatabaseStartup:
    """server: of the API, for responses while waiting; None: this process has no API. sockets: the
    ones at which it listens; none: it opens its own."""

    def __init__(
        self,
        server: ServerSection | None,
        stop: asyncio.Event,
        sockets: Sequence[socket.socket] = (),
    ) -> None:
        self._server = server
        self._sockets = sockets
        self._stop = stop
        self._reason = ""

    async def when_available(self, work: Callable[[], Awaitable[T]]) -> T:
        """Repeat `work` until the database is available. Raises Stopped and errors of `work`."""
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
                    raise StartupStopped

    async def _unless_stopped(self, work: Callable[[], Awaitable[T]]) -> T:
        """Stop at once, because an attempt to connect can take long."""
        working = asyncio.ensure_future(work())
        stopping = asyncio.ensure_future(self._stop.wait())
        try:
            await asyncio.wait((working, stopping), return_when=asyncio.FIRST_COMPLETED)
            if not working.done():
                raise StartupStopped
            return working.result()
        finally:
            working.cancel()
            stopping.cancel()
            await asyncio.gather(working, stopping, return_exceptions=True)

    @asynccontextmanager
    async def _answering(self, server: ServerSection) -> AsyncIterator[None]:
        application = web.Application()
        application[CLIENTS] = ClientLimits(server)
        application.router.add_route("*", "/{path:.*}", self._answer)
        async with serve_api(server, application, self._sockets):
            yield

    async def _answer(self, request: web.Request) -> web.Response:
        if request.path == "/healthz":
            response = json_response({"alive": True})
        elif request.path == "/readyz":
            response = json_response({"ready": False, "missing": [self._reason]}, 503)
        else:
            error = Unavailable(self._reason)
            response = json_response(own_form(error), status_of(error), RETRY_SOON)
        http_headers.add_headers(response, request, ())
        return response
