"""Events as they happen: server-sent events, resumed from the last id."""

from contextlib import suppress

from aiohttp import web

from channels.selection import Selection
from channels.stream.feed import StreamFilter
from channels.stream.sse import CONTENT_TYPE
from hub.api import response_headers
from hub.api.admission import while_admitted
from hub.api.client_limits import CLIENTS, client_of
from hub.api.parts import Route, identity_of, parts_of, project_of, query_flag, query_list

#: Names in the query, and in a selection. (`types` are those of events: so the route was first.)
FILTERS = {
    "types": "events",
    "stacks": "stacks",
    "resources": "resources",
    "resource_types": "types",
    "points": "points",
    "tags": "tags",
}


async def stream(request: web.Request) -> web.StreamResponse:
    client = client_of(request, identity_of(request))
    with request.app[CLIENTS].streams.held(client):
        return await _streamed(request)


async def _streamed(request: web.Request) -> web.StreamResponse:
    parts, project = parts_of(request), project_of(request)
    wanted = StreamFilter(project, await _selection(request))
    last = request.headers.get("Last-Event-ID") or request.query.get("last_event_id")
    start = await parts.feed.start(project, last)
    response = web.StreamResponse(headers={"X-Accel-Buffering": "no"})
    response.content_type = CONTENT_TYPE
    response_headers.add_to(response, request, parts.settings.server.cors_origins)
    await response.prepare(request)
    await response.write(b": connected\n\n")

    async def pumped() -> None:
        with suppress(ConnectionError):  # the reader has gone
            await parts.feed.pump(wanted, start, response.write)

    await while_admitted(request, pumped())
    return response


async def _selection(request: web.Request) -> Selection:
    name, engine = request.query.get("stack"), parts_of(request).engine
    stack = await engine.reads.find_stack(project_of(request), name) if name else None
    globs = {name: query_list(request, asked) for asked, name in FILTERS.items()}
    return Selection(
        **globs,
        stack_id=stack.id if stack else None,
        nested=query_flag(request, "nested", default=True),
        root_id=stack.root_id if stack else None,
        path=stack.path if stack else "",
    )


ROUTES = (
    Route(
        "GET",
        "/v1/{project}/events/stream",
        stream,
        "Events as they happen; Last-Event-ID resumes",
        "events",
        query={
            "stack": "only this stack (name or ID) and its nested stacks",
            "nested": "false: exclude nested stacks, except the one that is named",
            "types": "globs on the event type, comma separated",
            "stacks": "globs on the name of the stack or its root stack",
            "resources": "globs on the resource's name or path, such as web/0/server",
            "resource_types": "globs on the resource's type",
            "points": "globs on the hook's point",
            "tags": "globs on the stack's tags",
            "last_event_id": "for readers that cannot send the header",
        },
        answer=CONTENT_TYPE,
    ),
)
