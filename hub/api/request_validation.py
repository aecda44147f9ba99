"""Reads and validates requests: URL, headers, path, query and body."""

import json
import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import suppress
from datetime import date, datetime
from typing import Any, Final, TypeVar, get_args
from uuid import UUID

import orjson
from aiohttp import web
from pydantic import BaseModel, ConfigDict, ValidationError

from channels.contract import Channel
from engine.errors import Finding, Forbidden, Invalid, LimitReached, NotFound, nearest
from engine.hot.syntax.json_text import LONG_DIGITS, parse_integer
from engine.missing_objects import no_stack
from engine.service.traversals.thread_pool import client_disconnected
from engine.store.records import StackRecord
from engine.words import Json, uuid_or_none
from hub.api.app_context import BY_TOKEN, IDENTITY, AppContext, context_of, identity_of, project_of
from hub.validation_messages import describe

ENCODINGS = frozenset({"", "identity", "gzip", "deflate"})
#: Bytes that are read from a client that is not authenticated. The longest sign-in fits.
UNAUTHENTICATED_BODY = 8_192
#: Levels of a document that orjson writes.
WRITABLE_DEPTH = 254
#: Levels of a body. Responses add levels around it.
MAX_DEPTH = 200
#: Keys of a body with the documents of a stack, in which integers stay exact.
TEMPLATE_KEYS = ("template", "environment", "parameters")
Row = TypeVar("Row")
_ZEROS: Final = bytes.maketrans(b"123456789", b"0" * 9)
_DAY: Final = re.compile(r"(?:19|[2-8]\d)\d\d-\d\d-\d\d", re.ASCII)
MARKER_REMEDY: Final = "Send `next` of the last page."
#: A name or address with an optional port.
_HOST = re.compile(r"(?:[\w.-]{1,255}|\[[0-9A-Fa-f:.]{2,45}\])(?::\d{1,5})?", re.ASCII)


def invalid(place: str, reason: str, remedy: str = "", code: str = "Invalid") -> Invalid:
    return Invalid([Finding(place, reason, remedy, code)])


def check_request(request: web.Request) -> None:
    """Check what no handler can process: NUL in the URL, and headers. Raises Invalid."""
    if "%00" in request.rel_url.raw_path or "%00" in request.rel_url.raw_query_string:
        raise invalid("", "the URL contains a NUL character", "Leave it out.")
    for name, value in request.raw_headers:
        if not _is_utf8(value):
            place = name.decode("ascii", "replace")
            raise invalid(place, "a header is not valid text", "Send it as UTF-8.")
    # HTTP/1.0 allows requests without Host; request.host would then look up this server's name.
    if "Host" in request.headers and not has_valid_host(request):
        raise invalid("Host", "this is not a valid host", "Send a name or an address, and a port.")


def has_valid_host(request: web.Request) -> bool:
    return _HOST.fullmatch(request.host) is not None


def _is_utf8(value: bytes) -> bool:
    try:
        value.decode()
    except UnicodeDecodeError:
        return False
    return True


async def stack_of(request: web.Request) -> StackRecord:
    """The stack of the path, whose name and ID must belong together. Raises NotFound."""
    project, name = project_of(request), request.match_info["name"]
    stack_id = uuid_of(request.match_info["id"], no_stack)
    stack = await context_of(request).engine.reads.find_stack(project, str(stack_id))
    if stack.name != name:
        raise no_stack(name)
    return stack


def project_or_all(request: web.Request, things: str) -> str | None:
    """The project of the path; None for all projects, with `global_tenant`. Raises Forbidden.

    things: the plural of the listed objects.
    """
    if not query_flag(request, "global_tenant"):
        return project_of(request)
    if not identity_of(request).everywhere:
        raise Forbidden(
            f"You are not authorized to use {things}:global_index.",
            remedy="Leave global_tenant out, or ask an admin for a role in every project.",
        )
    return None


def channel_of(context: AppContext, name: str, place: str = "channel") -> Channel:
    """Raises Invalid at this place if the server does not have the channel."""
    if name not in context.channels:
        remedy = f"Known: {', '.join(sorted(context.channels))}."
        if name in ("amqp", "heat"):
            remedy = "The operator sets [channels.amqp] url. Channel webhook needs no broker."
        if name == "email":
            remedy = "The operator sets [channels.email] host. Channel webhook needs no relay."
        raise invalid(place, f'"{name}" is not set up on this server', remedy)
    return context.channels[name]


def uuid_of(text: str, missing: Callable[[str], NotFound]) -> UUID:
    """Raises the error for a missing object, because an object with an invalid ID does not
    exist."""
    value = uuid_or_none(text)
    if value is None:
        raise missing(text)
    return value


def query_uuid(request: web.Request, name: str) -> UUID | None:
    text = request.query.get(name)
    if not text:
        return None
    value = uuid_or_none(text)
    if value is None:
        raise invalid(name, f'"{text}" is not a valid ID', "Send the id of the last item you have.")
    return value


def query_list(request: web.Request, name: str) -> list[str]:
    """The values of a parameter that is comma separated, repeated, or both."""
    texts = request.query.getall(name, [])
    return [value for text in texts for value in text.split(",") if value]


def parse_number(text: str) -> int | None:
    """A whole number of 0 or more; None: it is not one, or too large."""
    return int(text) if text.isascii() and text.isdigit() and len(text) <= 9 else None


def number_error(name: str, text: str) -> tuple[str, str]:
    """The reason, as Heat's, and the remedy of text that is no whole number of 0 or more."""
    if re.fullmatch(r"-[1-9][0-9]*", text):
        reason = f"Value '{text}' is invalid for '{name}' which only accepts non-negative integer."
        return reason, "Send a whole number of 0 or more."
    if text.isascii() and text.isdigit():
        return f'"{text[:20]}..." is too large', "Send a number of at most 9 digits."
    return f"Only integer is acceptable by '{name}'.", "Send a whole number of 0 or more."


def parse_flag(name: str, value: Json) -> bool:
    """The value of true or false, or of their texts. Raises Invalid, with Heat's message."""
    text = str(value).lower()
    if text not in ("true", "false"):
        reason = f'Unrecognized value "{value}" for "{name}", acceptable values are: true, false.'
        raise invalid(name, reason, "Send true or false.")
    return text == "true"


def parse_day(text: str) -> date | None:
    with suppress(ValueError):
        return date.fromisoformat(text) if _DAY.fullmatch(text) else None
    return None


def parse_marker(text: str, *, numbered: bool) -> tuple[datetime, UUID, int]:
    """The parts of a marker of the form ``TIME_ID``, with the number 0, or ``TIME_ID_NUMBER``.
    Raises ValueError."""
    time, item_id, number = (text if numbered else f"{text}_0").split("_")
    place = datetime.fromisoformat(time), UUID(item_id), int(number)
    if place[0].tzinfo is None or not 0 <= place[2] < 2**31:
        raise ValueError
    return place


def query_limit(request: web.Request, *, default: int | None) -> int | None:
    if "limit" not in request.query:
        return default
    limit = query_number(request, "limit", default=0)
    return limit if default is None else min(limit, 1000)


def query_page_size(request: web.Request, default: int) -> int:
    """`limit` of Headgate's own lists."""
    return query_limit(request, default=default) or default


def query_marker(
    request: web.Request, *, numbered: bool = False
) -> tuple[datetime, UUID, int] | None:
    """See `parse_marker`."""
    marker = request.query.get("marker")
    if not marker:
        return None
    try:
        return parse_marker(marker, numbered=numbered)
    except ValueError:
        raise invalid("marker", f'"{marker}" is not a valid marker', MARKER_REMEDY) from None


def split_page(rows: Sequence[Row], limit: int) -> tuple[Sequence[Row], Row | None]:
    """The rows of a page, and the last of them if more follow. rows: one more than the limit."""
    return rows[:limit], rows[limit - 1] if len(rows) > limit else None


def query_number(request: web.Request, name: str, *, default: int) -> int:
    text = request.query.get(name)
    if text is None:
        return default
    number = parse_number(text)
    if number is None:
        raise invalid(name, *number_error(name, text))
    return number


def query_flag(request: web.Request, name: str, default: bool = False) -> bool:
    flags = query_flags(request, name)
    return flags[0] if flags else default


def query_flags(request: web.Request, name: str) -> list[bool] | None:
    return [parse_flag(name, text) for text in request.query.getall(name, [])] or None


def query_descending(request: web.Request, *, default: bool) -> bool:
    """Whether `sort_dir` is desc."""
    direction = request.query.get("sort_dir", "desc" if default else "asc").lower()
    if direction not in ("asc", "desc"):
        raise invalid("sort_dir", f'"{direction}" is not known', "Send asc or desc.")
    return direction == "desc"


async def read_body(request: web.Request) -> bytes:
    """The decompressed body; of a client that is not authenticated, at most
    `UNAUTHENTICATED_BODY` bytes. Raises Invalid, LimitReached."""
    if request.headers.get("Content-Encoding", "").lower() not in ENCODINGS:
        raise unknown_encoding()
    try:
        if IDENTITY in request or BY_TOKEN in request:
            return await request.read()
        return await _read_unauthenticated(request)
    except ConnectionError:
        raise client_disconnected() from None


async def _read_unauthenticated(request: web.Request) -> bytes:
    too_large = LimitReached(
        "the request is too large",
        remedy=f"Send at most {UNAUTHENTICATED_BODY} bytes before you are authenticated.",
        code="RequestTooLarge",
    )
    if (request.content_length or 0) > UNAUTHENTICATED_BODY:
        raise too_large
    try:
        return await request.clone(client_max_size=UNAUTHENTICATED_BODY).read()
    except web.HTTPRequestEntityTooLarge:
        raise too_large from None


def unknown_encoding() -> Invalid:
    return invalid(
        "Content-Encoding",
        "the content encoding of the body is not supported",
        "Send it as it is, or with gzip or deflate.",
        "UnsupportedMediaType",
    )


class Body(BaseModel):
    model_config = ConfigDict(extra="forbid", strict=True, hide_input_in_errors=True)


Model = TypeVar("Model", bound=BaseModel)


async def read_model(request: web.Request, model: type[Model], remedy: str = "") -> Model:
    """The body as this model. Raises Invalid with all findings, which contain no values.

    remedy: for missing and invalid values.
    """
    body = await body_of(request)
    try:
        return model.model_validate(body)
    except ValidationError as error:
        findings = []
        for one in error.errors(include_url=False, include_input=False):
            place = ".".join(str(part) for part in one["loc"])
            unknown = one["type"] == "extra_forbidden"
            reason = "is not a known key" if unknown else describe(one)
            hint = _known_key(model, one["loc"]) if unknown else remedy
            hint = hint or "See /openapi.json for the fields of this request."
            findings.append(Finding(place, reason, hint, "Invalid"))
        raise Invalid(findings) from None


def _known_key(model: type[BaseModel], place: Sequence[str | int]) -> str:
    """The remedy for an unknown key: the nearest one that is known at its place."""
    known, wrong = _keys_at(model, place[:-1]), str(place[-1])
    words = wrong.split("_")
    # `resource_type` for `type`, and `id` for `physical_resource_id`.
    similar = [one for one in known if _ends_with(words, one) or _ends_with(one.split("_"), wrong)]
    if near := nearest(wrong, known) or (nearest(similar[0], known) if len(similar) == 1 else ""):
        return near
    return f"Known: {', '.join(known)}."


def _ends_with(words: Sequence[str], name: str) -> bool:
    end = name.split("_")
    return len(end) < len(words) and list(words[-len(end) :]) == end


def _keys_at(model: type[BaseModel], place: Sequence[str | int]) -> list[str]:
    """The keys of a model, or of those inside it at a place: of all that its values may be."""
    models = [model]
    for part in place:
        fields = (one.model_fields for one in models)
        inside = [one[part].annotation for one in fields if isinstance(part, str) and part in one]
        models = [one for annotation in inside for one in _models_in(annotation)] or models
    return list(dict.fromkeys(name for one in models for name in one.model_fields))


def _models_in(annotation: Any) -> Iterator[type[BaseModel]]:
    """The models that a value of a type can be or contain."""
    if isinstance(annotation, type) and issubclass(annotation, BaseModel):
        yield annotation
    for one in get_args(annotation):
        yield from _models_in(one)


async def body_of(request: web.Request, *, nullable: bool = False) -> dict[str, Json]:
    """The JSON object in the body; {} for an empty body. Raises Invalid.

    nullable: accept `null` as {}.
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
    if b"\\u0000" in raw and (place := nul_in(body)) is not None:
        raise invalid(place, "text with a NUL character cannot be stored", "Leave it out.")
    if raw.count(b"{") + raw.count(b"[") > MAX_DEPTH and is_deep(body):
        reason = f"the body is nested more than {MAX_DEPTH} levels deep"
        raise invalid("", reason, "Reduce the nesting.")
    if (place := too_large_number(raw, body)) is not None:
        raise invalid(place, "the number is too large", "Write it as text.")
    return body


def is_deep(document: Json) -> bool:
    """Whether it has more than `MAX_DEPTH` levels: with further ones around it, orjson refuses to
    write it. This takes a tenth of the time of a walk through it."""
    for _ in range(WRITABLE_DEPTH - MAX_DEPTH):
        document = [document]
    try:
        orjson.dumps(document)
    except orjson.JSONEncodeError:
        return True
    return False


def nul_in(body: Json) -> str | None:
    """The place of the first string or key with NUL, which PostgreSQL cannot store."""
    return _place_of(body, _has_nul)


def _has_nul(value: object) -> bool:
    texts = value if isinstance(value, dict) else (value,)
    return any(isinstance(text, str) and "\0" in text for text in texts)


class _TooLargeNumber:
    """In the place of an integer."""


def too_large_number(raw: bytes, body: Mapping[str, Json]) -> str | None:
    """The place of the first integer that is too long to store, and that orjson therefore read as
    a float. raw: the text of the body."""
    if body.keys().isdisjoint(TEMPLATE_KEYS) or b"0" * LONG_DIGITS not in raw.translate(_ZEROS):
        return None
    exact = json.loads(raw, parse_int=_integer)
    documents = {name: exact[name] for name in TEMPLATE_KEYS if name in exact}
    return _place_of(documents, lambda value: isinstance(value, _TooLargeNumber))


def _integer(text: str) -> int | _TooLargeNumber:
    number = parse_integer(text)
    return _TooLargeNumber() if number is None else number


#: The key or index of a value, and the step to the value that contains it; None: the document.
_Step = tuple[Any, str | int] | None


def _place_of(document: object, predicate: Callable[[object], bool]) -> str | None:
    """The place of the first wanted value of a document, in the order of the text; None: there is
    none. Only this place is written out: each of many values can be below a long key."""
    pending: list[tuple[_Step, object]] = [(None, document)]
    while pending:
        step, value = pending.pop()
        if predicate(value):
            return _format_path(step)
        if isinstance(value, dict):
            pending += [((step, key), item) for key, item in reversed(value.items())]
        elif isinstance(value, list):
            items = reversed(list(enumerate(value)))
            pending += [((step, index), item) for index, item in items]
    return None


def _format_path(step: _Step) -> str:
    parts: list[str] = []
    while step is not None:
        step, part = step
        parts.append(f"[{part}]" if isinstance(part, int) else f".{part}")
    return "".join(reversed(parts)).removeprefix(".")
