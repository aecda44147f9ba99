"""A process that stops beside others, which accept new connections, answers the open ones."""

import asyncio
import os
from collections.abc import AsyncIterator
from contextlib import AsyncExitStack

import pytest
from aiohttp import web

from hub.api.client_limits import CLIENTS, ClientLimits
from hub.auth.request_counts import RequestCounts
from hub.http.listener import serve_api
from hub.listen_address import bind
from hub.settings.access import ServerSection
from tests.support.ports import free_port

REQUEST = b"GET / HTTP/1.1\r\nHost: localhost\r\n\r\n"
Stream = tuple[asyncio.StreamReader, asyncio.StreamWriter]


class StoppingServer:
    """A server whose socket another process shares."""

    def __init__(self) -> None:
        self.stack = AsyncExitStack()
        self.handled = 0
        self.clients: list[asyncio.StreamWriter] = []

    async def start(self) -> None:
        self.server = ServerSection(listen=f"127.0.0.1:{free_port()}")
        application = web.Application()
        application[CLIENTS] = ClientLimits(self.server, RequestCounts(), os.getpid())
        application.router.add_get("/", self._answer)
        shared = bind(self.server.listen, "[server] listen")
        for one in shared:
            self.stack.callback(one.close)
        await self.stack.enter_async_context(serve_api(self.server, application, shared))

    async def _answer(self, request: web.Request) -> web.Response:
        self.handled += 1
        return web.Response(text="here")

    async def connect(self) -> Stream:
        host, _, port = self.server.listen.rpartition(":")
        reader, writer = await asyncio.open_connection(host, int(port))
        self.clients.append(writer)
        return reader, writer


@pytest.fixture
async def server() -> AsyncIterator[StoppingServer]:
    stopping = StoppingServer()
    await stopping.start()
    try:
        yield stopping
    finally:
        await stopping.stack.aclose()
        for client in stopping.clients:
            client.close()


async def request(stream: Stream) -> bytes:
    """The header of the response; empty if the connection is closed."""
    reader, writer = stream
    writer.write(REQUEST)
    try:
        header = await reader.readuntil(b"\r\n\r\n")
    except (asyncio.IncompleteReadError, ConnectionError):
        return b""
    await reader.readexactly(len("here"))
    return header


async def test_open_connections_get_a_last_response(server: StoppingServer) -> None:
    used, new, idle = [await server.connect() for _ in range(3)]
    assert b"Connection: close" not in await request(used)
    stopping = asyncio.create_task(server.stack.aclose())
    await asyncio.sleep(0)  # it has closed its listener
    for stream in (used, new):
        header = await request(stream)
        assert header.startswith(b"HTTP/1.1 200") and b"Connection: close" in header
        assert await stream[0].read() == b""
    assert await idle[0].read() == b""  # it is closed after a while
    await stopping
    assert server.handled == 3


async def test_a_server_without_connections_stops_at_once(server: StoppingServer) -> None:
    async with asyncio.timeout(1.0):
        await server.stack.aclose()
