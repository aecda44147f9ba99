"""Authenticates and authorizes requests before their handlers run."""

import asyncio
from collections.abc import Coroutine
from contextlib import suppress
from time import monotonic

from aiohttp import web

from engine.errors import HeadgateError, NotFound, Unavailable
from engine.store.access import sessions, tokens
from engine.store.maintenance.project_moves import read_state
from engine.words import MoveState
from hub.api.app_context import CONTEXT, IDENTITY, SERVER, require
from hub.api.cells import (
    ADMISSION,
    CELLS,
    READ_ATTEMPTS,
    Cell,
    Cells,
    ReadPlace,
    first_reachable,
    has_cells,
    naming_cell,
    refuse_moving,
)
from hub.api.client_limits import CLIENTS, client_of
from hub.api.request_validation import read_body
from hub.api.routes import Handler, origin_of
from hub.auth.cross_site import CSRF_HEADER, SAFE, check_host, check_origin, check_page
from hub.auth.gatekeeper import UNAUTHORIZED, RequestLimits
from hub.auth.request_credentials import RequestCredentials, request_credentials
from hub.auth.roles import Right
from hub.auth.sessions import COOKIE, BrowserSession
from hub.auth.throttle import block_of

LIMITS: web.AppKey[RequestLimits] = web.AppKey("limits", RequestLimits)
#: The right that each route requires.
NEEDS: web.AppKey[dict[web.AbstractRoute, Right]] = web.AppKey("needs")
#: The routes that change nothing.
READS: web.AppKey[set[web.AbstractRoute]] = web.AppKey("reads")
#: The credentials of the request.
CREDENTIALS: web.RequestKey[RequestCredentials] = web.RequestKey("credentials", RequestCredentials)
#: The session of the request's cookie.
SESSION: web.RequestKey[BrowserSession] = web.RequestKey("session", BrowserSession)


#: Methods with bodies.
WITH_BODY = frozenset({"POST", "PUT", "PATCH"})
#: Seconds in which a stream notices that its project is to be read in another place.
MOVE_INTERVAL = 1.0


@web.middleware
async def limit_forwarded(request: web.Request, handler: Handler) -> web.StreamResponse:
    """Limit the concurrent requests of an address behind a proxy. Raises TooManyRequests."""
    peer = request.transport.get_extra_info("peername") if request.transport else None
    if not peer or request.remote in (None, peer[0]):
        return await handler(request)
    with request.app[CLIENTS].forwarded.hold(block_of(request.remote or "")):
        return await handler(request)


@web.middleware
async def admit(request: web.Request, handler: Handler) -> web.StreamResponse:
    """Authenticate the caller and check the right that the route requires.

    Raises TooManyRequests, Forbidden, Unavailable, and HeadgateError with the code Unauthorized.
    """
    address, now = request.remote or "", monotonic()
    request.app[LIMITS].limit_address(address, now)
    match, cells = request.match_info, request.app[CELLS]
    right = request.app[NEEDS].get(match.route, Right.NOTHING)
    project = match.get("project", "")
    if project and match.route in request.app[READS]:
        return await _read(request, handler, project, right, now)
    cell = await _cell_of(cells, project, right)
    if cell is None:
        return await handler(request)
    cell.enter(request)
    with naming_cell(cell.name):
        try:
            if right is not Right.NOTHING:
                await _admit_to(cell, request, project, right, now)
            return await handler(request)
        except HeadgateError as error:
            # The rows and tokens of a project that has moved are deleted.
            is_missing = isinstance(error, NotFound) or error.code == UNAUTHORIZED
            if is_missing and cells.is_leaving(cell.name, project):
                await _check_present(cell, project)
            raise


async def _read(
    request: web.Request, handler: Handler, project: str, right: Right, now: float
) -> web.StreamResponse:
    """Serve a request that changes nothing, from where its project is. If the project moves
    meanwhile, the request could have found a part of it, so it is served again. Raises as
    `admit`."""
    cells, admitted = request.app[CELLS], right is Right.NOTHING
    for _ in range(READ_ATTEMPTS):
        place = await cells.locate(project)
        place.cell.enter(request)
        with naming_cell(place.cell.name):
            try:
                if not admitted:
                    await _admit_to(place.cell, request, project, right, now)
                    admitted = True
                response = await handler(request)
            except Exception:
                # The rows and tokens of a project that has moved are deleted.
                if await cells.is_current(project, place):
                    raise
                continue
            # The beginning of a stream was sent. It ends when the project moves.
            if response.prepared or await cells.is_current(project, place):
                return response
    raise refuse_moving(project)


async def _check_present(cell: Cell, project: str) -> None:
    """Raises Unavailable if the project has left the cell since the request was routed to it."""
    async with cell.context.database.connection() as conn:
        state = await read_state(conn, project)
    if state is not None and state.left:
        raise refuse_moving(project)


async def _admit_to(
    cell: Cell, request: web.Request, project: str, right: Right, now: float
) -> None:
    """Raises as `admit`."""
    cells, address, gatekeeper = request.app[CELLS], request.remote or "", cell.admission.gatekeeper
    if not gatekeeper.authenticator.challenge:
        _check_origin(request)
    credentials = await _credentials(request)
    who = await gatekeeper.admit(credentials, project, address, now)
    require(who, right)
    if request.method not in SAFE:
        is_read = request.match_info.route in request.app[READS] and project in cells.moving()
        if project and right is not Right.READ and not is_read:
            await cells.add_project(cell, project)
        who = await gatekeeper.authenticator.lasting(who)
    request[CREDENTIALS], request[IDENTITY] = credentials, who
    if request.method in WITH_BODY and not request.content.is_eof():
        with request.app[CLIENTS].bodies.hold(client_of(request, who)):
            await read_body(request)


async def _cell_of(cells: Cells, project: str, right: Right) -> Cell | None:
    """The cell that serves a request. None: it needs none. project: "": the path has none."""
    if project:
        return await cells.find(project)
    if right is not Right.NOTHING:
        return first_reachable(cells)
    return None


def _check_origin(request: web.Request) -> None:
    """Without authentication, refuse pages of other origins. Raises Forbidden."""
    server = request.app[SERVER].settings.server
    if server.on_loopback:
        check_host(request.host, server.public_url)
    own = {origin_of(request), server.public_url.rstrip("/")} - {""}
    check_page(request.method, request.headers, {*own, *server.cors_origins})


async def _credentials(request: web.Request) -> RequestCredentials:
    """The credentials in the headers; without any, those of the session."""
    block = block_of(request.remote or "")
    credentials = request_credentials(request.headers, block)
    cookie = request.cookies.get(COOKIE, "")
    if not credentials.is_empty or not cookie:
        return credentials
    admission = request[ADMISSION]
    try:
        session = await admission.sessions.read(cookie, block)
    except HeadgateError as error:
        # In mode none, ignore cookies of another mode, or of a server on another port.
        if error.code == UNAUTHORIZED and not admission.gatekeeper.authenticator.challenge:
            return credentials
        raise
    headers = request.headers
    check_origin(
        session, request.method, headers.get(CSRF_HEADER, ""), headers.get("Sec-Fetch-Site", "")
    )
    request[SESSION] = session
    return session.credentials


async def while_admitted(request: web.Request, work: Coroutine[None, None, None]) -> None:
    """Run work of any length, and cancel it when its user loses access.

    The user is authenticated again when the database notifies that a session or token has ended,
    and when the cached identity expires. An authenticator that is unavailable ends nothing.
    """
    if not request[ADMISSION].gatekeeper.authenticator.challenge:  # the mode has no authentication
        await work
        return
    database, ended = request[CONTEXT].database, asyncio.Event()
    ended.set()  # check once: access may have ended before the listeners were registered
    seconds = request.app[SERVER].settings.auth.cache_ttl.total_seconds()
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


async def while_current(
    request: web.Request, project: str, place: ReadPlace, work: Coroutine[None, None, None]
) -> None:
    """Run work of any length, and cancel it when the project is to be read in another place. A cell
    that is away ends nothing."""
    cells = request.app[CELLS]
    if not has_cells(request):
        await work
        return
    async with asyncio.TaskGroup() as group:
        working = group.create_task(work)
        while not working.done():
            await asyncio.wait({working}, timeout=MOVE_INTERVAL)
            with suppress(Unavailable):
                if not await cells.is_current(project, place):
                    working.cancel()


async def _is_admitted(request: web.Request) -> bool:
    """Whether a request that was authenticated would be authenticated again."""
    admission, session = request[ADMISSION], request.get(SESSION)
    try:
        if session is not None:
            await admission.sessions.check(session)
        authenticator = admission.gatekeeper.authenticator
        await authenticator.identify(request[CREDENTIALS], request[IDENTITY].project)
    except Unavailable:
        return True
    except HeadgateError:
        return has_cells(request) and await _has_left(request)
    return True


async def _has_left(request: web.Request) -> bool:
    """Whether the project of a stream has left its cell, and its tokens were deleted there. The
    stream soon continues in the new cell."""
    with suppress(Unavailable):
        async with request[CONTEXT].database.connection() as conn:
            state = await read_state(conn, request[IDENTITY].project)
        return state is not None and state.state is MoveState.MOVED
    return True


def count_wrong_tokens(handler: Handler) -> Handler:
    """Decorate a handler that checks a token itself, so that wrong tokens count for the lockout. It
    also raises TooManyRequests."""

    async def handle(request: web.Request) -> web.StreamResponse:
        try:
            return await handler(request)
        except HeadgateError as error:
            if error.code == UNAUTHORIZED:
                request.app[LIMITS].count_wrong(request.remote or "", monotonic())
            raise

    return handle
