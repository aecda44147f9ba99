"""A stub server over HTTP, with a handler for each test."""

from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from typing import Any

from aiohttp import web

Json = Any
Handler = Callable[[web.Request], Awaitable[web.StreamResponse]]


@dataclass(slots=True)
class SentRequest:
    method: str
    path: str
    body: bytes
    headers: dict[str, str]


@dataclass(slots=True)
class Stub:
    url: str
    seen: list[SentRequest] = field(default_factory=list)


@asynccontextmanager
async def running_stub(handler: Handler) -> AsyncIterator[Stub]:
    """Pass every request to the handler. path: as sent, with its quotes."""
    stub = Stub("")

    async def handle(request: web.Request) -> web.StreamResponse:
        headers = {name.lower(): value for name, value in request.headers.items()}
        path = request.rel_url.raw_path_qs
        stub.seen.append(SentRequest(request.method, path, await request.read(), headers))
        return await handler(request)

    app = web.Application()
    app.router.add_route("*", "/{rest:.*}", handle)
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


def respond_with(document: Json, status: int = 200) -> Handler:
    async def handler(_: web.Request) -> web.StreamResponse:
        return web.json_response(document, status=status)

    return handler
