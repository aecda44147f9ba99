"""What handlers work with, and how a route is written down."""

from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass, field
from typing import Any
from uuid import UUID

import orjson
from aiohttp import web
from pydantic import BaseModel

from channels.contract import Channel
from channels.dispatcher import Dispatcher
from channels.stream.feed import Feed
from engine.errors import Finding, Forbidden, Invalid, LimitReached, NotFound
from engine.service import Engine
from engine.service.traversals.thread_pool import client_gone
from engine.store.database import Database
from engine.store.records import StackRecord
from engine.tracing import Tracer
from engine.types.signal_urls import SignalUrls
from engine.types.software import ServerUrls
from engine.words import Json
from hub.api.numbers import too_large
from hub.auth.answerers import Answerers
from hub.auth.hasher import PasswordHasher
from hub.auth.identity import Identity
from hub.auth.roles import HOLDERS, Right
from hub.keys.token_keys import StoredTokenKeys
from hub.metrics import Metrics
from hub.settings.settings import Settings

#: The content type of nearly all answers.
JSON = "application/json"

#: How bodies may be encoded.
READ_ENCODINGS = frozenset({"", "identity", "gzip", "deflate"})
#: Bytes of a body that are read of a sender who is not authenticated. The longest sign-in fits.
UNAUTHENTICATED_BODY = 16_384
#: Levels of a body. JSON is written down to some 250 of them, and answers have some around it.
DEEPEST = 200

Handler = Callable[[web.Request], Awaitable[web.StreamResponse]]


@dataclass(frozen=True, slots=True)
class Parts:
    """ready: what is not ready, in words; empty when all is. horizon: by
    channel, seconds until a delivery is given up. fetch_template: the text at a URL, of at
    most so many bytes, as far as the operator lets us; raises Invalid."""

    engine: Engine
    database: Database
    settings: Settings
    feed: Feed
    dispatcher: Dispatcher
    channels: Mapping[str, Channel]
    horizon: Callable[[str], float]
    answerers: Answerers
    token_keys: StoredTokenKeys
    signal_urls: SignalUrls
    servers: ServerUrls
    new_id: Callable[[], UUID]
    new_secret: Callable[[], str]
    random_bytes: Callable[[int], bytes]
    ready: Callable[[], Awaitable[list[str]]]
    fetch_template: Callable[[str, int], Awaitable[str]]
    metrics: Metrics
    tracer: Tracer
    hasher: PasswordHasher


PARTS: web.AppKey[Parts] = web.AppKey("parts", Parts)
#: The request's own id, under which the log has it.
ID: web.RequestKey[str] = web.RequestKey("id", str)
#: Set where the request showed the token of one hook or resource, which was right.
BY_TOKEN: web.RequestKey[bool] = web.RequestKey("by_token", bool)
#: Who asks.
IDENTITY: web.RequestKey[Identity] = web.RequestKey("identity", Identity)


@dataclass(frozen=True, slots=True)
class Route:
    """One row of the API: the document at /openapi.json is written from these.

    query: descriptions of the query parameters by name. body: the model of the request body.
    status, answer: status and content type of the response. response: the type of its document if
    it is JSON. other_responses: types of documents with other statuses that are not errors. needs:
    the right that the caller must have; None: see `right`.
    """

    method: str
    path: str
    handler: Handler
    summary: str
    tag: str
    query: Mapping[str, str] = field(default_factory=dict)
    body: type[BaseModel] | None = None
    takes_body: bool = False
    status: int = 200
    answer: str = JSON
    response: Any = None
    other_responses: Mapping[int, Any] = field(default_factory=dict)
    needs: Right | None = None

    @property
    def right(self) -> Right:
        """Where nothing is said: of a project's things, to read by GET and to write otherwise."""
        if self.needs is not None:
            return self.needs
        if "{project}" not in self.path:
            return Right.NOTHING
        return Right.READ if self.method == "GET" else Right.WRITE


def parts_of(request: web.Request) -> Parts:
    return request.app[PARTS]


def project_of(request: web.Request) -> str:
    return request.match_info["project"]


def identity_of(request: web.Request) -> Identity:
    """Who asks, as was found before the handler was called."""
    return request[IDENTITY]


def require(identity: Identity, right: Right) -> None:
    """Raises Forbidden."""
    if not identity.may(right):
        raise Forbidden(
            f"{identity.name} has no right to {right} here",
            remedy=f"It takes the role {HOLDERS[right]}; an admin gives it.",
            code="Forbidden",
        )


def asked_project(request: web.Request, what: str) -> str | None:
    """The project in the path; None where `global_tenant` asks for every one. Raises Forbidden.

    what: the things that are listed.
    """
    if not query_flag(request, "global_tenant"):
        return project_of(request)
    if not identity_of(request).everywhere:
        raise Forbidden(
            f"You are not authorized to use {what}:global_index.",
            remedy="Leave global_tenant out, or ask an admin for a role in every project.",
        )
    return None


def channel_of(parts: Parts, name: str, place: str = "channel") -> Channel:
    """Raises Invalid when there is no such channel here. place: where it was named."""
    if name not in parts.channels:
        remedy = f"Known: {', '.join(sorted(parts.channels))}."
        if name in ("amqp", "heat"):
            remedy = "The operator sets [channels.amqp] url. Channel webhook needs no broker."
        raise invalid(place, f'"{name}" is not set up on this server', remedy)
    return parts.channels[name]


def answer(
    document: Json, status: int = 200, headers: Mapping[str, str] | None = None
) -> web.Response:
    return web.Response(
        body=orjson.dumps(document, default=str),
        status=status,
        content_type=JSON,
        headers=headers,
    )


async def read_body(request: web.Request) -> bytes:
    """The whole body as it was sent, decompressed; little of it before the sender is authenticated.

    Raises Invalid, LimitReached.
    """
    _check_encoding(request.headers.get("Content-Encoding", ""))
    try:
        if IDENTITY in request or BY_TOKEN in request:
            return await request.read()
        return await _little_of(request)
    except ConnectionError:
        raise client_gone() from None


async def _little_of(request: web.Request) -> bytes:
    """The body of a sender who is not authenticated. Raises LimitReached."""
    if (request.content_length or 0) > UNAUTHENTICATED_BODY:
        raise _too_large()
    try:
        return await request.clone(client_max_size=UNAUTHENTICATED_BODY).read()
    except web.HTTPRequestEntityTooLarge:
        raise _too_large() from None


def _too_large() -> LimitReached:
    return LimitReached(
        "the request is too large",
        remedy=f"Send at most {UNAUTHENTICATED_BODY} bytes before you are authenticated.",
        code="RequestTooLarge",
    )


async def body_of(request: web.Request, *, nullable: bool = False) -> dict[str, Json]:
    """The JSON object that was sent; an empty one for no body. Raises Invalid.

    nullable: `null` is an empty object, too.
    """
    raw = await read_body(request)
    if not raw.strip():
        return {}
    try:
        body = orjson.loads(raw)
    except orjson.JSONDecodeError as error:
        raise invalid("", f"the body is not valid JSON: {error}", "Send a JSON object.") from error
    if nullable and body is None:
        return {}
    if not isinstance(body, dict):
        raise invalid("", "the body is not a JSON object", "Send a JSON object.")
    if b"\\u0000" in raw and (place := _nul_in(body)) is not None:
        raise invalid(place, "text with a NUL character cannot be stored", "Leave it out.")
    if raw.count(b"{") + raw.count(b"[") > DEEPEST and _is_deep(body):
        reason = f"the body is nested more than {DEEPEST} levels deep"
        raise invalid("", reason, "Send it flatter.")
    if (place := too_large(raw, body)) is not None:
        raise invalid(place, "the number is too large", "Write it as text.")
    return body


def _check_encoding(said: str) -> None:
    if said.lower() not in READ_ENCODINGS:
        raise unknown_encoding()


def unknown_encoding() -> Invalid:
    return invalid(
        "Content-Encoding",
        "the content encoding of the body is not supported",
        "Send it as it is, or with gzip or deflate.",
        "UnsupportedMediaType",
    )


def _is_deep(document: Json) -> bool:
    """Whether there are more levels in it than can be written again."""
    level = [document]
    for _ in range(DEEPEST):
        level = [
            inner
            for one in level
            for inner in (one.values() if isinstance(one, dict) else one)
            if isinstance(inner, dict | list)
        ]
        if not level:
            return False
    return True


def _nul_in(document: Mapping[str, Json]) -> str | None:
    """The place of a text or key with the one character that the store cannot hold."""
    left: list[tuple[str, Json]] = [("", document)]
    while left:
        place, one = left.pop()
        inside: list[tuple[str, Json]] = []
        if isinstance(one, dict):
            if any("\0" in key for key in one):
                return place
            inside = [(f"{place}.{key}" if place else key, value) for key, value in one.items()]
        elif isinstance(one, list):
            inside = [(f"{place}[{index}]", value) for index, value in enumerate(one)]
        elif isinstance(one, str) and "\0" in one:
            return place
        left += reversed(inside)
    return None


def invalid(place: str, reason: str, remedy: str = "", code: str = "Invalid") -> Invalid:
    return Invalid([Finding(place, reason, remedy, code)])


def uuid_of(text: str, what: str, code: str) -> UUID:
    """Raises NotFound: what is no id names nothing."""
    try:
        return UUID(text)
    except ValueError:
        raise NotFound(f'there is no {what} "{text}"', code=code) from None


def uuid_or_none(text: str) -> UUID | None:
    try:
        return UUID(text)
    except ValueError:
        return None


def query_uuid(request: web.Request, name: str) -> UUID | None:
    text = request.query.get(name)
    if not text:
        return None
    found = uuid_or_none(text)
    if found is None:
        raise invalid(name, f'"{text}" is not a valid ID', "Send the id of the last item you have.")
    return found


def query_list(request: web.Request, name: str) -> list[str]:
    """What is said in one text, with commas, or in several."""
    said = request.query.getall(name, [])
    return [one for text in said for one in text.split(",") if one]


def query_limit(request: web.Request, *, default: int | None, most: int = 1000) -> int | None:
    if "limit" not in request.query:
        return default
    limit = query_number(request, "limit", default=0)
    return limit if default is None else min(limit, most)


def query_number(request: web.Request, name: str, *, default: int) -> int:
    text = request.query.get(name)
    if text is None:
        return default
    if not (text.isascii() and text.isdigit()) or len(text) > 9:
        raise invalid(name, f'"{text}" is not a number', "Send a whole number of 0 or more.")
    return int(text)


def query_flag(request: web.Request, name: str, default: bool = False) -> bool:
    flags = query_flags(request, name)
    return flags[0] if flags else default


def query_flags(request: web.Request, name: str) -> list[bool] | None:
    texts = [text.lower() for text in request.query.getall(name, [])]
    for text in texts:
        if text not in ("true", "false"):
            raise invalid(name, f'"{text}" is neither true nor false', "Send true or false.")
    return [text == "true" for text in texts] or None


def query_descending(request: web.Request, *, default: bool) -> bool:
    """What `sort_dir` says."""
    direction = request.query.get("sort_dir", "desc" if default else "asc").lower()
    if direction not in ("asc", "desc"):
        raise invalid("sort_dir", f'"{direction}" is not known', "Send asc or desc.")
    return direction == "desc"


async def stack_of(request: web.Request) -> StackRecord:
    """The stack of a canonical path: name and id must belong together. Raises NotFound."""
    project, name = project_of(request), request.match_info["name"]
    stack_id = uuid_of(request.match_info["id"], "stack", "EntityNotFound")
    found = await parts_of(request).engine.reads.find_stack(project, str(stack_id))
    if found.name != name:
        raise NotFound(f"The Stack ({name}) could not be found.", code="EntityNotFound")
    return found
