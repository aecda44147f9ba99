"""Health checks and metrics of the process."""

from aiohttp import web

from engine.errors import Unavailable
from hub.api import health
from hub.api.app_context import server_of
from hub.api.routes import Route
from hub.auth.roles import Right
from hub.metrics import CONTENT_TYPE


async def healthz(_: web.Request) -> web.Response:
    return health.show_liveness()


async def readyz(request: web.Request) -> web.Response:
    return health.show_readiness(await server_of(request).ready())


async def healthcheck(request: web.Request) -> web.Response:
    """The health check of OpenStack services. Raises Unavailable."""
    if missing := await server_of(request).ready():
        raise Unavailable("; ".join(missing), remedy="Same as GET /readyz.")
    return web.Response(text="OK")


async def show_metrics(request: web.Request) -> web.Response:
    body = await server_of(request).metrics.render()
    return web.Response(body=body, content_type=CONTENT_TYPE, charset="utf-8")


ROUTES = (
    Route("GET", "/healthz", healthz, "The process is alive", "health",
          response=health.Liveness),
    Route("GET", "/readyz", readyz, "Readiness; 503 with the reasons if not ready", "health",
          response=health.ReadyServer, other_responses={503: health.UnreadyServer}),
    Route("GET", "/healthcheck", healthcheck, "Readiness as text", "health",
          content_type="text/plain"),
    # [metrics] needs can name another right.
    Route("GET", "/metrics", show_metrics, "Metrics of this process, for Prometheus", "health",
          content_type=CONTENT_TYPE, needs=Right.MONITOR),
)  # fmt: skip
