"""The audit log of a stack and of a project."""

from uuid import UUID

from aiohttp import web

from channels.envelope import rfc3339
from channels.selection import path_of
from engine.hooks.hash_chain import Entry
from engine.store.audit.audit_log import ListedEntry, LogFilter, LogPosition
from engine.words import uuid_or_none
from hub.api.app_context import context_of, project_of
from hub.api.headgate import responses
from hub.api.openapi_components import document_of
from hub.api.orchestration.stacks import S
from hub.api.query_parameters import limit, number, place_marker, text
from hub.api.request_validation import (
    query_marker,
    query_number,
    query_page_size,
    split_page,
    stack_of,
)
from hub.api.routes import Route, json_response

#: Entries of a page, for a stack and for a project.
STACK_PAGE, PROJECT_PAGE = 1000, 100


def entry_document(entry: Entry) -> responses.AuditEntry:
    """With everything that its hash covers."""
    return document_of(responses.AuditEntry, entry)


async def show_stack_log(request: web.Request) -> web.Response:
    """In order; `next` is the number of the last entry of the page."""
    stack = await stack_of(request)
    limit = query_page_size(request, STACK_PAGE)
    after = query_number(request, "after", default=0)
    entries = await context_of(request).engine.reads.audit_log(stack, after=after, limit=limit + 1)
    page, last = split_page(entries, limit)
    return json_response(
        responses.StackAuditLog(
            decisions=[entry_document(entry) for entry in page],
            next=last.number if last else None,
        )
    )


async def show_project_log(request: web.Request) -> web.Response:
    """Newest first; `next` is the `marker` of the next page."""
    limit = query_page_size(request, PROJECT_PAGE)
    marker = query_marker(request, numbered=True)
    selected = LogFilter(
        by=request.query.get("by") or None,
        stack_id=await _stack_id(request),
        after=LogPosition(*marker) if marker else None,
        limit=limit + 1,
    )
    entries = await context_of(request).engine.reads.project_audit_log(
        project_of(request), selected
    )
    page, last = split_page(entries, limit)
    return json_response(
        responses.ProjectAuditLog(
            decisions=[_project_entry_document(one) for one in page],
            next=_marker(last.entry) if last else None,
        )
    )


def _project_entry_document(entry: ListedEntry) -> responses.ProjectAuditEntry:
    return {
        **entry_document(entry.entry),
        "stack_name": entry.stack_name,
        "path": path_of(entry.stack_path or "", entry.resource_name) or entry.stack_path,
        "point": entry.point,
    }


async def _stack_id(request: web.Request) -> UUID | None:
    """A stack is selected by its name, or by its ID, even after it was purged."""
    text = request.query.get("stack")
    if not text:
        return None
    stack_id = uuid_or_none(text)
    if stack_id is not None:
        return stack_id
    return (await context_of(request).engine.reads.find_stack(project_of(request), text)).id


def _marker(entry: Entry) -> str:
    return f"{rfc3339(entry.at)}_{entry.stack_id}_{entry.number}"


ROUTES = (
    Route("GET", "/v1/{project}/decisions", show_project_log,
          "The audit log of all stacks, newest first", "hooks",
          query={
              "by": text("only decisions of this principal"),
              "stack": text("only this stack, by name or ID, with its nested stacks"),
              "limit": limit(PROJECT_PAGE),
              "marker": place_marker(numbered=True),
          },
          response=responses.ProjectAuditLog),
    Route("GET", f"{S}/decisions", show_stack_log, "The audit log of a stack", "stacks",
          query={"after": number("only entries after this number"), "limit": limit(STACK_PAGE)},
          response=responses.StackAuditLog),
)  # fmt: skip
