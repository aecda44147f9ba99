"""The stacks of a project with their current activity."""

from uuid import UUID

from aiohttp import web

from channels.envelope import rfc3339
from engine.store.stacks.stack_overview import (
    STATES,
    OverviewFilter,
    OverviewStack,
    PagePosition,
    StatusCounts,
)
from engine.words import Action
from hub.api.app_context import context_of, project_of
from hub.api.headgate import responses
from hub.api.openapi_components import document_of
from hub.api.request_validation import (
    invalid,
    query_flag,
    query_list,
    query_marker,
    query_page_size,
    uuid_or_none,
)
from hub.api.routes import Route, json_response

PAGE_SIZE = 50


def line_document(line: OverviewStack) -> responses.StackLine:
    return document_of(
        responses.StackLine,
        line,
        updated_at=rfc3339(line.started_at) if line.number > 1 else None,
        traversal=document_of(responses.CurrentTraversal, line),
        nodes=dict(line.nodes),
    )


async def show_overview(request: web.Request) -> web.Response:
    page = await context_of(request).engine.reads.overview(project_of(request), _filter(request))
    return json_response(
        responses.Overview(
            stacks=[line_document(line) for line in page.stacks],
            next=_marker(page.stacks[-1].position) if page.more else None,
            counts=_counts(page.counts),
        )
    )


def _counts(counts: StatusCounts | None) -> responses.StackCounts | None:
    if counts is None:
        return None
    return {"statuses": dict(counts.statuses), "waiting": counts.waiting}


def _filter(request: web.Request) -> OverviewFilter:
    marker = query_marker(request)
    hidden = context_of(request).settings.server.hidden_stack_tags
    return OverviewFilter(
        search=request.query.get("search") or None,
        tags=query_list(request, "tags") or None,
        hidden=() if query_flag(request, "show_hidden") else hidden,
        statuses=[_status(text) for text in query_list(request, "status")] or None,
        waiting=query_flag(request, "waiting"),
        ids=[_id(text) for text in query_list(request, "stack")] or None,
        after=PagePosition(*marker[:2]) if marker else None,
        limit=query_page_size(request, PAGE_SIZE),
        counted=query_flag(request, "counts"),
    )


def _status(text: str) -> tuple[str | None, str]:
    """``FAILED`` or ``CREATE_FAILED``."""
    name = text.upper()
    if name in STATES:
        return None, name
    action, _, status = name.partition("_")
    if status not in STATES or action not in list(Action):
        known = ", ".join(STATES)
        raise invalid(
            "status",
            f'"{text}" is not known',
            f"Known: {known}; or with an action, such as CREATE_FAILED.",
        )
    return action, status


def _id(text: str) -> UUID:
    stack_id = uuid_or_none(text)
    if stack_id is None:
        raise invalid(
            "stack", f'"{text}" is not a valid ID', "Send ids of stacks, comma separated."
        )
    return stack_id


def _marker(place: PagePosition) -> str:
    """With the time, because the stack can have moved in the list since."""
    return f"{rfc3339(place.changed_at)}_{place.id}"


ROUTES = (
    Route("GET", "/v1/{project}/overview", show_overview,
          "The stacks of a project with their current activity, latest change first", "stacks",
          query={
              "search": "part of the name or ID",
              "status": "only in this status, such as FAILED or CREATE_FAILED; repeatable",
              "waiting": "true: only stacks with a waiting hook, also in nested stacks",
              "tags": "only stacks with all of these tags, comma separated",
              "stack": "only stacks with these IDs, comma separated",
              "show_hidden": "true: include stacks with a tag that the operator hides",
              "counts": "true: include the number of stacks in each status",
              "limit": "maximum number of items; default 50",
              "marker": "`next` of the previous page",
          },
          response=responses.Overview),
)  # fmt: skip
