"""What a stack consists of: its template, environment, files and outputs."""

from collections.abc import Collection, Mapping

from aiohttp import web

from engine.errors import NotFound, nearest
from engine.hot.environment.merging import VALUES
from engine.hot.expressions.masking import MASK
from engine.store.records import TemplateRecord
from engine.words import Json
from hub.api.openapi_components import Document
from hub.api.orchestration import responses, show
from hub.api.orchestration.stacks import S
from hub.api.parts import Route, answer, parts_of, stack_of


async def template(request: web.Request) -> web.Response:
    stack = await stack_of(request)
    return answer((await parts_of(request).engine.reads.template(stack)).template)


async def environment(request: web.Request) -> web.Response:
    stack = await stack_of(request)
    return answer(shown_environment(await parts_of(request).engine.reads.template(stack)))


def shown_environment(stored: TemplateRecord) -> dict[str, Json]:
    """With all parameters as given, hidden ones masked."""
    given = {**(stored.environment.get("parameters") or {}), **stored.parameters}
    return masked_environment({**stored.environment, "parameters": given}, stored.hidden)


def masked_environment(document: Mapping[str, Json], hidden: Collection[str]) -> dict[str, Json]:
    """Hidden values as ``******``; which of them only the environment hides is not said."""
    shown = {name: value for name, value in document.items() if name != "encrypted_param_names"}
    for section in VALUES:
        given: Mapping[str, Json] = document.get(section) or {}
        shown[section] = {name: MASK if name in hidden else one for name, one in given.items()}
    return shown


async def files(request: web.Request) -> web.Response:
    stack = await stack_of(request)
    return answer((await parts_of(request).engine.reads.template(stack)).files)


async def outputs(request: web.Request) -> web.Response:
    stack = await stack_of(request)
    found = await parts_of(request).engine.reads.outputs(stack)
    keys: list[responses.OutputName] = [
        {"output_key": one.key, "description": one.description} for one in found
    ]
    return answer(responses.Outputs(outputs=keys))


async def output(request: web.Request) -> web.Response:
    stack, key = await stack_of(request), request.match_info["key"]
    found = await parts_of(request).engine.reads.outputs(stack)
    for one in found:
        if one.key == key:
            return answer(responses.OneOutput(output=show.output(one)))
    near = nearest(key, [one.key for one in found])
    raise NotFound(f"Specified output key {key} not found.", remedy=near, code="NotFound")


ROUTES = (
    Route("GET", f"{S}/template", template, "The template", "stacks", response=Document),
    Route("GET", f"{S}/environment", environment, "The environment", "stacks", response=Document),
    Route("GET", f"{S}/files", files, "Files that came with the template", "stacks",
          response=dict[str, str]),
    Route("GET", f"{S}/outputs", outputs, "Names of the outputs", "stacks",
          response=responses.Outputs),
    Route("GET", f"{S}/outputs/{{key}}", output, "An output with its value", "stacks",
          response=responses.OneOutput),
)  # fmt: skip
