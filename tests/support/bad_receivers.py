"""Webhook receivers with faults at the level of the connection."""

import asyncio
import ssl
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager, suppress

from tests.support.certificates import CertificateFiles

Fault = Callable[[asyncio.StreamReader, asyncio.StreamWriter], Awaitable[None]]

#: Chunks in an endless-looking response: far more than a client may read.
CHUNKS = 400
CHUNK = b"x" * 65_536


def respond(status: str, *headers: str, body: bytes = b"") -> Fault:
    head = "\r\n".join((f"HTTP/1.1 {status}", f"Content-Length: {len(body)}", *headers, "", ""))
    return send_bytes(head.encode() + body)


def send_bytes(raw: bytes) -> Fault:
    """Send these bytes, then close the connection."""

    async def fault(_: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        writer.write(raw)
        await writer.drain()

    return fault


async def never_respond(reader: asyncio.StreamReader, _: asyncio.StreamWriter) -> None:
    await reader.read()  # until the client closes the connection


async def respond_slowly(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
    writer.write(b"HTTP/1.1 200 OK\r\nContent-Length: 100000\r\n\r\n")
    while not reader.at_eof():
        writer.write(b"x")
        await writer.drain()
        with suppress(TimeoutError):
            async with asyncio.timeout(0.05):  # the pause between two bytes
                await reader.read()


async def respond_endlessly(_: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
    writer.write(b"HTTP/1.1 200 OK\r\nConnection: close\r\n\r\n")
    for _number in range(CHUNKS):
        writer.write(CHUNK)
        await writer.drain()


@asynccontextmanager
async def faulty_receiver(
    fault: Fault, certificate: CertificateFiles | None = None
) -> AsyncIterator[str]:
    """A server that reads a whole request and then behaves like `fault`; yields its URL."""

    connections: set[asyncio.Task[object] | None] = set()

    async def handle(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        connections.add(asyncio.current_task())
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
    server = await asyncio.start_server(handle, "127.0.0.1", 0, ssl=tls)
    port = server.sockets[0].getsockname()[1]
    async with server:
        yield f"http{'s' if tls else ''}://127.0.0.1:{port}/hook"
        if open_connections := [one for one in connections if one is not None]:
            await asyncio.wait(open_connections, timeout=5)
