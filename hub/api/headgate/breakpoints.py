"""Breakpoints on a live stack, and running on to a resource."""

from aiohttp import web

from channels.envelope import rfc3339
from engine.service.hooks.missed_breakpoints import MissedBreakpoint
from engine.store.breakpoints import BreakpointRecord
from hub.api.costly_requests import costly
from hub.api.headgate import responses
from hub.api.orchestration.stacks import S
from hub.api.parts import Route, answer, body_of, invalid, parts_of, project_of, stack_of, uuid_of
from hub.api.signals import answer_from
from hub.auth.roles import Right


def _document(one: BreakpointRecord) -> responses.Breakpoint:
    return {
        "id": str(one.id),
        "at": one.pattern,
        "on": one.rule["point"],
        "rule": {name: value for name, value in one.rule.items() if name != "point"},
        "created_by": one.created_by,
        "created_at": rfc3339(one.created_at),
    }


def _missed(missed: MissedBreakpoint) -> responses.PassedBreakpoint:
    return {
        "resource_name": missed.resource_name or None,
        "path": missed.path,
        "point": missed.point,
        "reason": missed.reason,
    }


async def listed(request: web.Request) -> web.Response:
    stack = await stack_of(request)
    found = await parts_of(request).engine.breakpoints.read(stack.id)
    return answer(responses.Breakpoints(breakpoints=[_document(one) for one in found]))


async def add(request: web.Request) -> web.Response:
    """`breakpoints`: full rules with `at`, or "resource:point". too_late: where it has no effect on
    the change under way."""
    stack, body = await stack_of(request), await body_of(request)
    items = body.get("breakpoints")
    if not isinstance(items, list) or set(body) - {"breakpoints"}:
        remedy = 'Send {"breakpoints": ["db:pre-create"]}.'
        raise invalid("breakpoints", "must be a list, without other keys", remedy)
    done = await parts_of(request).engine.breakpoints.add(
        project_of(request), stack.id, items, answer_from(request)
    )
    shown = {one.id: one for one in await parts_of(request).engine.breakpoints.read(stack.id)}
    return answer(
        responses.AddedBreakpoints(
            breakpoints=[_document(shown[one]) for one in done.ids if one in shown],
            too_late=[_missed(one) for one in done.missed],
        ),
        201,
    )


async def remove(request: web.Request) -> web.Response:
    stack = await stack_of(request)
    one = uuid_of(request.match_info["breakpoint"], "breakpoint", "BreakpointNotFound")
    await parts_of(request).engine.breakpoints.remove(
        project_of(request), stack.id, [one], answer_from(request)
    )
    return web.Response(status=204)


async def run_to(request: web.Request) -> web.Response:
    stack, body = await stack_of(request), await body_of(request)
    name = body.get("resource")
    if not isinstance(name, str) or not name or set(body) - {"resource"}:
        raise invalid("resource", "names no resource", 'Send {"resource": "db"}.')
    missed = await parts_of(request).engine.hooks.run_to(
        project_of(request), stack.id, name, answer_from(request)
    )
    return answer(responses.PassedBreakpoints(too_late=[_missed(one) for one in missed]), 202)


ROUTES = (
    Route("GET", f"{S}/breakpoints", listed, "Breakpoints set on the live stack", "stacks",
          response=responses.Breakpoints),
    Route("POST", f"{S}/breakpoints", costly(add), "Set breakpoints; reports nodes that passed",
          "stacks", takes_body=True, status=201, response=responses.AddedBreakpoints),
    Route("DELETE", f"{S}/breakpoints/{{breakpoint}}", remove, "Take a breakpoint away", "stacks",
          status=204),
    Route("POST", f"{S}/run-to", run_to, "Go on, and stop before a resource", "stacks",
          takes_body=True, status=202, response=responses.PassedBreakpoints, needs=Right.ANSWER),
)  # fmt: skip
