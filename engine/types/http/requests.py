"""Builds requests from the properties of a resource. Pure.

Placeholders ``${...}`` stand for values that are known only after creation. In a URL, a value is
percent-encoded, so it stays one part of the path or query. A string in a body that consists of one
placeholder becomes the value itself, of any type. Inserted values are not expanded again, and
``$${`` stands for ``${``.
"""

import re
from collections.abc import Iterator, Mapping
from urllib.parse import quote

import orjson

from engine.types.http.schema import METHODS
from engine.types.http_client import Request
from engine.types.text_cleaning import as_text
from engine.words import Json

_PLACEHOLDER = re.compile(r"\$\$\{|\$\{([^{}]*)\}")
#: Path segments that would change the target of a URL.
_DOT_SEGMENTS = frozenset({"", ".", ".."})


class PlaceholderError(ValueError):
    """A placeholder has no value, or a value that is invalid at its place."""


def names_in(template: Json) -> Iterator[str]:
    """The names of all placeholders in a value, at any depth."""
    if isinstance(template, str):
        yield from (one[1] for one in _PLACEHOLDER.finditer(template) if one[1] is not None)
    elif isinstance(template, dict):
        for key, item in template.items():
            yield from names_in(key)
            yield from names_in(item)
    elif isinstance(template, list):
        for item in template:
            yield from names_in(item)


def fill(template: Json, values: Mapping[str, Json]) -> Json:
    """Insert the values. Raises PlaceholderError."""
    if isinstance(template, str):
        whole = _PLACEHOLDER.fullmatch(template)
        if whole is not None and whole[1] is not None:
            return _value(whole[1], values)
        return _PLACEHOLDER.sub(lambda found: _text(found, values), template)
    if isinstance(template, dict):
        return {fill_text(key, values): fill(item, values) for key, item in template.items()}
    if isinstance(template, list):
        return [fill(item, values) for item in template]
    return template


def escape(value: Json) -> Json:
    """The template that `fill` makes this value of."""
    if isinstance(value, str):
        return value.replace("${", "$${")
    if isinstance(value, dict):
        return {escape(key): escape(item) for key, item in value.items()}
    if isinstance(value, list):
        return [escape(item) for item in value]
    return value


def unescape(template: str) -> str:
    """A text without the escapes of placeholders; it keeps the placeholders."""
    return template.replace("$${", "${")


def fill_text(template: str, values: Mapping[str, Json]) -> str:
    """Insert the values. Raises PlaceholderError."""
    return _PLACEHOLDER.sub(lambda found: _text(found, values), template)


def fill_url(template: str, values: Mapping[str, Json]) -> str:
    """Insert the values. Raises PlaceholderError."""
    return _PLACEHOLDER.sub(lambda found: _part(found, values), template)


def _value(name: str, values: Mapping[str, Json]) -> Json:
    if values.get(name) is None:
        raise PlaceholderError(f"${{{name}}} has no value")
    return values[name]


def _text(match: re.Match[str], values: Mapping[str, Json]) -> str:
    return "${" if match[1] is None else as_text(_value(match[1], values))


def _part(match: re.Match[str], values: Mapping[str, Json]) -> str:
    text = _text(match, values)
    if text in _DOT_SEGMENTS:
        raise PlaceholderError(f"${{{match[1]}}} is a value that would change the path of the URL")
    return quote(text, safe="")


#: Headers of the connection and the transfer of the body.
FORBIDDEN = frozenset(
    {"connection", "content-length", "expect", "host", "keep-alive", "te", "trailer",
     "transfer-encoding", "upgrade"}
)  # fmt: skip
#: Methods that can change the service's state.
CHANGING = frozenset({"POST", "PUT", "PATCH", "DELETE"})
#: Headers with which some services replace the method of a request.
METHOD_HEADERS = frozenset({"x-http-method", "x-http-method-override", "x-method-override"})
#: Headers whose values are not secret.
PUBLIC_HEADERS = frozenset({"accept", "content-type"})
#: The part of a URL that must not contain placeholders: it determines where secrets are sent.
_AUTHORITY = re.compile(r"[^/]*//[^/?#]*")
_NAME = re.compile(r"[!#$%&'*+.^_`|~0-9A-Za-z-]+")
_CONTROL = re.compile(r"[\x00-\x08\x0a-\x1f\x7f]")


def address(properties: Mapping[str, Json], definition: Mapping[str, Json]) -> str:
    """The URL of a request, with placeholders."""
    url = str(definition["url"])
    return f"{str(properties.get('base') or '').rstrip('/')}{url}" if url.startswith("/") else url


def origin(url: str) -> str:
    """The scheme and authority of a URL; "" if it has none."""
    found = _AUTHORITY.match(url)
    return found[0] if found else ""


def method(name: str, definition: Mapping[str, Json]) -> str:
    return definition.get("method") or METHODS[name]


def build(
    name: str, properties: Mapping[str, Json], values: Mapping[str, Json], key: str
) -> Request:
    """Build a request. name: such as `create`. values: of placeholders. key: operation key.

    Raises PlaceholderError.
    """
    definition = properties[name]
    how = method(name, definition)
    headers = _headers(properties, definition, values)
    present = {header.lower() for header in headers}
    body = fill(definition.get("body"), values)
    if body is not None and "content-type" not in present:
        headers["Content-Type"] = "text/plain" if isinstance(body, str) else "application/json"
    idempotent = properties.get("idempotency_header")
    if idempotent and how in CHANGING and idempotent.lower() not in present:
        headers[idempotent] = key
    return Request(how, fill_url(address(properties, definition), values), headers, _raw(body))


def is_same_request(one: Request, other: Request) -> bool:
    """Whether two requests do the same, whatever their headers are: see `header_templates`."""
    return (one.method, one.url, one.body) == (other.method, other.url, other.body)


def _headers(
    properties: Mapping[str, Json], definition: Mapping[str, Json], values: Mapping[str, Json]
) -> dict[str, str]:
    headers = {
        header: fill_text(value, values)
        for header, value in header_templates(properties, definition).items()
    }
    for header, value in headers.items():
        if _CONTROL.search(value):
            raise PlaceholderError(f"the header {header} would contain control characters")
    return headers


def header_templates(
    properties: Mapping[str, Json], definition: Mapping[str, Json]
) -> dict[str, str]:
    """The headers of a request, with placeholders: its own override the common ones; null removes
    one."""
    own = definition.get("headers") or {}
    over = {header.lower() for header in own}
    usual = properties.get("headers") or {}
    both = {header: value for header, value in usual.items() if header.lower() not in over} | own
    return {header: as_text(value) for header, value in both.items() if value is not None}


def _raw(body: Json) -> bytes | None:
    if body is None:
        return None
    return body.encode() if isinstance(body, str) else orjson.dumps(body)


def header_error(name: str, value: Json) -> str | None:
    """The reason why a header is not allowed; None if it is."""
    if not _NAME.fullmatch(name):
        return "is not a valid header name"
    if name.lower() in FORBIDDEN:
        return "is a header of the connection"
    if isinstance(value, dict | list):
        return "is not a string"
    return "contains control characters" if _CONTROL.search(as_text(value)) else None


def import_error(properties: Mapping[str, Json]) -> tuple[str, str, str] | None:
    """(place, reason, remedy) if the read request of an import could change something; None if it
    cannot."""
    definition = properties["read"]
    if (how := method("read", definition)) in CHANGING:
        reason = f"an import sends only GET or HEAD, got {how}"
        return "properties.read.method", reason, "Give a read request with GET, or remove `method`."
    if definition.get("body") is not None:
        reason = "an import sends no body"
        return "properties.read.body", reason, "Remove `body`, and put the ID into the URL."
    for place, headers in (("read.headers", definition.get("headers")),
                           ("headers", properties.get("headers"))):  # fmt: skip
        for header, value in (headers or {}).items():
            if value is not None and header.lower() in METHOD_HEADERS:
                reason = "an import sends no header that replaces the method"
                return f"properties.{place}.{header}", reason, "Remove the header."
    return None


def secret_header_places(properties: Mapping[str, Json]) -> Iterator[tuple[str, ...]]:
    """The paths to the values of headers that may be secret."""
    for place in ((), *((name,) for name in METHODS)):
        owner = properties.get(place[0]) if place else properties
        for header, value in ((owner or {}).get("headers") or {}).items():
            if value is not None and header.lower() not in PUBLIC_HEADERS:
                yield *place, "headers", header
