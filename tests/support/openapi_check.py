"""Records the responses of a server, and checks them against the server's /openapi.json."""

import json
import re
from collections import defaultdict
from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Any

import aiohttp
import jsonschema_rs
from yarl import URL

from tests.support.program import Http, Json

JSON = "application/json"


@dataclass(frozen=True)
class RecordedResponse:
    """body: the parsed document if the response is JSON."""

    method: str
    path: str
    status: int
    kind: str
    body: Json


class RecordingClient(Http):
    """A client that records all responses and follows redirects."""

    def __init__(self, session: aiohttp.ClientSession, url: str, project: str = "p") -> None:
        super().__init__(session, url, project)
        self.responses: list[RecordedResponse] = []

    async def call(
        self, method: str, path: str, body: Json = None, **kwargs: Any
    ) -> tuple[int, Json]:
        if body is not None:
            kwargs["json"] = body
        kwargs.setdefault("allow_redirects", False)
        below = path[1:] if path.startswith("//") else f"/v1/{self.project}{path}"
        url = URL(self.url + below, encoded=True)
        async with self.session.request(method, url, **kwargs) as http_response:
            document = None
            if http_response.content_type == JSON:
                document = await http_response.json()
            elif http_response.content_type != "text/event-stream":  # an event stream does not end
                document = await http_response.text()
            self.record(method, http_response, document)
            if http_response.status == 302:
                there = http_response.headers["Location"].removeprefix(self.url)
                return await self.call(method, f"/{there}", **kwargs)
            return http_response.status, document

    def record(self, method: str, http_response: aiohttp.ClientResponse, document: Json) -> None:
        self.responses.append(
            RecordedResponse(
                method,
                http_response.url.raw_path,
                http_response.status,
                http_response.content_type,
                document,
            )
        )


@dataclass
class OpenApiDocument:
    """An OpenAPI document. exercised: (method, path) of operations with a documented response."""

    openapi: Json
    exercised: set[tuple[str, str]] = field(default_factory=set)

    def __post_init__(self) -> None:
        self._validators: dict[str, jsonschema_rs.Validator] = {}
        self._schemas = closed(self.openapi["components"]["schemas"])
        self._paths = defaultdict(list)  # by number of segments
        for path in self.openapi["paths"]:
            self._paths[path.count("/")].append((_pattern(path), path))

    def routes(self) -> set[tuple[str, str]]:
        return {
            (method, path) for path, methods in self.openapi["paths"].items() for method in methods
        }

    def without_schema(self) -> list[str]:
        """JSON responses without a schema."""
        return [
            f"{method} {path} {status}"
            for method, path in sorted(self.routes())
            for status, response in self.openapi["paths"][path][method]["responses"].items()
            for kind, content in response.get("content", {}).items()
            if kind == JSON and "schema" not in content
        ]

    def dangling_references(self) -> set[str]:
        """References to components that do not exist."""
        known = {f"#/components/schemas/{name}" for name in self.openapi["components"]["schemas"]}
        return set(references(self.openapi)) - known

    def differences(self, one: RecordedResponse) -> Iterator[str]:
        """Differences between a response and the document."""
        what = f"{one.method} {one.path} {one.status}"
        path = self._path_of(one)
        if path is None:
            if one.status < 400:
                yield f"{what}: answered, and not in the document"
            documented = self._error_response()
        else:
            responses = self.openapi["paths"][path][one.method.lower()]["responses"]
            documented = responses.get(str(one.status))
            if documented is not None:
                self.exercised.add((one.method.lower(), path))
            elif one.status < 400:
                yield f"{what}: this status is not in the document"
            documented = documented or responses["default"]
        kinds = documented.get("content", {})
        if not kinds:
            if one.body or one.kind == JSON:
                yield f"{what}: a body where none is said to be"
        elif one.kind not in kinds:
            yield f"{what}: {one.kind}, where {sorted(kinds)} is said to be"
        elif one.kind == JSON:
            for error in self._validator(kinds[JSON]["schema"]).iter_errors(one.body):
                yield f"{what}: {error.message[:2000]} at {list(error.instance_path)}"

    def _validator(self, schema: Json) -> jsonschema_rs.Validator:
        """A validator, which is built once per schema: that takes longer than to use it."""
        key = json.dumps(schema, sort_keys=True)
        if key not in self._validators:
            whole = {**closed(schema), "components": {"schemas": self._schemas}}
            self._validators[key] = jsonschema_rs.validator_for(whole, validate_formats=True)
        return self._validators[key]

    def _error_response(self) -> Json:
        content = {JSON: {"schema": {"$ref": "#/components/schemas/Problem"}}}
        return {"content": content}

    def _path_of(self, one: RecordedResponse) -> str | None:
        """The path that matches, with the fewest parameters, as OpenAPI requires."""
        found = [
            path
            for pattern, path in self._paths[one.path.count("/")]
            if pattern.fullmatch(one.path) and one.method.lower() in self.openapi["paths"][path]
        ]
        return min(found, key=lambda path: path.count("{"), default=None)


def references(part: Json) -> Iterator[str]:
    if isinstance(part, dict):
        if isinstance(part.get("$ref"), str):
            yield part["$ref"]
        part = list(part.values())
    if isinstance(part, list):
        for one in part:
            yield from references(one)


def _pattern(path: str) -> re.Pattern[str]:
    parts = re.split(r"\{\w+\}", path)
    return re.compile("[^/]+".join(re.escape(part) for part in parts))


def closed(schema: Json) -> Json:
    """The schema, changed so that objects must not have undocumented keys."""
    if isinstance(schema, list):
        return [closed(part) for part in schema]
    if not isinstance(schema, dict):
        return schema
    closed_schema = {name: closed(part) for name, part in schema.items()}
    if schema.get("type") == "object" and "properties" in schema:
        closed_schema["additionalProperties"] = False
    return closed_schema
