"""A real HTTP service with objects, and resources of type `Headgate::HTTP` for them."""

import asyncio
from collections import Counter
from collections.abc import AsyncIterator, Collection
from contextlib import asynccontextmanager

from aiohttp import web

from tests.support.program import Json

HTTP_SETTINGS = {
    "resource_types.http.enabled": True,
    "resource_types.http.allow": ["127.0.0.0/8"],
}
PAGE = 3


class Things:
    """A real HTTP service with objects. requests: their number by kind. faults: the response to GET
    requests in place of the usual one: a status or a text; also given by the query `fault` of a
    request. retry_after: this header of a status.
    fail_after: so many reads are answered before `faults`.
    lists_nothing: lists have no objects, as those of a service that has just started.
    listed_fields: the only fields that lists show. listed_ids: the only objects that they have.
    between_pages: objects
    to delete before the second page of a list. gate: lists wait for it. relapses: after so many
    updates, the object changes again."""

    def __init__(self, url: str = "") -> None:
        self.objects: dict[str, dict[str, Json]] = {}
        self.requests: Counter[str] = Counter()
        self.faults: list[int | str] = []
        self.retry_after, self.fail_after = "", 0
        self.lists_nothing = False
        self.listed_fields: Collection[str] | None = None
        self.listed_ids: Collection[str] | None = None
        self.between_pages: list[str] = []
        self.gate: asyncio.Event | None = None
        self.relapses = 0
        self.url = url
        self._number = 0

    async def create(self, request: web.Request) -> web.Response:
        self._number += 1
        thing = {"id": f"t{self._number}", "state": "ready", **await request.json()}
        self.objects[thing["id"]] = thing
        self.requests["create"] += 1
        return web.json_response(thing)

    async def change(self, request: web.Request) -> web.Response:
        self.requests["update"] += 1
        thing = self.objects.get(request.match_info["id"])
        if thing is None:
            return web.Response(status=404)
        thing.update(await request.json())
        response = web.json_response(thing)
        if self.relapses > 0:
            self.relapses -= 1
            thing["size"] = 99
        return response

    async def read(self, request: web.Request) -> web.Response:
        self.requests["read"] += 1
        if (fault := self._fault(request)) is not None:
            return fault
        thing = self.objects.get(request.match_info["id"])
        return web.json_response(thing or {}, status=200 if thing else 404)

    async def delete(self, request: web.Request) -> web.Response:
        self.requests["delete"] += 1
        thing = self.objects.pop(request.match_info["id"], None)
        return web.Response(status=204 if thing else 404)

    async def list(self, request: web.Request) -> web.Response:
        self.requests["list"] += 1
        if self.gate is not None:
            await self.gate.wait()
        if (fault := self._fault(request)) is not None:
            return fault
        start = int(request.query.get("start", 0))
        if start:
            for deleted in self.between_pages:
                self.objects.pop(deleted, None)
        things = [] if self.lists_nothing else list(self.objects.values())
        if self.listed_ids is not None:
            things = [self.objects[one] for one in self.listed_ids]
        if (fields := self.listed_fields) is not None:
            things = [{key: one[key] for key in one if key in fields} for one in things]
        following = f"/things?start={start + PAGE}" if start + PAGE < len(things) else None
        return web.json_response({"things": things[start : start + PAGE], "next": following})

    def _fault(self, request: web.Request) -> web.Response | None:
        if own := request.query.get("fault"):
            return web.Response(status=int(own)) if own.isdigit() else web.Response(text=own)
        if not self.faults or 0 < self.requests["read"] <= self.fail_after:
            return None
        fault = self.faults[0] if len(self.faults) == 1 else self.faults.pop(0)
        if isinstance(fault, int):
            headers = {"Retry-After": self.retry_after} if self.retry_after else {}
            return web.Response(status=fault, headers=headers)
        return web.Response(text=fault, content_type="application/json")


@asynccontextmanager
async def serve_things(service: Things | None = None) -> AsyncIterator[Things]:
    """service: a variant; else a new one."""
    service, app = service or Things(), web.Application()
    app.router.add_post("/things", service.create)
    app.router.add_get("/things", service.list)
    app.router.add_put("/things/{id}", service.change)
    app.router.add_get("/things/{id}", service.read)
    app.router.add_delete("/things/{id}", service.delete)
    runner = web.AppRunner(app)
    await runner.setup()
    await web.TCPSite(runner, "127.0.0.1", 0).start()
    service.url = f"http://127.0.0.1:{runner.addresses[0][1]}"
    try:
        yield service
    finally:
        await runner.cleanup()


def lend_credential(things: Things) -> dict[str, Json]:
    """The setting of a credential `lent` of the operator for the service, in all projects."""
    lent = {"kind": "bearer", "secret": "k" * 20, "origins": [things.url], "projects": ["*"]}
    return {"resource_types.http.credentials.lent": lent}


def thing(things: Things, size: int = 1, *, listed: bool = True, **more: Json) -> Json:
    properties: dict[str, Json] = {
        "base": things.url,
        "create": {"url": "/things", "body": {"size": size}},
        "update": {"url": "/things/${id}", "body": {"size": size}},
        "read": {"url": "/things/${id}"},
        "delete": {"url": "/things/${id}"},
        "id": "$.id",
        "compare": {"$.size": size},
        "ready": {"path": "$.state", "values": ["ready"], "failed": ["broken"]},
    }
    if listed:
        properties["list"] = {
            "url": "/things", "items": "$.things", "id": "$.id", "next": "$.next",
        }  # fmt: skip
    return {"type": "Headgate::HTTP", "properties": properties | more}
