"""A service with objects in a process of its own, which counts the requests that it gets.

``python -m tests.bench.provider PORT PAGE``. An object is ready BUILD seconds after it was created,
which its creation says. A list has PAGE objects and the URL of the next page. PUT /objects/NUMBER
creates so many objects that are ready, without counting; PUT /things/ID changes one; DELETE
/requests returns the number of requests since the last one.
"""

import sys
import time
from itertools import islice

import orjson
from aiohttp import web

PAGE = int(sys.argv[2]) if len(sys.argv) > 2 else 1_000


class Provider:
    """objects: by ID, when each is ready. sizes: of those that were changed."""

    def __init__(self) -> None:
        self.objects: dict[str, float] = {}
        self.sizes: dict[str, int] = {}
        self.requests = 0

    def shown(self, object_id: str) -> dict[str, object]:
        ready = self.objects[object_id] <= time.time()
        return {
            "id": object_id,
            "size": self.sizes.get(object_id, 1),
            "state": "ready" if ready else "building",
        }

    async def create(self, request: web.Request) -> web.Response:
        self.requests += 1
        object_id = f"t{len(self.objects)}"
        self.objects[object_id] = time.time() + (await request.json())["build"]
        return _json(self.shown(object_id))

    async def read(self, request: web.Request) -> web.Response:
        self.requests += 1
        return _json(self.shown(request.match_info["id"]))

    async def list(self, request: web.Request) -> web.Response:
        self.requests += 1
        start = int(request.query.get("start", 0))
        page = [self.shown(one) for one in islice(self.objects, start, start + PAGE)]
        more = start + PAGE < len(self.objects)
        return _json({"things": page, "next": f"/things?start={start + PAGE}" if more else None})

    async def change(self, request: web.Request) -> web.Response:
        object_id = request.match_info["id"]
        self.sizes[object_id] = self.sizes.get(object_id, 1) + 1
        return _json(self.shown(object_id))

    async def fill(self, request: web.Request) -> web.Response:
        self.objects = {f"t{number}": 0.0 for number in range(int(request.match_info["count"]))}
        return _json(None)

    async def count(self, _: web.Request) -> web.Response:
        count, self.requests = self.requests, 0
        return _json(count)


def _json(document: object) -> web.Response:
    return web.Response(body=orjson.dumps(document), content_type="application/json")


def main() -> None:
    provider, app = Provider(), web.Application()
    app.router.add_post("/things", provider.create)
    app.router.add_get("/things", provider.list)
    app.router.add_get("/things/{id}", provider.read)
    app.router.add_put("/things/{id}", provider.change)
    app.router.add_put("/objects/{count}", provider.fill)
    app.router.add_delete("/requests", provider.count)
    web.run_app(app, host="127.0.0.1", port=int(sys.argv[1]), print=None, access_log=None)


if __name__ == "__main__":
    main()
