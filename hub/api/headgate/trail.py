"""The audit trail: who decided what, through which door and why."""

from datetime import datetime
from uuid import UUID

from aiohttp import web

from channels.envelope import rfc3339
from channels.selection import path_of
from engine.hooks.hash_chain import Entry
from engine.store.audit_log import Decided, TrailFilter, TrailPlace
from hub.api.headgate import responses
from hub.api.orchestration.stacks import S
from hub.api.parts import (
    Route,
    answer,
    invalid,
    parts_of,
    project_of,
    query_limit,
    query_number,
    stack_of,
    uuid_or_none,
)

#: Of one stack, and of a whole project, when nobody says how many.
USUAL, SOME = 1000, 100


def entry_document(entry: Entry) -> responses.AuditEntry:
    """With everything that its hash covers."""
    return {
        "number": entry.number,
        "stack_id": str(entry.stack_id),
        "hook_id": str(entry.hook_id) if entry.hook_id else None,
        "kind": entry.kind,
        "by": entry.by,
        "principal": entry.principal,
        "token_id": entry.token_id,
        "door": entry.door,
        "address": entry.address,
        "at": rfc3339(entry.at),
        "reason": entry.reason,
        "digest": entry.digest,
        "data": entry.data,
        "form": entry.form,
        "hash": entry.hash,
    }


async def decisions(request: web.Request) -> web.Response:
    """In order; `next` is the number to go on after."""
    stack = await stack_of(request)
    limit = query_limit(request, default=USUAL) or USUAL
    after = query_number(request, "after", default=0)
    found = await parts_of(request).engine.reads.audit_log(stack, after=after, limit=limit + 1)
    shown = [entry_document(entry) for entry in found[:limit]]
    following = shown[-1]["number"] if len(found) > limit else None
    return answer(responses.StackAuditLog(decisions=shown, next=following))


async def of_project(request: web.Request) -> web.Response:
    """Newest first; `next` is the `marker` of the page behind."""
    limit = query_limit(request, default=SOME) or SOME
    wanted = TrailFilter(
        by=request.query.get("by") or None,
        stack_id=await _stack(request),
        after=_place(request.query.get("marker", "")),
        limit=limit + 1,
    )
    found = await parts_of(request).engine.overview.audit_log(project_of(request), wanted)
    shown = found[:limit]
    return answer(
        responses.ProjectAuditLog(
            decisions=[_decided_document(one) for one in shown],
            next=_marker(shown[-1].entry) if len(found) > limit else None,
        )
    )


def _decided_document(one: Decided) -> responses.ProjectAuditEntry:
    return {
        **entry_document(one.entry),
        "stack_name": one.stack_name,
        "path": path_of(one.stack_path or "", one.resource_name) or one.stack_path,
        "point": one.point,
    }


async def _stack(request: web.Request) -> UUID | None:
    """By name; or by id, also of one that was purged."""
    said = request.query.get("stack")
    if not said:
        return None
    stack_id = uuid_or_none(said)
    return (
        stack_id or (await parts_of(request).engine.reads.find_stack(project_of(request), said)).id
    )


def _marker(entry: Entry) -> str:
    return f"{rfc3339(entry.at)}_{entry.stack_id}_{entry.number}"


def _place(marker: str) -> TrailPlace | None:
    if not marker:
        return None
    try:
        at, stack_id, number = marker.split("_")
        place = TrailPlace(datetime.fromisoformat(at), UUID(stack_id), int(number))
    except ValueError:
        place = None
    if place is None or place.at.tzinfo is None or not 0 <= place.number < 2**31:
        raise invalid("marker", f'"{marker}" is none', "Send `next` of the page before.")
    return place


ROUTES = (
    Route("GET", "/v1/{project}/decisions", of_project,
          "Who decided what in all stacks, newest first", "hooks",
          query={
              "by": "only decisions of this principal",
              "stack": "of this stack, by name or id, and of those inside",
              "limit": "at most so many",
              "marker": "`next` of the page before",
          },
          response=responses.ProjectAuditLog),
    Route("GET", f"{S}/decisions", decisions, "Who decided what: the audit trail", "stacks",
          query={"after": "entries after this number", "limit": "at most so many"},
          response=responses.StackAuditLog),
)  # fmt: skip
