"""Stacks that are kept: deleted or not, nothing of them is purged."""

from aiohttp import web

from engine.errors import Forbidden
from hub.api.orchestration import responses, show
from hub.api.orchestration.stacks import S
from hub.api.parts import (
    Route,
    answer,
    body_of,
    identity_of,
    invalid,
    parts_of,
    project_of,
    stack_of,
)
from hub.auth.roles import Right

#: The longest reason that is kept.
LONGEST = 1000


async def pin(request: web.Request) -> web.Response:
    body = await body_of(request)
    wrong = sorted(set(body) - {"reason"})
    if wrong:
        raise invalid(wrong[0], "is not a known key", "Known: reason.")
    reason = body.get("reason", "")
    if not isinstance(reason, str) or len(reason) > LONGEST:
        raise invalid("reason", f"must be a string of at most {LONGEST} characters", "Shorten it.")
    return await _pinned(request, reason)


async def unpin(request: web.Request) -> web.Response:
    return await _pinned(request, None)


async def _pinned(request: web.Request, reason: str | None) -> web.Response:
    """reason: None lets the stack go."""
    who = identity_of(request)
    if not who.everywhere:
        raise Forbidden(
            f"{who.name} is not an operator of every project, which a pin requires because it"
            " overrides [retention]",
            remedy="Ask an operator with a role in every project to pin or unpin the stack.",
            code="Forbidden",
        )
    stack, engine = await stack_of(request), parts_of(request).engine
    await engine.resource_health.pin(stack.project, stack.id, by=who.name, reason=reason)
    now = await engine.reads.find_stack(project_of(request), str(stack.id))
    return answer(responses.Pinned(pinned=show.pinned(now)))


ROUTES = (
    Route("PUT", f"{S}/pin", pin, "Keep a stack, deleted or not, from being purged", "stacks",
          takes_body=True, response=responses.Pinned, needs=Right.OPERATE),
    Route("DELETE", f"{S}/pin", unpin, "Let a stack be purged when its time has come", "stacks",
          response=responses.Pinned, needs=Right.OPERATE),
)  # fmt: skip
