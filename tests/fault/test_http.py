"""A process that dies after a service ran a request, before it receives the response."""

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from pathlib import Path

import aiohttp
from aiohttp import web

from tests.support.program import Http, Json, ServerProcess

SETTINGS = """
[engine]
lease = "1s"
poll = "1s"
[resource_types.http]
enabled = true
allow = ["127.0.0.0/8"]
"""


@asynccontextmanager
async def running_service(
    things: list[Json], after_create: Callable[[], Awaitable[None]]
) -> AsyncIterator[str]:
    """A service that creates an object per POST and reports it before it responds;
    yields its URL.
    """

    async def create(request: web.Request) -> web.Response:
        things.append({"id": len(things) + 1, **await request.json()})
        await after_create()
        return web.json_response(things[-1])

    async def listed(_: web.Request) -> web.Response:
        return web.json_response(things)

    async def shown(request: web.Request) -> web.Response:
        return web.json_response(things[int(request.match_info["id"]) - 1])

    app = web.Application()
    app.router.add_post("/things", create)
    app.router.add_get("/things", listed)
    app.router.add_get("/things/{id}", shown)
    runner = web.AppRunner(app)
    await runner.setup()
    await web.TCPSite(runner, "127.0.0.1", 0).start()
    try:
        yield f"http://127.0.0.1:{runner.addresses[0][1]}/things"
    finally:
        await runner.cleanup()


async def test_an_object_of_a_killed_create_is_found_and_not_created_again(
    database_url: str, tmp_path: Path
) -> None:
    server = ServerProcess(tmp_path, settings=SETTINGS, database_url=database_url)
    things, killed = list[Json](), asyncio.Event()

    async def kill() -> None:
        await asyncio.to_thread(server.kill)
        killed.set()

    async with running_service(things, kill) as url:
        definition = {
            "type": "Headgate::HTTP",
            "properties": {
                "create": {"url": url, "body": {"of": "${key}"}},
                "find": {"url": url},
                "id": "$[?@.of=='${key}'].id",
                "read": {"url": f"{url}/${{id}}"},
                "attributes": {"of": "$.of"},
            },
        }
        try:
            await asyncio.to_thread(server.start)
            connector = aiohttp.TCPConnector(force_close=True)
            async with aiohttp.ClientSession(connector=connector) as session:
                http = Http(session, server.url)
                await http.create("s", {"thing": definition})
                async with asyncio.timeout(30):
                    await killed.wait()
                await asyncio.to_thread(server.start)
                assert await http.until_ended("s") == "CREATE_COMPLETE"
                found = (await http.resources("s"))["thing"]
                assert found["physical_resource_id"] == "1" and len(things) == 1
        finally:
            await asyncio.to_thread(server.stop)
