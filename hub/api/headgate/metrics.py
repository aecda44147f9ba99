"""What this process counts, for Prometheus."""

from aiohttp import web

from hub.api.parts import Route, parts_of
from hub.auth.roles import Right
from hub.metrics import CONTENT_TYPE


async def metrics(request: web.Request) -> web.Response:
    written = await parts_of(request).metrics.written()
    return web.Response(body=written, content_type=CONTENT_TYPE, charset="utf-8")


#: [metrics] needs may name another right, or none.
ROUTES = (
    Route("GET", "/metrics", metrics, "What this process counts, for Prometheus", "health",
          answer=CONTENT_TYPE, needs=Right.MONITOR),
)  # fmt: skip
