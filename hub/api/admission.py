"""Before a handler is called: where the request is from, who asks, and whether they may."""

import asyncio
from collections.abc import Coroutine
from dataclasses import dataclass
from time import monotonic

from aiohttp import web

from engine.errors import HeadgateError, Unavailable
from engine.store import sessions, tokens
from hub.api.addresses import origin_of
from hub.api.client_limits import CLIENTS, client_of
from hub.api.parts import IDENTITY, PARTS, Handler, read_body, require
from hub.auth.address_blocks import block_of
from hub.auth.credentials import RequestCredentials, request_credentials
from hub.auth.gatekeeper import UNAUTHORIZED, Gatekeeper
from hub.auth.pages import check_host, check_page
from hub.auth.roles import Right
from hub.auth.sessions import COOKIE, CSRF_HEADER, SAFE, Session, Sessions, check_origin


@dataclass(frozen=True, slots=True)
class Admission:
    gatekeeper: Gatekeeper
    sessions: Sessions


ADMISSION: web.AppKey[Admission] = web.AppKey("admission", Admission)
#: What each of the application's routes needs of whoever asks.
NEEDS: web.AppKey[dict[web.AbstractRoute, Right]] = web.AppKey("needs")
#: What the request brought to say who it is from.
PRESENTED: web.RequestKey[RequestCredentials] = web.RequestKey("presented", RequestCredentials)
#: The session that a request came with.
SESSION: web.RequestKey[Session] = web.RequestKey("session", Session)


#: Methods of requests whose bodies are read.
WITH_BODY = frozenset({"POST", "PUT", "PATCH"})


@web.middleware
async def counted(request: web.Request, handler: Handler) -> web.StreamResponse:
    """Requests that a trusted proxy forwards count by the address it names. Raises TooMany."""
    peer = request.transport.get_extra_info("peername") if request.transport else None
    if not peer or request.remote in (None, peer[0]):
        return await handler(request)
    with request.app[CLIENTS].forwarded.held(block_of(request.remote or "")):
        return await handler(request)


@web.middleware
async def admitted(request: web.Request, handler: Handler) -> web.StreamResponse:
    """Raises TooMany, Forbidden, and HeadgateError with the code Unauthorized."""
    gatekeeper, now = request.app[ADMISSION].gatekeeper, monotonic()
    address = request.remote or ""
    gatekeeper.pass_by(address, now)
    match = request.match_info
    right = request.app[NEEDS].get(match.route, Right.NOTHING)
    if right is Right.NOTHING:
        return await handler(request)
    if not gatekeeper.authenticator.challenge:
        _check_sender(request)
    presented = await _presented(request)
    who = await gatekeeper.admit(presented, match.get("project", ""), address, now)
    require(who, right)
    if request.method not in SAFE:
        who = await gatekeeper.authenticator.lasting(who)
    request[PRESENTED], request[IDENTITY] = presented, who
    if request.method in WITH_BODY and not request.content.is_eof():
        with request.app[CLIENTS].bodies.held(client_of(request, who)):
            await read_body(request)
    return await handler(request)


def _check_sender(request: web.Request) -> None:
    """Of whom nobody asks who they are. Raises Forbidden."""
    server = request.app[PARTS].settings.server
    if server.on_loopback:
        check_host(request.host, server.public_url)
    ours = {origin_of(request), server.public_url.rstrip("/")} - {""}
    check_page(request.method, request.headers, {*ours, *server.cors_origins})


async def _presented(request: web.Request) -> RequestCredentials:
    """What the headers say; a cookie counts where they say nothing."""
    block = block_of(request.remote or "")
    said = request_credentials(request.headers, block)
    cookie = request.cookies.get(COOKIE, "")
    if not said.nothing or not cookie:
        return said
    admission = request.app[ADMISSION]
    try:
        session = await admission.sessions.read(cookie, block)
    except HeadgateError as error:
        # Of a server that was in another mode, or that listens on another port.
        if error.code == UNAUTHORIZED and not admission.gatekeeper.authenticator.challenge:
            return said
        raise
    headers = request.headers
    check_origin(
        session, request.method, headers.get(CSRF_HEADER, ""), headers.get("Sec-Fetch-Site", "")
    )
    request[SESSION] = session
    return session.presented


async def while_admitted(request: web.Request, work: Coroutine[None, None, None]) -> None:
    """Run work of any length, and cancel it when its user loses access.

    The user is authenticated again when the database notifies that a session or token has ended,
    and when the cached identity expires. An authenticator that is unavailable ends nothing.
    """
    app = request.app
    if not app[ADMISSION].gatekeeper.authenticator.challenge:  # the mode has no authentication
        await work
        return
    database, ended = app[PARTS].database, asyncio.Event()
    ended.set()  # it may have been before we listened
    seconds = app[PARTS].settings.auth.remembered.total_seconds()
    async with (
        database.listen(sessions.CHANNEL, ended.set),
        database.listen(tokens.CHANNEL, ended.set),
        asyncio.TaskGroup() as group,
    ):
        working = group.create_task(work)
        while not working.done():
            notified = asyncio.ensure_future(ended.wait())
            await asyncio.wait(
                {working, notified}, timeout=seconds, return_when=asyncio.FIRST_COMPLETED
            )
            notified.cancel()
            ended.clear()
            if not working.done() and not await _is_admitted(request):
                working.cancel()


async def _is_admitted(request: web.Request) -> bool:
    """Whether a request that was authenticated would be authenticated again."""
    admission, session = request.app[ADMISSION], request.get(SESSION)
    try:
        if session is not None:
            await admission.sessions.check(session)
        authenticator = admission.gatekeeper.authenticator
        await authenticator.identify(request[PRESENTED], request[IDENTITY].project)
    except Unavailable:
        return True
    except HeadgateError:
        return False
    return True


def guarded(handler: Handler) -> Handler:
    """For a handler that judges a token of its own: a wrong one is counted. It raises TooMany,
    too."""

    async def handle(request: web.Request) -> web.StreamResponse:
        try:
            return await handler(request)
        except HeadgateError as error:
            if error.code == UNAUTHORIZED:
                gatekeeper = request.app[ADMISSION].gatekeeper
                gatekeeper.count_wrong(request.remote or "", monotonic())
            raise

    return handle
