"""Versions of the API, the build of the server, and its processes."""

from collections.abc import Sequence
from dataclasses import replace
from datetime import UTC, datetime
from importlib.metadata import version as installed
from uuid import UUID, uuid5

from aiohttp import web

from engine.errors import Unavailable
from engine.store.maintenance.processes import ProcessRecord
from hub.api.app_context import context_of, identity_of
from hub.api.orchestration import responses
from hub.api.routes import Route, base_of, json_response
from hub.auth.roles import Right

#: Namespace of the IDs of services that stand for all processes of a role.
_ANY_HOST = UUID("c1f0a1de-54f6-4f0c-8a6a-0d8b8c8c2f1e")


async def list_versions(request: web.Request) -> web.Response:
    return json_response(responses.ApiVersions(versions=[_version(request)]), status=300)


async def show_version(request: web.Request) -> web.Response:
    return json_response(responses.OneApiVersion(version=_version(request)))


def _version(request: web.Request) -> responses.ApiVersion:
    """Its link has no project, because clients append it."""
    link: responses.Link = {"rel": "self", "href": f"{base_of(request)}/"}
    return {"id": "v1.0", "status": "CURRENT", "links": [link]}


async def show_build_info(_: web.Request) -> web.Response:
    revision: responses.Revision = {"revision": installed("headgate")}
    return json_response(responses.BuildInfo(api=revision, engine=revision))


async def list_services(request: web.Request) -> web.Response:
    """A service for each role of each process; for an operator of one project, a service for each
    role, without hosts. Raises Unavailable if no process has the role engine."""
    processes = await context_of(request).engine.reads.processes()
    if not any(one.up and "engine" in one.roles for one in processes):
        raise Unavailable(
            "All heat engines are down.",
            remedy="Start one with `headgate serve --role engine`.",
        )
    roles = [(one, role) for one in processes for role in one.roles]
    if identity_of(request).everywhere:
        services = [_service(one, role) for one, role in roles]
        return json_response(responses.Services(services=services))
    by_role: dict[str, list[ProcessRecord]] = {}
    for one, role in roles:
        by_role.setdefault(role, []).append(one)
    services = [_role(role, of) for role, of in sorted(by_role.items())]
    return json_response(responses.Services(services=services))


def _service(process: ProcessRecord, role: str) -> responses.Service:
    return {
        "id": str(uuid5(process.id, role)),
        "host": process.host,
        "hostname": process.host,
        "binary": f"headgate-{role}",
        "engine_id": str(process.id),
        "topic": role,
        "status": "up" if process.up else "down",
        "version": process.version,
        "report_interval": round(process.report_interval.total_seconds()),
        "created_at": _time(process.started_at),
        "updated_at": _time(process.seen_at),
        "deleted_at": None,
        "labels": [one for one in process.labels if one] if role == "engine" else [],
    }


def _role(role: str, processes: Sequence[ProcessRecord]) -> responses.Service:
    """All processes of a role as one service, which is up if any of them is."""
    combined = replace(
        max(processes, key=lambda one: (one.up, one.seen_at)),
        id=uuid5(_ANY_HOST, role),
        host="headgate",
        started_at=min(one.started_at for one in processes),
        labels=sorted({label for one in processes for label in one.labels}),
    )
    return _service(combined, role)


def _time(at: datetime) -> str:
    """In UTC with fractions, the format of Heat in this list."""
    return at.astimezone(UTC).strftime("%Y-%m-%dT%H:%M:%S.%f")


#: A version other than 1.
OTHER = r"/{version:v(?!1(?:\.0)?(?:/|$))[0-9][0-9.]*}"
ROUTES = (
    *(Route("GET", path, list_versions, "Versions of the API", "versions", status=300,
            response=responses.ApiVersions)
      for path in ("/versions", "/v1", "/v1/", OTHER, OTHER + "/{rest:.*}")),
    # Clients request these before they authenticate.
    *(Route("GET", path, show_version, "Version of the API, for a project", "versions",
            response=responses.OneApiVersion, needs=Right.NOTHING)
      for path in ("/v1/{project}", "/v1/{project}/")),
    Route("GET", "/v1/{project}/services", list_services, "Processes and their roles", "versions",
          response=responses.Services,
          needs=Right.OPERATE),
    Route("GET", "/v1/{project}/build_info", show_build_info, "The version of this server",
          "versions", response=responses.BuildInfo),
)  # fmt: skip
