"""/openapi.json: written from the routes themselves, so that it cannot say otherwise."""

import re
from collections.abc import Sequence

from aiohttp import web

from channels.schemas.words import MAP, TEXT, fields
from engine.words import Json
from hub.api.parts import JSON, Route, answer
from hub.api.problems import PROBLEM
from hub.api.shapes import Shapes

_PARAMETER = re.compile(r"\{(\w+)(?::[^}]*)?\}")
_FIXED = re.compile(r"\{rest:(\w+)\}")


def openapi(routes: Sequence[Route]) -> dict[str, Json]:
    """An OpenAPI 3.1 document. Paths that differ only in their last word are all there."""
    paths: dict[str, dict[str, Json]] = {}
    shapes = Shapes()
    for route in routes:
        path = plain_path(route.path)
        paths.setdefault(path, {})[route.method.lower()] = _operation(route, path, shapes)
    return {
        "openapi": "3.1.0",
        "info": {
            "title": "Headgate",
            "version": "1",
            "description": "The Orchestration API v1, and Headgate's own routes beside it.",
            "license": {"name": "Apache-2.0", "identifier": "Apache-2.0"},
        },
        "paths": paths,
        "components": {"schemas": shapes.schemas},
    }


def plain_path(path: str) -> str:
    return _PARAMETER.sub(r"{\1}", _FIXED.sub(r"\1", path))


def _operation(route: Route, path: str, shapes: Shapes) -> dict[str, Json]:
    parameters: list[Json] = [
        {"name": name, "in": "path", "required": True, "schema": {"type": "string"}}
        for name in _PARAMETER.findall(path)
    ]
    parameters += [
        {"name": name, "in": "query", "description": meaning, "schema": {"type": "string"}}
        for name, meaning in route.query.items()
    ]
    operation: dict[str, Json] = {
        "summary": route.summary,
        "tags": [route.tag],
        "parameters": parameters,
        "responses": _responses(route, shapes),
    }
    if route.takes_body:
        schema: Json = {"type": "object"}
        if route.body is not None:
            schema = shapes.of_model(route.body)
        operation["requestBody"] = {"content": {"application/json": {"schema": schema}}}
    return operation


def _responses(route: Route, shapes: Shapes) -> dict[str, Json]:
    found: dict[str, Json] = {str(route.status): {"description": route.summary}}
    if route.answer != JSON:
        found[str(route.status)]["content"] = {route.answer: {}}
    elif route.gives is not None:
        found[str(route.status)] |= _content(route.gives, shapes)
    for status, gives in route.also.items():
        found[str(status)] = {"description": route.summary} | _content(gives, shapes)
    wrong = {"description": "What is wrong, where, and the remedy."}
    return found | {"default": wrong | _content(PROBLEM, shapes)}


def _content(gives: Json, shapes: Shapes) -> dict[str, Json]:
    return {"content": {JSON: {"schema": shapes.plain(gives)}}}


def openapi_route(routes: Sequence[Route]) -> Route:
    """The route of the document, which describes itself, too."""

    async def show(_: web.Request) -> web.Response:
        return answer(openapi((*routes, route)))

    gives = fields({"openapi": TEXT, "info": MAP, "paths": MAP, "components": MAP})
    route = Route("GET", "/openapi.json", show, "This document", "health", gives=gives)
    return route
