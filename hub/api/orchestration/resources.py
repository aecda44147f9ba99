"""Resources of a stack, and Heat's way to answer a hook of one."""

from collections.abc import Mapping
from types import NoneType
from uuid import UUID

from aiohttp import web

from engine.errors import NotFound, nearest
from engine.store.records import ResourceRecord, StackRecord
from engine.words import Door, Json
from hub.api.addresses import base_of
from hub.api.orchestration import responses, show
from hub.api.orchestration.attributes import shown_attributes
from hub.api.orchestration.server_metadata import is_server, of_server
from hub.api.orchestration.software_configs import sees_secrets
from hub.api.orchestration.stacks import S
from hub.api.parts import (
    Route,
    answer,
    body_of,
    identity_of,
    invalid,
    parts_of,
    project_of,
    query_flag,
    query_number,
    require,
    stack_of,
)
from hub.api.signals import answer_from
from hub.auth.roles import Right

R = f"{S}/resources/{{resource}}"
FILTERS = ("type", "status", "name", "action", "id", "physical_resource_id")
KNOWN = (*FILTERS, "nested_depth", "with_detail")


async def listed(request: web.Request) -> web.Response:
    stack, base = await stack_of(request), base_of(request)
    wrong = sorted(set(request.query) - set(KNOWN))
    if wrong:
        reason = f"Invalid filter parameters {wrong}"
        raise invalid("", reason, f"Known: {', '.join(KNOWN)}.", "StackValidationFailed")
    depth = query_number(request, "nested_depth", default=0)
    engine = parts_of(request).engine
    found = await engine.reads.resources(stack, depth=depth)
    requiring = show.required_by(found)
    wanted = [one for one in found if _wanted(one, request)]
    resources = [
        show.resource(one, stack.project, base, requiring[one.stack_id, one.name]) for one in wanted
    ]
    if not query_flag(request, "with_detail"):
        return answer(responses.Resources(resources=resources))
    descriptions = await engine.reads.descriptions(list({one.stack_id for one in wanted}))
    detailed: list[responses.ResourceWithDetail] = [
        {**shown, **_detail(request, one, descriptions)}
        for shown, one in zip(resources, wanted, strict=True)
    ]
    return answer(responses.Resources(resources=detailed))


def _detail(
    request: web.Request, one: ResourceRecord, descriptions: Mapping[tuple[UUID, str], str]
) -> responses.ResourceDetail:
    """Its description, and its attributes: those that it has, and null for others asked for."""
    attributes: dict[str, Json] = dict.fromkeys(request.query.getall("with_attr", []))
    attributes |= shown_attributes(one, parts_of(request).engine.reads.types.get(one.type))
    return {"description": descriptions.get((one.stack_id, one.name), ""), "attributes": attributes}


def _wanted(one: ResourceRecord, request: web.Request) -> bool:
    has = {
        "type": one.type,
        "status": one.status,
        "name": one.name,
        "action": one.action,
        "id": str(one.id),
        "physical_resource_id": one.physical_id or str(one.nested_id or ""),
    }
    return all(has[name] in request.query.getall(name) for name in FILTERS if name in request.query)


async def _found(request: web.Request) -> tuple[StackRecord, ResourceRecord, list[str]]:
    stack, name = await stack_of(request), request.match_info["resource"]
    found = await parts_of(request).engine.reads.resources(stack)
    for one in found:
        if one.name == name:
            return stack, one, show.required_by(found)[stack.id, name]
    reason = f"The Resource ({name}) could not be found in Stack {stack.name}."
    near = nearest(name, [one.name for one in found])
    raise NotFound(reason, remedy=near, code="ResourceNotFound")


async def shown(request: web.Request) -> web.Response:
    stack, one, users = await _found(request)
    said = await parts_of(request).engine.reads.descriptions([stack.id], one.name)
    document: responses.Resource = {
        **show.resource(one, stack.project, base_of(request), users),
        **_detail(request, one, said),
        "protected": one.protected,
        "deletion_policy": one.deletion_policy,
    }
    return answer(responses.OneResource(resource=document))


async def metadata(request: web.Request) -> web.Response:
    _, one, _ = await _found(request)
    engine = parts_of(request).engine
    if is_server(engine, one.type):
        secrets = sees_secrets(request)
        found = await of_server(engine, project_of(request), one, secrets=secrets)
        return answer(responses.Metadata(metadata=found))
    return answer(responses.Metadata(metadata=one.metadata or {}))


async def signal(request: web.Request) -> web.Response:
    stack, one, _ = await _found(request)
    body = await body_of(request, nullable=True)  # Heat's client sends null for "no data"
    who = identity_of(request)
    require(who, Right.ANSWER if "unset_hook" in body else Right.WRITE)
    if "unset_hook" not in body:
        await parts_of(request).engine.signals.send(
            project_of(request),
            stack.id,
            one.name,
            body,
            who.principal,
            credential=who.credential,
        )
        return answer(None)
    await parts_of(request).engine.hooks.unset(
        project_of(request),
        stack.id,
        one.name,
        str(body["unset_hook"]),
        answer_from(request, door=Door.UNSET_HOOK),
    )
    return answer(None)


async def mark(request: web.Request) -> web.Response:
    """``mark_unhealthy`` is the Orchestration API's; ``protect`` is ours. Names or physical ids."""
    stack, body = await stack_of(request), await body_of(request)
    wrong = sorted(set(body) - MARKS)
    if wrong or not body.keys() & {"mark_unhealthy", "protect"}:
        reason = f"Unrecognized keys: {wrong}" if wrong else "no resource is marked"
        raise invalid("", reason, 'Send {"mark_unhealthy": true} or {"protect": true}.')
    for name in ("mark_unhealthy", "protect"):
        if not isinstance(body.get(name, False), bool):
            raise invalid(name, "must be true or false", "Send true or false.")
    marks, project = parts_of(request).engine.resource_health, project_of(request)
    name, by = request.match_info["resource"], identity_of(request).name
    if "mark_unhealthy" in body:
        said = str(body.get("resource_status_reason") or "")
        health = "unhealthy" if body["mark_unhealthy"] else "healthy"
        await marks.mark_health(
            project,
            stack.id,
            name,
            unhealthy=body["mark_unhealthy"],
            reason=said or f"marked {health} by {by}",
        )
    if "protect" in body:
        await marks.protect(project, stack.id, name, protected=body["protect"], by=by)
    return answer(None)


LIST_QUERY = {
    **{name: "only those; may repeat" for name in FILTERS},
    "nested_depth": "those of stacks inside, too, down to so many levels",
    "with_detail": "true: with descriptions and attributes",
}
MARKS = {"mark_unhealthy", "resource_status_reason", "protect"}

ROUTES = (
    Route("GET", f"{S}/resources", listed, "List resources", "resources",
          query=LIST_QUERY, response=responses.Resources),
    Route("GET", R, shown, "Show a resource", "resources",
          query={"with_attr": "add this attribute, null if missing; repeatable"},
          response=responses.OneResource),
    Route("GET", f"{R}/metadata", metadata, "Metadata of a resource", "resources",
          response=responses.Metadata),
    Route("PATCH", R, mark, "Mark a resource unhealthy, or protect it", "resources",
          takes_body=True, response=NoneType),
    Route("POST", f"{R}/signal", signal, "Clear a waiting hook, Heat's way", "resources",
          takes_body=True, response=NoneType, needs=Right.READ),
)  # fmt: skip
