"""Which API this is, and what runs behind it: the documents that clients look at first."""

from collections.abc import Sequence
from dataclasses import replace
from datetime import UTC, datetime
from importlib.metadata import version as installed
from uuid import UUID, uuid5

from aiohttp import web

from engine.errors import Unavailable
from engine.store.processes import ProcessRecord
from hub.api.addresses import base_of
from hub.api.orchestration import responses
from hub.api.parts import Route, answer, identity_of, parts_of
from hub.auth.roles import Right

#: Ids of services that stand for all hosts are made from it.
_ANY_HOST = UUID("c1f0a1de-54f6-4f0c-8a6a-0d8b8c8c2f1e")


async def root(request: web.Request) -> web.Response:
    return answer(responses.ApiVersions(versions=[_version(request)]), status=300)


async def version(request: web.Request) -> web.Response:
    return answer(responses.OneApiVersion(version=_version(request)))


def _version(request: web.Request) -> responses.ApiVersion:
    """Its link leaves out the project, which some clients put behind it themselves."""
    link: responses.Link = {"rel": "self", "href": f"{base_of(request)}/"}
    return {"id": "v1.0", "status": "CURRENT", "links": [link]}


async def build_info(_: web.Request) -> web.Response:
    revision: responses.Revision = {"revision": installed("headgate")}
    return answer(responses.BuildInfo(api=revision, engine=revision))


async def services(request: web.Request) -> web.Response:
    """A service for each role of each process; to those who are operators of one project, one for
    each role, without hosts. Raises Unavailable when no engine is at work."""
    found = await parts_of(request).engine.reads.processes()
    if not any(one.up and "engine" in one.roles for one in found):
        raise Unavailable(
            "All heat engines are down.",
            remedy="Start one with `headgate serve --role engine`.",
        )
    all_of_them = [(one, role) for one in found for role in one.roles]
    if identity_of(request).everywhere:
        return answer(
            responses.Services(services=[_service(one, role) for one, role in all_of_them])
        )
    by_role: dict[str, list[ProcessRecord]] = {}
    for one, role in all_of_them:
        by_role.setdefault(role, []).append(one)
    shown = [_role(role, of) for role, of in sorted(by_role.items())]
    return answer(responses.Services(services=shown))


def _service(one: ProcessRecord, role: str) -> responses.Service:
    return {
        "id": str(uuid5(one.id, role)),
        "host": one.host,
        "hostname": one.host,
        "binary": f"headgate-{role}",
        "engine_id": str(one.id),
        "topic": role,
        "status": "up" if one.up else "down",
        "report_interval": round(one.report_interval.total_seconds()),
        "created_at": _moment(one.started_at),
        "updated_at": _moment(one.seen_at),
        "deleted_at": None,
    }


def _role(role: str, processes: Sequence[ProcessRecord]) -> responses.Service:
    """All processes of a role as one service, which is up when any of them is."""
    together = replace(
        max(processes, key=lambda one: (one.up, one.seen_at)),
        id=uuid5(_ANY_HOST, role),
        host="headgate",
        started_at=min(one.started_at for one in processes),
    )
    return _service(together, role)


def _moment(at: datetime) -> str:
    """In UTC, with its fractions, as this list alone has it."""
    return at.astimezone(UTC).strftime("%Y-%m-%dT%H:%M:%S.%f")


#: A version that there is not; versions other than numbers are other paths.
OTHER = r"/{version:v(?!1(?:\.0)?(?:/|$))[0-9][0-9.]*}"
ROUTES = (
    *(Route("GET", path, root, "Versions of the API", "versions", status=300,
            response=responses.ApiVersions)
      for path in ("/versions", "/v1", "/v1/", OTHER, OTHER + "/{rest:.*}")),
    # Clients ask for these before they say who they are.
    *(Route("GET", path, version, "Version of the API, for a project", "versions",
            response=responses.OneApiVersion, needs=Right.NOTHING)
      for path in ("/v1/{project}", "/v1/{project}/")),
    Route("GET", "/v1/{project}/services", services, "What runs", "versions",
          response=responses.Services,
          needs=Right.OPERATE),
    Route("GET", "/v1/{project}/build_info", build_info, "What this server is", "versions",
          response=responses.BuildInfo),
)  # fmt: skip
