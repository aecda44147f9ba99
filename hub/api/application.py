"""The HTTP application: routes and middleware."""

import asyncio
import os
import time
from collections.abc import Iterable
from contextlib import suppress
from uuid import uuid4

import structlog
from aiohttp import web
from structlog.contextvars import bound_contextvars
from structlog.typing import FilteringBoundLogger

from engine.errors import Finding, Invalid
from engine.tracing import TRACE, Span, read_traceparent
from hub.api import dashboard, error_pages, headgate, http_headers, orchestration
from hub.api.admission import LIMITS, NEEDS, READS, admit, limit_forwarded
from hub.api.app_context import REQUEST_ID, SERVER, ServerContext
from hub.api.cells import CELLS, Cells
from hub.api.client_limits import CLIENTS, ClientLimits
from hub.api.error_middleware import error_middleware
from hub.api.http_headers import behind_proxy
from hub.api.openapi import openapi_route
from hub.api.routes import Handler, Route, aliases
from hub.auth.gatekeeper import RequestLimits
from hub.auth.roles import Right

log: FilteringBoundLogger = structlog.get_logger()

REQUEST_ID_HEADER = "x-openstack-request-id"
#: Suffix of the paths of streams.
ENDLESS = "/events/stream"
#: The route in metrics of requests that match none.
NO_ROUTE = "none"
METRICS = "/metrics"
#: Prefix of files of the dashboard, whose requests are logged at debug level.
FILES = "/dashboard/"


def all_routes() -> tuple[Route, ...]:
    routes = (
        *headgate.ROUTES,
        *orchestration.ROUTES,
        *dashboard.ROUTES,
        *error_pages.ROUTES,
    )
    return (*routes, openapi_route(routes))


def make_application(server: ServerContext, cells: Cells, limits: RequestLimits) -> web.Application:
    """All routes, with middleware for errors, limits, request IDs and the request log."""
    app = web.Application(
        middlewares=[
            _send,
            _log_request,
            error_middleware,
            _limit_time,
            limit_forwarded,
            admit,
        ],
        client_max_size=server.settings.server.max_body,
    )
    app[SERVER] = server
    app[CELLS] = cells
    app[LIMITS] = limits
    app[CLIENTS] = ClientLimits(server.settings.server, limits.counts, os.getpid())
    app[NEEDS], app[READS] = {}, set()
    resources: dict[str, web.Resource] = {}
    for route in _by_use():
        is_metrics = route.path == METRICS
        needs = Right(server.settings.metrics.needs) if is_metrics else route.right
        for path in aliases(route.path):
            if path not in resources:
                resources[path] = app.router.add_resource(path)
            for method in _methods(route):
                added = resources[path].add_route(method, route.handler)
                app[NEEDS][added] = needs
                if route.is_read:
                    app[READS].add(added)
    return app


def _by_use() -> Iterable[Route]:
    """All routes, those of most requests first: a request is compared with one path after the
    other."""
    routes = (*headgate.HOOK_ROUTES, *orchestration.ROUTES, *all_routes())
    return {(route.method, route.path): route for route in routes}.values()


def _methods(route: Route) -> tuple[str, ...]:
    """With HEAD for GET, except for streams, which do not end."""
    with_head = route.method == "GET" and not route.path.endswith(ENDLESS)
    return (route.method, "HEAD") if with_head else (route.method,)


#: Bytes of a response that fit into the socket buffer of the operating system.
BUFFERED = 32_768


@web.middleware
async def _send(request: web.Request, handler: Handler) -> web.StreamResponse:
    """Send large responses with a timeout, so that slow clients do not keep them in memory."""
    response = await handler(request)
    if response.prepared or (response.content_length or 0) <= BUFFERED:
        return response
    seconds = request.app[SERVER].settings.server.request_timeout.total_seconds()
    with suppress(ConnectionError):  # aiohttp detects the disconnect again
        try:
            async with asyncio.timeout(seconds):
                await response.prepare(request)
                await response.write_eof()
        except TimeoutError:
            log.info("request.timed_out", path=request.path, seconds=seconds)
            if request.transport is not None:
                request.transport.abort()
    return response


@web.middleware
async def _log_request(request: web.Request, handler: Handler) -> web.StreamResponse:
    """Give the request an ID, and log it without its query, which can contain secrets."""
    server = request.app[SERVER].settings.server
    request = behind_proxy(request, server.trusted_proxies)
    request_id = f"req-{uuid4()}"
    request[REQUEST_ID] = request_id
    start, status, span = time.monotonic(), 500, _span(request)
    TRACE.set(span.traceparent)
    try:
        with bound_contextvars(request=request_id):
            response = await handler(request)
        status = response.status
    except web.HTTPException as error:
        status = error.status
        raise
    finally:
        _count(request, status, time.monotonic() - start)
        span.end(status=status)
    if not response.prepared:
        response.headers[REQUEST_ID_HEADER] = request_id
        http_headers.add_headers(response, request, server.cors_origins)
    write = log.debug if request.path.startswith(FILES) else log.info
    write(
        "request",
        id=request_id,
        method=request.method,
        path=request.path,
        status=response.status,
        ms=round((time.monotonic() - start) * 1000, 1),
    )
    return response


def _route(request: web.Request) -> str:
    resource = request.match_info.route.resource
    return resource.canonical if resource is not None else NO_ROUTE


def _span(request: web.Request) -> Span:
    parent = read_traceparent(request.headers.get("traceparent", ""))
    name = f"{request.method} {_route(request)}"
    return request.app[SERVER].tracer.begin(name, parent, request=request[REQUEST_ID])


def _count(request: web.Request, status: int, seconds: float) -> None:
    endless = request.path.endswith(ENDLESS)
    request.app[SERVER].metrics.record_request(
        _route(request), request.method, status, None if endless else seconds
    )


@web.middleware
async def _limit_time(request: web.Request, handler: Handler) -> web.StreamResponse:
    if request.path.endswith(ENDLESS):
        return await handler(request)
    seconds = request.app[SERVER].settings.server.request_timeout.total_seconds()
    limit = asyncio.timeout(seconds)
    try:
        async with limit:
            return await handler(request)
    except TimeoutError:
        if not limit.expired():
            raise  # a timeout inside the handler
        reason = f"the request was not answered within {seconds:g} s"
        remedy = "Accepted changes were kept; check the stack before you send the request again."
        raise Invalid([Finding("", reason, remedy, "RequestTimeout")]) from None
