"""Events of a stack, as clients of the Orchestration API follow them."""

from collections.abc import Sequence

from aiohttp import web

from engine.errors import NotFound
from engine.store.events import EventFilter
from engine.store.records import StackRecord
from hub.api.addresses import base_of
from hub.api.orchestration import responses, show
from hub.api.orchestration.resources import R
from hub.api.orchestration.stacks import S
from hub.api.parts import (
    Route,
    answer,
    invalid,
    parts_of,
    query_descending,
    query_limit,
    query_list,
    query_number,
    query_uuid,
    stack_of,
    uuid_of,
)

#: Words for the order: those of the API, and those that some clients say instead.
BY_TIME = ("event_time", "created_at")
BY_TYPE = "resource_type"


async def of_stack(request: web.Request) -> web.Response:
    stack = await stack_of(request)
    return await _listed(request, stack, request.query.getall("resource_name", None))


async def of_resource(request: web.Request) -> web.Response:
    stack = await stack_of(request)
    return await _listed(request, stack, [request.match_info["resource"]], must_be=True)


async def _listed(
    request: web.Request,
    stack: StackRecord,
    names: Sequence[str] | None,
    *,
    must_be: bool = False,
) -> web.Response:
    """must_be: a first page without any raises NotFound."""
    wanted = _filter(request, names)
    events = await parts_of(request).engine.reads.events(stack, wanted)
    if must_be and not events and wanted.marker is None:
        reason = f"No events found for resource {request.match_info['resource']}"
        raise NotFound(reason, code="HTTPNotFound")
    base = base_of(request)
    rooted = wanted.depth > 0
    return answer(
        responses.Events(events=[show.event(one, stack, base, rooted=rooted) for one in events])
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


async def one(request: web.Request) -> web.Response:
    stack, name = await stack_of(request), request.match_info["resource"]
    event_id = uuid_of(request.match_info["event"], "event", "EntityNotFound")
    event, properties = await parts_of(request).engine.reads.event(stack, event_id)
    if name != (event.resource_name or stack.name):
        raise NotFound(f"there is no event {event_id} of {name}", code="EntityNotFound")
    return answer(
        responses.OneEvent(event=show.whole_event(event, stack, base_of(request), properties))
    )


FILTERS = ("resource_status", "resource_action", "resource_name", "resource_type")
QUERY = {
    "marker": "the last event of the page before",
    "limit": "at most so many",
    "sort_keys": "event_time, or resource_type before it",
    "sort_dir": "asc or desc",
    "nested_depth": "those of stacks inside, too, down to so many levels, by time; each with a link"
    " to this stack as root_stack",
} | {name: "only those; may repeat" for name in FILTERS}

ROUTES = (
    Route("GET", f"{S}/events", of_stack, "Events of a stack", "events", query=QUERY,
          response=responses.Events),
    Route("GET", f"{R}/events", of_resource, "Events of a resource", "events", query=QUERY,
          response=responses.Events),
    Route("GET", f"{R}/events/{{event}}", one, "Show an event", "events",
          response=responses.OneEvent),
)  # fmt: skip
