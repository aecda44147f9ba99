"""Versions of the language that templates may be written in, and the functions of each."""

from aiohttp import web

from engine.errors import NotFound, nearest
from engine.hot.language.dialect import DIALECTS, HOT
from engine.hot.language.versions import ALIASES, VERSIONS, known_versions, template_functions
from hub.api.orchestration import responses
from hub.api.orchestration.functions import DESCRIPTIONS
from hub.api.parts import Route, answer, query_flag

#: Those that only decide something; they are functions of conditions.
CONDITIONS = ("equals", "not", "and", "or", "Fn::Equals", "Fn::Not", "Fn::And", "Fn::Or")


async def versions(_: web.Request) -> web.Response:
    return answer(
        responses.SupportedTemplateVersions(
            template_versions=[
                {
                    "version": f"{version.dialect.version}.{date}",
                    "type": "hot" if version.dialect is HOT else "cfn",
                    "aliases": [
                        f"{HOT.version}.{one}" for one, of in ALIASES.items() if of == date
                    ],
                }
                for date, version in VERSIONS.items()
            ]
        )
    )


async def functions(request: web.Request) -> web.Response:
    asked = request.match_info["version"]
    key, _, name = (asked if "." in asked else f"{HOT.version}.{asked}").partition(".")
    if name not in known_versions(key):
        reason = f"Template with version {asked} not found"
        near = nearest(name, known_versions(key)) or nearest(key, [*DIALECTS])
        raise NotFound(reason, remedy=near, code="NotFound")
    wanted = query_flag(request, "with_condition_func")
    return answer(
        responses.TemplateFunctions(
            template_functions=[
                {"functions": one, "description": DESCRIPTIONS.get(one, "")}
                for one in template_functions(name)
                if wanted or one not in CONDITIONS
            ]
        )
    )


ROUTES = (
    Route("GET", "/v1/{project}/template_versions", versions, "Template versions", "templates",
          response=responses.SupportedTemplateVersions),
    Route("GET", "/v1/{project}/template_versions/{version}/functions", functions,
          "Functions of a template version", "templates", response=responses.TemplateFunctions,
          query={"with_condition_func": "true: those of conditions too"}),
)  # fmt: skip
