"""Is it alive, and may it be given work?"""

from aiohttp import web

from engine.errors import Unavailable
from hub.api.headgate import documents as gives
from hub.api.parts import Route, answer, parts_of


async def healthz(_: web.Request) -> web.Response:
    return answer({"alive": True})


async def readyz(request: web.Request) -> web.Response:
    missing = await parts_of(request).ready()
    return answer({"ready": not missing, "missing": missing}, 503 if missing else 200)


async def healthcheck(request: web.Request) -> web.Response:
    """As services of OpenStack answer those who look after them. Raises Unavailable."""
    if missing := await parts_of(request).ready():
        raise Unavailable("; ".join(missing), remedy="Same as GET /readyz.")
    return web.Response(text="OK")


ROUTES = (
    Route("GET", "/healthz", healthz, "The process is alive", "health",
          gives=gives.ALIVE),
    Route("GET", "/readyz", readyz, "Readiness; 503 with the reasons if not ready", "health",
          gives=gives.READY, also={503: gives.NOT_READY}),
    Route("GET", "/healthcheck", healthcheck, "Readiness as one word", "health",
          answer="text/plain"),
)  # fmt: skip
