"""Receivers that go wrong, each in its own way, at the level of the connection."""

import asyncio
import ssl
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager, suppress

from tests.support.certificates import Pair

Fault = Callable[[asyncio.StreamReader, asyncio.StreamWriter], Awaitable[None]]

#: Far more than anybody reads.
MUCH = 400
CHUNK = b"x" * 65_536


def answers(status: str, *headers: str, body: bytes = b"") -> Fault:
    head = "\r\n".join((f"HTTP/1.1 {status}", f"Content-Length: {len(body)}", *headers, "", ""))
    return says(head.encode() + body)


def says(raw: bytes) -> Fault:
    """Just these bytes, and the end."""

    async def fault(_: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        writer.write(raw)
        await writer.drain()

    return fault


async def hangs(reader: asyncio.StreamReader, _: asyncio.StreamWriter) -> None:
    await reader.read()  # until the other side has had enough


async def drips(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
    writer.write(b"HTTP/1.1 200 OK\r\nContent-Length: 100000\r\n\r\n")
    while not reader.at_eof():
        writer.write(b"x")
        await writer.drain()
        with suppress(TimeoutError):
            async with asyncio.timeout(0.05):  # between two drops
                await reader.read()


async def pours(_: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
    writer.write(b"HTTP/1.1 200 OK\r\nConnection: close\r\n\r\n")
    for _number in range(MUCH):
        writer.write(CHUNK)
        await writer.drain()


@asynccontextmanager
async def serving(fault: Fault, certificate: Pair | None = None) -> AsyncIterator[str]:
    """Hears a whole request, and then does it; gives its URL."""

    talks: set[asyncio.Task[object] | None] = set()

    async def talk(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        talks.add(asyncio.current_task())
        with suppress(ConnectionError, asyncio.IncompleteReadError):
            head = (await reader.readuntil(b"\r\n\r\n")).lower()
            length = int(head.partition(b"content-length: ")[2].partition(b"\r\n")[0] or 0)
            await reader.readexactly(length)
            await fault(reader, writer)
        writer.close()

    tls = None
    if certificate is not None:
        tls = ssl.create_default_context(ssl.Purpose.CLIENT_AUTH)
        tls.load_cert_chain(certificate.certificate, certificate.key)
    server = await asyncio.start_server(talk, "127.0.0.1", 0, ssl=tls)
    port = server.sockets[0].getsockname()[1]
    async with server:
        yield f"http{'s' if tls else ''}://127.0.0.1:{port}/hook"
        if under_way := [one for one in talks if one is not None]:
            await asyncio.wait(under_way, timeout=5)
