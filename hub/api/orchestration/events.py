"""Events of a stack, as clients of the Orchestration API follow them."""

from collections.abc import Sequence

from aiohttp import web

from engine.errors import NotFound
from engine.store.records import EventRecord, StackRecord
from hub.api.orchestration import documents as gives
from hub.api.orchestration import show
from hub.api.orchestration.resources import R
from hub.api.orchestration.stacks import S, base_of
from hub.api.parts import (
    Route,
    answer,
    invalid,
    parts_of,
    query_limit,
    query_number,
    query_uuid,
    stack_of,
    uuid_of,
)

FILTERS = ("resource_status", "resource_action", "resource_name", "resource_type")


async def of_stack(request: web.Request) -> web.Response:
    stack = await stack_of(request)
    return _listed(request, stack, await _read(request, stack, None))


async def of_resource(request: web.Request) -> web.Response:
    stack, name = await stack_of(request), request.match_info["resource"]
    events = await _read(request, stack, name)
    if not events and "marker" not in request.query:
        raise NotFound(f'"{name}" has no events', code="EntityNotFound")
    return _listed(request, stack, events)


def _listed(
    request: web.Request, stack: StackRecord, events: Sequence[EventRecord]
) -> web.Response:
    base = base_of(request)
    rooted = query_number(request, "nested_depth", default=0) > 0
    return answer({"events": [show.event(one, stack, base, rooted=rooted) for one in events]})


async def one(request: web.Request) -> web.Response:
    stack = await stack_of(request)
    event_id = uuid_of(request.match_info["event"], "event", "EntityNotFound")
    name = request.match_info["resource"]
    for event in await _all(request, stack):
        if event.id == event_id and name == (event.resource_name or stack.name):
            return answer({"event": show.event(event, stack, base_of(request), full=True)})
    raise NotFound(f"there is no event {event_id}", code="EntityNotFound")


async def _all(request: web.Request, stack: StackRecord) -> list[EventRecord]:
    return await parts_of(request).engine.events(
        stack, marker=None, limit=None, newest_first=False, resource_name=None
    )


async def _read(
    request: web.Request, stack: StackRecord, resource_name: str | None
) -> list[EventRecord]:
    direction = request.query.get("sort_dir", "asc").lower()
    if direction not in ("asc", "desc"):
        raise invalid("sort_dir", f'"{direction}" is not known', "Send asc or desc.")
    limit = query_limit(request, default=None)
    filtered = any(name in request.query for name in FILTERS)
    # The stack's own events carry its name, where we keep none.
    of = None if resource_name == stack.name else resource_name
    events = await parts_of(request).engine.events(
        stack,
        marker=query_uuid(request, "marker"),
        limit=None if filtered or of != resource_name else limit,
        newest_first=direction == "desc",
        resource_name=of,
    )
    if of != resource_name:
        events = [event for event in events if event.resource_name is None]
    wanted = [event for event in events if not filtered or _wanted(event, stack, request)]
    return wanted if limit is None else wanted[:limit]


def _wanted(event: EventRecord, stack: StackRecord, request: web.Request) -> bool:
    has = {
        "resource_status": event.status,
        "resource_action": event.action,
        "resource_name": event.resource_name or stack.name,
        "resource_type": event.resource_type or "OS::Heat::Stack",
    }
    return all(has[name] in request.query.getall(name) for name in FILTERS if name in request.query)


QUERY = {
    "marker": "the last event of the page before",
    "limit": "at most so many",
    "sort_dir": "asc or desc",
    "nested_depth": "1 or more: with a link to the root stack",
} | {name: "only those; may repeat" for name in FILTERS}

ROUTES = (
    Route("GET", f"{S}/events", of_stack, "Events of a stack", "events", query=QUERY,
          gives=gives.EVENTS),
    Route("GET", f"{R}/events", of_resource, "Events of a resource", "events", query=QUERY,
          gives=gives.EVENTS),
    Route("GET", f"{R}/events/{{event}}", one, "Show an event", "events", gives=gives.EVENT),
)  # fmt: skip
