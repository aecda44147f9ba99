"""Before a handler is called: where the request is from, who asks, and whether they may."""

from dataclasses import dataclass
from time import monotonic

from aiohttp import web

from engine.errors import HeadgateError
from hub.api.parts import IDENTITY, Handler, require
from hub.auth.gatekeeper import UNAUTHORIZED, Gatekeeper
from hub.auth.presented import Presented, presented_in
from hub.auth.roles import Right
from hub.auth.sessions import COOKIE, CSRF_HEADER, Session, Sessions, check_origin


@dataclass(frozen=True, slots=True)
class Admission:
    gatekeeper: Gatekeeper
    sessions: Sessions


ADMISSION: web.AppKey[Admission] = web.AppKey("admission", Admission)
#: What each of the application's routes needs of whoever asks.
NEEDS: web.AppKey[dict[web.AbstractRoute, Right]] = web.AppKey("needs")
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
    who = await gatekeeper.admit(_presented(request), match.get("project", ""), address, now)
    request[IDENTITY] = who
    require(who, right)
    return await handler(request)


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


@web.middleware
async def guarded(request: web.Request, handler: Handler) -> web.StreamResponse:
    """For handlers that are shown a token of their own: wrong ones are counted as guesses.

    Raises TooMany.
    """
    gatekeeper, now = request.app[ADMISSION].gatekeeper, monotonic()
    gatekeeper.refuse_guessing(request.remote or "", now)
    try:
        return await handler(request)
    except HeadgateError as error:
        if error.code == UNAUTHORIZED:
            gatekeeper.guessed(request.remote or "", now)
        raise
