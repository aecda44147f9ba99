"""Receives notifications as webhooks, and answers in the response or with their tokens."""

import asyncio
import logging
from collections.abc import AsyncGenerator, AsyncIterator, Mapping
from contextlib import asynccontextmanager
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Any

import aiohttp
import orjson
from aiohttp import web

from headgate.connection import CONNECT, TIMEOUT
from headgate.connection_errors import describe
from headgate.errors import UnreachableError, response_error
from headgate.event_stream_parser import MAX_LINE
from headgate.listener.handler_runner import HandlerRunner, ListenerBusy, is_hook_notification
from headgate.listener.notification import HookClosed, HookNotification
from headgate.listener.sending import read_refusals
from headgate.signatures import is_signed

if TYPE_CHECKING:
    from headgate.listener.sources import WebhookServer

Json = Any
log = logging.getLogger("headgate.listener")
#: Seconds after which Headgate delivers again while the listener is busy.
RETRY_AFTER = 5
#: Seconds in which open requests must end when the receiver stops.
SHUTDOWN = 5.0


class TokenSender:
    """Sends answers to the `signal_url` of notifications, with their tokens."""

    def __init__(self, session: aiohttp.ClientSession) -> None:
        self._session = session

    async def send(self, notification: HookNotification, body: Mapping[str, Json]) -> str | None:
        url, token = notification.data["signal_url"], notification.data["token"]
        if url is None or token is None:
            raise HookClosed("the subscription may not answer this hook")
        headers = {"Authorization": f"Bearer {token}", "Content-Type": "application/json"}
        async with read_refusals():
            try:
                async with self._session.post(
                    url, data=orjson.dumps(body), headers=headers, allow_redirects=False
                ) as response:
                    document = await _read_json(response)
                    if response.status >= 300:
                        raise response_error(response.status, document)
                    return str(document.get("deadline") or "") or None
            except (aiohttp.ClientError, TimeoutError, OSError) as error:
                reason = f"no response from {url}: {describe(error)}"
                raise UnreachableError(reason, "Check that the server runs.") from error


async def _read_json(response: aiohttp.ClientResponse) -> Any:
    try:
        document = orjson.loads(await response.read())
    except orjson.JSONDecodeError:
        document = None
    return document if isinstance(document, dict) else {}


class WebhookReceiver:
    """Verifies webhooks, and gives them to a listener."""

    def __init__(self, listener: HandlerRunner, secrets: list[str]) -> None:
        self._listener = listener
        self._secrets = secrets
        self.sender: TokenSender | None = None

    async def receive(self, request: web.Request) -> web.Response:
        raw = await request.read()
        now = datetime.now(UTC)
        if not any(is_signed(request.headers, raw, one, now) for one in self._secrets):
            log.warning("a request from %s has no valid signature", request.remote)
            raise web.HTTPUnauthorized(text="the signature is missing, wrong or too old")
        event = _event_of(raw)
        if is_hook_notification(event):
            return await self._notify(event)
        await self._listener.handle_event(event)
        return web.Response(status=204)

    async def _notify(self, event: Mapping[str, Json]) -> web.Response:
        if event["data"]["token"] is None or self.sender is None:
            return web.Response(status=204)  # the subscription may not answer this hook
        try:
            run = self._listener.accept(event, self.sender)
        except ListenerBusy as busy:
            raise _unavailable(str(busy)) from None
        if run is None:
            return _response(self._listener.earlier_answer(event))
        if run.is_kept:
            return web.Response(status=202)  # it answers with its token
        run.is_direct = True
        await asyncio.wait({run.answered}, timeout=self._listener.answer_within)
        if run.answered.cancelled():
            raise _unavailable("the listener stops")
        if run.answered.done():
            return _response(run.answered.result())
        self._listener.keep(run)
        return web.Response(status=202)


def _unavailable(reason: str) -> web.HTTPServiceUnavailable:
    return web.HTTPServiceUnavailable(text=reason, headers={"Retry-After": str(RETRY_AFTER)})


def _event_of(raw: bytes) -> Mapping[str, Json]:
    try:
        event = orjson.loads(raw)
        if isinstance(event["type"], str) and isinstance(event["data"], dict):
            return event  # type: ignore[no-any-return]
    except (orjson.JSONDecodeError, KeyError, TypeError):
        pass
    raise web.HTTPBadRequest(text="the body is not an event of Headgate")


def _response(body: Mapping[str, Json] | None) -> web.Response:
    if body is None:
        return web.Response(status=204)
    return web.Response(body=orjson.dumps(body), content_type="application/json")


@asynccontextmanager
async def _token_sender() -> AsyncIterator[TokenSender]:
    timeout = aiohttp.ClientTimeout(total=TIMEOUT, connect=CONNECT)
    async with aiohttp.ClientSession(timeout=timeout) as session:
        yield TokenSender(session)


def web_application(listener: HandlerRunner, server: "WebhookServer") -> web.Application:
    """An application of aiohttp that serves the listener, to which you can add routes. Raises
    ValueError without a secret."""
    receiver = WebhookReceiver(listener, server.secrets())
    app = web.Application(client_max_size=MAX_LINE)
    app.router.add_post(server.path, receiver.receive)

    async def run(_: web.Application) -> AsyncGenerator[None, None]:
        async with _token_sender() as sender, listener.working():
            receiver.sender = sender
            listener.resume(sender)
            yield

    app.cleanup_ctx.append(run)
    return app


@asynccontextmanager
async def open_webhook(server: "WebhookServer", listener: HandlerRunner) -> AsyncIterator[None]:
    """Serve webhooks; the URL is in `server.url`."""
    host, _, port = server.address.rpartition(":")
    if not host or not port.isdecimal():
        raise ValueError(f'"{server.address}" is not an address; write HOST:PORT')
    app = web_application(listener, server)
    runner = web.AppRunner(app, access_log=None, shutdown_timeout=SHUTDOWN)
    try:
        await runner.setup()
        await web.TCPSite(runner, host, int(port)).start()
        server.url = f"http://{host}:{runner.addresses[0][1]}{server.path}"
        log.info("listening for webhooks on %s", server.url)
        yield
    finally:
        await runner.cleanup()
