"""Events of stacks and resources in Heat's format."""

from collections.abc import Sequence

from aiohttp import web

from engine.errors import NotFound
from engine.hot.syntax.keyed_names import plain_name, possible_names
from engine.missing_objects import no_event
from engine.store.records import StackRecord
from engine.store.stacks.events import STACK_TYPE, EventFilter
from hub.api.app_context import context_of
from hub.api.orchestration import documents, responses
from hub.api.orchestration.resources import R
from hub.api.orchestration.stacks import S
from hub.api.request_validation import (
    invalid,
    query_descending,
    query_limit,
    query_list,
    query_number,
    query_uuid,
    stack_of,
    uuid_of,
)
from hub.api.routes import Route, base_of, json_response

#: Sort keys for the default order.
BY_TIME = ("event_time", "created_at")
BY_TYPE = "resource_type"


async def list_of_stack(request: web.Request) -> web.Response:
    stack = await stack_of(request)
    return await _list(request, stack, request.query.getall("resource_name", None))


async def list_of_resource(request: web.Request) -> web.Response:
    stack = await stack_of(request)
    return await _list(request, stack, [request.match_info["resource"]], required=True)


async def _list(
    request: web.Request,
    stack: StackRecord,
    names: Sequence[str] | None,
    *,
    required: bool = False,
) -> web.Response:
    """names: as in the template, or as Heat's clients see them. required: raise NotFound if the
    first page is empty."""
    possible = [one for name in names for one in possible_names(name)] if names else names
    selected = _filter(request, possible)
    events = await context_of(request).engine.reads.events(stack, selected)
    if required and not events and selected.marker is None:
        reason = f"No events found for resource {request.match_info['resource']}"
        remedy = "GET .../resources lists the resources of the stack."
        raise NotFound(reason, place="resource", remedy=remedy, code="HTTPNotFound")
    base = base_of(request)
    rooted = selected.depth > 0
    return json_response(
        responses.Events(
            events=[documents.event(one, stack, base, rooted=rooted) for one in events]
        )
    )


def _filter(request: web.Request, names: Sequence[str] | None) -> EventFilter:
    query = request.query
    return EventFilter(
        names=names,
        types=query.getall("resource_type", None),
        actions=query.getall("resource_action", None),
        statuses=query.getall("resource_status", None),
        by_type=_by_type(request),
        descending=query_descending(request, default=False),
        marker=query_uuid(request, "marker"),
        limit=query_limit(request, default=None),
        depth=query_number(request, "nested_depth", default=0),
    )


def _by_type(request: web.Request) -> bool:
    keys, known = query_list(request, "sort_keys"), (*BY_TIME, BY_TYPE)
    for key in keys:
        if key not in known:
            raise invalid("sort_keys", f'"{key}" is not known', f"Known: {', '.join(known)}.")
    return keys[:1] == [BY_TYPE]


async def show(request: web.Request) -> web.Response:
    stack = await stack_of(request)
    name = request.match_info["resource"]
    event_id = uuid_of(request.match_info["event"], no_event)
    event, properties = await context_of(request).engine.reads.event(stack, event_id)
    of = event.resource_name or stack.name
    if name not in (of, plain_name(of)):
        raise no_event(event_id)
    reads, base = context_of(request).engine.reads, base_of(request)
    types = await reads.written_types(stack.project, [stack.id], event.resource_name)
    resolved = event.resource_type or STACK_TYPE
    type_ = types.find(stack.id, of, resolved) if event.resource_name else resolved
    document = documents.whole_event(event, type_, stack, base, properties)
    return json_response(responses.OneEvent(event=document))


FILTERS = ("resource_status", "resource_action", "resource_name", "resource_type")
QUERY = {
    "marker": "the last event of the previous page",
    "limit": "maximum number of items",
    "sort_keys": "event_time, or resource_type before it",
    "sort_dir": "asc or desc",
    "nested_depth": "include events of nested stacks, down to this level, by time, each with a link"
    " to this stack as root_stack",
} | {name: "only events with this value; repeatable" for name in FILTERS}

ROUTES = (
    Route("GET", f"{S}/events", list_of_stack, "Events of a stack", "events", query=QUERY,
          response=responses.Events),
    Route("GET", f"{R}/events", list_of_resource, "Events of a resource", "events", query=QUERY,
          response=responses.Events),
    Route("GET", f"{R}/events/{{event}}", show, "Show an event", "events",
          response=responses.OneEvent),
)  # fmt: skip
