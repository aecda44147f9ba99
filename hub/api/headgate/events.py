"""Events: the history of a stack, the event stream, and the schemas of events."""

from collections.abc import Awaitable, Callable
from contextlib import suppress
from typing import cast

from aiohttp import web

from channels.schemas.asyncapi import asyncapi
from channels.schemas.event_schemas import SCHEMAS
from channels.selection import Selection
from channels.store.records import Cursor
from channels.store.stream import Bounds, HistoryEvent, bounds_of, history
from channels.stream import CONTENT_TYPE, StreamFilter, document, parse_event_id, place_text
from channels.webhook.client import WebhookChannel
from engine.errors import Conflict, Invalid, NotFound, Unavailable, nearest
from engine.store.connection import Connection
from engine.store.records import StackRecord
from hub.api import http_headers
from hub.api.admission import while_admitted, while_current
from hub.api.app_context import context_of, identity_of, project_of, server_of
from hub.api.cells import CELLS, ReadPlace, refuse_moving
from hub.api.client_limits import CLIENTS, client_of
from hub.api.headgate import responses
from hub.api.orchestration.stacks import S
from hub.api.query_parameters import flag, globs, limit, number, text
from hub.api.request_validation import (
    query_flag,
    query_list,
    query_number,
    query_page_size,
    stack_of,
)
from hub.api.routes import QueryParameter, Refusal, Route, json_response

PAGE_SIZE = 500
#: Query parameter of the stream -> field of the selection. `types` selects event types, because
#: the stream is older than the selection.
FILTERS = {
    "types": "events",
    "stacks": "stacks",
    "resources": "resources",
    "resource_types": "types",
    "points": "points",
    "tags": "tags",
}


async def show_history(request: web.Request) -> web.Response:
    """In order; `next` is the place of the last event of the page."""
    stack = await stack_of(request)
    limit = query_page_size(request, PAGE_SIZE)
    after = query_number(request, "after", default=0)
    nested = query_flag(request, "nested")

    async def read(conn: Connection) -> list[HistoryEvent]:
        bounds = await _bounds(conn, stack, request)
        return await history(conn, stack.id, bounds, nested=nested, after=after, limit=limit + 1)

    events = await context_of(request).lists.page(read)
    page = events[:limit]
    return json_response(
        responses.History(
            events=[cast(responses.CloudEvent, document(one.published)) for one in page],
            next=page[-1].place if len(events) > limit else None,
        )
    )


async def _bounds(conn: Connection, stack: StackRecord, request: web.Request) -> Bounds:
    """Of the traversal in the query; without one, of all. Raises NotFound (TraversalNotFound)."""
    number = query_number(request, "traversal", default=0)
    if "traversal" not in request.query:
        return Bounds()
    bounds = await bounds_of(conn, stack.id, number)
    if bounds is None:
        raise NotFound(
            f"there is no traversal {number}",
            place="traversal",
            remedy="GET .../versions lists the retained versions.",
            code="TraversalNotFound",
        )
    return bounds


async def stream(request: web.Request) -> web.StreamResponse:
    client = client_of(request, identity_of(request))
    with request.app[CLIENTS].streams.hold(client):
        return await _send_events(request)


async def _send_events(request: web.Request) -> web.StreamResponse:
    cells, project = request.app[CELLS], project_of(request)
    place = await cells.locate(project)
    place.cell.enter(request)
    selected = StreamFilter(project, await _selection(request))
    last = request.headers.get("Last-Event-ID") or request.query.get("last_event_id")
    start = await context_of(request).feed.start(project, last)
    if not await cells.is_current(project, place):
        raise refuse_moving(project)  # the request is served again
    response = web.StreamResponse(headers={"X-Accel-Buffering": "no"})
    response.content_type = CONTENT_TYPE
    http_headers.add_headers(response, request, server_of(request).settings.server.cors_origins)
    await response.prepare(request)
    await response.write(b": connected\n" + place_text(start))
    following = _follow(request, selected, place, start, response.write)
    await while_admitted(request, following)
    return response


async def _follow(
    request: web.Request,
    selected: StreamFilter,
    place: ReadPlace,
    cursor: Cursor,
    write: Callable[[bytes], Awaitable[None]],
) -> None:
    """Write the stream, also while the project moves to another cell, until the server stops, the
    reader is too slow, or no cell can be read.

    The cursor is set before an event is written. None is lost when `pump` is cancelled, because a
    write puts the whole event into the buffer of the connection before it waits.
    """
    cells, project, disconnected = request.app[CELLS], selected.project, False

    def set_cursor(at: Cursor) -> None:
        nonlocal cursor
        cursor = at

    async def pump() -> None:
        nonlocal disconnected
        try:
            await place.cell.context.feed.pump(selected, cursor, write, set_cursor)
        except ConnectionError:
            disconnected = True
        except Exception:
            # The rows of a project that has moved are deleted.
            if await cells.is_current(project, place):
                raise

    with suppress(Unavailable, Conflict):  # the client connects again, and gets the error then
        while True:
            await while_current(request, project, place, pump())
            if disconnected or await cells.is_current(project, place):
                return
            place = await cells.locate(project)
            place.cell.enter(request)
            cursor = await place.cell.context.feed.resume(project, cursor)


async def _selection(request: web.Request) -> Selection:
    name, engine = request.query.get("stack"), context_of(request).engine
    stack = await engine.reads.find_stack(project_of(request), name) if name else None
    globs = {field: query_list(request, name) for name, field in FILTERS.items()}
    return Selection(
        **globs,
        stack_id=stack.id if stack else None,
        nested=query_flag(request, "nested", default=True),
        root_id=stack.root_id if stack else None,
        path=stack.path if stack else "",
    )


async def show_asyncapi(request: web.Request) -> web.Response:
    return json_response(asyncapi(server_of(request).settings.channels.amqp.answers))


async def show_webhook_key(request: web.Request) -> web.Response:
    channel = context_of(request).channels["webhook"]
    key = channel.public_key if isinstance(channel, WebhookChannel) else None
    return json_response(responses.PublicKey(public_key=key))


async def show_schema(request: web.Request) -> web.Response:
    kind = request.match_info["type"]
    if kind not in SCHEMAS:
        raise NotFound(
            f'there is no event type "{kind}"',
            place="type",
            remedy=nearest(kind, list(SCHEMAS)) or "GET /asyncapi.json names all of them.",
            code="EventTypeNotFound",
        )
    schema = SCHEMAS[kind]
    return json_response({"$schema": schema["$schema"], **schema["properties"]["data"]})


def _invalid_event_id(value: str) -> Refusal | None:
    try:
        if value:
            parse_event_id(value)
    except Invalid as error:
        return error.finding.reason, error.finding.remedy
    return None


ROUTES = (
    Route("GET", f"{S}/history", show_history, "All events of a stack, in order", "events",
          query={
              "traversal": number("only those of this traversal, by its number", least=1),
              "nested": flag("true: include events of nested stacks, in the order of time"),
              "after": number(
                  "`next` of the previous page; for a single stack also an event number"
              ),
              "limit": limit(PAGE_SIZE),
          },
          response=responses.History),
    Route("GET", "/v1/{project}/events/stream", stream,
          "Events as they happen; Last-Event-ID resumes", "events",
          query={
              "stack": text("only this stack (name or ID) and its nested stacks"),
              "nested": flag("false: exclude nested stacks, except the one that is named"),
              "types": globs("globs on the event type, comma separated"),
              "stacks": globs("globs on the name of the stack or its root stack"),
              "resources": globs("globs on the resource's name or path, such as web/0/server"),
              "resource_types": globs("globs on the resource's type"),
              "points": globs("globs on the hook's point"),
              "tags": globs("globs on the stack's tags"),
              "last_event_id": QueryParameter(
                  "for clients that cannot send the header", _invalid_event_id
              ),
          },
          content_type=CONTENT_TYPE),
    Route("GET", "/v1/{project}/webhook-key", show_webhook_key,
          "The public key of webhook signatures", "events", response=responses.PublicKey),
    Route("GET", "/asyncapi.json", show_asyncapi, "Events, and the channels that deliver them",
          "events", response=responses.AsyncApi),
    Route("GET", "/schemas/{type}", show_schema, "The schema of an event's data", "events",
          response=responses.EventSchema),
)  # fmt: skip
