"""A server that says what a test tells it to, over real HTTP."""

from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from typing import Any

from aiohttp import web

Json = Any
Handler = Callable[[web.Request], Awaitable[web.StreamResponse]]


@dataclass(slots=True)
class Seen:
    method: str
    path: str
    body: bytes
    headers: dict[str, str]


@dataclass(slots=True)
class Stub:
    url: str
    seen: list[Seen] = field(default_factory=list)


@asynccontextmanager
async def serving(handler: Handler) -> AsyncIterator[Stub]:
    """Every request goes to the handler. path: as it was sent, quoted."""
    stub = Stub("")

    async def note(request: web.Request) -> web.StreamResponse:
        headers = {name.lower(): value for name, value in request.headers.items()}
        path = request.rel_url.raw_path_qs
        stub.seen.append(Seen(request.method, path, await request.read(), headers))
        return await handler(request)

    app = web.Application()
    app.router.add_route("*", "/{rest:.*}", note)
    runner = web.AppRunner(app, shutdown_timeout=0.1)
    await runner.setup()
    try:
        site = web.TCPSite(runner, "127.0.0.1", 0)
        await site.start()
        host, port = runner.addresses[0][:2]
        stub.url = f"http://{host}:{port}"
        yield stub
    finally:
        await runner.cleanup()


def saying(document: Json, status: int = 200) -> Handler:
    async def handler(_: web.Request) -> web.StreamResponse:
        return web.json_response(document, status=status)

    return handler
