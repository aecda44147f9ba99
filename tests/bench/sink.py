"""A receiver of webhooks in a process of its own, which accepts everything.

``python -m tests.bench.sink PORT``. GET returns the arrivals, DELETE forgets them.
"""

import asyncio
import json
import sys
import time

from aiohttp import web

#: Times of arrival, and the bodies if the path is /kept.
ARRIVALS: list[float] = []
BODIES: list[bytes] = []


async def take(request: web.Request) -> web.Response:
    await request.read()
    ARRIVALS.append(time.time())
    return web.Response()


async def keep(request: web.Request) -> web.Response:
    body = await request.read()
    ARRIVALS.append(time.time())
    BODIES.append(body)
    return web.Response()


async def hang(request: web.Request) -> web.Response:
    await asyncio.sleep(3600)
    return web.Response()


async def arrivals(_: web.Request) -> web.Response:
    """count, first and last of all; kept: [source, time of the event, time of arrival] of each."""
    events = [json.loads(body) for body in BODIES]
    kept = [
        [event["source"], event["time"], arrival]
        for event, arrival in zip(events, ARRIVALS, strict=False)
    ]
    first, last = (ARRIVALS[0], ARRIVALS[-1]) if ARRIVALS else (0, 0)
    return web.json_response({"count": len(ARRIVALS), "first": first, "last": last, "kept": kept})


async def forget(_: web.Request) -> web.Response:
    ARRIVALS.clear()
    BODIES.clear()
    return web.Response()


def main() -> None:
    app = web.Application()
    app.router.add_post("/", take)
    app.router.add_post("/kept", keep)
    app.router.add_post("/hang", hang)
    app.router.add_get("/", arrivals)
    app.router.add_delete("/", forget)
    web.run_app(app, host="127.0.0.1", port=int(sys.argv[1]), print=None, access_log=None)


if __name__ == "__main__":
    main()
