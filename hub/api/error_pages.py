"""A page about each type of errors, to which `help` in error responses links."""

import json
import re
from collections.abc import Iterable
from html import escape

from aiohttp import web

from engine.errors import NotFound, nearest
from engine.words import Json
from hub.api.app_context import public_url
from hub.api.dashboard import page_response
from hub.api.error_middleware import (
    ERROR_PAGES,
    HEAT_TYPES,
    heat_form,
    own_form,
    status_of,
    with_help,
)
from hub.api.routes import Route
from hub.error_types.catalog import ERROR_TYPES, GROUPS
from hub.error_types.error_type import ErrorType, ErrorTypeGroup

#: Our codes by the names that Heat has for them.
_CODE_OF_HEAT_TYPE = {name: code for code, name in HEAT_TYPES.items()}
#: A link to a page of the documentation, which the server does not have.
_LINK = re.compile(r"\[([^\]]+)\]\(([^)#]+)[^)]*\)")
_CODE = re.compile(r"`([^`]+)`")


def example_response(kind: ErrorType, server_url: str) -> Json:
    """The document of the example response of a type that requests get."""
    form = heat_form if kind.as_heat else own_form
    return with_help(form(kind.example), kind.name, server_url)


def example_text(kind: ErrorType, group: ErrorTypeGroup, server_url: str) -> str:
    """The example as a client or an operator sees it."""
    if group.at_start:
        return f"headgate: {kind.example}"
    return json.dumps(example_response(kind, server_url), indent=2, ensure_ascii=False)


async def show_error_types(request: web.Request) -> web.Response:
    return _page(request, "dashboard", "Errors", _list_of_types())


async def show_error_type(request: web.Request) -> web.Response:
    """Raises NotFound."""
    name = request.match_info["type"]
    code = _CODE_OF_HEAT_TYPE.get(name, name)
    kind = ERROR_TYPES.get(code)
    if kind is None:
        raise NotFound(
            f'there is no error type "{name}"',
            place="type",
            remedy=nearest(name, list(ERROR_TYPES)) or f"GET {ERROR_PAGES} lists all of them.",
            code="NotFound",
        )
    group = next(one for one in GROUPS if kind in one.types)
    content = "\n".join(_sections(kind, group, public_url(request)))
    return _page(request, "../dashboard", kind.name, content)


def _page(request: web.Request, folder: str, title: str, content: str) -> web.Response:
    return page_response(request, "error_type.html", folder, title=escape(title), content=content)


def _list_of_types() -> str:
    parts = [
        "<p>Each error of Headgate has a type, which never changes. Its page explains what it means"
        " and what to do.</p>"
    ]
    for group in GROUPS:
        items = "".join(
            f'<li><a href="{ERROR_PAGES[1:]}/{one.name}">{one.name}</a></li>' for one in group.types
        )
        parts.append(f"<h2>{escape(group.title)}</h2><ul>{items}</ul>")
    return "\n".join(parts)


def _sections(kind: ErrorType, group: ErrorTypeGroup, server_url: str) -> Iterable[str]:
    yield f"<p>{_html(kind.meaning)}</p>"
    if not group.at_start:
        yield f"<p>HTTP status: {status_of(kind.example)}</p>"
    yield f"<h2>What to do</h2><p>{_html(kind.remedy)}</p>"
    # A long URL is wrapped after a slash.
    example = escape(example_text(kind, group, server_url)).replace("/", "/<wbr>")
    yield f"<h2>Example</h2><pre>{example}</pre>"
    yield '<p><a href="../errors">All errors</a></p>'


def _html(text: str) -> str:
    """The HTML of a Markdown text: code, and the titles of linked pages."""
    text = _LINK.sub(r"<cite>\1</cite>", escape(text, quote=False))
    return _CODE.sub(r"<code>\1</code>", text)


ROUTES = (
    Route("GET", ERROR_PAGES, show_error_types, "A page that lists the types of errors", "errors",
          content_type="text/html"),
    Route("GET", f"{ERROR_PAGES}/{{type}}", show_error_type, "A page about a type of errors",
          "errors", content_type="text/html"),
)  # fmt: skip
