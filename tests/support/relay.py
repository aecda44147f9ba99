"""A TCP relay to a server, whose connections a test can cut and restore."""

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager, suppress

from yarl import URL

CHUNK_BYTES = 65_536


class Relay:
    """Copies bytes in both directions. url: what clients use instead of the server's URL."""

    def __init__(self, server: str) -> None:
        at = URL(server)
        self._there = (at.host or "", at.port or 0)
        self._open: set[asyncio.StreamWriter] = set()
        self._is_cut = False
        self.url = ""

    async def handle(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        if self._is_cut:
            writer.transport.abort()
            return
        there = await asyncio.open_connection(*self._there)
        self._open |= {writer, there[1]}
        try:
            async with asyncio.TaskGroup() as group:
                group.create_task(_copy(reader, there[1]))
                group.create_task(_copy(there[0], writer))
        finally:
            for one in (writer, there[1]):
                one.transport.abort()
                self._open.discard(one)

    def cut(self) -> None:
        """Abort all connections and refuse new ones."""
        self._is_cut = True
        for one in self._open:
            one.transport.abort()

    def restore(self) -> None:
        self._is_cut = False


async def _copy(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
    with suppress(ConnectionError):
        while chunk := await reader.read(CHUNK_BYTES):
            writer.write(chunk)
            await writer.drain()
    writer.transport.abort()


@asynccontextmanager
async def running_relay(server: str) -> AsyncIterator[Relay]:
    """server: its URL."""
    relay = Relay(server)
    listening = await asyncio.start_server(relay.handle, "127.0.0.1", 0)
    relay.url = f"http://127.0.0.1:{listening.sockets[0].getsockname()[1]}"
    try:
        yield relay
    finally:
        relay.cut()
        listening.close()
        await listening.wait_closed()
