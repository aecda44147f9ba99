"""What a create or an update would do, in the form of the Orchestration API and a little more."""

from collections.abc import Mapping

from aiohttp import web

from engine.hooks.rule import Rule
from engine.plan.predict import Stop
from engine.service.prediction import KINDS, Preview, Previewed
from engine.words import Json
from hub.api.addresses import base_of
from hub.api.orchestration import documents as gives
from hub.api.orchestration import show
from hub.api.orchestration.bodies import stack_body
from hub.api.orchestration.requests import stack_request
from hub.api.orchestration.sinks import check_sinks
from hub.api.orchestration.stacks import S
from hub.api.parts import Route, answer, identity_of, parts_of, project_of, stack_of
from hub.auth.roles import Right

#: The id of a stack that is not there, as clients know it.
NO_ID = "None"


def _resource(one: Previewed, project: str, stack_name: str, stack_id: str) -> dict[str, Json]:
    identity = {"tenant": project, "stack_name": stack_name, "stack_id": stack_id}
    return {
        "resource_name": one.name,
        "resource_type": one.type,
        "physical_resource_id": one.physical_id or "",
        "resource_action": "INIT" if one.kind == "added" else "CREATE",
        "resource_status": "COMPLETE",
        "resource_status_reason": "",
        "resource_identity": identity | {"path": f"/resources/{one.name}"},
        "stack_identity": identity | {"path": ""},
        "stack_name": stack_name,
        "creation_time": None,
        "updated_time": None,
        "description": "",
        "metadata": {},
        "attributes": {},
        "required_by": [],
        "changes": dict(one.changes),
        "unknown": list(one.unknown),
        "certain": one.certain,
        "denied": one.denied,
    }


def _stop(one: Stop) -> dict[str, Json]:
    """answer_by: who would have to answer."""
    timeout = one.rule.timeout.total_seconds() if one.rule.timeout else None
    return {
        "resource_name": one.name or None,
        "path": one.name,
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
    return [*people, "but not who asks for the change"] if rule.exclude else people


def preview_document(
    preview: Preview, project: str, stack_name: str, stack_id: str
) -> dict[str, Json]:
    """resource_changes as clients know them; stops, stale and plan_digest are ours."""
    users: dict[str, list[str]] = {}
    for one in preview.resources:
        for name in one.requires:
            users.setdefault(name, []).append(one.name)
    changes: dict[str, list[Json]] = {kind: [] for kind in dict.fromkeys(KINDS.values())}
    for one in preview.resources:
        shown = _resource(one, project, stack_name, stack_id)
        changes[one.kind].append(shown | {"required_by": users.get(one.name, [])})
    return {
        "resource_changes": changes,
        "stops": [_stop(one) for one in preview.stops],
        "stale": list(preview.stale),
        "plan_digest": preview.digest,
    }


async def create(request: web.Request) -> web.Response:
    project, by = project_of(request), identity_of(request).name
    wanted = stack_request(await stack_body(request), existing=False, requested_by=by)
    await check_sinks(parts_of(request), project_of(request), wanted)
    preview, definition = await parts_of(request).engine.previews.create(project, wanted)
    document = preview_document(preview, project, wanted.name, NO_ID)
    url = show.stack_url(base_of(request), project, wanted.name, NO_ID)
    added: list[Mapping[str, Json]] = document["resource_changes"]["added"]
    stack = {
        "id": NO_ID,
        "stack_name": wanted.name,
        "links": [show.link(url)],
        "description": definition.description,
        "template_description": definition.description,
        "parameters": definition.shown_parameters(),
        "capabilities": [],
        "notification_topics": [],
        "creation_time": None,
        "updated_time": None,
        "deletion_time": None,
        "disable_rollback": wanted.disable_rollback is not False,
        "timeout_mins": wanted.timeout_mins,
        "stack_owner": by,
        "parent": None,
        "stack_user_project_id": None,
        "tags": list(wanted.tags or []),
        "outputs": [
            {"output_key": key, "description": one.description, "output_value": None}
            for key, one in definition.outputs.items()
        ],
        "resources": added,
    }
    own = {key: document[key] for key in ("stops", "stale", "plan_digest")}
    return answer({"stack": stack | own})


async def put(request: web.Request) -> web.Response:
    return await _update(request, existing=False)


async def patch(request: web.Request) -> web.Response:
    return await _update(request, existing=True)


async def _update(request: web.Request, *, existing: bool) -> web.Response:
    stack, project = await stack_of(request), project_of(request)
    wanted = stack_request(
        await stack_body(request), existing=existing, requested_by=identity_of(request).name
    )
    await check_sinks(parts_of(request), project_of(request), wanted)
    preview = await parts_of(request).engine.previews.update(project, stack, wanted)
    return answer(preview_document(preview, project, stack.name, str(stack.id)))


STACK_ROUTES = (
    Route("POST", "/v1/{project}/stacks/preview", create, "What a create would do", "stacks",
          takes_body=True, gives=gives.THOUGHT_OF, needs=Right.READ),
)  # fmt: skip
ROUTES = (
    Route("PUT", f"{S}/preview", put, "What an update would do", "stacks", takes_body=True,
          gives=gives.PREVIEW, needs=Right.READ),
    Route("PATCH", f"{S}/preview", patch, "What an update from what it is would do", "stacks",
          takes_body=True, gives=gives.PREVIEW, needs=Right.READ),
)  # fmt: skip
