"""A stack carried elsewhere."""

from aiohttp import web

from hub.api.orchestration import responses
from hub.api.orchestration.stacks import S
from hub.api.parts import (
    Route,
    answer,
    identity_of,
    parts_of,
    project_of,
    query_flag,
    stack_of,
)
from hub.auth.roles import Right


async def export(request: web.Request) -> web.Response:
    stack = await stack_of(request)
    partial = query_flag(request, "partial")
    return answer(await parts_of(request).engine.exports.export(stack, partial=partial))


async def abandon(request: web.Request) -> web.Response:
    stack, by = await stack_of(request), identity_of(request).principal
    return answer(await parts_of(request).engine.exports.abandon(project_of(request), stack, by))


ROUTES = (
    Route("GET", f"{S}/export", export, "Export a stack for adoption by another server", "stacks",
          query={"partial": "true: the reason in place of each value that cannot be decrypted"},
          response=responses.Export, needs=Right.WRITE),
    Route("DELETE", f"{S}/abandon", abandon, "Abandon a stack, keep its resources", "stacks",
          response=responses.Export),
)  # fmt: skip
