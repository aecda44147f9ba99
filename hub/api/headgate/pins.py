"""Pins, which keep stacks from being purged."""

from typing import Annotated

from aiohttp import web
from pydantic import Field

from engine.errors import Forbidden
from hub.api.app_context import context_of, identity_of, project_of
from hub.api.orchestration import documents, responses
from hub.api.orchestration.stacks import S
from hub.api.request_validation import Body, read_model, stack_of
from hub.api.routes import Route, json_response
from hub.api.stack_changes import changes_stack
from hub.auth.roles import Right


class PinRequest(Body):
    reason: Annotated[str, Field(max_length=1000)] = ""


async def pin(request: web.Request) -> web.Response:
    body = await read_model(request, PinRequest, "Send a reason of at most 1,000 characters.")
    return await _set_pin(request, body.reason)


async def unpin(request: web.Request) -> web.Response:
    return await _set_pin(request, None)


async def _set_pin(request: web.Request, reason: str | None) -> web.Response:
    """reason: None removes the pin."""
    who = identity_of(request)
    if not who.everywhere:
        raise Forbidden(
            f"{who.name} is not an operator of every project, which a pin requires because it"
            " overrides [retention]",
            remedy="Ask an operator with a role in every project to pin or unpin the stack.",
            code="Forbidden",
        )
    stack, engine = await stack_of(request), context_of(request).engine
    await engine.resource_health.pin(stack.project, stack.id, by=who.name, reason=reason)
    pinned = await engine.reads.find_stack(project_of(request), str(stack.id))
    return json_response(responses.PinState(pinned=documents.pin_of(pinned)))


ROUTES = (
    Route("PUT", f"{S}/pin", changes_stack(pin), "Pin a stack, so that it is not purged", "stacks",
          body=PinRequest, takes_body=True, response=responses.PinState, needs=Right.OPERATE),
    Route("DELETE", f"{S}/pin", changes_stack(unpin), "Unpin a stack", "stacks",
          response=responses.PinState, needs=Right.OPERATE),
)  # fmt: skip
