"""Is it alive, and may it be given work?"""

from aiohttp import web

from engine.errors import Unavailable
from hub.api.headgate import responses
from hub.api.parts import Route, answer, parts_of


async def healthz(_: web.Request) -> web.Response:
    return answer(responses.Alive(alive=True))


async def readyz(request: web.Request) -> web.Response:
    missing = await parts_of(request).ready()
    if missing:
        return answer(responses.NotReady(ready=False, missing=missing), 503)
    return answer(responses.Ready(ready=True, missing=[]))


async def healthcheck(request: web.Request) -> web.Response:
    """As services of OpenStack answer those who look after them. Raises Unavailable."""
    if missing := await parts_of(request).ready():
        raise Unavailable("; ".join(missing), remedy="Same as GET /readyz.")
    return web.Response(text="OK")


ROUTES = (
    Route("GET", "/healthz", healthz, "The process is alive", "health",
          response=responses.Alive),
    Route("GET", "/readyz", readyz, "Readiness; 503 with the reasons if not ready", "health",
          response=responses.Ready, other_responses={503: responses.NotReady}),
    Route("GET", "/healthcheck", healthcheck, "Readiness as one word", "health",
          answer="text/plain"),
)  # fmt: skip
