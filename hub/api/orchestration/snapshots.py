"""Snapshots of a stack: create, show, restore and delete."""

from uuid import UUID

from aiohttp import web

from engine.missing_objects import no_snapshot
from engine.store.records import StackRecord
from engine.store.stacks.snapshots import SnapshotRecord
from engine.words import Json
from hub.api.app_context import context_of, identity_of, project_of
from hub.api.costly_requests import costly
from hub.api.orchestration import documents, responses
from hub.api.orchestration.stacks import S
from hub.api.request_validation import body_of, invalid, stack_of, uuid_of
from hub.api.routes import Route, json_response
from hub.api.stack_changes import changes_stack

SNAPSHOT = f"{S}/snapshots/{{snapshot}}"
MAX_NAME = 255


async def _document(
    request: web.Request, stack: StackRecord, snapshot: SnapshotRecord
) -> responses.Snapshot:
    stored = await context_of(request).engine.reads.version(stack, snapshot.version)
    return {
        "id": str(snapshot.id),
        "name": snapshot.name,
        "action": "CREATE",
        "status": snapshot.status,
        "status_reason": None if snapshot.status == "IN_PROGRESS" else snapshot.reason,
        "creation_time": documents.time(snapshot.created_at),
        "data": {
            "name": stack.name,
            "id": str(stack.id),
            "action": "SNAPSHOT",
            "status": snapshot.status,
            "project_id": stack.project,
            "stack_user_project_id": stack.project,
            "tags": stack.tags,
            "template": stored.template,
            "environment": documents.environment(stored),
            "files": stored.files,
            "resources": {name: _resource(state) for name, state in snapshot.resources.items()},
        },
    }


def _resource(state: Json) -> Json:
    """Without the data that the resource type saved, which is not public."""
    hidden = ("properties", "resource_data")
    return {key: value for key, value in state.items() if key not in hidden} | {"resource_data": {}}


def _snapshot_id(request: web.Request) -> UUID:
    return uuid_of(request.match_info["snapshot"], no_snapshot)


async def create(request: web.Request) -> web.Response:
    stack = await stack_of(request)
    name = (await body_of(request)).get("name")
    if name is not None and not (isinstance(name, str) and len(name) <= MAX_NAME):
        reason = f"must be a string of at most {MAX_NAME} characters"
        raise invalid("name", reason, "Send such a text, or leave it out.")
    who = identity_of(request)
    snapshot = await context_of(request).engine.snapshots.create(
        project_of(request), stack.id, name or "", who.principal, credential=who.credential
    )
    return json_response(await _document(request, stack, snapshot))


async def list_snapshots(request: web.Request) -> web.Response:
    stack = await stack_of(request)
    snapshots = await context_of(request).engine.snapshots.read_all(stack)
    return json_response(
        responses.Snapshots(snapshots=[await _document(request, stack, one) for one in snapshots])
    )


async def show(request: web.Request) -> web.Response:
    stack = await stack_of(request)
    snapshot = await context_of(request).engine.snapshots.read(stack, _snapshot_id(request))
    return json_response(responses.OneSnapshot(snapshot=await _document(request, stack, snapshot)))


async def delete(request: web.Request) -> web.Response:
    stack = await stack_of(request)
    await context_of(request).engine.snapshots.delete(
        project_of(request), stack.id, _snapshot_id(request)
    )
    return web.Response(status=204)


async def restore(request: web.Request) -> web.Response:
    stack, who = await stack_of(request), identity_of(request)
    await context_of(request).engine.snapshots.restore(
        project_of(request),
        stack.id,
        _snapshot_id(request),
        who.principal,
        credential=who.credential,
    )
    return json_response({}, 202)


ROUTES = (
    Route("POST", f"{S}/snapshots", changes_stack(create), "Create a snapshot", "snapshots",
          takes_body=True, response=responses.Snapshot),
    Route("GET", f"{S}/snapshots", list_snapshots, "List snapshots", "snapshots",
          response=responses.Snapshots),
    Route("GET", SNAPSHOT, show, "Show a snapshot", "snapshots", response=responses.OneSnapshot),
    Route("DELETE", SNAPSHOT, delete, "Delete a snapshot", "snapshots", status=204),
    Route("POST", f"{SNAPSHOT}/restore", costly(restore), "Restore a snapshot", "snapshots",
          status=202, response=responses.Empty),
)  # fmt: skip
