"""Live breakpoints, and running a stack until a resource."""

from typing import Annotated, Any

from aiohttp import web
from pydantic import Field

from engine.missing_objects import no_breakpoint
from engine.service.hooks.breakpoints import MissedBreakpoint
from engine.store.hooks.breakpoints import BreakpointRecord
from hub.api.app_context import context_of, project_of
from hub.api.costly_requests import costly
from hub.api.headgate import responses
from hub.api.hook_answers import answer_from
from hub.api.openapi_components import document_of
from hub.api.orchestration.stacks import S
from hub.api.request_validation import Body, read_model, stack_of, uuid_of
from hub.api.routes import Route, json_response
from hub.api.stack_changes import changes_stack
from hub.auth.roles import Right


class AddBreakpoints(Body):
    """Hook rules with `at`, or short forms such as "db:pre-create"."""

    breakpoints: list[Any]


class RunTo(Body):
    """The name or path of a resource."""

    resource: Annotated[str, Field(min_length=1)]


def _document(record: BreakpointRecord) -> responses.Breakpoint:
    rule = {name: value for name, value in record.rule.items() if name != "point"}
    return document_of(
        responses.Breakpoint, record, at=record.pattern, on=record.rule["point"], rule=rule
    )


def _missed_document(missed: MissedBreakpoint) -> responses.PassedBreakpoint:
    name = missed.resource_name or None
    return document_of(responses.PassedBreakpoint, missed, resource_name=name)


async def list_breakpoints(request: web.Request) -> web.Response:
    stack = await stack_of(request)
    rows = await context_of(request).engine.breakpoints.read(stack.id)
    return json_response(responses.Breakpoints(breakpoints=[_document(one) for one in rows]))


async def add(request: web.Request) -> web.Response:
    """`too_late` lists the nodes that already passed a new breakpoint."""
    stack = await stack_of(request)
    example = 'Send {"breakpoints": ["db:pre-create"]}.'
    body = await read_model(request, AddBreakpoints, example)
    breakpoints = context_of(request).engine.breakpoints
    added = await breakpoints.add(
        project_of(request), stack.id, body.breakpoints, answer_from(request)
    )
    rows = {row.id: row for row in await breakpoints.read(stack.id)}
    return json_response(
        responses.AddedBreakpoints(
            breakpoints=[_document(rows[one]) for one in added.ids if one in rows],
            too_late=[_missed_document(one) for one in added.missed],
        ),
        201,
    )


async def remove(request: web.Request) -> web.Response:
    stack = await stack_of(request)
    breakpoint_id = uuid_of(request.match_info["breakpoint"], no_breakpoint)
    await context_of(request).engine.breakpoints.remove(
        project_of(request), stack.id, [breakpoint_id], answer_from(request)
    )
    return web.Response(status=204)


async def run_to(request: web.Request) -> web.Response:
    stack, body = (
        await stack_of(request),
        await read_model(request, RunTo, 'Send {"resource": "db"}.'),
    )
    missed = await context_of(request).engine.hooks.run_to(
        project_of(request), stack.id, body.resource, answer_from(request)
    )
    return json_response(
        responses.PassedBreakpoints(too_late=[_missed_document(one) for one in missed]), 202
    )


ROUTES = (
    Route("GET", f"{S}/breakpoints", list_breakpoints, "List live breakpoints", "stacks",
          response=responses.Breakpoints),
    Route("POST", f"{S}/breakpoints", costly(add), "Set live breakpoints", "stacks",
          body=AddBreakpoints, takes_body=True, status=201, response=responses.AddedBreakpoints),
    Route("DELETE", f"{S}/breakpoints/{{breakpoint}}", changes_stack(remove),
          "Remove a live breakpoint", "stacks", status=204),
    Route("POST", f"{S}/run-to", changes_stack(run_to), "Run, and stop before a resource",
          "stacks", body=RunTo, takes_body=True, status=202,
          response=responses.PassedBreakpoints, needs=Right.ANSWER),
)  # fmt: skip
