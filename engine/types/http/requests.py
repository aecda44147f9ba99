"""Builds requests from the properties of a resource. Pure."""

import re
from collections.abc import Mapping

import orjson

from engine.types.http.placeholders import PlaceholderError, filled, filled_text, filled_url
from engine.types.http.schema import METHODS
from engine.types.http_client import Request
from engine.types.text_cleaning import as_text
from engine.words import Json

#: Headers of the connection and the transfer of the body.
FORBIDDEN = frozenset(
    {"connection", "content-length", "expect", "host", "keep-alive", "te", "trailer",
     "transfer-encoding", "upgrade"}
)  # fmt: skip
#: Methods that can change the service's state.
CHANGING = frozenset({"POST", "PUT", "PATCH", "DELETE"})
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
    given = {header.lower() for header in headers}
    body = filled(definition.get("body"), values)
    if body is not None and "content-type" not in given:
        headers["Content-Type"] = "text/plain" if isinstance(body, str) else "application/json"
    idempotent = properties.get("idempotency_header")
    if idempotent and how in CHANGING and idempotent.lower() not in given:
        headers[idempotent] = key
    return Request(how, filled_url(address(properties, definition), values), headers, _raw(body))


def _headers(
    properties: Mapping[str, Json], definition: Mapping[str, Json], values: Mapping[str, Json]
) -> dict[str, str]:
    """The headers of the request override the common headers; null removes one."""
    own = definition.get("headers") or {}
    over = {header.lower() for header in own}
    usual = properties.get("headers") or {}
    both = {header: value for header, value in usual.items() if header.lower() not in over} | own
    headers = {
        header: filled_text(as_text(value), values)
        for header, value in both.items()
        if value is not None
    }
    for header, value in headers.items():
        if _CONTROL.search(value):
            raise PlaceholderError(f"the header {header} would contain control characters")
    return headers


def _raw(body: Json) -> bytes | None:
    if body is None:
        return None
    return body.encode() if isinstance(body, str) else orjson.dumps(body)


def bad_header(name: str, value: Json) -> str | None:
    """The reason why a header is not allowed; None if it is."""
    if not _NAME.fullmatch(name):
        return "is not a valid header name"
    if name.lower() in FORBIDDEN:
        return "is a header of the connection"
    if isinstance(value, dict | list):
        return "is not a string"
    return "contains control characters" if _CONTROL.search(as_text(value)) else None
