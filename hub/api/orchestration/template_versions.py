"""Versions of the language that templates may be written in, and the functions of each."""

from aiohttp import web

from engine.errors import NotFound, nearest
from engine.hot.versions import ALIASES, VERSIONS, template_functions, template_versions
from hub.api.orchestration import documents as gives
from hub.api.orchestration.functions import DESCRIPTIONS
from hub.api.parts import Route, answer, query_flag

KEY = "heat_template_version"
#: Those that only decide something; they are functions of conditions.
CONDITIONS = ("equals", "not", "and", "or")


async def versions(_: web.Request) -> web.Response:
    aliases = {date: [name for name, of in ALIASES.items() if of == date] for date in VERSIONS}
    return answer(
        {
            "template_versions": [
                {
                    "version": f"{KEY}.{name}",
                    "type": "hot",
                    "aliases": [f"{KEY}.{one}" for one in also],
                }
                for name, also in aliases.items()
            ]
        }
    )


async def functions(request: web.Request) -> web.Response:
    asked = request.match_info["version"]
    name, known = asked.removeprefix(f"{KEY}."), template_versions()
    if name not in known:
        reason = f"Template with version {asked} not found"
        raise NotFound(reason, remedy=nearest(name, known), code="NotFound")
    wanted = query_flag(request, "with_condition_func")
    return answer(
        {
            "template_functions": [
                {"functions": one, "description": DESCRIPTIONS.get(one, "")}
                for one in template_functions(name)
                if wanted or one not in CONDITIONS
            ]
        }
    )


ROUTES = (
    Route("GET", "/v1/{project}/template_versions", versions, "Template versions", "templates",
          gives=gives.TEMPLATE_VERSIONS),
    Route("GET", "/v1/{project}/template_versions/{version}/functions", functions,
          "Functions of a template version", "templates", gives=gives.FUNCTIONS,
          query={"with_condition_func": "true: those of conditions too"}),
)  # fmt: skip
