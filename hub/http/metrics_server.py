"""The metrics of a process on an address of their own, for those that have no API."""

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

from aiohttp import web

from engine.errors import Unavailable
from hub.metrics import CONTENT_TYPE, Metrics
from hub.settings.types import host_and_port

#: Seconds that somebody who reads may still take when we stop.
SHUTDOWN = 1.0


@asynccontextmanager
async def metrics_served(metrics: Metrics, address: str) -> AsyncIterator[None]:
    """While inside, ``GET /metrics`` is answered at HOST:PORT. Raises Unavailable."""

    async def answer(_: web.Request) -> web.Response:
        written = await metrics.written()
        return web.Response(body=written, content_type=CONTENT_TYPE, charset="utf-8")

    application = web.Application()
    application.router.add_get("/metrics", answer)
    runner = web.AppRunner(application, access_log=None, shutdown_timeout=SHUTDOWN)
    await runner.setup()
    host, port = host_and_port(address)
    try:
        try:
            await web.TCPSite(runner, host, int(port)).start()
        except OSError as error:
            raise Unavailable(
                f"cannot listen on {address}: {error.strerror}",
                place="[metrics] address",
                remedy="Give each process on a machine a port of its own.",
            ) from error
        yield
    finally:
        await runner.cleanup()
