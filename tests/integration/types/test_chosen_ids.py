"""Objects whose ID the template chooses: a replacement is the object that it replaces."""

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

import pytest
from aiohttp import web

from tests.support.changes import observed, until_deleted
from tests.support.http_things import HTTP_SETTINGS
from tests.support.program import Json, Program, program, template


class Named:
    """A service whose objects are created by PUT with a name, which is unique in a tenant. It
    refuses sizes above 9."""

    def __init__(self) -> None:
        self.objects: dict[str, Json] = {}
        self.url = ""

    async def put(self, request: web.Request) -> web.Response:
        body = await request.json()
        if body["size"] > 9:
            return web.Response(status=400)
        self.objects[key_of(request)] = body
        return web.json_response({})

    async def get(self, request: web.Request) -> web.Response:
        found = self.objects.get(key_of(request))
        return web.json_response(found or {}, status=200 if found else 404)

    async def delete(self, request: web.Request) -> web.Response:
        found = self.objects.pop(key_of(request), None)
        return web.Response(status=204 if found else 404)


def key_of(request: web.Request) -> str:
    return request.headers.get("X-Tenant", "") + request.match_info["name"]


@asynccontextmanager
async def serving() -> AsyncIterator[Named]:
    service, app = Named(), web.Application()
    app.router.add_put("/{name}", service.put)
    app.router.add_get("/{name}", service.get)
    app.router.add_delete("/{name}", service.delete)
    runner = web.AppRunner(app)
    await runner.setup()
    await web.TCPSite(runner, "127.0.0.1", 0).start()
    service.url = f"http://127.0.0.1:{runner.addresses[0][1]}"
    try:
        yield service
    finally:
        await runner.cleanup()


@pytest.fixture
async def named() -> AsyncIterator[Named]:
    async with serving() as service:
        yield service


@pytest.fixture
async def run(database_url: str) -> AsyncIterator[Program]:
    async with program(database_url, HTTP_SETTINGS) as running:
        yield running


def queue(named: Named, size: int = 1, **more: Json) -> Json:
    """Without `update`, so that another size replaces it."""
    return {
        "type": "Headgate::HTTP",
        "properties": {
            "base": named.url,
            "id": "orders",
            "create": {"method": "PUT", "url": "/orders", "body": {"size": size}},
            "read": {"url": "/${id}"},
            "delete": {"url": "/${id}"},
            "compare": {"$.size": size},
            **more,
        },
    }


async def change(run: Program, resources: Json, **body: Json) -> str:
    await run.update("s", "PUT", template=template(resources), **body)
    return await run.until_ended("s")


async def test_a_replacement_with_the_same_id_stays(run: Program, named: Named) -> None:
    await run.create("s", {"a": queue(named)})
    assert await run.until_ended("s") == "CREATE_COMPLETE"
    assert await change(run, {"a": queue(named, 2)}) == "UPDATE_COMPLETE"
    assert named.objects == {"orders": {"size": 2}}
    assert (await run.resources("s"))["a"]["physical_resource_id"] == "orders"
    # What has gone is created again, and stays, too.
    named.objects.clear()
    assert [one["state"] for one in (await observed(run))["resources"]] == ["missing"]
    await run.update("s", converge=True)
    assert await run.until_ended("s") == "UPDATE_COMPLETE"
    assert named.objects == {"orders": {"size": 2}}
    await run.stack_request("DELETE", "s")
    await until_deleted(run, "s")
    assert named.objects == {}


async def test_an_object_with_the_same_id_on_another_server_is_deleted(
    run: Program, named: Named
) -> None:
    await run.create("s", {"a": queue(named)})
    assert await run.until_ended("s") == "CREATE_COMPLETE"
    async with serving() as other:
        assert await change(run, {"a": queue(other)}) == "UPDATE_COMPLETE"
        assert (named.objects, other.objects) == ({}, {"orders": {"size": 1}})


async def test_an_object_with_the_same_id_of_another_tenant_stays(
    run: Program, named: Named
) -> None:
    """The engine cannot know what a header means: it could also be a new token for one object."""
    await run.create("s", {"a": queue(named, headers={"X-Tenant": "a/"})})
    assert await run.until_ended("s") == "CREATE_COMPLETE"
    moved = queue(named, 2, headers={"X-Tenant": "b/"})
    assert await change(run, {"a": moved}) == "UPDATE_COMPLETE"
    assert named.objects == {"a/orders": {"size": 1}, "b/orders": {"size": 2}}
    events = (await run.stack_request("GET", "s", "/history"))["events"]
    (deleted,) = (one for one in events if one["type"] == "headgate.resource.delete.completed")
    assert "may be the same object" in deleted["data"]["resource"]["reason"]


async def test_a_rollback_of_a_refused_replacement_keeps_the_object(
    run: Program, named: Named
) -> None:
    await run.create("s", {"a": queue(named)})
    assert await run.until_ended("s") == "CREATE_COMPLETE"
    assert await change(run, {"a": queue(named, 10)}, disable_rollback=False) == "ROLLBACK_COMPLETE"
    assert named.objects == {"orders": {"size": 1}}
    assert (await observed(run))["resources"] == []
    # An update that fails, and one that corrects it.
    failed = await change(run, {"a": queue(named, 10)}, disable_rollback=True)
    assert failed == "UPDATE_FAILED"
    assert await change(run, {"a": queue(named, 3)}) == "UPDATE_COMPLETE"
    assert named.objects == {"orders": {"size": 3}}


async def test_a_resource_that_leaves_the_template_is_deleted(run: Program, named: Named) -> None:
    await run.create("s", {"a": queue(named)})
    assert await run.until_ended("s") == "CREATE_COMPLETE"
    assert await change(run, {"a": queue(named, 2)}) == "UPDATE_COMPLETE"
    assert await change(run, {}) == "UPDATE_COMPLETE"
    assert named.objects == {}
