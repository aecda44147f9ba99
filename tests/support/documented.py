"""A server's answers, each kept as it came, and held against the server's own /openapi.json."""

import re
from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Any

import aiohttp
import jsonschema_rs
from yarl import URL

from tests.support.program import Http, Json

JSON = "application/json"


@dataclass(frozen=True)
class Seen:
    """body: the document, where it is JSON."""

    method: str
    path: str
    status: int
    kind: str
    body: Json


class Watched(Http):
    """Keeps every answer that it gets; where one leads elsewhere, that and what is there."""

    def __init__(self, session: aiohttp.ClientSession, url: str, project: str = "p") -> None:
        super().__init__(session, url, project)
        self.seen: list[Seen] = []

    async def call(
        self, method: str, path: str, body: Json = None, **kwargs: Any
    ) -> tuple[int, Json]:
        if body is not None:
            kwargs["json"] = body
        kwargs.setdefault("allow_redirects", False)
        below = path[1:] if path.startswith("//") else f"/v1/{self.project}{path}"
        url = URL(self.url + below, encoded=True)
        async with self.session.request(method, url, **kwargs) as got:
            document = None
            if got.content_type == JSON:
                document = await got.json()
            elif got.content_type != "text/event-stream":  # which does not end
                document = await got.text()
            self.keep(method, got, document)
            if got.status == 302:
                there = got.headers["Location"].removeprefix(self.url)
                return await self.call(method, f"/{there}", **kwargs)
            return got.status, document

    def keep(self, method: str, got: aiohttp.ClientResponse, document: Json) -> None:
        self.seen.append(Seen(method, got.url.raw_path, got.status, got.content_type, document))


@dataclass
class Document:
    """What a server says of itself. exercised: (method, path) that were answered as they should."""

    said: Json
    exercised: set[tuple[str, str]] = field(default_factory=set)

    def __post_init__(self) -> None:
        self._schemas = closed(self.said["components"]["schemas"])
        self._paths = [(_pattern(path), path) for path in self.said["paths"]]

    def routes(self) -> set[tuple[str, str]]:
        return {(method, path) for path, ways in self.said["paths"].items() for method in ways}

    def without_schema(self) -> list[str]:
        """Answers that are JSON, and of which nothing is said."""
        return [
            f"{method} {path} {status}"
            for method, path in sorted(self.routes())
            for status, said in self.said["paths"][path][method]["responses"].items()
            for kind, content in said.get("content", {}).items()
            if kind == JSON and "schema" not in content
        ]

    def loose_ends(self) -> set[str]:
        """References that lead nowhere."""
        known = {f"#/components/schemas/{name}" for name in self.said["components"]["schemas"]}
        return set(references(self.said)) - known

    def wrong(self, one: Seen) -> Iterator[str]:
        """What is other than it is said to be."""
        what = f"{one.method} {one.path} {one.status}"
        path = self._path_of(one)
        if path is None:
            if one.status < 400:
                yield f"{what}: answered, and not in the document"
            said = self._refusal()
        else:
            responses = self.said["paths"][path][one.method.lower()]["responses"]
            said = responses.get(str(one.status))
            if said is not None:
                self.exercised.add((one.method.lower(), path))
            elif one.status < 400:
                yield f"{what}: this status is not in the document"
            said = said or responses["default"]
        kinds = said.get("content", {})
        if not kinds:
            if one.body or one.kind == JSON:
                yield f"{what}: a body where none is said to be"
        elif one.kind not in kinds:
            yield f"{what}: {one.kind}, where {sorted(kinds)} is said to be"
        elif one.kind == JSON:
            schema = {**closed(kinds[JSON]["schema"]), "components": {"schemas": self._schemas}}
            check = jsonschema_rs.validator_for(schema, validate_formats=True)
            for error in check.iter_errors(one.body):
                yield f"{what}: {error.message[:2000]} at {list(error.instance_path)}"

    def _refusal(self) -> Json:
        content = {JSON: {"schema": {"$ref": "#/components/schemas/Problem"}}}
        return {"content": content}

    def _path_of(self, one: Seen) -> str | None:
        """Of several paths the one with the fewest parameters, as OpenAPI has it."""
        found = [
            path
            for pattern, path in self._paths
            if pattern.fullmatch(one.path) and one.method.lower() in self.said["paths"][path]
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
    """The schema, refusing keys that it does not know: what is given is to be said."""
    if isinstance(schema, list):
        return [closed(part) for part in schema]
    if not isinstance(schema, dict):
        return schema
    inside = {name: closed(part) for name, part in schema.items()}
    if schema.get("type") == "object" and "properties" in schema:
        inside["additionalProperties"] = False
    return inside
