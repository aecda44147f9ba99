"""The HTTP application: routes, and what happens around every request."""

import asyncio
import time
from uuid import uuid4

import structlog
from aiohttp import web
from structlog.typing import FilteringBoundLogger

from engine.errors import Conflict, Finding, HeadgateError, Invalid, LimitReached, NotFound
from hub.api import headgate, orchestration
from hub.api.openapi import openapi_route
from hub.api.parts import IDENTITY, PARTS, Handler, Parts, Route, answer, invalid, require
from hub.api.problems import heat_document, heat_form, own_form, status_of
from hub.auth.presented import presented_in
from hub.auth.roles import Right

log: FilteringBoundLogger = structlog.get_logger()

REQUEST_ID = "x-openstack-request-id"
ID: web.RequestKey[str] = web.RequestKey("id", str)
#: What each of the application's routes needs of whoever asks.
NEEDS: web.AppKey[dict[web.AbstractRoute, Right]] = web.AppKey("needs")
#: Ends of paths whose answers take as long as they take.
ENDLESS = "/events/stream"


def all_routes() -> tuple[Route, ...]:
    routes = (*headgate.ROUTES, *orchestration.ROUTES)
    return (*routes, openapi_route(routes))


def make_application(parts: Parts) -> web.Application:
    """Every route, with errors told, requests bounded and named, and a line in the log for each."""
    app = web.Application(
        middlewares=[_named, _told, _bounded, _admitted],
        client_max_size=parts.settings.server.max_body,
    )
    app[PARTS] = parts
    app[NEEDS] = {
        app.router.add_route(route.method, route.path, route.handler, name=None): route.right
        for route in all_routes()
    }
    return app


@web.middleware
async def _named(request: web.Request, handler: Handler) -> web.StreamResponse:
    """Give the request an id, and write it down without its query, which may hold secrets."""
    request_id = f"req-{uuid4()}"
    request[ID] = request_id
    began = time.monotonic()
    response = await handler(request)
    if not response.prepared:
        response.headers[REQUEST_ID] = request_id
        response.headers.setdefault("X-Content-Type-Options", "nosniff")
    log.info(
        "request",
        id=request_id,
        method=request.method,
        path=request.path,
        status=response.status,
        ms=round((time.monotonic() - began) * 1000, 1),
    )
    return response


@web.middleware
async def _told(request: web.Request, handler: Handler) -> web.StreamResponse:
    """Errors in the form the route's clients know; what is unforeseen is logged, not shown."""
    try:
        _refuse_nul(request)
        return await handler(request)
    except HeadgateError as error:
        return _problem(request, error)
    except web.HTTPRequestEntityTooLarge:
        most = request.app[PARTS].settings.server.max_body
        remedy = f"Send at most {most} bytes; the operator sets it in [server] max_body."
        return _problem(
            request,
            LimitReached("the request is too large", remedy=remedy, code="RequestTooLarge"),
        )
    except web.HTTPMethodNotAllowed as error:
        return _wrong_method(request, sorted(error.allowed_methods))
    except web.HTTPNotFound:
        reason = f"there is nothing at {request.path}"
        return _problem(
            request,
            NotFound(reason, remedy="See /openapi.json for what there is.", code="NotFound"),
        )
    except web.RequestPayloadError:
        reason = "the body cannot be read: it ends too early, or is not encoded as it says"
        refused = _problem(request, invalid("", reason, "Send it again, whole."))
        refused.force_close()  # where the next request would begin is not known
        return refused
    except web.HTTPException:
        raise
    except Exception as error:
        log.error("request.bug", id=request[ID], path=request.path, exc_info=error)
        return _fault(request)


def _problem(request: web.Request, error: HeadgateError) -> web.Response:
    form = own_form if _is_own(request) else heat_form
    return answer(form(error), status_of(error))


def _fault(request: web.Request) -> web.Response:
    """Tells the id under which the log has the rest, and nothing more."""
    request_id = request[ID]
    error = HeadgateError(
        "this is a fault of the server",
        remedy=f"Its log has more under {request_id}.",
        code="InternalError",
    )
    return _problem(request, error)


def _is_own(request: web.Request) -> bool:
    """Whether the path is one of Headgate's own; stacks and resources may have any name."""
    parts = request.rel_url.raw_path.strip("/").split("/")
    if parts[0] != "v1":
        return True
    if len(parts) > 2 and parts[2] in ("hooks", "subscriptions", "events", "webhook-key"):
        return True
    return len(parts) >= 6 and parts[2] == "stacks" and parts[5] in OWN_PARTS


#: Parts of a stack's path that are not of the Orchestration API.
OWN_PARTS = frozenset(
    {"graph", "why", "breakpoints", "run-to", "decisions", "versions", "resource_snapshots"}
)


def _refuse_nul(request: web.Request) -> None:
    """NUL is no character of any name, and the store cannot even ask for it. Raises Invalid."""
    if "%00" in request.rel_url.raw_path or "%00" in request.rel_url.raw_query_string:
        raise invalid("", "the address has a NUL character", "Leave it out.")


def _wrong_method(request: web.Request, allowed: list[str]) -> web.Response:
    headers = {"Allow": ", ".join(allowed)}
    if request.method == "OPTIONS":
        return web.Response(status=204, headers=headers)
    error = Conflict(
        f"{request.method} is not possible here",
        remedy=f"Possible are: {headers['Allow']}.",
        code="MethodNotAllowed",
    )
    form = own_form(error) if _is_own(request) else heat_document(405, error.code, str(error))
    return answer(form, 405, headers)


@web.middleware
async def _bounded(request: web.Request, handler: Handler) -> web.StreamResponse:
    if request.path.endswith(ENDLESS):
        return await handler(request)
    seconds = request.app[PARTS].settings.server.request_timeout.total_seconds()
    bound = asyncio.timeout(seconds)
    try:
        async with bound:
            return await handler(request)
    except TimeoutError:
        if not bound.expired():
            raise  # somebody else's
        reason = f"the request was not answered within {seconds:g} s"
        remedy = "What was accepted stands; look at the stack before you send it again."
        raise Invalid([Finding("", reason, remedy, "RequestTimeout")]) from None


@web.middleware
async def _admitted(request: web.Request, handler: Handler) -> web.StreamResponse:
    """Find out who asks, and whether they have the right to what the route needs."""
    match = request.match_info
    right = request.app[NEEDS].get(match.route, Right.NOTHING)
    if right is not Right.NOTHING:
        project = match.get("project", "")
        who = await request.app[PARTS].authenticator.identify(
            presented_in(request.headers), project
        )
        request[IDENTITY] = who
        require(who, right)
    return await handler(request)
