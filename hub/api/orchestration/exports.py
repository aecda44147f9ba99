"""A stack carried elsewhere."""

from aiohttp import web

from hub.api.orchestration import documents as gives
from hub.api.orchestration.stacks import S
from hub.api.parts import Route, answer, identity_of, parts_of, project_of, stack_of
from hub.auth.roles import Right


async def export(request: web.Request) -> web.Response:
    stack = await stack_of(request)
    return answer(await parts_of(request).engine.exports.export(stack))


async def abandon(request: web.Request) -> web.Response:
    stack, by = await stack_of(request), identity_of(request).name
    return answer(await parts_of(request).engine.exports.abandon(project_of(request), stack, by))


ROUTES = (
    Route("GET", f"{S}/export", export, "Everything another server needs to adopt it", "stacks",
          gives=gives.EXPORT, needs=Right.WRITE),
    Route("DELETE", f"{S}/abandon", abandon, "Forget a stack, touch nothing real", "stacks",
          gives=gives.EXPORT),
)  # fmt: skip
