"""A receiver in a process of its own: says yes to everything, and when what arrived.

python -m tests.bench.sink PORT
"""

import asyncio
import sys
import time

from aiohttp import web

ARRIVED: dict[str, float] = {}


async def take(request: web.Request) -> web.Response:
    await request.read()
    ARRIVED[request.headers["webhook-id"]] = time.time()
    return web.Response()


async def hang(request: web.Request) -> web.Response:
    await asyncio.sleep(3600)
    return web.Response()


async def arrived(_: web.Request) -> web.Response:
    return web.json_response(ARRIVED)


async def forget(_: web.Request) -> web.Response:
    ARRIVED.clear()
    return web.Response()


def main() -> None:
    app = web.Application()
    app.router.add_post("/", take)
    app.router.add_post("/hang", hang)
    app.router.add_get("/", arrived)
    app.router.add_delete("/", forget)
    web.run_app(app, host="127.0.0.1", port=int(sys.argv[1]), print=None, access_log=None)


if __name__ == "__main__":
    main()
