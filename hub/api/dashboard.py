"""The pages of the dashboard and their files.

Their content security policy allows scripts, styles and connections of this server only. They use
the API, with the rights of the signed-in user.
"""

import base64
import gzip
import hashlib
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cache
from html import escape
from pathlib import Path
from string import Template

from aiohttp import web

from engine.errors import NotFound
from hub.api.app_context import server_of
from hub.api.orchestration.api_versions import list_versions
from hub.api.orchestration.responses import ApiVersions
from hub.api.routes import Route

FOLDER = Path(__file__).parent.parent / "dashboard" / "page"
TYPES: Mapping[str, str] = {
    ".css": "text/css",
    ".html": "text/html",
    ".js": "text/javascript",
    ".svg": "image/svg+xml",
    ".txt": "text/plain",
}


@dataclass(frozen=True, slots=True)
class File:
    """zipped: the body compressed with gzip."""

    content_type: str
    body: bytes
    zipped: bytes


@dataclass(frozen=True, slots=True)
class Files:
    """digest: of all files; part of their address, so that browsers can cache them."""

    digest: str
    by_path: Mapping[str, File]


@cache
def all_files() -> Files:
    """Read once: the files do not change while a server runs."""
    found = {
        path.relative_to(FOLDER).as_posix(): _read(path)
        for path in sorted(FOLDER.rglob("*"))
        if path.suffix in TYPES
    }
    digest = hashlib.sha256()
    for name, file in found.items():
        digest.update(b"%b %d\n%b" % (name.encode(), len(file.body), file.body))
    return Files(digest.hexdigest()[:16], found)


def _read(path: Path) -> File:
    body = path.read_bytes()
    return File(TYPES[path.suffix], body, gzip.compress(body, mtime=0))


#: Bytes. The editor adds its styles with the nonce.
_NONCE = 16
_POLICY = "; ".join(
    (
        "default-src 'none'",
        "script-src 'self'",
        "worker-src 'self'",
        "style-src 'self' 'nonce-{nonce}'",
        "img-src 'self'",
        "connect-src 'self'",
        "base-uri 'none'",
        "form-action 'none'",
        "frame-ancestors 'none'",
        "require-trusted-types-for 'script'",
        "trusted-types headgate",
    )
)
_CACHED = "public, max-age=31536000, immutable"


async def show_home(request: web.Request) -> web.StreamResponse:
    """The dashboard for browsers, and the versions of the API for other clients."""
    if "text/html" not in request.headers.get("Accept", ""):
        return _vary(await list_versions(request))
    oidc = server_of(request).settings.auth.oidc
    provider = escape(oidc.name) if oidc.issuer else ""
    return _vary(page_response(request, "index.html", "dashboard", provider=provider))


async def show_answer_page(request: web.Request) -> web.StreamResponse:
    """A page with buttons that answer a hook. The hook token is in the fragment of the URL, which
    browsers do not send, and opening the page does not answer."""
    return page_response(request, "answer.html", "../dashboard")


def page_response(
    request: web.Request, name: str, folder: str, *, status: int = 200, **texts: str
) -> web.Response:
    """folder: of the files, relative to the URL of the page. texts: further ones in the page, as
    HTML."""
    context, files = server_of(request), all_files()
    nonce = base64.b64encode(context.random_bytes(_NONCE)).decode()
    text = Template(files.by_path[name].body.decode()).substitute(
        files=f"{folder}/{files.digest}", auth=context.settings.auth.mode, nonce=nonce, **texts
    )
    headers = {
        "Content-Security-Policy": _POLICY.format(nonce=nonce),
        "Cross-Origin-Opener-Policy": "same-origin",
    }
    return web.Response(text=text, status=status, content_type="text/html", headers=headers)


def _vary(response: web.Response) -> web.Response:
    response.headers["Vary"] = "Accept"
    return response


async def show_file(request: web.Request) -> web.StreamResponse:
    """Cached without expiry, because the URL contains a digest of all files."""
    files, path = all_files(), request.match_info["path"]
    known = request.match_info["digest"] == files.digest
    file = files.by_path.get(path) if known else None
    if file is None:
        raise NotFound(
            f'the dashboard has no file "{path}"',
            place="path",
            remedy="Reload the page: the server may have been upgraded.",
            code="FileNotFound",
        )
    headers = {"Cache-Control": _CACHED, "Vary": "Accept-Encoding"}
    body = file.body
    if "gzip" in request.headers.get("Accept-Encoding", ""):
        body, headers["Content-Encoding"] = file.zipped, "gzip"
    return web.Response(body=body, content_type=file.content_type, charset="utf-8", headers=headers)


ROUTES = (
    Route("GET", "/", show_home, "Versions of the API; the dashboard for Accept: text/html",
          "versions", status=300, response=ApiVersions),
    Route("GET", "/hooks/{hook}", show_answer_page, "A page that answers a hook", "hooks",
          content_type="text/html"),
    Route("GET", "/dashboard/{digest}/{path:.+}", show_file, "A file of the dashboard", "dashboard",
          content_type="text/javascript"),
)  # fmt: skip
