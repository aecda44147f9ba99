"""What this process counts, for Prometheus."""

from aiohttp import web

from hub.api.parts import Route, parts_of
from hub.metrics import CONTENT_TYPE


async def metrics(request: web.Request) -> web.Response:
    written = await parts_of(request).metrics.written()
    return web.Response(body=written, content_type=CONTENT_TYPE, charset="utf-8")


#: What it needs is said in [metrics] needs.
ROUTES = (
    Route("GET", "/metrics", metrics, "What this process counts, for Prometheus", "health",
          answer=CONTENT_TYPE),
)  # fmt: skip
