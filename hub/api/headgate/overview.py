"""The stacks of a project, each in a line with what goes on in it."""

from datetime import datetime
from uuid import UUID

from aiohttp import web

from channels.envelope import rfc3339
from engine.store.stack_overview import STATES, Counts, OverviewFilter, Place, StackLine
from engine.words import Action
from hub.api.headgate import responses
from hub.api.parts import (
    Route,
    answer,
    invalid,
    parts_of,
    project_of,
    query_flag,
    query_limit,
    query_list,
    uuid_or_none,
)

USUAL = 50


def line_document(line: StackLine) -> responses.StackLine:
    return {
        "id": str(line.id),
        "name": line.name,
        "action": line.action,
        "status": line.status,
        "reason": line.reason,
        "tags": line.tags,
        "owner": line.owner,
        "created_at": rfc3339(line.created_at),
        "updated_at": rfc3339(line.started_at) if line.number > 1 else None,
        "traversal": {
            "number": line.number,
            "action": line.action,
            "state": line.state,
            "requested_by": line.requested_by,
            "started_at": rfc3339(line.started_at),
            "ended_at": rfc3339(line.ended_at) if line.ended_at else None,
        },
        "nodes": dict(line.nodes),
        "hooks_waiting": line.hooks_waiting,
        "hooks_dry": line.hooks_dry,
        "resources": line.resources,
    }


async def overview(request: web.Request) -> web.Response:
    found = await parts_of(request).engine.overview.stacks(project_of(request), _filter(request))
    return answer(
        responses.Overview(
            stacks=[line_document(line) for line in found.stacks],
            next=_marker(found.stacks[-1].place) if found.more else None,
            counts=_counts(found.counts),
        )
    )


def _counts(counts: Counts | None) -> responses.StackCounts | None:
    if counts is None:
        return None
    return {"statuses": dict(counts.statuses), "waiting": counts.waiting}


def _filter(request: web.Request) -> OverviewFilter:
    hidden = parts_of(request).settings.server.hidden_stack_tags
    return OverviewFilter(
        search=request.query.get("search") or None,
        tags=query_list(request, "tags") or None,
        hidden=() if query_flag(request, "show_hidden") else hidden,
        statuses=[_status(text) for text in query_list(request, "status")] or None,
        waiting=query_flag(request, "waiting"),
        ids=[_id(text) for text in query_list(request, "stack")] or None,
        after=_place(request.query.get("marker", "")),
        limit=query_limit(request, default=USUAL) or USUAL,
        counted=query_flag(request, "counts"),
    )


def _status(text: str) -> tuple[str | None, str]:
    """``FAILED`` or ``CREATE_FAILED``."""
    said = text.upper()
    if said in STATES:
        return None, said
    action, _, status = said.partition("_")
    if status not in STATES or action not in list(Action):
        known = ", ".join(STATES)
        raise invalid("status", f'"{text}" is not known', f"Known: {known}; or CREATE_FAILED, say.")
    return action, status


def _id(text: str) -> UUID:
    found = uuid_or_none(text)
    if found is None:
        raise invalid(
            "stack", f'"{text}" is not a valid ID', "Send ids of stacks, comma separated."
        )
    return found


def _marker(place: Place) -> str:
    """The time as well: a stack that has changed since would be somewhere else."""
    return f"{rfc3339(place.changed_at)}_{place.id}"


def _place(marker: str) -> Place | None:
    if not marker:
        return None
    time, _, text = marker.partition("_")
    try:
        place = Place(datetime.fromisoformat(time), UUID(text))
    except ValueError:
        place = None
    if place is None or place.changed_at.tzinfo is None:
        raise invalid("marker", f'"{marker}" is none', "Send `next` of the page before.")
    return place


ROUTES = (
    Route("GET", "/v1/{project}/overview", overview,
          "The stacks of a project with their current activity, latest change first", "stacks",
          query={
              "search": "a part of the name or of the id",
              "status": "only in this status, such as FAILED or CREATE_FAILED; may repeat",
              "waiting": "true: only where a hook waits, also in stacks inside",
              "tags": "only with all of these, comma separated",
              "stack": "only of these ids, comma separated",
              "show_hidden": "true: those with a tag that the operator hides, too",
              "counts": "true: with the number of stacks in each status",
              "limit": "at most so many",
              "marker": "`next` of the page before",
          },
          response=responses.Overview),
)  # fmt: skip
