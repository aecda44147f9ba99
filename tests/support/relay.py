"""A TCP relay to a server, whose connections a test can cut, silence and restore."""

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
        self._handlers: set[asyncio.Task[None]] = set()
        self._is_cut = False
        self._passes = asyncio.Event()
        self._passes.set()
        self.url = ""
        self.port = 0

    def handle(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        """Not a coroutine: the handler is known as soon as the connection exists."""
        handler = asyncio.ensure_future(self._relay(reader, writer))
        self._handlers.add(handler)
        handler.add_done_callback(self._handlers.discard)

    async def _relay(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self._open.add(writer)
        try:
            await self._passes.wait()
            if self._is_cut:
                return
            there = await asyncio.open_connection(*self._there)
            self._open.add(there[1])
            try:
                async with asyncio.TaskGroup() as group:
                    group.create_task(self._copy(reader, there[1]))
                    group.create_task(self._copy(there[0], writer))
            finally:
                there[1].transport.abort()
                self._open.discard(there[1])
        except ConnectionError:
            pass
        finally:
            writer.transport.abort()
            self._open.discard(writer)

    def cut(self) -> None:
        """Abort all connections and refuse new ones."""
        self._is_cut = True
        for one in self._open:
            one.transport.abort()

    def silence(self) -> None:
        """Keep all connections open and accept new ones, but pass nothing on, like a network that
        drops packets.
        """
        self._passes.clear()

    def restore(self) -> None:
        self._is_cut = False
        self._passes.set()

    async def end(self) -> None:
        """The caller has closed the socket. Connections that it has accepted can follow."""
        self._passes.set()
        await asyncio.sleep(0)
        while self._open or self._handlers:
            self.cut()
            await asyncio.gather(*self._handlers, return_exceptions=True)
            await asyncio.sleep(0)

    async def _copy(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        with suppress(ConnectionError):
            while chunk := await reader.read(CHUNK_BYTES):
                await self._passes.wait()
                writer.write(chunk)
                await writer.drain()
        writer.transport.abort()


@asynccontextmanager
async def running_relay(server: str) -> AsyncIterator[Relay]:
    """server: its URL."""
    relay = Relay(server)
    listening = await asyncio.start_server(relay.handle, "127.0.0.1", 0)
    relay.port = listening.sockets[0].getsockname()[1]
    relay.url = f"http://127.0.0.1:{relay.port}"
    try:
        yield relay
    finally:
        listening.close()
        await relay.end()
        await listening.wait_closed()
