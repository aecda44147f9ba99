"""Raw bytes to and from a server, as no HTTP library would send them."""

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass

import orjson
from yarl import URL

from tests.support.program import PATIENCE, Json


@dataclass(frozen=True)
class Wire:
    reader: asyncio.StreamReader
    writer: asyncio.StreamWriter

    async def send(self, data: bytes) -> None:
        self.writer.write(data)
        await self.writer.drain()

    async def read_to_end(self) -> bytes:
        """Read until the server closes the connection."""
        async with asyncio.timeout(PATIENCE):
            try:
                return await self.reader.read()
            except ConnectionError:
                return b""


@asynccontextmanager
async def open_wire(url: str) -> AsyncIterator[Wire]:
    """A connection to the server at the URL."""
    at = URL(url)
    reader, writer = await asyncio.open_connection(at.host, at.port)
    try:
        yield Wire(reader, writer)
    finally:
        writer.transport.abort()


async def exchange(url: str, data: bytes) -> list[tuple[int, Json]]:
    """Send bytes only; return (status, document) of each response, parsed if it is JSON."""
    async with open_wire(url) as wire:
        await wire.send(data)
        return parse_responses(await wire.read_to_end())


def parse_responses(data: bytes) -> list[tuple[int, Json]]:
    found = []
    while data:
        head, _, data = data.partition(b"\r\n\r\n")
        first, *lines = head.decode("latin-1").split("\r\n")
        headers = dict(line.lower().split(": ", 1) for line in lines)
        size = int(headers.get("content-length", 0))
        body, data = data[:size], data[size:]
        is_json = headers.get("content-type", "").startswith("application/json")
        found.append((int(first.split(" ")[1]), orjson.loads(body) if is_json else body))
    return found


def request(line: str, *headers: str | bytes, body: bytes = b"") -> bytes:
    """An HTTP/1.1 request. line: method and address. Adds a Host header unless
    `headers` has one.
    """
    lines = [one if isinstance(one, bytes) else one.encode() for one in headers]
    if not any(one.lower().startswith(b"host:") for one in lines):
        lines = [b"Host: localhost", *lines]
    return b"\r\n".join([f"{line} HTTP/1.1".encode(), *lines, b"", body])
