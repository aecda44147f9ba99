"""What a create or an update would do, in the form of the Orchestration API and a little more."""

from collections.abc import Iterator, Mapping
from typing import Final

from aiohttp import web

from engine.hooks.rule import Rule
from engine.hot.definition.stack import OutputDefinition, StackDefinition
from engine.hot.expressions.expression import is_static
from engine.hot.language.dialect import HOT
from engine.hot.language.versions import VERSIONS
from engine.plan.dry_run import ExpectedHook
from engine.service.plan_view.prediction import KINDS, Preview, PreviewedResource
from engine.words import Json
from hub.api.addresses import base_of
from hub.api.costly_requests import costly
from hub.api.orchestration import responses, show
from hub.api.orchestration.bodies import stack_body
from hub.api.orchestration.requests import stack_request
from hub.api.orchestration.sinks import check_sinks
from hub.api.orchestration.stacks import S
from hub.api.parts import Route, answer, identity_of, parts_of, project_of, query_flag, stack_of
from hub.auth.roles import Right

#: The id of a stack that is not there, as clients know it.
NO_ID: Final = "None"


def _resource(
    one: PreviewedResource, seen: Preview, project: str, users: Mapping[str, list[str]]
) -> responses.PreviewedResource:
    stack_id = str(seen.stack_id) if seen.stack_id else NO_ID

    def identity(path: str) -> responses.Identity:
        return {"tenant": project, "stack_name": seen.name, "stack_id": stack_id, "path": path}

    shown: responses.PreviewedResource = {
        "resource_name": one.name,
        "path": "/".join((*seen.path, one.name)),
        "resource_type": one.type,
        "physical_resource_id": one.physical_id or "",
        "resource_action": "INIT" if one.kind == "added" else "CREATE",
        "resource_status": "COMPLETE",
        "resource_status_reason": "",
        "resource_identity": identity(f"/resources/{one.name}"),
        "stack_identity": identity(""),
        "stack_name": seen.name,
        "creation_time": None,
        "updated_time": None,
        "description": "",
        "metadata": {},
        "attributes": {},
        "required_by": users.get(one.name, []),
        "changes": dict(one.changes),
        "unknown": list(one.unknown),
        "certain": one.certain,
        "denied": one.denied,
    }
    if seen.path:
        shown["parent_resource"] = seen.path[-1]
    return shown


def _stop(one: ExpectedHook) -> responses.ExpectedHook:
    """answer_by: who would have to answer."""
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
        "answer_by": _who(one.rule),
        "approvals": one.rule.approvals,
    }


def _who(rule: Rule) -> list[str]:
    """In words, who would have to answer."""
    if rule.mode != "wait":
        return []
    people = list(rule.answer_by) or ["anyone in the project"]
    return [*people, "except the requester of the change"] if rule.exclude else people


def _users(preview: Preview) -> dict[str, list[str]]:
    users: dict[str, list[str]] = {}
    for one in preview.resources:
        for name in one.requires:
            users.setdefault(name, []).append(one.name)
    return users


def _changes(
    preview: Preview, project: str, *, nested: bool
) -> Iterator[tuple[str, responses.PreviewedResource]]:
    """Each resource with its kind. nested: with those inside, behind the one they are in."""
    users = _users(preview)
    for one in preview.resources:
        yield one.kind, _resource(one, preview, project, users)
        if nested and one.nested is not None:
            yield from _changes(one.nested, project, nested=True)


def preview_document(preview: Preview, project: str, *, nested: bool) -> responses.Preview:
    """resource_changes as clients know them; stops, stale and plan_digest are ours."""
    changes: dict[str, list[responses.PreviewedResource]] = {kind: [] for kind in KINDS.values()}
    for kind, shown in _changes(preview, project, nested=nested):
        changes[kind].append(shown)
    return {
        "resource_changes": {
            "unchanged": changes["unchanged"],
            "added": changes["added"],
            "updated": changes["updated"],
            "replaced": changes["replaced"],
            "deleted": changes["deleted"],
        },
        "stops": [_stop(one) for one in preview.expected_hooks],
        "stale": list(preview.stale),
        "plan_digest": preview.digest,
    }


def _made(preview: Preview, project: str) -> list[Json]:
    """What a create makes; as Heat, a list in the place of what has a stack inside."""
    users = _users(preview)
    return [
        _resource(one, preview, project, users)
        if one.nested is None
        else _made(one.nested, project)
        for one in preview.resources
    ]


def _parameters(definition: StackDefinition) -> Json:
    """With the id that the stack will have, as clients know it."""
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
    project, by = project_of(request), identity_of(request).principal
    wanted = stack_request(await stack_body(request), existing=False, requested_by=by)
    await check_sinks(parts_of(request), project_of(request), wanted)
    preview, definition = await parts_of(request).engine.dry_run.create(project, wanted)
    url = show.stack_url(base_of(request), project, wanted.name, NO_ID)
    stack: responses.PreviewedStack = {
        **preview_document(preview, project, nested=True),
        "id": NO_ID,
        "stack_name": wanted.name,
        "links": [show.link(url)],
        "description": definition.description,
        "template_description": definition.description,
        "parameters": _parameters(definition),
        "capabilities": [],
        "notification_topics": [],
        "creation_time": None,
        "updated_time": None,
        "deletion_time": None,
        "disable_rollback": wanted.disable_rollback is not False,
        "timeout_mins": wanted.timeout_mins,
        "stack_owner": by.name,
        "parent": None,
        "stack_user_project_id": None,
        "tags": list(wanted.tags or []),
        "outputs": [_output(key, one) for key, one in definition.outputs.items()],
        "resources": _made(preview, project),
    }
    return answer(responses.OnePreviewedStack(stack=stack))


async def put(request: web.Request) -> web.Response:
    return await _update(request, existing=False)


async def patch(request: web.Request) -> web.Response:
    return await _update(request, existing=True)


async def _update(request: web.Request, *, existing: bool) -> web.Response:
    nested = query_flag(request, "show_nested")
    stack, project = await stack_of(request), project_of(request)
    wanted = stack_request(
        await stack_body(request), existing=existing, requested_by=identity_of(request).principal
    )
    await check_sinks(parts_of(request), project_of(request), wanted)
    preview = await parts_of(request).engine.dry_run.update(project, stack, wanted)
    return answer(preview_document(preview, project, nested=nested))


NESTED = {"show_nested": "true: include resources of nested stacks, with their paths"}
STACK_ROUTES = (
    Route("POST", "/v1/{project}/stacks/preview", costly(create), "What a create would do",
          "stacks", takes_body=True, response=responses.OnePreviewedStack, needs=Right.READ),
)  # fmt: skip
#: A preview of an update evaluates the caller's template with stored values, hidden ones included.
#: A template can reveal what it reads, so these routes need the right to update.
ROUTES = (
    Route("PUT", f"{S}/preview", costly(put), "What an update would do", "stacks", takes_body=True,
          query=NESTED, response=responses.Preview, needs=Right.WRITE),
    Route("PATCH", f"{S}/preview", costly(patch), "What an update from what it is would do",
          "stacks", takes_body=True, query=NESTED, response=responses.Preview, needs=Right.WRITE),
)  # fmt: skip
