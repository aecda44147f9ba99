"""Resources of a stack, their signals, and Heat's ``unset_hook``."""

from collections.abc import Mapping
from contextlib import suppress
from types import NoneType
from uuid import UUID

from aiohttp import web

from engine.errors import NotFound
from engine.hot.syntax.keyed_names import plain_name
from engine.store.records import ResourceRecord, StackRecord
from engine.words import AnswerChannel, Json, uuid_or_none
from hub.api.app_context import context_of, identity_of, project_of, require
from hub.api.hook_answers import answer_from
from hub.api.orchestration import documents, responses
from hub.api.orchestration.documents import shown_attributes
from hub.api.orchestration.software_configs import is_server, sees_secrets, server_metadata
from hub.api.orchestration.stacks import S
from hub.api.request_validation import (
    body_of,
    invalid,
    parse_flag,
    query_flag,
    query_number,
    stack_of,
)
from hub.api.routes import Route, base_of, json_response
from hub.api.stack_changes import changes_stack
from hub.auth.roles import Right

R = f"{S}/resources/{{resource}}"
FILTERS = ("type", "status", "name", "action", "id", "physical_resource_id")
KNOWN = (*FILTERS, "nested_depth", "with_detail")


async def list_resources(request: web.Request) -> web.Response:
    stack, base = await stack_of(request), base_of(request)
    unknown = sorted(set(request.query) - set(KNOWN))
    if unknown:
        reason = f"Invalid filter parameters {unknown}"
        raise invalid("", reason, f"Known: {', '.join(KNOWN)}.", "StackValidationFailed")
    depth = query_number(request, "nested_depth", default=0)
    engine = context_of(request).engine
    with_detail = query_flag(request, "with_detail")
    rows = await engine.reads.resources(stack, depth=depth, with_values=with_detail)
    dependents = documents.required_by(rows)
    types = await engine.reads.written_types(stack.project, list({one.stack_id for one in rows}))
    written = [(one, types.find(one.stack_id, one.name, one.type)) for one in rows]
    chosen = [(one, type_) for one, type_ in written if _is_selected(one, type_, request)]
    selected = [one for one, _ in chosen]
    resources = [
        documents.resource(one, type_, stack.project, base, dependents[one.stack_id, one.name])
        for one, type_ in chosen
    ]
    if not with_detail:
        return json_response(responses.Resources(resources=resources))
    descriptions = await engine.reads.descriptions(list({one.stack_id for one in selected}))
    detailed: list[responses.ResourceWithDetail] = [
        {**summary, **_detail(request, one, descriptions)}
        for summary, one in zip(resources, selected, strict=True)
    ]
    return json_response(responses.Resources(resources=detailed))


def _detail(
    request: web.Request, resource: ResourceRecord, descriptions: Mapping[tuple[UUID, str], str]
) -> responses.ResourceDetail:
    """The description and the attributes; attributes in `with_attr` that are missing are null."""
    attributes: dict[str, Json] = dict.fromkeys(request.query.getall("with_attr", []))
    attributes |= shown_attributes(
        resource, context_of(request).engine.reads.types.get(resource.type)
    )
    return {
        "description": descriptions.get((resource.stack_id, resource.name), ""),
        "attributes": attributes,
    }


def _is_selected(resource: ResourceRecord, written_type: str, request: web.Request) -> bool:
    values = {
        "type": {written_type},
        "status": {resource.status},
        "name": {resource.name, plain_name(resource.name)},
        "action": {resource.action},
        "id": {str(resource.id)},
        "physical_resource_id": {resource.physical_id or str(resource.nested_id or "")},
    }
    return all(
        not values[name].isdisjoint(request.query.getall(name))
        for name in FILTERS
        if name in request.query
    )


async def resource_name(request: web.Request, stack: StackRecord) -> str:
    """The resource of the path, by its name or plain name; otherwise the text in the path."""
    name = request.match_info["resource"]
    if "-" not in name:
        return name
    with suppress(NotFound):
        return await context_of(request).engine.reads.resource_name(stack, name)
    return name


async def _read(request: web.Request) -> tuple[StackRecord, ResourceRecord, list[str]]:
    """The resource of the path, and the names of its dependents. Raises NotFound."""
    stack = await stack_of(request)
    reads = context_of(request).engine.reads
    found, dependents = await reads.resource(stack, request.match_info["resource"])
    return stack, found, [plain_name(one) for one in dependents]


async def show(request: web.Request) -> web.Response:
    stack, one, dependents = await _read(request)
    reads = context_of(request).engine.reads
    descriptions = await reads.descriptions([stack.id], one.name)
    types = await reads.written_types(stack.project, [stack.id], one.name)
    type_ = types.find(stack.id, one.name, one.type)
    document: responses.Resource = {
        **documents.resource(one, type_, stack.project, base_of(request), dependents),
        **_detail(request, one, descriptions),
        "protected": one.protected,
    }
    return json_response(responses.OneResource(resource=document))


async def show_metadata(request: web.Request) -> web.Response:
    _, one, _ = await _read(request)
    engine = context_of(request).engine
    if is_server(engine, one.type):
        secrets = sees_secrets(request)
        metadata = await server_metadata(engine, project_of(request), one, secrets=secrets)
        return json_response(responses.Metadata(metadata=metadata))
    return json_response(responses.Metadata(metadata=one.metadata or {}))


async def signal(request: web.Request) -> web.Response:
    stack = await stack_of(request)
    name = await _signal_target(request, stack)
    body = await body_of(request, nullable=True)  # Heat's client sends null for "no data"
    who = identity_of(request)
    require(who, Right.ANSWER if "unset_hook" in body else Right.WRITE)
    if "unset_hook" not in body:
        await context_of(request).engine.signals.send(
            project_of(request),
            stack.id,
            name,
            body,
            who.principal,
            credential=who.credential,
        )
        return json_response(None)
    await context_of(request).engine.hooks.unset(
        project_of(request),
        stack.id,
        str(name),
        str(body["unset_hook"]),
        answer_from(request, channel=AnswerChannel.UNSET_HOOK),
    )
    return json_response(None)


async def _signal_target(request: web.Request, stack: StackRecord) -> str | UUID:
    """The name of the resource, or the ID in the path. `signal_url` of a resource has its ID, so
    that it stays valid when the resource gets another name. Raises NotFound."""
    wanted = request.match_info["resource"]
    try:
        return await context_of(request).engine.reads.resource_name(stack, wanted)
    except NotFound:
        resource_id = uuid_or_none(wanted)
        if resource_id is None:
            raise
        return resource_id


async def mark(request: web.Request) -> web.Response:
    """``mark_unhealthy``, as in Heat, and ``protect``. The resource is a name or a physical ID."""
    stack, body = await stack_of(request), await body_of(request)
    unknown = sorted(set(body) - MARKS)
    if unknown or not body.keys() & {"mark_unhealthy", "protect"}:
        reason = "Missing mandatory (mark_unhealthy) key from mark unhealthy request"
        if unknown:
            shown = ", ".join(map(repr, unknown))
            reason = f"Invalid keys in resource mark unhealthy {{{shown}}}"
        raise invalid("", reason, 'Send {"mark_unhealthy": true} or {"protect": true}.')
    marks = {name: parse_flag(name, body[name]) for name in body.keys() & set(FLAGS)}
    resource_health = context_of(request).engine.resource_health
    project = project_of(request)
    name, by = await resource_name(request, stack), identity_of(request).name
    if (unhealthy := marks.get("mark_unhealthy")) is not None:
        health = "unhealthy" if unhealthy else "healthy"
        reason = str(body.get("resource_status_reason") or f"marked {health} by {by}")
        await resource_health.mark_health(
            project,
            stack.id,
            name,
            unhealthy=unhealthy,
            reason=reason,
        )
    if (protected := marks.get("protect")) is not None:
        await resource_health.protect(project, stack.id, name, protected=protected, by=by)
    return json_response(None)


LIST_QUERY = {
    **{name: "only resources with this value; repeatable" for name in FILTERS},
    "nested_depth": "include resources of nested stacks, down to this level",
    "with_detail": "true: include descriptions and attributes",
}
FLAGS = ("mark_unhealthy", "protect")
MARKS = {*FLAGS, "resource_status_reason"}

ROUTES = (
    Route("GET", f"{S}/resources", list_resources, "List resources", "resources",
          query=LIST_QUERY, response=responses.Resources),
    Route("GET", R, show, "Show a resource", "resources",
          query={"with_attr": "add this attribute, null if missing; repeatable"},
          response=responses.OneResource),
    Route("GET", f"{R}/metadata", show_metadata, "Metadata of a resource", "resources",
          response=responses.Metadata),
    Route("PATCH", R, changes_stack(mark), "Mark a resource unhealthy, or protect it", "resources",
          takes_body=True, response=NoneType),
    Route("POST", f"{R}/signal", changes_stack(signal),
          "Signal a resource, or clear its hook with unset_hook", "resources",
          takes_body=True, response=NoneType, needs=Right.READ),
)  # fmt: skip
