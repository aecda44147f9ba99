"""Which API this is: the documents that clients look at first."""

import socket
from uuid import NAMESPACE_DNS, uuid5

from aiohttp import web

from engine.errors import NotFound
from engine.hot.versions import ALIASES, VERSIONS, template_functions
from engine.words import Json
from hub.api.addresses import base_of
from hub.api.orchestration import documents as gives
from hub.api.parts import Route, answer, parts_of
from hub.auth.roles import Right


async def root(request: web.Request) -> web.Response:
    return answer({"versions": [_version(request)]}, status=300)


async def version(request: web.Request) -> web.Response:
    return answer({"version": _version(request)})


def _version(request: web.Request) -> Json:
    """Its link leaves out the project, which some clients put behind it themselves."""
    link = {"rel": "self", "href": f"{base_of(request)}/"}
    return {"id": "v1.0", "status": "CURRENT", "links": [link]}


async def template_versions(_: web.Request) -> web.Response:
    aliases = {date: [name for name, of in ALIASES.items() if of == date] for date in VERSIONS}
    return answer(
        {
            "template_versions": [
                {"version": f"heat_template_version.{name}", "type": "hot", "aliases": also}
                for name, also in aliases.items()
            ]
        }
    )


async def functions(request: web.Request) -> web.Response:
    asked = request.match_info["version"]
    name = asked.removeprefix("heat_template_version.")
    if name not in VERSIONS and name not in ALIASES:
        raise NotFound(f"there is no template version {asked}", code="NotFound")
    conditions = ("equals", "not", "and", "or")
    wanted = request.query.get("with_condition_func", "").lower() == "true"
    return answer(
        {
            "template_functions": [
                {"functions": one, "description": ""}
                for one in template_functions(name)
                if wanted or one not in conditions
            ]
        }
    )


async def build_info(_: web.Request) -> web.Response:
    return answer({"api": {"revision": "headgate"}, "engine": {"revision": "headgate"}})


async def services(request: web.Request) -> web.Response:
    """One entry, for this program; there are no others that anybody would have to look after."""
    host = socket.gethostname()
    wrong = await parts_of(request).ready()
    entry = {
        "id": str(uuid5(NAMESPACE_DNS, host)),
        "host": host,
        "hostname": host,
        "binary": "headgate",
        "engine_id": str(uuid5(NAMESPACE_DNS, f"engine.{host}")),
        "topic": "engine",
        "status": "down" if wrong else "up",
        "report_interval": None,
        "created_at": None,
        "updated_at": None,
        "deleted_at": None,
    }
    return answer({"services": [entry]})


#: A version that there is not; versions other than numbers are other paths.
OTHER = r"/{version:v(?!1(?:\.0)?(?:/|$))[0-9][0-9.]*}"
ROUTES = (
    *(Route("GET", path, root, "Versions of the API", "versions", status=300, gives=gives.VERSIONS)
      for path in ("/versions", "/", "/v1", "/v1/", OTHER, OTHER + "/{rest:.*}")),
    *(Route("GET", path, version, "Version of the API, for a project", "versions",
            gives=gives.VERSION)
      for path in ("/v1/{project}", "/v1/{project}/")),
    Route("GET", "/v1/{project}/services", services, "What runs", "versions", gives=gives.SERVICES,
          needs=Right.OPERATE),
    Route("GET", "/v1/{project}/build_info", build_info, "What this server is", "versions",
          gives=gives.BUILD),
    Route("GET", "/v1/{project}/template_versions", template_versions, "Template versions",
          "templates", gives=gives.TEMPLATE_VERSIONS),
    Route("GET", "/v1/{project}/template_versions/{version}/functions", functions,
          "Functions of a template version", "templates", gives=gives.FUNCTIONS,
          query={"with_condition_func": "true: those of conditions too"}),
)  # fmt: skip
