"""An HTTP server on loopback that receives webhooks, and a bounded wait."""

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from typing import Any

import orjson
from aiohttp import web

from tests.support.program import intervals

BOUND = 20.0


async def until(condition: Callable[[], Awaitable[Any]] | Callable[[], Any], what: str = "") -> Any:
    """Wait until the condition returns a true value; return it. Fails after `BOUND` seconds."""
    try:
        async with asyncio.timeout(BOUND):
            for pause in intervals():
                found = condition()
                if asyncio.iscoroutine(found):
                    found = await found
                if found:
                    return found
                await asyncio.sleep(pause)
    except TimeoutError:
        raise AssertionError(f"it did not happen: {what or condition}") from None


@dataclass(frozen=True, slots=True)
class Received:
    path: str
    headers: dict[str, str]
    body: bytes

    @property
    def event(self) -> dict[str, Any]:
        parsed: dict[str, Any] = orjson.loads(self.body)
        return parsed


Handler = Callable[[Received], Awaitable[web.StreamResponse]]
RawHandler = Callable[[web.Request], Awaitable[web.StreamResponse]]


@dataclass(slots=True)
class Receiver:
    """Stores what it receives. handle: computes the response; 200 by default.

    handle_raw: the same, for responses that are sent in pieces.
    """

    url: str = ""
    received: list[Received] = field(default_factory=list)
    in_progress: int = 0
    max_in_progress: int = 0
    handle: Handler | None = None
    handle_raw: RawHandler | None = None

    @property
    def events(self) -> list[dict[str, Any]]:
        return [one.event for one in self.received]

    async def receive(self, request: web.Request) -> web.StreamResponse:
        one = Received(request.path, dict(request.headers), await request.read())
        self.received.append(one)
        self.in_progress += 1
        self.max_in_progress = max(self.max_in_progress, self.in_progress)
        try:
            if self.handle_raw:
                return await self.handle_raw(request)
            return await self.handle(one) if self.handle else web.Response(text="thanks")
        finally:
            self.in_progress -= 1

    def respond_with_statuses(self, *statuses: int, headers: dict[str, str] | None = None) -> None:
        """Respond with these statuses in order, then always with the last one."""
        left = list(statuses)

        async def handle(_: Received) -> web.StreamResponse:
            status = left.pop(0) if len(left) > 1 else left[0]
            return web.Response(status=status, headers=headers)

        self.handle = handle

    def respond_with(self, document: Any, status: int = 200) -> None:
        async def handle(_: Received) -> web.StreamResponse:
            return web.json_response(document, status=status)

        self.handle = handle

    def respond_when_set(self) -> asyncio.Event:
        """Respond when the returned event is set."""
        go = asyncio.Event()

        async def handle(_: Received) -> web.StreamResponse:
            await go.wait()
            return web.Response()

        self.handle = handle
        return go

    def never_respond(self) -> None:
        async def handle(_: Received) -> web.StreamResponse:
            await asyncio.Event().wait()
            raise AssertionError

        self.handle = handle


@asynccontextmanager
async def running_receiver() -> AsyncIterator[Receiver]:
    receiver = Receiver()
    app = web.Application()
    app.router.add_route("*", "/{path:.*}", receiver.receive)
    runner = web.AppRunner(app, shutdown_timeout=0.1)
    await runner.setup()
    site = web.TCPSite(runner, "127.0.0.1", 0)
    await site.start()
    try:
        receiver.url = f"http://127.0.0.1:{runner.addresses[0][1]}"
        yield receiver
    finally:
        await runner.cleanup()
