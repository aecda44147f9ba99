"""Which stacks a stack reads outputs of, and which read its outputs."""

from aiohttp import web

from hub.api.app_context import context_of
from hub.api.headgate import responses
from hub.api.orchestration.stacks import S
from hub.api.request_validation import stack_of
from hub.api.routes import Route, json_response


async def show(request: web.Request) -> web.Response:
    stack = await stack_of(request)
    found = await context_of(request).engine.dependencies(stack)
    return json_response(
        responses.Dependencies(
            reads=[
                responses.ReadOutput(
                    stack_name=one.stack_name,
                    stack_id=one.stack_id,
                    output=one.output,
                    secret=one.secret,
                    changed=one.changed,
                )
                for one in found.reads
            ],
            read_by=[
                responses.DependentStack(stack_name=one.name, stack_id=str(one.id))
                for one in found.read_by
            ],
        )
    )


ROUTES = (
    Route("GET", f"{S}/dependencies", show,
          "Outputs of other stacks that a stack reads, and the stacks that read its outputs",
          "stacks", response=responses.Dependencies),
)  # fmt: skip
