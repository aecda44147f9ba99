"""The OpenAPI document at /openapi.json, generated from the routes and their types."""

import re
from collections.abc import Sequence
from functools import cache

from aiohttp import web
from typing_extensions import TypedDict

from engine.words import Json
from hub.api.error_middleware import Problem
from hub.api.openapi_components import Components, Document
from hub.api.routes import JSON, QueryParameter, Route, json_response

_PARAMETER = re.compile(r"\{(\w+)(?::[^}]*)?\}")
_FIXED = re.compile(r"\{rest:(\w+)\}")


class OpenApi(TypedDict):
    openapi: str
    info: Document
    paths: Document
    components: Document


def openapi(routes: Sequence[Route]) -> OpenApi:
    """An OpenAPI 3.1 document. The choices in the last segment of a path are listed separately."""
    components = Components()
    for route in routes:
        if route.response is not None:
            components.response(route.response)
        for kind in route.other_responses.values():
            components.response(kind)
        if route.body is not None:
            components.request(route.body)
    components.response(Problem)
    components.generate()
    paths: dict[str, dict[str, Json]] = {}
    for route in routes:
        path = plain_path(route.path)
        paths.setdefault(path, {})[route.method.lower()] = _operation(route, path, components)
    return {
        "openapi": "3.1.0",
        "info": {
            "title": "Headgate",
            "version": "1",
            "description": "The Orchestration API v1, and Headgate's own routes.",
            "license": {"name": "Apache-2.0", "identifier": "Apache-2.0"},
        },
        "paths": paths,
        "components": {"schemas": components.schemas},
    }


def plain_path(path: str) -> str:
    return _PARAMETER.sub(r"{\1}", _FIXED.sub(r"\1", path))


def _operation(route: Route, path: str, components: Components) -> dict[str, Json]:
    parameters: list[Json] = [
        {"name": name, "in": "path", "required": True, "schema": {"type": "string"}}
        for name in _PARAMETER.findall(path)
    ]
    parameters += [_query_parameter(name, one) for name, one in route.query.items()]
    operation: dict[str, Json] = {
        "summary": route.summary,
        "tags": [route.tag],
        "parameters": parameters,
        "responses": _responses(route, components),
    }
    if route.takes_body:
        schema: Json = {"type": "object"}
        if route.body is not None:
            schema = components.schema(route.body, "validation")
        operation["requestBody"] = {"content": {"application/json": {"schema": schema}}}
    return operation


def _query_parameter(name: str, one: str | QueryParameter) -> Json:
    parameter = QueryParameter(one) if isinstance(one, str) else one
    documented = {
        "name": name,
        "in": "query",
        "description": parameter.description,
        "schema": parameter.schema,
    }
    return documented | ({"required": True} if parameter.required else {})


def _responses(route: Route, components: Components) -> dict[str, Json]:
    documented: dict[str, Json] = {str(route.status): {"description": route.summary}}
    if route.content_type not in (JSON, ""):
        documented[str(route.status)]["content"] = {route.content_type: {}}
    elif route.response is not None:
        documented[str(route.status)] |= _content(route.response, components)
    for status, kind in route.other_responses.items():
        documented[str(status)] = {"description": route.summary} | _content(kind, components)
    error: dict[str, Json] = {"description": "The error: its place, the reason and the remedy."}
    error |= _content(Problem, components)
    if route.error_page:
        error["content"]["text/html"] = {}
    return documented | {"default": error}


def _content(kind: object, components: Components) -> dict[str, Json]:
    return {"content": {JSON: {"schema": components.schema(kind, "serialization")}}}


def openapi_route(routes: Sequence[Route]) -> Route:
    """The route of the document, which contains itself. The document is generated once, at the
    first request."""

    async def show(_: web.Request) -> web.Response:
        return json_response(document())

    @cache
    def document() -> OpenApi:
        return openapi((*routes, route))

    route = Route("GET", "/openapi.json", show, "This document", "health", response=OpenApi)
    return route
