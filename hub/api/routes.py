"""Routes, and the URLs at which clients reach them."""

from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass, field
from typing import Any

import orjson
from aiohttp import web
from pydantic import BaseModel

from engine.words import Json
from hub.auth.roles import Right

JSON = "application/json"
#: The API has one version with two names. Route paths use the first.
PREFIX, PREFIXES = "v1", ("v1", "v1.0")

Handler = Callable[[web.Request], Awaitable[web.StreamResponse]]


#: Why a value is not valid, and what to send.
Refusal = tuple[str, str]


@dataclass(frozen=True, slots=True)
class QueryParameter:
    """A query parameter.

    refuse: why a value is not valid; None: it is. schema: of the values. repeatable: it can be sent
    several times. required: a request without it is refused.
    """

    description: str
    refuse: Callable[[str], Refusal | None] = lambda _: None
    schema: Json = field(default_factory=lambda: {"type": "string"})
    repeatable: bool = False
    required: bool = False


@dataclass(frozen=True, slots=True)
class Route:
    """A route, from which the application and /openapi.json are built.

    query: the query parameters by name; descriptions where the handler checks the values. body: the
    model of the request body. status: of the response. response: the type of its
    document if it is JSON. other_responses: types of documents with other statuses that are not
    errors. content_type: "" if the response has no body. error_page: errors are pages for people.
    needs: the right that the caller must have; None: see `right`. reads: it changes nothing,
    although its method is not GET.
    """

    method: str
    path: str
    handler: Handler
    summary: str
    tag: str
    query: Mapping[str, str] | Mapping[str, QueryParameter] = field(default_factory=dict)
    body: type[BaseModel] | None = None
    takes_body: bool = False
    status: int = 200
    content_type: str = JSON
    response: Any = None
    other_responses: Mapping[int, Any] = field(default_factory=dict)
    error_page: bool = False
    needs: Right | None = None
    reads: bool = False

    @property
    def right(self) -> Right:
        """By default, routes of a project require the right to read for GET, and to write for the
        other methods; routes without a project require none."""
        if self.needs is not None:
            return self.needs
        if "{project}" not in self.path:
            return Right.NOTHING
        return Right.READ if self.method == "GET" else Right.WRITE

    @property
    def is_read(self) -> bool:
        """Whether it changes nothing, so that it can be served twice."""
        return self.reads or self.method == "GET"


def json_response(
    document: Json, status: int = 200, headers: Mapping[str, str] | None = None
) -> web.Response:
    return web.Response(
        body=orjson.dumps(document, default=str),
        status=status,
        content_type=JSON,
        headers=headers,
    )


def origin_of(request: web.Request) -> str:
    """Scheme, host and port of this server in the client's URL."""
    return f"{request.scheme}://{request.host}"


def base_of(request: web.Request) -> str:
    """The API's root as in the client's URL, which clients expect in the URLs of responses."""
    first = request.rel_url.raw_path.split("/")[1]
    return f"{origin_of(request)}/{first if first in PREFIXES else PREFIX}"


def aliases(path: str) -> list[str]:
    """All paths of a route: its own, and that with the other prefix."""
    first, slash, rest = path.removeprefix("/").partition("/")
    return [f"/{prefix}{slash}{rest}" for prefix in PREFIXES] if first == PREFIX else [path]
