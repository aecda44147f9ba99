"""Bytes to and from a server, as they are: what no library of clients would send."""

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

    async def say(self, data: bytes) -> None:
        self.writer.write(data)
        await self.writer.drain()

    async def rest(self) -> bytes:
        """Everything until the server lets go, which it must."""
        async with asyncio.timeout(PATIENCE):
            try:
                return await self.reader.read()
            except ConnectionError:
                return b""


@asynccontextmanager
async def wired(url: str) -> AsyncIterator[Wire]:
    """A connection to the server at the URL."""
    at = URL(url)
    reader, writer = await asyncio.open_connection(at.host, at.port)
    try:
        yield Wire(reader, writer)
    finally:
        writer.transport.abort()


async def exchange(url: str, data: bytes) -> list[tuple[int, Json]]:
    """Send bytes, and nothing after them; (status, document) of each answer, where it is JSON."""
    async with wired(url) as wire:
        await wire.say(data)
        return answers_in(await wire.rest())


def answers_in(data: bytes) -> list[tuple[int, Json]]:
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
    """A request as HTTP/1.1 with a host; line: method and address. What is said last counts."""
    said = [one if isinstance(one, bytes) else one.encode() for one in headers]
    if not any(one.lower().startswith(b"host:") for one in said):
        said = [b"Host: localhost", *said]
    return b"\r\n".join([f"{line} HTTP/1.1".encode(), *said, b"", body])
