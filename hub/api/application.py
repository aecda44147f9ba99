"""The HTTP application: routes, and what happens around every request."""

import asyncio
import time
from contextlib import suppress
from uuid import uuid4

import structlog
from aiohttp import web
from structlog.contextvars import bound_contextvars
from structlog.typing import FilteringBoundLogger

from engine.errors import Finding, Invalid
from engine.tracing import TRACE, Span, read_traceparent
from hub.api import dashboard, headgate, orchestration, response_headers
from hub.api.addresses import spellings
from hub.api.admission import ADMISSION, NEEDS, Admission, admitted, counted
from hub.api.client_limits import CLIENTS, ClientLimits
from hub.api.costly_requests import COSTLY, CostlyRequests
from hub.api.openapi import openapi_route
from hub.api.parts import ID, PARTS, Handler, Parts, Route
from hub.api.proxies import as_sent
from hub.api.refusals import error_middleware
from hub.auth.roles import Right

log: FilteringBoundLogger = structlog.get_logger()

REQUEST_ID = "x-openstack-request-id"
#: Ends of paths whose answers take as long as they take.
ENDLESS = "/events/stream"
#: The route of what leads nowhere.
NOWHERE = "none"
METRICS = "/metrics"
#: Where files are that a browser asks for by the dozen: nobody wants to read of them in the log.
FILES = "/dashboard/"


def all_routes() -> tuple[Route, ...]:
    routes = (*headgate.ROUTES, *orchestration.ROUTES, *dashboard.ROUTES)
    return (*routes, openapi_route(routes))


def make_application(parts: Parts, admission: Admission) -> web.Application:
    """All routes, with middleware for errors, limits, request ids and the request log."""
    app = web.Application(
        middlewares=[_sent, _named, error_middleware, _bounded, counted, admitted],
        client_max_size=parts.settings.server.max_body,
    )
    app[PARTS] = parts
    app[ADMISSION] = admission
    settings = parts.settings
    app[CLIENTS] = ClientLimits(settings.server)
    app[COSTLY] = CostlyRequests(settings.database.pool, settings.server.waiting_per_user)
    app[NEEDS] = {
        app.router.add_route(method, path, route.handler, name=None): (
            Right(parts.settings.metrics.needs) if route.path == METRICS else route.right
        )
        for route in all_routes()
        for path in spellings(route.path)
        for method in _methods(route)
    }
    return app


def _methods(route: Route) -> tuple[str, ...]:
    """What a GET shows, a HEAD asks about; a stream would not end."""
    headed = route.method == "GET" and not route.path.endswith(ENDLESS)
    return (route.method, "HEAD") if headed else (route.method,)


#: Bytes of an answer that the system takes off our hands, whether the client reads them or not.
AT_ONCE = 32_768


@web.middleware
async def _sent(request: web.Request, handler: Handler) -> web.StreamResponse:
    """Send a large answer, and let go of a client that does not read it. A stream sends itself."""
    response = await handler(request)
    if response.prepared or (response.content_length or 0) <= AT_ONCE:
        return response
    seconds = request.app[PARTS].settings.server.request_timeout.total_seconds()
    with suppress(ConnectionError):  # who has gone is noticed again
        try:
            async with asyncio.timeout(seconds):
                await response.prepare(request)
                await response.write_eof()
        except TimeoutError:
            log.info("request.cut_off", path=request.path, seconds=seconds)
            if request.transport is not None:
                request.transport.abort()
    return response


@web.middleware
async def _named(request: web.Request, handler: Handler) -> web.StreamResponse:
    """Give the request an id, and write it down without its query, which may hold secrets."""
    server = request.app[PARTS].settings.server
    request = as_sent(request, server.trusted_proxies)
    request_id = f"req-{uuid4()}"
    request[ID] = request_id
    began, status, span = time.monotonic(), 500, _span(request)
    TRACE.set(span.traceparent)
    try:
        with bound_contextvars(request=request_id):
            response = await handler(request)
        status = response.status
    except web.HTTPException as error:
        status = error.status
        raise
    finally:
        _count(request, status, time.monotonic() - began)
        span.end(status=status)
    if not response.prepared:
        response.headers[REQUEST_ID] = request_id
        response_headers.add_to(response, request, server.cors_origins)
    write = log.debug if request.path.startswith(FILES) else log.info
    write(
        "request",
        id=request_id,
        method=request.method,
        path=request.path,
        status=response.status,
        ms=round((time.monotonic() - began) * 1000, 1),
    )
    return response


def _route(request: web.Request) -> str:
    resource = request.match_info.route.resource
    return resource.canonical if resource is not None else NOWHERE


def _span(request: web.Request) -> Span:
    parent = read_traceparent(request.headers.get("traceparent", ""))
    name = f"{request.method} {_route(request)}"
    return request.app[PARTS].tracer.begin(name, parent, request=request[ID])


def _count(request: web.Request, status: int, seconds: float) -> None:
    endless = request.path.endswith(ENDLESS)
    request.app[PARTS].metrics.requested(
        _route(request), request.method, status, None if endless else seconds
    )


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
        remedy = "Accepted changes were kept; check the stack before you send the request again."
        raise Invalid([Finding("", reason, remedy, "RequestTimeout")]) from None
