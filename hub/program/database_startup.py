"""Waits for the database when a process starts.

Meanwhile, the API, if the process has that role, and [metrics] address answer /healthz with 200 and
all other requests with 503; /readyz has the reason. Errors that waiting cannot resolve (a wrong
password, a missing database, a newer schema) end the process at once.
"""

import asyncio
import os
from collections.abc import Awaitable, Callable
from contextlib import AsyncExitStack
from typing import TypeVar

import structlog
from aiohttp import web
from structlog.typing import FilteringBoundLogger

from engine.bounded_wait import wait_at_most
from engine.errors import Unavailable
from engine.store.database_errors import is_refusal
from hub.api import health, http_headers
from hub.api.client_limits import CLIENTS, ClientLimits
from hub.api.error_middleware import RETRY_SOON, own_form, status_of
from hub.api.routes import json_response
from hub.auth.request_counts import RequestCounts
from hub.http.listener import serve_api, serve_monitoring
from hub.program.process_slot import ProcessSlot
from hub.settings.access import ServerSection

log: FilteringBoundLogger = structlog.get_logger()

T = TypeVar("T")

#: Seconds between two attempts to reach the database.
RETRY_INTERVAL = 3.0


class StartupStopped(Exception):
    """The process was stopped before the database was available."""


class DatabaseStartup:
    """server: of the API, for responses while waiting; None: this process has no API.
    metrics_address: [metrics] address. slot: the sockets of the process; without any, it opens its
    own."""

    def __init__(
        self,
        server: ServerSection | None,
        metrics_address: str,
        stop: asyncio.Event,
        slot: ProcessSlot,
    ) -> None:
        self._server = server
        self._metrics_address = metrics_address
        self._slot = slot
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
                    if not self._reason:
                        await self._start_answering(answering)
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

    async def _start_answering(self, stack: AsyncExitStack) -> None:
        if self._server is not None:
            application = self._application()
            application[CLIENTS] = ClientLimits(
                self._server, self._slot.counts or RequestCounts(), os.getpid()
            )
            serving = serve_api(self._server, application, self._slot.api)
            await stack.enter_async_context(serving)
        if address := self._metrics_address:
            monitoring = serve_monitoring(self._application(), address, self._slot.metrics)
            await stack.enter_async_context(monitoring)

    def _application(self) -> web.Application:
        application = web.Application()
        application.router.add_route("*", "/{path:.*}", self._answer)
        return application

    async def _answer(self, request: web.Request) -> web.Response:
        if request.path == "/healthz":
            response = health.show_liveness()
        elif request.path == "/readyz":
            response = health.show_readiness([self._reason])
        else:
            error = Unavailable(self._reason)
            response = json_response(own_form(error), status_of(error), RETRY_SOON)
        http_headers.add_headers(response, request, ())
        return response
