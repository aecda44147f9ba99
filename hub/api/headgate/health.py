"""Is it alive, and may it be given work?"""

from aiohttp import web

from hub.api.headgate import documents as gives
from hub.api.parts import Route, answer, parts_of


async def healthz(_: web.Request) -> web.Response:
    return answer({"alive": True})


async def readyz(request: web.Request) -> web.Response:
    missing = await parts_of(request).ready()
    return answer({"ready": not missing, "missing": missing}, 503 if missing else 200)


ROUTES = (
    Route("GET", "/healthz", healthz, "The process is alive", "health",
          gives=gives.ALIVE),
    Route("GET", "/readyz", readyz, "It may be given work; 503 says why not", "health",
          gives=gives.READY, also={503: gives.NOT_READY}),
)  # fmt: skip
