"""Dry runs of creates, updates and converges, in Heat's format with additions."""

from collections.abc import Iterator, Mapping
from typing import Final

from aiohttp import web

from channels.envelope import rfc3339
from engine.errors import Findings
from engine.hooks.rule import Rule
from engine.hot.definition.stack import OutputDefinition, StackDefinition
from engine.hot.expressions.expression import is_static
from engine.hot.language.dialect import HOT
from engine.hot.language.versions import VERSIONS
from engine.hot.syntax.keyed_names import plain_name
from engine.plan.expected_changes import ExpectedHook
from engine.service.plan_preview import KINDS, Preview, PreviewedResource
from engine.service.requests.requests import StackRequest
from engine.store.observer.drift_rows import UnobservedResource
from engine.store.records import StackRecord
from engine.store.stacks.stack_locks import split_path
from engine.words import ANYONE, Json
from hub.api.app_context import context_of, identity_of, project_of
from hub.api.costly_requests import costly
from hub.api.orchestration import documents, responses
from hub.api.orchestration.fetched_templates import with_templates
from hub.api.orchestration.request_texts import locate_errors, warning_documents
from hub.api.orchestration.stack_requests import converge_request, read_stack_request
from hub.api.orchestration.stacks import S
from hub.api.request_validation import query_flag, stack_of
from hub.api.routes import QueryParameter, Route, base_of, json_response
from hub.auth.roles import Right

#: The ID that Heat shows for a stack that does not exist yet.
NO_ID: Final = "None"


def _resource(
    one: PreviewedResource, preview: Preview, project: str, dependents: Mapping[str, list[str]]
) -> responses.PreviewedResource:
    stack_id = str(preview.stack_id) if preview.stack_id else NO_ID
    shown = plain_name(one.name)

    def identity(path: str) -> responses.Identity:
        return {"tenant": project, "stack_name": preview.name, "stack_id": stack_id, "path": path}

    document: responses.PreviewedResource = {
        "resource_name": shown,
        "headgate_resource_name": one.name,
        "path": "/".join((*preview.path, one.name)),
        "resource_type": one.written_type or one.type,
        "headgate_resolved_type": one.type,
        "physical_resource_id": one.physical_id or "",
        "resource_action": "INIT" if one.kind == "added" else "CREATE",
        "resource_status": "COMPLETE",
        "resource_status_reason": "",
        "resource_identity": identity(f"/resources/{shown}"),
        "stack_identity": identity(""),
        "stack_name": preview.name,
        "creation_time": None,
        "updated_time": None,
        "description": "",
        "metadata": {},
        "attributes": dict.fromkeys(one.attributes),
        "required_by": dependents.get(one.name, []),
        "changes": dict(one.changes),
        "unknown": list(one.unknown),
        "certain": one.certain,
        "denied": one.denied,
        "replace_reason": one.replace_reason,
        "moved_from": one.moved_from,
        "imported_id": one.imported_id,
        "adopted": [documents.adopted_document(each) for each in one.adopted],
        "label": one.label,
    }
    if preview.path:
        document["parent_resource"] = plain_name(preview.path[-1])
        document["headgate_parent_resource"] = preview.path[-1]
    return document


def _expected_hook(one: ExpectedHook) -> responses.ExpectedHook:
    timeout = one.rule.timeout.total_seconds() if one.rule.timeout else None
    return {
        "resource_name": one.name or None,
        "path": one.path,
        "point": one.rule.point,
        "mode": one.rule.mode.value,
        "operation": one.operation.value,
        "certain": one.certain,
        "timeout_seconds": timeout,
        "on_timeout": one.rule.on_timeout.value,
        "answer_by": _approvers(one.rule),
        "approvals": one.rule.approvals,
    }


def _unknown_state(one: UnobservedResource) -> responses.UnrepairedResource:
    return {
        "resource_name": one.name,
        "resource_type": one.type,
        "path": "/".join((*split_path(one.path), one.name)),
        "reason": one.reason,
        "since": rfc3339(one.since),
        "last_known_state": one.known,
    }


def _approvers(rule: Rule) -> list[str]:
    """Who may answer, in words."""
    if rule.mode != "wait":
        return []
    people = list(rule.answer_by) or [ANYONE]
    return [*people, "except the requester of the change"] if rule.exclude else people


def _dependents(preview: Preview) -> dict[str, list[str]]:
    dependents: dict[str, list[str]] = {}
    for one in preview.resources:
        for name in one.requires:
            dependents.setdefault(name, []).append(plain_name(one.name))
    return dependents


def _changes(
    preview: Preview, project: str, *, nested: bool
) -> Iterator[tuple[str, responses.PreviewedResource]]:
    """Each resource with the kind of its change. nested: with the resources of nested stacks."""
    dependents = _dependents(preview)
    for one in (*preview.resources, *preview.leftovers):
        yield one.kind, _resource(one, preview, project, dependents)
        for inside in (one.nested, one.replaced) if nested else ():
            if inside is not None:
                yield from _changes(inside, project, nested=True)


def preview_document(
    preview: Preview, project: str, warnings: list[responses.Warning], *, nested: bool
) -> responses.Preview:
    """Heat's response has only `resource_changes`."""
    changes: dict[str, list[responses.PreviewedResource]] = {kind: [] for kind in KINDS.values()}
    for kind, document in _changes(preview, project, nested=nested):
        changes[kind].append(document)
    return {
        "resource_changes": {
            "unchanged": changes["unchanged"],
            "added": changes["added"],
            "updated": changes["updated"],
            "replaced": changes["replaced"],
            "deleted": changes["deleted"],
        },
        "stops": [_expected_hook(one) for one in preview.expected_hooks],
        "out_of_date": list(preview.out_of_date),
        "unknown_states": [_unknown_state(one) for one in preview.unobserved],
        "plan_digest": preview.digest,
        "warnings": warnings,
    }


def _created_resources(preview: Preview, project: str) -> list[Json]:
    """The resources of a create. As in Heat, a resource with a nested stack is a list."""
    dependents = _dependents(preview)
    return [
        _resource(one, preview, project, dependents)
        if one.nested is None
        else _created_resources(one.nested, project)
        for one in preview.resources
    ]


def _parameters(definition: StackDefinition) -> Json:
    """With the pseudo parameter for the ID of the stack, which does not exist yet."""
    is_hot = VERSIONS[definition.version].dialect is HOT
    return {"OS::stack_id" if is_hot else "AWS::StackId": NO_ID} | definition.shown_parameters()


def _output(key: str, one: OutputDefinition) -> responses.PreviewedOutput:
    known = is_static(one.value)
    return {
        "output_key": key,
        "description": one.description,
        "output_value": one.value if known else None,
        "unknown": not known,
    }


async def create(request: web.Request) -> web.Response:
    project, new = project_of(request), await read_stack_request(request)
    warned = Findings()
    async with locate_errors(request, new, warned):
        preview, definition = await with_templates(
            request,
            new,
            lambda whole: context_of(request).engine.dry_run.create(project, whole, warned),
        )
    warnings = await warning_documents(request, new, preview.warnings)
    url = documents.stack_url(base_of(request), project, new.name, NO_ID)
    stack: responses.PreviewedStack = {
        **preview_document(preview, project, warnings, nested=True),
        "id": NO_ID,
        "stack_name": new.name,
        "links": [documents.link(url)],
        "description": definition.description,
        "template_description": definition.description,
        "parameters": _parameters(definition),
        "capabilities": [],
        "notification_topics": [],
        "creation_time": None,
        "updated_time": None,
        "deletion_time": None,
        "disable_rollback": new.disable_rollback is not False,
        "timeout_mins": new.timeout_mins,
        "stack_owner": new.requested_by.name,
        "parent": None,
        "stack_user_project_id": None,
        "tags": list(new.tags or []),
        "outputs": [_output(key, one) for key, one in definition.outputs.items()],
        "resources": _created_resources(preview, project),
    }
    return json_response(responses.OnePreviewedStack(stack=stack))


async def put(request: web.Request) -> web.Response:
    return await _update(request, existing=False)


async def patch(request: web.Request) -> web.Response:
    return await _update(request, existing=True)


async def _update(request: web.Request, *, existing: bool) -> web.Response:
    nested = query_flag(request, "show_nested")
    stack = await stack_of(request)
    new = await read_stack_request(request, existing=existing)
    return await _preview(request, stack, new, nested=nested)


async def converge(request: web.Request) -> web.Response:
    """The preview of the update that repairs drift, as observed last."""
    stack = await stack_of(request)
    options = {name: request.query.getall(name, []) for name in SELECTION}
    new = converge_request(options, identity_of(request).principal)
    return await _preview(request, stack, new, nested=True)


async def _preview(
    request: web.Request, stack: StackRecord, new: StackRequest, *, nested: bool
) -> web.Response:
    project = project_of(request)
    warned = Findings()
    async with locate_errors(request, new, warned):
        preview = await with_templates(
            request,
            new,
            lambda whole: context_of(request).engine.dry_run.update(project, stack, whole, warned),
        )
    warnings = await warning_documents(request, new, preview.warnings)
    return json_response(preview_document(preview, project, warnings, nested=nested))


NESTED = {"show_nested": "true: include resources of nested stacks, with their paths"}
#: As the keys of an update.
SELECTION = {
    "only": QueryParameter("only resources with such names, a glob", repeatable=True),
    "except": QueryParameter("no resources with such names, a glob", repeatable=True),
}
STACK_ROUTES = (
    Route("POST", "/v1/{project}/stacks/preview", costly(create), "Preview a create",
          "stacks", takes_body=True, response=responses.OnePreviewedStack, needs=Right.READ,
          reads=True),
)  # fmt: skip
#: A preview of an update evaluates the caller's template with stored values, hidden ones included.
#: A template can reveal what it reads, so these routes need the right to update.
ROUTES = (
    Route("PUT", f"{S}/preview", costly(put), "Preview an update with a new template", "stacks",
          takes_body=True, query=NESTED, response=responses.Preview, needs=Right.WRITE,
          reads=True),
    Route("PATCH", f"{S}/preview", costly(patch), "Preview an update of the current template",
          "stacks", takes_body=True, query=NESTED, response=responses.Preview, needs=Right.WRITE,
          reads=True),
    # The template is the stored one, whose values readers see, masked as here.
    Route("GET", f"{S}/drift/plan", costly(converge), "Preview a converge, which repairs drift",
          "stacks", query=SELECTION, response=responses.Preview),
)  # fmt: skip
