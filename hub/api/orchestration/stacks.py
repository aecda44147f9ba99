"""Stacks: made, listed, shown, changed and deleted."""

from collections.abc import Sequence
from dataclasses import replace as but
from uuid import UUID

from aiohttp import web

from engine.errors import Forbidden
from engine.store.read import StackFilter
from engine.words import Json
from hub.api.orchestration import documents as gives
from hub.api.orchestration import show
from hub.api.orchestration.requests import stack_request
from hub.api.orchestration.sinks import check_sinks
from hub.api.parts import (
    Route,
    answer,
    body_of,
    identity_of,
    invalid,
    parts_of,
    project_of,
    query_flag,
    query_limit,
    query_list,
    query_uuid,
    stack_of,
    uuid_or_none,
)
from hub.auth.roles import Right

#: Stacks with all of these tags, one of these, not all of these, none of these.
TAG_FILTERS = ("tags", "tags_any", "not_tags", "not_tags_any")
SORT_KEYS = ("stack_name", "stack_status", "creation_time", "updated_time")
S = "/v1/{project}/stacks/{name}/{id}"


def base_of(request: web.Request) -> str:
    """The endpoint exactly as the client used it: it finds ids in our addresses by it."""
    return f"{request.scheme}://{request.host}"


async def create(request: web.Request) -> web.Response:
    parts, project = parts_of(request), project_of(request)
    body, who = await body_of(request), identity_of(request)
    wanted = stack_request(
        body,
        existing=False,
        requested_by=who.name,
        idempotency_key=request.headers.get("Idempotency-Key", ""),
        credential=who.credential,
    )
    if body.get("adopt_stack_data"):
        wanted = parts.engine.exports.adoption(wanted, body["adopt_stack_data"])
    await check_sinks(parts, wanted)
    stack = await parts.engine.create_stack(project, wanted)
    url = show.stack_url(base_of(request), project, stack.name, stack.id)
    made = {"stack": {"id": str(stack.id), "links": [show.link(url)]}}
    return answer(made, 201, {"Location": url})


async def listed(request: web.Request) -> web.Response:
    base, project = base_of(request), project_of(request)
    if query_flag(request, "global_tenant"):
        raise Forbidden(
            "You are not authorized to use global_index.",
            remedy="Leave global_tenant out: stacks are listed a project at a time.",
        )
    wanted = _filter(request)
    stacks = await parts_of(request).engine.list_stacks(project, wanted)
    shown: dict[str, Json] = {"stacks": [show.stack_summary(stack, base) for stack in stacks]}
    if wanted.limit and len(stacks) == wanted.limit:
        following = request.rel_url.update_query(marker=str(stacks[-1].id))
        shown["links"] = [show.link(f"{base}{following}", "next")]
    if query_flag(request, "with_count"):
        whole = but(wanted, marker=None, limit=None)
        shown["count"] = len(await parts_of(request).engine.list_stacks(project, whole))
    return answer(shown)


def _filter(request: web.Request) -> StackFilter:
    query = request.query
    keys = query_list(request, "sort_keys") or ["creation_time"]
    for key in keys:
        if key not in SORT_KEYS:
            raise invalid("sort_keys", f'"{key}" is not known', f"Known: {', '.join(SORT_KEYS)}.")
    direction = query.get("sort_dir", "desc").lower()
    if direction not in ("asc", "desc"):
        raise invalid("sort_dir", f'"{direction}" is not known', "Send asc or desc.")
    names = [*query.getall("name", []), *query.getall("stack_name", [])]
    statuses = [*query.getall("status", []), *query.getall("stack_status", [])]
    tags = {name: query_list(request, name) or None for name in TAG_FILTERS}
    owners = [*query.getall("username", []), *query.getall("stack_owner", [])]
    actions = [*query.getall("action", []), *query.getall("stack_action", [])]
    return StackFilter(
        names=names or None,
        ids=_ids(query.getall("id")) if "id" in query else None,
        statuses=[status.upper() for status in statuses] or None,
        actions=[action.upper() for action in actions] or None,
        owners=owners or None,
        **tags,
        show_deleted=query_flag(request, "show_deleted"),
        sort_keys=keys[: len(SORT_KEYS)],
        descending=direction == "desc",
        marker=query_uuid(request, "marker"),
        limit=query_limit(request, default=None),
    )


def _ids(texts: Sequence[str]) -> list[UUID]:
    """What is no id is the id of no stack."""
    return [found for text in texts if (found := uuid_or_none(text)) is not None]


async def shown(request: web.Request) -> web.Response:
    stack, engine = await stack_of(request), parts_of(request).engine
    outputs = await engine.outputs(stack) if query_flag(request, "resolve_outputs", True) else None
    parameters = await engine.shown_parameters(stack)
    return answer({"stack": show.stack_full(stack, base_of(request), parameters, outputs)})


async def replace(request: web.Request) -> web.Response:
    return await _update(request, existing=False)


async def patch(request: web.Request) -> web.Response:
    return await _update(request, existing=True)


async def _update(request: web.Request, *, existing: bool) -> web.Response:
    stack = await stack_of(request)
    who = identity_of(request)
    wanted = stack_request(
        await body_of(request),
        existing=existing,
        requested_by=who.name,
        credential=who.credential,
    )
    await check_sinks(parts_of(request), wanted)
    await parts_of(request).engine.update_stack(project_of(request), stack.id, wanted)
    return answer({}, 202)


async def delete(request: web.Request) -> web.Response:
    stack = await stack_of(request)
    who = identity_of(request)
    await parts_of(request).engine.delete_stack(
        project_of(request), stack.id, who.name, credential=who.credential
    )
    return web.Response(status=204)


async def elsewhere(request: web.Request) -> web.Response:
    """The short path, by name or id: to the canonical one, the query kept."""
    project = project_of(request)
    asked = request.match_info["name"]
    if asked.startswith(f"arn:openstack:heat::{project}:stacks/"):
        asked = asked.rpartition("/")[2]
    stack = await parts_of(request).engine.find_stack(project, asked)
    rest = request.match_info.get("rest", "")
    url = show.stack_url(base_of(request), project, stack.name, stack.id)
    location = url + (f"/{rest}" if rest else "")
    if request.rel_url.raw_query_string:
        location += f"?{request.rel_url.raw_query_string}"
    document = {"message": location, "code": "302 Found", "title": "Found"}
    return answer(document, 302, {"Location": location})


LIST_QUERY = {
    "limit": "at most so many",
    "marker": "the last stack of the page before",
    "sort_keys": "comma separated, of " + ", ".join(SORT_KEYS),
    "sort_dir": "asc or desc",
    "name": "only of this name; may repeat",
    "status": "only in this status, such as COMPLETE or CREATE_COMPLETE; may repeat",
    "action": "only in this action; may repeat",
    "id": "only of this id; may repeat",
    "tags": "only with all of these, comma separated",
    "tags_any": "only with one of these, comma separated",
    "not_tags": "only those that do not have all of these",
    "not_tags_any": "only those that have none of these",
    "username": "only of this owner; stack_owner is the same",
    "show_deleted": "true: deleted ones too",
    "with_count": "true: the number of all that match, too",
}
SHORT = ("resources", "events", "template", "environment", "files", "actions")
ROUTES = (
    Route("POST", "/v1/{project}/stacks", create, "Make a stack", "stacks",
          takes_body=True, status=201, gives=gives.MADE),
    Route("GET", "/v1/{project}/stacks", listed, "List stacks", "stacks", query=LIST_QUERY,
          gives=gives.STACKS),
    Route("GET", "/v1/{project}/stacks/detail", listed, "List stacks", "stacks", query=LIST_QUERY,
          gives=gives.STACKS),
    *(Route(method, "/v1/{project}/stacks/{name}", elsewhere, "Find a stack by name or id",
            "stacks", status=302, gives=gives.FOUND, needs=Right.READ)
      for method in ("GET", "POST", "PUT", "PATCH", "DELETE")),
    *(Route("GET", f"/v1/{{project}}/stacks/{{name}}/{{rest:{rest}}}", elsewhere,
            f"Find the {rest} of a stack by name or id", "stacks", status=302, gives=gives.FOUND)
      for rest in SHORT),
    *(Route("POST", f"/v1/{{project}}/stacks/{{name}}/{{rest:{rest}}}", elsewhere,
            f"Find the {rest} of a stack by name or id", "stacks", status=302, gives=gives.FOUND,
            needs=Right.READ)
      for rest in ("resources", "events", "template", "actions")),
    # Behind the short paths, which would match these, too.
    Route("GET", S, shown, "Show a stack", "stacks",
          query={"resolve_outputs": "false: without outputs"}, gives=gives.STACK),
    Route("PUT", S, replace, "Update a stack to what is sent", "stacks",
          takes_body=True, status=202, gives=gives.EMPTY),
    Route("PATCH", S, patch, "Update a stack from what it is; resumes a stopped one, too",
          "stacks", takes_body=True, status=202, gives=gives.EMPTY),
    Route("DELETE", S, delete, "Delete a stack", "stacks", status=204),
)  # fmt: skip
