"""The pages of the dashboard, and what they load.

They may run and show what comes from this server and nothing else; what they can do, they do over
the API, with the rights of whoever is signed in.
"""

import base64
from string import Template

from aiohttp import web

from engine.errors import NotFound
from hub.api.orchestration.responses import ApiVersions
from hub.api.orchestration.versions import root
from hub.api.parts import Route, parts_of
from hub.dashboard.files import all_files

#: The editor writes its styles itself, and shows this for it.
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
_FOR_EVER = "public, max-age=31536000, immutable"


async def home(request: web.Request) -> web.StreamResponse:
    """To a browser, the dashboard; to others, the versions of the API."""
    if "text/html" not in request.headers.get("Accept", ""):
        return _varied(await root(request))
    return _varied(_page(request, "index.html", "dashboard"))


async def answer_page(request: web.Request) -> web.StreamResponse:
    """Buttons that POST, for whoever has a link with the hook's token. That stays behind the #,
    which no server and no log is sent; opening the page decides nothing."""
    return _page(request, "answer.html", "../dashboard")


def _page(request: web.Request, name: str, folder: str) -> web.Response:
    """folder: where the files are, from the page's own address."""
    parts, files = parts_of(request), all_files()
    nonce = base64.b64encode(parts.random_bytes(_NONCE)).decode()
    text = Template(files.by_path[name].body.decode()).substitute(
        files=f"{folder}/{files.digest}", auth=parts.settings.auth.mode, nonce=nonce
    )
    headers = {
        "Content-Security-Policy": _POLICY.format(nonce=nonce),
        "Cross-Origin-Opener-Policy": "same-origin",
    }
    return web.Response(text=text, content_type="text/html", headers=headers)


def _varied(response: web.Response) -> web.Response:
    response.headers["Vary"] = "Accept"
    return response


async def file(request: web.Request) -> web.StreamResponse:
    """Its address changes when any of them does, so it is kept for ever."""
    files, path = all_files(), request.match_info["path"]
    found = files.by_path.get(path) if request.match_info["digest"] == files.digest else None
    if found is None:
        raise NotFound(
            f'the dashboard has no file "{path}" (any more)',
            remedy="Reload the page: the server may have been upgraded.",
            code="FileNotFound",
        )
    headers = {"Cache-Control": _FOR_EVER, "Vary": "Accept-Encoding"}
    body = found.body
    if "gzip" in request.headers.get("Accept-Encoding", ""):
        body, headers["Content-Encoding"] = found.zipped, "gzip"
    return web.Response(
        body=body, content_type=found.content_type, charset="utf-8", headers=headers
    )


ROUTES = (
    Route("GET", "/", home, "Versions of the API; the dashboard, to who takes text/html",
          "versions", status=300, response=ApiVersions),
    Route("GET", "/hooks/{hook}", answer_page, "A page with buttons that answer", "hooks",
          answer="text/html"),
    Route("GET", "/dashboard/{digest}/{path:.+}", file, "A file of the dashboard", "dashboard",
          answer="text/javascript"),
)  # fmt: skip
