"""Snapshots of a stack, and going back to one."""

from uuid import UUID

from aiohttp import web

from engine.store.records import StackRecord
from engine.store.snapshots import SnapshotRecord
from engine.words import Json
from hub.api.costly_requests import costly
from hub.api.orchestration import responses, show
from hub.api.orchestration.stack_parts import shown_environment
from hub.api.orchestration.stacks import S
from hub.api.parts import (
    Route,
    answer,
    body_of,
    identity_of,
    invalid,
    parts_of,
    project_of,
    stack_of,
    uuid_of,
)

ONE = f"{S}/snapshots/{{snapshot}}"
LONGEST_NAME = 255


async def _document(
    request: web.Request, stack: StackRecord, one: SnapshotRecord
) -> responses.Snapshot:
    stored = await parts_of(request).engine.reads.version(stack, one.version)
    return {
        "id": str(one.id),
        "name": one.name,
        "action": "CREATE",
        "status": one.status,
        "status_reason": None if one.status == "IN_PROGRESS" else one.reason,
        "creation_time": show.time(one.created_at),
        "data": {
            "name": stack.name,
            "id": str(stack.id),
            "action": "SNAPSHOT",
            "status": one.status,
            "project_id": stack.project,
            "stack_user_project_id": stack.project,
            "tags": stack.tags,
            "template": stored.template,
            "environment": shown_environment(stored),
            "files": stored.files,
            "resources": {name: _shown(kept) for name, kept in one.resources.items()},
        },
    }


def _shown(kept: Json) -> Json:
    """What a resource kept is the type's own, and is shown to nobody."""
    hidden = ("properties", "resource_data")
    return {key: value for key, value in kept.items() if key not in hidden} | {"resource_data": {}}


def _asked(request: web.Request) -> UUID:
    return uuid_of(request.match_info["snapshot"], "snapshot", "SnapshotNotFound")


async def create(request: web.Request) -> web.Response:
    stack = await stack_of(request)
    name = (await body_of(request)).get("name")
    if name is not None and not (isinstance(name, str) and len(name) <= LONGEST_NAME):
        reason = f"must be a string of at most {LONGEST_NAME} characters"
        raise invalid("name", reason, "Send such a text, or leave it out.")
    made = await parts_of(request).engine.snapshots.create(
        project_of(request), stack.id, name or "", identity_of(request).principal
    )
    return answer(await _document(request, stack, made))


async def listed(request: web.Request) -> web.Response:
    stack = await stack_of(request)
    found = await parts_of(request).engine.snapshots.all(stack)
    return answer(
        responses.Snapshots(snapshots=[await _document(request, stack, one) for one in found])
    )


async def shown(request: web.Request) -> web.Response:
    stack = await stack_of(request)
    found = await parts_of(request).engine.snapshots.one(stack, _asked(request))
    return answer(responses.OneSnapshot(snapshot=await _document(request, stack, found)))


async def delete(request: web.Request) -> web.Response:
    stack = await stack_of(request)
    await parts_of(request).engine.snapshots.delete(project_of(request), stack.id, _asked(request))
    return web.Response(status=204)


async def restore(request: web.Request) -> web.Response:
    stack, by = await stack_of(request), identity_of(request).principal
    await parts_of(request).engine.snapshots.restore(
        project_of(request), stack.id, _asked(request), by
    )
    return answer({}, 202)


ROUTES = (
    Route("POST", f"{S}/snapshots", create, "Make a snapshot", "snapshots", takes_body=True,
          response=responses.Snapshot),
    Route("GET", f"{S}/snapshots", listed, "List snapshots", "snapshots",
          response=responses.Snapshots),
    Route("GET", ONE, shown, "Show a snapshot", "snapshots", response=responses.OneSnapshot),
    Route("DELETE", ONE, delete, "Delete a snapshot", "snapshots", status=204),
    Route("POST", f"{ONE}/restore", costly(restore), "Go back to a snapshot", "snapshots",
          status=202, response=responses.Empty),
)  # fmt: skip
