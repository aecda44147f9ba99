"""Stacks: made, shown, changed and deleted."""

from aiohttp import web

from hub.api.addresses import base_of
from hub.api.costly_requests import costly
from hub.api.orchestration import responses, show
from hub.api.orchestration.bodies import stack_body
from hub.api.orchestration.requests import stack_request
from hub.api.orchestration.sinks import check_sinks
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

S = "/v1/{project}/stacks/{name}/{id}"


async def create(request: web.Request) -> web.Response:
    parts, project = parts_of(request), project_of(request)
    body, who = await stack_body(request), identity_of(request)
    wanted = stack_request(
        body,
        existing=False,
        requested_by=who.principal,
        idempotency_key=request.headers.get("Idempotency-Key", ""),
        credential=who.credential,
    )
    if body.get("adopt_stack_data"):
        wanted = parts.engine.exports.adoption(project, wanted, body["adopt_stack_data"])
    await check_sinks(parts, project, wanted)
    stack = await parts.engine.stacks.create(project, wanted)
    url = show.stack_url(base_of(request), project, stack.name, stack.id)
    made: responses.CreatedStack = {"stack": {"id": str(stack.id), "links": [show.link(url)]}}
    return answer(made, 201, {"Location": url})


async def shown(request: web.Request) -> web.Response:
    stack, engine = await stack_of(request), parts_of(request).engine
    resolved = query_flag(request, "resolve_outputs", True)
    view = await engine.reads.view(stack, with_outputs=resolved)
    return answer(responses.OneStack(stack=show.stack_full(stack, base_of(request), view)))


async def replace(request: web.Request) -> web.Response:
    return await _update(request, existing=False)


async def patch(request: web.Request) -> web.Response:
    return await _update(request, existing=True)


async def _update(request: web.Request, *, existing: bool) -> web.Response:
    stack = await stack_of(request)
    who = identity_of(request)
    wanted = stack_request(
        await stack_body(request),
        existing=existing,
        requested_by=who.principal,
        credential=who.credential,
    )
    await check_sinks(parts_of(request), project_of(request), wanted)
    await parts_of(request).engine.stacks.update(project_of(request), stack.id, wanted)
    return answer({}, 202)


async def delete(request: web.Request) -> web.Response:
    stack = await stack_of(request)
    who = identity_of(request)
    await parts_of(request).engine.stacks.delete(
        project_of(request), stack.id, who.principal, credential=who.credential
    )
    return web.Response(status=204)


async def redirect(request: web.Request) -> web.Response:
    """The short path, by name or id: to the canonical one, the query kept."""
    project = project_of(request)
    asked = request.match_info["name"].removeprefix(f"arn:openstack:heat::{project}:stacks/")
    _, _, by_id = asked.partition("/")
    stack = await parts_of(request).engine.reads.find_stack(project, by_id or asked)
    rest = request.match_info.get("rest", "")
    url = show.stack_url(base_of(request), project, stack.name, stack.id)
    location = url + (f"/{rest}" if rest else "")
    if request.rel_url.raw_query_string:
        location += f"?{request.rel_url.raw_query_string}"
    document: responses.Redirect = {"message": location, "code": "302 Found", "title": "Found"}
    return answer(document, 302, {"Location": location})


SHORT = ("resources", "events", "template", "environment", "files", "actions")
ROUTES = (
    Route("POST", "/v1/{project}/stacks", costly(create), "Make a stack", "stacks",
          takes_body=True, status=201, response=responses.CreatedStack),
    *(Route(method, f"/v1/{{project}}/stacks/{name}", redirect,
            "Find a stack by name, id or ARN", "stacks", status=302, response=responses.Redirect,
            needs=Right.READ)
      for name in ("{name}", "{name:arn:.+}")
      for method in ("GET", "POST", "PUT", "PATCH", "DELETE")),
    *(Route("GET", f"/v1/{{project}}/stacks/{{name}}/{{rest:{rest}}}", redirect,
            f"Find the {rest} of a stack by name or id", "stacks", status=302,
            response=responses.Redirect)
      for rest in SHORT),
    *(Route("POST", f"/v1/{{project}}/stacks/{{name}}/{{rest:{rest}}}", redirect,
            f"Find the {rest} of a stack by name or id", "stacks", status=302,
            response=responses.Redirect,
            needs=Right.READ)
      for rest in ("resources", "events", "template", "actions")),
    # Behind the short paths, which would match these, too.
    Route("GET", S, shown, "Show a stack", "stacks",
          query={"resolve_outputs": "false: without outputs"}, response=responses.OneStack),
    Route("PUT", S, costly(replace), "Update a stack with a new template", "stacks",
          takes_body=True, status=202, response=responses.Empty),
    Route("PATCH", S, costly(patch), "Update a stack; resumes a stopped one",
          "stacks", takes_body=True, status=202, response=responses.Empty),
    Route("DELETE", S, delete, "Delete a stack", "stacks", status=204),
)  # fmt: skip
