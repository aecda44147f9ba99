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
from hub.api.query_parameters import flag, globs, ids, limit, place_marker, text
from hub.api.request_validation import (
    query_flag,
    query_list,
    query_marker,
    query_page_size,
)
from hub.api.routes import QueryParameter, Refusal, Route, json_response

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
    position = query_marker(request)
    hidden = context_of(request).settings.server.hidden_stack_tags
    return OverviewFilter(
        search=request.query.get("search") or None,
        tags=query_list(request, "tags") or None,
        hidden=() if query_flag(request, "show_hidden") else hidden,
        statuses=[one for one in map(_status, query_list(request, "status")) if one] or None,
        waiting=query_flag(request, "waiting"),
        ids=[UUID(one) for one in query_list(request, "stack")] or None,
        after=PagePosition(*position[:2]) if position else None,
        limit=query_page_size(request, PAGE_SIZE),
        counted=query_flag(request, "counts"),
    )


def _status(text: str) -> tuple[str | None, str] | None:
    """``FAILED`` or ``CREATE_FAILED``; None: it is neither."""
    name = text.upper()
    if name in STATES:
        return None, name
    action, _, status = name.partition("_")
    return (action, status) if status in STATES and action in list(Action) else None


def _unknown_status(value: str) -> Refusal | None:
    unknown = next((one for one in value.split(",") if one and _status(one) is None), None)
    if unknown is None:
        return None
    known = f"Known: {', '.join(STATES)}; or with an action, such as CREATE_FAILED."
    return f'"{unknown}" is not known', known


def _marker(place: PagePosition) -> str:
    """With the time, because the stack can have moved in the list since."""
    return f"{rfc3339(place.changed_at)}_{place.id}"


ROUTES = (
    Route("GET", "/v1/{project}/overview", show_overview,
          "The stacks of a project with their current activity, latest change first", "stacks",
          query={
              "search": text("part of the name or ID"),
              "status": QueryParameter(
                  "only in this status, such as FAILED or CREATE_FAILED; repeatable",
                  _unknown_status,
                  repeatable=True,
              ),
              "waiting": flag("true: only stacks with a waiting hook, also in nested stacks"),
              "tags": globs("only stacks with all of these tags, comma separated"),
              "stack": ids("only stacks with these IDs, comma separated"),
              "show_hidden": flag("true: include stacks with a tag that the operator hides"),
              "counts": flag("true: include the number of stacks in each status"),
              "limit": limit(PAGE_SIZE),
              "marker": place_marker(),
          },
          response=responses.Overview),
)  # fmt: skip
