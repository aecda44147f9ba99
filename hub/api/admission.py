"""Before a handler is called: where the request is from, who asks, and whether they may."""

import asyncio
from collections.abc import Coroutine
from dataclasses import dataclass
from time import monotonic

from aiohttp import web

from engine.errors import HeadgateError, Unavailable
from hub.api.addresses import origin_of
from hub.api.parts import IDENTITY, PARTS, Handler, require
from hub.auth.gatekeeper import UNAUTHORIZED, Gatekeeper
from hub.auth.pages import check_host, check_page
from hub.auth.presented import Presented, presented_in
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
PRESENTED: web.RequestKey[Presented] = web.RequestKey("presented", Presented)
#: The session that a request came with.
SESSION: web.RequestKey[Session] = web.RequestKey("session", Session)


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
    presented = _presented(request)
    who = await gatekeeper.admit(presented, match.get("project", ""), address, now)
    require(who, right)
    if request.method not in SAFE:
        who = await gatekeeper.authenticator.lasting(who)
    request[PRESENTED], request[IDENTITY] = presented, who
    return await handler(request)


def _check_sender(request: web.Request) -> None:
    """Of whom nobody asks who they are. Raises Forbidden."""
    server = request.app[PARTS].settings.server
    # Behind a proxy it goes by the names of that.
    if server.on_loopback and not server.trusted_proxies:
        check_host(request.host, server.public_url)
    ours = {origin_of(request), server.public_url.rstrip("/")} - {""}
    check_page(request.method, request.headers, {*ours, *server.cors_origins})


def _presented(request: web.Request) -> Presented:
    """What the headers say; a cookie counts where they say nothing."""
    said = presented_in(request.headers)
    cookie = request.cookies.get(COOKIE, "")
    if not said.nothing or not cookie:
        return said
    session = request.app[ADMISSION].sessions.read(cookie)
    headers = request.headers
    check_origin(
        session, request.method, headers.get(CSRF_HEADER, ""), headers.get("Sec-Fetch-Site", "")
    )
    request[SESSION] = session
    return session.presented


async def while_admitted(request: web.Request, work: Coroutine[None, None, None]) -> None:
    """Do something that takes as long as it takes, until whoever asks is let in no more.

    They are looked at again whenever they would not be remembered any longer; that nobody can be
    asked ends nothing.
    """
    app, who = request.app, request[IDENTITY]
    authenticator = app[ADMISSION].gatekeeper.authenticator
    if not authenticator.challenge:  # whoever comes is let in, for ever
        await work
        return
    seconds = app[PARTS].settings.auth.remembered.total_seconds()
    async with asyncio.TaskGroup() as group:
        working = group.create_task(work)
        while not (await asyncio.wait({working}, timeout=seconds))[0]:
            try:
                await authenticator.identify(request[PRESENTED], who.project)
            except Unavailable:
                continue
            except HeadgateError:
                working.cancel()


def guarded(handler: Handler) -> Handler:
    """For a handler that is shown a token of its own: a wrong one counts as a guess. It raises
    TooMany, too."""

    async def handle(request: web.Request) -> web.StreamResponse:
        gatekeeper, now = request.app[ADMISSION].gatekeeper, monotonic()
        gatekeeper.refuse_guessing(request.remote or "", now)
        try:
            return await handler(request)
        except HeadgateError as error:
            if error.code == UNAUTHORIZED:
                gatekeeper.guessed(request.remote or "", now)
            raise

    return handle
