"""/openapi.json: written from the routes themselves, so that it cannot say otherwise."""

import re
from collections.abc import Sequence

from aiohttp import web

from engine.words import Json
from hub.api.parts import Route, answer

_PARAMETER = re.compile(r"\{(\w+)(?::[^}]*)?\}")
_FIXED = re.compile(r"\{rest:(\w+)\}")


def openapi(routes: Sequence[Route]) -> dict[str, Json]:
    """An OpenAPI 3.1 document. Paths that differ only in their last word are all there."""
    paths: dict[str, dict[str, Json]] = {}
    for route in routes:
        path = plain_path(route.path)
        paths.setdefault(path, {})[route.method.lower()] = _operation(route, path)
    return {
        "openapi": "3.1.0",
        "info": {
            "title": "Headgate",
            "version": "1",
            "description": "The Orchestration API v1, and Headgate's own routes beside it.",
            "license": {"name": "Apache-2.0", "identifier": "Apache-2.0"},
        },
        "paths": paths,
    }


def plain_path(path: str) -> str:
    return _PARAMETER.sub(r"{\1}", _FIXED.sub(r"\1", path))


def _operation(route: Route, path: str) -> dict[str, Json]:
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
        "responses": {
            str(route.status): _answer(route),
            "default": {"description": "What is wrong, where, and the remedy."},
        },
    }
    if route.takes_body:
        schema: Json = {"type": "object"}
        if route.body is not None:
            schema = route.body.model_json_schema()
        operation["requestBody"] = {"content": {"application/json": {"schema": schema}}}
    return operation


def _answer(route: Route) -> dict[str, Json]:
    if route.status in (204, 302):
        return {"description": route.summary}
    return {"description": route.summary, "content": {route.answer: {}}}


def openapi_route(routes: Sequence[Route]) -> Route:
    """The route of the document, which describes itself, too."""

    async def show(_: web.Request) -> web.Response:
        return answer(openapi((*routes, route)))

    route = Route("GET", "/openapi.json", show, "This document", "health")
    return route
