"""The JSON Schema of HOT templates, for editors."""

from aiohttp import web

from engine.hot.template.json_schema import template_json_schema
from hub.api.app_context import context_of
from hub.api.cells import in_first_cell
from hub.api.openapi_components import Document
from hub.api.routes import Route, json_response


async def show_hot(request: web.Request) -> web.Response:
    return json_response(template_json_schema(context_of(request).engine.reads.types))


ROUTES = (
    Route("GET", "/schemas/hot.json", in_first_cell(show_hot),
          "The JSON Schema of HOT templates", "templates",
          response=Document),
)  # fmt: skip
