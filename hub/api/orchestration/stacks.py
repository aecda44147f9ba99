"""Stacks: create, adopt, show, update, delete, export and abandon; their templates and outputs."""

from urllib.parse import quote

from aiohttp import web

from engine.errors import Findings, NotFound, one_of
from hub.api.app_context import context_of, identity_of, project_of
from hub.api.costly_requests import costly
from hub.api.openapi_components import Document
from hub.api.orchestration import documents, responses
from hub.api.orchestration.fetched_templates import with_templates
from hub.api.orchestration.request_texts import locate_errors, warning_documents
from hub.api.orchestration.stack_requests import read_stack_request
from hub.api.request_validation import query_flag, stack_of
from hub.api.routes import Route, base_of, json_response
from hub.api.stack_changes import changes_stack
from hub.auth.roles import Right

S = "/v1/{project}/stacks/{name}/{id}"


async def create(request: web.Request) -> web.Response:
    project = project_of(request)
    new = await read_stack_request(
        request,
        adopt=True,
        idempotency_key=request.headers.get("Idempotency-Key", ""),
        credential=identity_of(request).credential,
    )
    warned = Findings()
    async with locate_errors(request, new, warned):
        stack = await with_templates(
            request,
            new,
            lambda whole: context_of(request).engine.stacks.create(project, whole, warned),
        )
    url = documents.stack_url(base_of(request), project, stack.name, stack.id)
    document: responses.CreatedStack = {
        "stack": {"id": str(stack.id), "links": [documents.link(url)]},
        "warnings": await warning_documents(request, new, warned.warnings),
    }
    return json_response(document, 201, {"Location": url})


async def show(request: web.Request) -> web.Response:
    stack, engine = await stack_of(request), context_of(request).engine
    with_outputs = query_flag(request, "resolve_outputs", True)
    view = await engine.reads.view(stack, with_outputs=with_outputs)
    return json_response(
        responses.OneStack(stack=documents.stack_full(stack, base_of(request), view))
    )


async def replace(request: web.Request) -> web.Response:
    return await _update(request, existing=False)


async def patch(request: web.Request) -> web.Response:
    return await _update(request, existing=True)


async def _update(request: web.Request, *, existing: bool) -> web.Response:
    stack = await stack_of(request)
    new = await read_stack_request(
        request, existing=existing, credential=identity_of(request).credential
    )
    engine = context_of(request).engine
    if new.converge:
        await engine.observations.complete(project_of(request), stack.id)
    warned = Findings()
    async with locate_errors(request, new, warned):
        await with_templates(
            request,
            new,
            lambda whole: engine.stacks.update(project_of(request), stack.id, whole, warned),
        )
    document: responses.AcceptedUpdate = {
        "warnings": await warning_documents(request, new, warned.warnings)
    }
    return json_response(document, 202)


async def delete(request: web.Request) -> web.Response:
    stack, who = await stack_of(request), identity_of(request)
    await context_of(request).engine.stacks.delete(
        project_of(request), stack.id, who.principal, credential=who.credential
    )
    return web.Response(status=204)


async def redirect(request: web.Request) -> web.Response:
    """Redirect a short path (by name, ID or ARN) to the canonical one, with the query."""
    project = project_of(request)
    name, rest = request.match_info["name"], request.match_info.get("rest", "")
    arn = name.removeprefix(f"arn:openstack:heat::{project}:stacks/")
    if arn != name:
        name, _, path = arn.partition("/")
        stack_id, _, after = path.partition("/")
        name, rest = stack_id or name, after or rest
    stack = await context_of(request).engine.reads.find_stack(project, name)
    url = documents.stack_url(base_of(request), project, stack.name, stack.id)
    location = url + (f"/{quote(rest)}" if rest else "")
    if request.rel_url.raw_query_string:
        location += f"?{request.rel_url.raw_query_string}"
    document: responses.Redirect = {"message": location, "code": "302 Found", "title": "Found"}
    return json_response(document, 302, {"Location": location})


async def export(request: web.Request) -> web.Response:
    stack = await stack_of(request)
    partial = query_flag(request, "partial")
    return json_response(await context_of(request).engine.exports.export(stack, partial=partial))


async def abandon(request: web.Request) -> web.Response:
    stack, by = await stack_of(request), identity_of(request).principal
    return json_response(
        await context_of(request).engine.exports.abandon(project_of(request), stack, by)
    )


async def show_template(request: web.Request) -> web.Response:
    stack = await stack_of(request)
    return json_response((await context_of(request).engine.reads.template(stack)).template)


async def show_environment(request: web.Request) -> web.Response:
    stack = await stack_of(request)
    return json_response(
        documents.environment(await context_of(request).engine.reads.template(stack))
    )


async def show_files(request: web.Request) -> web.Response:
    stack = await stack_of(request)
    return json_response((await context_of(request).engine.reads.template(stack)).files)


async def list_outputs(request: web.Request) -> web.Response:
    stack = await stack_of(request)
    names: list[responses.OutputName] = [
        {"output_key": one.key, "description": one.description}
        for one in await context_of(request).engine.reads.outputs(stack)
    ]
    return json_response(responses.Outputs(outputs=names))


async def show_output(request: web.Request) -> web.Response:
    stack, key = await stack_of(request), request.match_info["key"]
    outputs = await context_of(request).engine.reads.outputs(stack)
    for one in outputs:
        if one.key == key:
            return json_response(responses.OneOutput(output=documents.output(one)))
    reason = f"Specified output key {key} not found."
    remedy = one_of(key, [one.key for one in outputs], "Outputs")
    raise NotFound(reason, place="key", remedy=remedy, code="NotFound")


#: Parts of a stack that have a short path.
SHORT = ("resources", "events", "template", "environment", "files", "actions")
ROUTES = (
    Route("POST", "/v1/{project}/stacks", costly(create), "Create a stack", "stacks",
          takes_body=True, status=201, response=responses.CreatedStack),
    *(Route(method, f"/v1/{{project}}/stacks/{name}", redirect,
            "Find a stack by name, ID or ARN", "stacks", status=302, response=responses.Redirect,
            needs=Right.READ, reads=True)
      for name in ("{name}", "{name:arn:.+}")
      for method in ("GET", "POST", "PUT", "PATCH", "DELETE")),
    *(Route("GET", f"/v1/{{project}}/stacks/{{name}}/{{rest:{rest}}}", redirect,
            f"Find the {rest} of a stack by name or ID", "stacks", status=302,
            response=responses.Redirect)
      for rest in SHORT),
    *(Route("POST", f"/v1/{{project}}/stacks/{{name}}/{{rest:{rest}}}", redirect,
            f"Find the {rest} of a stack by name or ID", "stacks", status=302,
            response=responses.Redirect, needs=Right.READ, reads=True)
      for rest in ("resources", "events", "template", "actions")),
    # After the short paths, which match them, too.
    Route("GET", S, show, "Show a stack", "stacks",
          query={"resolve_outputs": "false: without outputs"}, response=responses.OneStack),
    Route("PUT", S, costly(replace), "Update a stack with a new template", "stacks",
          takes_body=True, status=202, response=responses.AcceptedUpdate),
    Route("PATCH", S, costly(patch), "Update a stack; resumes a stopped one",
          "stacks", takes_body=True, status=202, response=responses.AcceptedUpdate),
    Route("DELETE", S, changes_stack(delete), "Delete a stack", "stacks", status=204),
    Route("GET", f"{S}/export", export, "Export a stack for adoption by another server", "stacks",
          query={"partial": "true: replace values that cannot be decrypted by the reason"},
          response=responses.Export, needs=Right.WRITE),
    Route("DELETE", f"{S}/abandon", changes_stack(abandon),
          "Abandon a stack and keep its physical resources", "stacks", response=responses.Export),
    Route("GET", f"{S}/template", show_template, "The template", "stacks", response=Document),
    Route("GET", f"{S}/environment", show_environment, "The environment", "stacks",
          response=Document),
    Route("GET", f"{S}/files", show_files, "The files of the template", "stacks",
          response=dict[str, str]),
    Route("GET", f"{S}/outputs", list_outputs, "Names of the outputs", "stacks",
          response=responses.Outputs),
    Route("GET", f"{S}/outputs/{{key}}", show_output, "An output with its value", "stacks",
          response=responses.OneOutput),
)  # fmt: skip
