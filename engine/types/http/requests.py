"""From what a template says of a request to the request. Pure."""

import re
from collections.abc import Mapping

import orjson

from engine.types.http.placeholders import PlaceholderError, filled, filled_text, filled_url
from engine.types.http.schema import METHODS
from engine.types.http_client import Request
from engine.types.text_cleaning import as_text
from engine.words import Json

#: Headers that belong to the connection, or say how a body is sent.
FORBIDDEN = frozenset(
    {"connection", "content-length", "expect", "host", "keep-alive", "te", "trailer",
     "transfer-encoding", "upgrade"}
)  # fmt: skip
#: Methods that change something.
CHANGING = frozenset({"POST", "PUT", "PATCH", "DELETE"})
#: Where an address ends of which no part may come from a service: it says where secrets are sent.
_AUTHORITY = re.compile(r"[^/]*//[^/?#]*")
_NAME = re.compile(r"[!#$%&'*+.^_`|~0-9A-Za-z-]+")
_CONTROL = re.compile(r"[\x00-\x08\x0a-\x1f\x7f]")


def address(properties: Mapping[str, Json], said: Mapping[str, Json]) -> str:
    """Where a request goes, placeholders still in it."""
    url = str(said["url"])
    return f"{str(properties.get('base') or '').rstrip('/')}{url}" if url.startswith("/") else url


def origin(url: str) -> str:
    """The beginning of an address that says whom it is of; "" where it has none."""
    found = _AUTHORITY.match(url)
    return found[0] if found else ""


def method(name: str, said: Mapping[str, Json]) -> str:
    return said.get("method") or METHODS[name]


def build(
    name: str, properties: Mapping[str, Json], values: Mapping[str, Json], key: str
) -> Request:
    """name: of the request. values: what placeholders stand for. key: of the operation.

    Raises PlaceholderError.
    """
    said = properties[name]
    how = method(name, said)
    headers = _headers(properties, said, values)
    given = {header.lower() for header in headers}
    body = filled(said.get("body"), values)
    if body is not None and "content-type" not in given:
        headers["Content-Type"] = "text/plain" if isinstance(body, str) else "application/json"
    idempotent = properties.get("idempotency_header")
    if idempotent and how in CHANGING and idempotent.lower() not in given:
        headers[idempotent] = key
    return Request(how, filled_url(address(properties, said), values), headers, _raw(body))


def _headers(
    properties: Mapping[str, Json], said: Mapping[str, Json], values: Mapping[str, Json]
) -> dict[str, str]:
    """Those of the request over those of every request; null leaves one out."""
    own = said.get("headers") or {}
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
            raise PlaceholderError(f"the header {header} would hold control characters")
    return headers


def _raw(body: Json) -> bytes | None:
    if body is None:
        return None
    return body.encode() if isinstance(body, str) else orjson.dumps(body)


def bad_header(name: str, value: Json) -> str | None:
    """Why a header may not be sent; None: it may."""
    if not _NAME.fullmatch(name):
        return "is not a valid header name"
    if name.lower() in FORBIDDEN:
        return "belongs to the connection"
    if isinstance(value, dict | list):
        return "is not a string"
    return "holds control characters" if _CONTROL.search(as_text(value)) else None
